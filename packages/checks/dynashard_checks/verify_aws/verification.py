"""A whole run: the account, the deployment, the checks and the report."""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Final
from uuid import uuid4

import typer
from botocore.exceptions import BotoCoreError, ClientError

from dynashard.errors import ConfigurationError
from dynashard.transport.aws import stack_outputs
from dynashard_checks.verify_aws import report as reports
from dynashard_checks.verify_aws import stop_loss
from dynashard_checks.verify_aws.account import Account, confirm
from dynashard_checks.verify_aws.check import Check, Verdict
from dynashard_checks.verify_aws.checks import CHECKS
from dynashard_checks.verify_aws.context import Context
from dynashard_checks.verify_aws.deploying import deploy
from dynashard_checks.verify_aws.environment import Environment
from dynashard_checks.verify_aws.runner import Report, run_checks, select
from dynashard_checks.verify_aws.scratch import PREFIX, Scratch
from dynashard_checks.verify_aws.sign_in import pools, refuse_if_signed_in, scratch_sign_in
from dynashard_tools.environments import environment_named
from dynashard_tools.failure import FAILED, WITH_ERRORS, CommandError
from dynashard_tools.printing import show

TOKEN_VARIABLE: Final = "DYNASHARD_TOKEN"  # noqa: S105 - the name of a variable
LOCAL_STACK: Final = "local"


def show_checks(*, as_json: bool) -> None:
    """Print all checks with their costs."""
    show({"checks": [_described(check) for check in CHECKS]}, *reports.listing(CHECKS), as_json=as_json)


def chosen(environment: str | None, names: Sequence[str], budget: float) -> list[Check]:
    """Return the checks of a run. Raises `CommandError` if the arguments do not fit; nothing was sent then."""
    if environment in (None, LOCAL_STACK):
        raise CommandError("name a deployed environment, such as --env dev; the local stack shows nothing about AWS")
    return select(CHECKS, names, budget)


def confirmed_account(
    environment: str | None, number: str | None, *, assumed: bool, checks: Sequence[Check] = ()
) -> Account:
    """Return the account, after the user has seen what the checks cost, and has confirmed the account's number.

    Calls go to the region of the environment, and the credentials must be of its account if its settings name one.

    Raises:
        CommandError: the credentials are those of another account, or not usable. Only STS was called.
    """
    account = Account(None if environment is None else environment_named(environment).region)
    actual = account.number
    for line in reports.costs(checks, f"Account {actual} in {account.region}") if checks else ():
        _say(line)
    confirm(
        actual, number, assumed=assumed, ask=lambda: str(typer.prompt("Type the account's number to go on", err=True))
    )
    return account


@dataclass(frozen=True, slots=True)
class Deployment:
    """How the environment is deployed before it is checked.

    Attributes:
        options: arguments of `cdk deploy`.
        scratch_sign_in: whether it gets a scratch sign-in.
    """

    options: Sequence[str] = ()
    scratch_sign_in: bool = False


def verify(
    account: Account, environment: str, checks: Sequence[Check], *, deployment: Deployment | None, as_json: bool
) -> None:
    """Deploy the environment, run the checks, remove the scratch resources and print the report.

    Args:
        account: which was confirmed.
        environment: its name in cdk.json.
        checks: which.
        deployment: how it is deployed before; None if it is not to be deployed.
        as_json: whether the report is JSON.

    Raises:
        CommandError: the environment could not be deployed; no check has run.
        typer.Exit: with status 1 if a fact does not hold, 3 if something is unknown or left.
    """
    # A terminated run cleans up like one that Ctrl-C has ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    lasting = _scratch(account)
    left: list[str] = []
    try:
        token = _deploy(account, lasting, environment, deployment) or os.environ.get(TOKEN_VARIABLE, "")
        outputs = cache(partial(stack_outputs, region=account.region))
        deployed = Environment(environment, outputs, token, account.local_gateway)
        context = Context(account.client, _scratch(account), deployed, say=_say)
        found = run_checks(checks, context, local=account.local, has_api=_has_api(environment, account.region))
    finally:
        left += lasting.remove_all()
        for each in left:
            _say(f"could not remove {each}")
    found = replace(found, left=[*found.left, *left])
    summary = reports.document(
        found, account=account.number, region=account.region, environment=environment, local=account.local
    )
    show(summary, *reports.lines(found), as_json=as_json)
    end(found)


def _deploy(account: Account, lasting: Scratch, environment: str, deployment: Deployment | None) -> str:
    """Deploy, and return the token of the scratch sign-in, which is empty without one."""
    if deployment is None:
        return ""
    if not deployment.scratch_sign_in:
        deploy(environment, deployment.options)
        return ""
    refuse_if_signed_in(environment, deployed=_has_api(environment, account.region))
    try:
        signed_in = scratch_sign_in(account.client, lasting)
    except (BotoCoreError, ClientError) as error:
        raise CommandError(f"the scratch sign-in cannot be created: {error}") from error
    deploy(environment, [*deployment.options, *signed_in.options])
    return signed_in.token


def clean(account: Account, *, as_json: bool) -> None:
    """Remove what earlier runs have left, and print it.

    Raises:
        CommandError: they cannot be listed.
        typer.Exit: with status 1 if something is left.
    """
    scratch, cognito = _scratch(account), account.client("cognito-idp")
    try:
        for pool in pools(cognito, PREFIX):
            scratch.defer(f"user pool {pool}", partial(cognito.delete_user_pool, UserPoolId=pool))
        stop_loss.defer_leftovers(scratch)
        removed, left = scratch.remove_leftovers()
    except (BotoCoreError, ClientError) as error:
        raise CommandError(f"what earlier runs have left cannot be listed: {error}") from error
    lines = [*(f"removed {each}" for each in removed), *(f"could not remove {each}" for each in left)]
    show({"removed": removed, "left": left}, *(lines or ["there is nothing to remove"]), as_json=as_json)
    if left:
        raise typer.Exit(FAILED)


def _scratch(account: Account) -> Scratch:
    return Scratch(account.client, uuid4().hex[:8], time.time, time.sleep)


def _has_api(environment: str, region: str) -> bool:
    try:
        return "ApiUrl" in stack_outputs(f"Dynashard-{environment}-Api", region=region)
    except ConfigurationError:
        return False


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _described(check: Check) -> Mapping[str, object]:
    return {
        "name": check.name,
        "fact": check.fact,
        "dollars_at_most": check.dollars,
        "seconds": check.seconds,
        "local": check.local,
        "optional": check.optional,
    }


def end(report: Report) -> None:
    """End with the exit status of a report: 1 if a fact does not hold, 3 if something is unknown or left."""
    if report.count(Verdict.DIFFERS):
        raise typer.Exit(FAILED)
    if report.count(Verdict.UNCLEAR) or report.not_run or report.left:
        raise typer.Exit(WITH_ERRORS)
