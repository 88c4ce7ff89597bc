"""One synthesis: the settings of an environment, the code that it deploys, and where."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from aws_cdk import App, Environment, Tags, Validations
from cdk_nag import AwsSolutionsChecks, ServerlessChecks
from constructs import Node

from dynashard_cdk.budget import TAG
from dynashard_cdk.bundling import SOURCES, Bundle, bundle_from
from dynashard_cdk.release import release_of
from dynashard_cdk.settings import NOWHERE, Settings, SettingsError, load


@dataclass(frozen=True, slots=True)
class Deployment:
    """What all stacks of an environment share.

    Attributes:
        settings: the environment's settings.
        bundle: the code of the layers and functions.
        env: the account and the Region.
    """

    settings: Settings
    bundle: Bundle
    env: Environment

    @classmethod
    def of(cls, app: App, root: Path) -> Self:
        """Read the environment that the app's context asks for; its stacks are tagged with its name and checked.

        The context is that of `cdk.json`, with `-c env=NAME` (default `dev`), `-c issuer=`, `-c audience=`,
        `-c tenant_claim=` and `-c scope_claim=` for a sign-in that is not in the file, and `-c assets=` for where the
        code comes from (default `build`).

        Args:
            app: the app.
            root: the folder of the backend, with its `functions` and `layers`.

        Raises:
            SettingsError: a setting is missing, unknown or wrong, or the code is not built; one line that names it.
        """
        settings = settings_of(app.node)
        # `cdk ls` and others that need no code set `aws:cdk:bundling-stacks` to an empty list.
        needless = app.node.try_get_context("aws:cdk:bundling-stacks") == []
        bundle = bundle_from(_text(app.node, "assets") or (SOURCES if needless else "build"), root)
        Tags.of(app).add(TAG, settings.name)
        Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
        return cls(settings, bundle, Environment(account=_account(settings, bundle), region=settings.region))

    def name(self, stack: str) -> str:
        """Return the name of one of its stacks, such as `Dynashard-dev-Api`."""
        return f"Dynashard-{self.settings.name}-{stack}"

    @property
    def placed(self) -> dict[str, Any]:
        """The arguments of a stack without code: its settings and where it goes."""
        return {"settings": self.settings, "env": self.env}

    @property
    def code(self) -> dict[str, Any]:
        """The arguments of a stack with functions: besides `placed`, their code and the mark of the release."""
        return {**self.placed, "bundle": self.bundle, "release": self._release}

    @property
    def _release(self) -> str:
        return release_of(self.bundle.folders, self.settings, self.bundle.root / "stacks")


def settings_of(node: Node) -> Settings:
    """Return the settings of the environment that the context names; raises as `load`."""
    return load(
        node.try_get_context("environments"),
        _text(node, "env") or "dev",
        issuer=_text(node, "issuer"),
        audience=_text(node, "audience"),
        tenant_claim=_text(node, "tenant_claim"),
        scope_claim=_text(node, "scope_claim"),
    )


def new_app(context: Mapping[str, Any], outdir: Path) -> App:
    """Return an app that synthesises into a folder without CDK's command line.

    Args:
        context: that of `cdk.json` with what `-c` would add.
        outdir: gets a `<stack>.template.json` for each stack when the app's `synth` is called.
    """
    return App(outdir=str(outdir), context=dict(context), analytics_reporting=False)


def _account(settings: Settings, bundle: Bundle) -> str | None:
    """Return the account of the stacks; one that does not exist if they are for this machine only."""
    return settings.account if bundle.deployable and not settings.local else NOWHERE


def _text(node: Node, key: str) -> str | None:
    value = node.try_get_context(key)
    if value is not None and not isinstance(value, str):
        raise SettingsError(f"-c {key}=... must be text, but is {value!r}")
    return value
