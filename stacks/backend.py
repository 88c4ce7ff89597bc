"""What one environment is made of, and how its template is synthesised from code."""

from aws_cdk import App, Environment

from stacks.data import DataStack
from stacks.settings import NOWHERE, Settings, SettingsError, load


def settings_of(app: App) -> Settings:
    """Settings that the app's context asks for (`-c env=NAME`, default `dev`).

    Raises:
        SettingsError: The context is wrong; the message names what.
    """

    def context(key: str) -> str | None:
        value = app.node.try_get_context(key)
        if value is not None and not isinstance(value, str):
            raise SettingsError(f"-c {key}=... must be text")
        return value

    return load(
        app.node.try_get_context("environments"),
        context("env") or "dev",
        issuer=context("issuer"),
        audience=context("audience"),
    )


def add_backend(app: App, settings: Settings) -> None:
    """Add every stack of an environment to the app."""
    env = Environment(account=NOWHERE if settings.local else settings.account, region=settings.region)
    DataStack(app, f"Dynashard-{settings.name}-Data", settings=settings, env=env)
