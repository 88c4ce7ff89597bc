"""`dynashard preflight`."""

import json
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer

from dynashard_cdk.sections import AuthSettings
from dynashard_cdk.settings import Settings, SettingsError, load
from dynashard_checks.preflight import checks, issuer
from dynashard_checks.preflight.account import Account
from dynashard_checks.preflight.finding import lines
from dynashard_tools.environments import backend_context
from dynashard_tools.failure import CommandError
from dynashard_tools.options import AsJson

CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 20


def preflight(
    environment: Annotated[str, typer.Option("--env", help="The environment of cdk.json that is to be deployed.")],
    issuer_url: Annotated[str | None, typer.Option("--issuer", help="Replaces auth.issuer.")] = None,
    audience: Annotated[str | None, typer.Option(help="Replaces auth.audience.")] = None,
    tenant_claim: Annotated[str | None, typer.Option(help="Replaces auth.tenant_claim.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Ask the account for its limits and the issuer for its keys, before anything is deployed.

    Reads only. Prints each limit with what the environment needs and what was found, and fails if one does not fit.
    """
    settings = _settings(environment, issuer=issuer_url, audience=audience, tenant_claim=tenant_claim)
    found = [*checks.findings(settings, Account(lambda service: _client(service, settings.region)))]
    # A user pool of the backend's own has no keys before it is deployed.
    if isinstance(settings.auth, AuthSettings):
        found += issuer.findings(settings.auth.issuer, issuer.fetch)
    wrong = [each for each in found if not each.fits]
    if as_json:
        typer.echo(json.dumps({"fits": not wrong, "findings": [{**asdict(each), "fits": each.fits} for each in found]}))
    else:
        for line in lines(found):
            typer.echo(line)
    if wrong:
        raise CommandError(f"{len(wrong)} of {len(found)} limits do not fit {environment}; nothing was deployed")


def _settings(environment: str, **sign_in: str | None) -> Settings:
    try:
        settings = load(backend_context().get("environments"), environment, **sign_in)
    except SettingsError as error:
        raise CommandError(str(error)) from error
    if settings.local:
        raise CommandError(f"{environment} is for this machine only: name an environment of an account with --env")
    return settings


def _client(service: str, region: str | None) -> Any:
    # Other commands need no SDK.
    import boto3  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": 3},
    )
    return boto3.session.Session(region_name=region).client(service, config=config)
