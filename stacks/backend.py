"""Adds the stacks of one environment to an app, and synthesises them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws_cdk import App, Environment, Tags, Validations
from cdk_nag import AwsSolutionsChecks, ServerlessChecks
from constructs import Node

from stacks.api import ApiStack
from stacks.budget import TAG
from stacks.bundling import SOURCES, Bundle, bundle_from
from stacks.changes import ChangesStack
from stacks.commands import CommandsStack
from stacks.data import DataStack
from stacks.monitored import Parts
from stacks.monitoring import MonitoringStack
from stacks.prewarm import PrewarmStack
from stacks.release import release_of
from stacks.reshard import ReshardStack
from stacks.settings import NOWHERE, Settings, SettingsError, load
from stacks.writer import WriterStack


def add_backend(app: App) -> None:
    """Add every stack of the environment that the app's context asks for.

    The context is that of `cdk.json`, with `-c env=NAME` (default `dev`), `-c issuer=`, `-c audience=` and
    `-c tenant_claim=` for a sign-in that is not in the file, and `-c assets=` for where the code comes from
    (default `build`).

    Raises:
        SettingsError: a setting is missing, unknown or wrong, or the code is not built; one line that names it.
    """
    settings = settings_of(app.node)
    # `cdk ls` and others that need no code set `aws:cdk:bundling-stacks` to an empty list.
    needless = app.node.try_get_context("aws:cdk:bundling-stacks") == []
    bundle = bundle_from(_text(app.node, "assets") or (SOURCES if needless else "build"))
    prefix = f"Dynashard-{settings.name}"
    env = Environment(account=_account(settings, bundle), region=settings.region)
    data = DataStack(app, f"{prefix}-Data", settings=settings, env=env)
    common = {
        "settings": settings,
        "data": data,
        "bundle": bundle,
        "release": release_of(bundle.folders, settings),
        "env": env,
    }
    api = ApiStack(app, f"{prefix}-Api", **common)
    commands = CommandsStack(app, f"{prefix}-Commands", cursor_secret=api.cursor_secret, **common)
    reshard = ReshardStack(app, f"{prefix}-Reshard", **common)
    changes = ChangesStack(app, f"{prefix}-Changes", **common)
    writer = WriterStack(app, f"{prefix}-Writer", **common)
    writer.feed(api.function)
    parts = Parts(data, api, commands, changes, writer, reshard)
    # The local stack has no CloudWatch.
    topic = None
    if not settings.local:
        topic = MonitoringStack(app, f"{prefix}-Monitoring", settings=settings, parts=parts, env=env).topic
    if settings.prewarm is not None:
        PrewarmStack(app, f"{prefix}-Prewarm", prewarm=settings.prewarm, topic=topic, **common)
    Tags.of(app).add(TAG, settings.name)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))


def settings_of(node: Node) -> Settings:
    """Return the settings of the environment that the context names; raises as `load`."""
    return load(
        node.try_get_context("environments"),
        _text(node, "env") or "dev",
        issuer=_text(node, "issuer"),
        audience=_text(node, "audience"),
        tenant_claim=_text(node, "tenant_claim"),
    )


def synthesise(context: Mapping[str, Any], outdir: Path) -> Path:
    """Synthesise an environment without CDK's command line; raises as `add_backend`.

    `context` is that of `cdk.json` with what `-c` would add. Returns the folder, with a `<stack>.template.json` each.
    """
    app = App(outdir=str(outdir), context=dict(context), analytics_reporting=False)
    add_backend(app)
    return Path(app.synth().directory)


def _account(settings: Settings, bundle: Bundle) -> str | None:
    """Return the account of the stacks; one that does not exist if they are for this machine only."""
    return settings.account if bundle.deployable and not settings.local else NOWHERE


def _text(node: Node, key: str) -> str | None:
    value = node.try_get_context(key)
    if value is not None and not isinstance(value, str):
        raise SettingsError(f"-c {key}=... must be text, but is {value!r}")
    return value
