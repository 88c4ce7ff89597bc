"""What one environment is made of, and how its template is synthesised from code."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws_cdk import App, Environment, Tags, Validations
from cdk_nag import AwsSolutionsChecks, ServerlessChecks
from constructs import Node

from stacks.api import ApiStack
from stacks.bundling import SOURCES, Bundle, bundle_from
from stacks.changes import ChangesStack
from stacks.commands import CommandsStack
from stacks.data import DataStack
from stacks.prewarm import PrewarmStack
from stacks.reshard import ReshardStack
from stacks.settings import NOWHERE, Settings, SettingsError, load
from stacks.writer import WriterStack


def add_backend(app: App) -> None:
    """Add every stack of the environment that the app's context asks for.

    The context is that of `cdk.json`, with `-c env=NAME` (default `dev`), `-c issuer=`, `-c audience=` and
    `-c tenant_claim=` for a sign-in that is not in the file, and `-c assets=` for where the code comes from
    (default `build`).

    Raises:
        SettingsError: A setting is missing, unknown or wrong, or the code is not built; one line that names it.
    """
    settings = settings_of(app.node)
    # `cdk ls` and its like tell that they need no code: `aws:cdk:bundling-stacks` is then an empty list.
    needless = app.node.try_get_context("aws:cdk:bundling-stacks") == []
    bundle = bundle_from(_text(app.node, "assets") or (SOURCES if needless else "build"))
    env = Environment(account=_account(settings, bundle), region=settings.region)
    prefix = f"Dynashard-{settings.name}"
    data = DataStack(app, f"{prefix}-Data", settings=settings, env=env)
    api = ApiStack(app, f"{prefix}-Api", settings=settings, data=data, bundle=bundle, env=env)
    CommandsStack(
        app,
        f"{prefix}-Commands",
        settings=settings,
        data=data,
        cursor_secret=api.cursor_secret,
        bundle=bundle,
        env=env,
    )
    ReshardStack(app, f"{prefix}-Reshard", settings=settings, data=data, bundle=bundle, env=env)
    ChangesStack(app, f"{prefix}-Changes", settings=settings, data=data, bundle=bundle, env=env)
    writer = WriterStack(app, f"{prefix}-Writer", settings=settings, data=data, bundle=bundle, env=env)
    writer.feed(api.function)
    if settings.prewarm is not None:
        PrewarmStack(
            app, f"{prefix}-Prewarm", settings=settings, prewarm=settings.prewarm, data=data, bundle=bundle, env=env
        )
    Tags.of(app).add("dynashard:environment", settings.name)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))


def settings_of(node: Node) -> Settings:
    """Settings that the context asks for.

    Raises:
        SettingsError: The context is wrong; the message names what.
    """
    return load(
        node.try_get_context("environments"),
        _text(node, "env") or "dev",
        issuer=_text(node, "issuer"),
        audience=_text(node, "audience"),
        tenant_claim=_text(node, "tenant_claim"),
    )


def synthesise(context: Mapping[str, Any], outdir: Path) -> Path:
    """Synthesise an environment without the command line, as the local stack and the tests do.

    Args:
        context: What `cdk.json` carries under `context`, with what `-c` would add.
        outdir: Folder for the templates, one `<stack>.template.json` each.

    Returns:
        The folder.

    Raises:
        SettingsError: The context is wrong; the message names what.
    """
    app = App(outdir=str(outdir), context=dict(context), analytics_reporting=False)
    add_backend(app)
    return Path(app.synth().directory)


def _account(settings: Settings, bundle: Bundle) -> str | None:
    """Where the stacks may go: what is only for this machine is bound to an account that does not exist."""
    return settings.account if bundle.deployable and not settings.local else NOWHERE


def _text(node: Node, key: str) -> str | None:
    value = node.try_get_context(key)
    if value is not None and not isinstance(value, str):
        raise SettingsError(f"-c {key}=... must be text, but is {value!r}")
    return value
