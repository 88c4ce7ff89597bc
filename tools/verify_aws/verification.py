"""A whole run: the account, the deployment, the checks and the report."""

import os
import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final
from uuid import uuid4

import typer

from dynashard.errors import ConfigurationError
from dynashard.transport.aws import stack_outputs
from tools.failure import FAILED, WITH_ERRORS, CommandError
from tools.progress import show
from tools.verify_aws import report as reports
from tools.verify_aws.account import Account, confirm
from tools.verify_aws.check import Check, Verdict
from tools.verify_aws.checks import CHECKS
from tools.verify_aws.context import Context, is_local
from tools.verify_aws.deploying import deploy
from tools.verify_aws.environment import Environment
from tools.verify_aws.runner import Report, run_checks, select
from tools.verify_aws.scratch import Scratch

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


def confirmed_account(number: str | None, *, assumed: bool, checks: Sequence[Check] = ()) -> Account:
    """Return the account, after the user has seen what the checks cost, and has confirmed the account's number.

    Raises:
        CommandError: the credentials are those of another account, or not usable. Only STS was called.
    """
    account = Account()
    actual = account.number
    for line in reports.costs(checks, f"Account {actual} in {account.region}") if checks else ():
        typer.echo(line, err=True)
    confirm(
        actual, number, assumed=assumed, ask=lambda: str(typer.prompt("Type the account's number to go on", err=True))
    )
    return account


def verify(
    account: Account, environment: str, checks: Sequence[Check], *, cdk: Sequence[str] | None, as_json: bool
) -> None:
    """Deploy the environment, run the checks, remove the scratch resources and print the report.

    Args:
        account: which was confirmed.
        environment: its name in cdk.json.
        checks: which.
        cdk: arguments of `cdk deploy`; None if the environment is not to be deployed.
        as_json: whether the report is JSON.

    Raises:
        CommandError: the environment could not be deployed.
        typer.Exit: with status 1 if a fact does not hold, 3 if something is unknown or left.
    """
    if cdk is not None:
        deploy(environment, cdk)
    local = is_local(account.endpoint)
    deployed = Environment(environment, cache(stack_outputs), os.environ.get(TOKEN_VARIABLE, ""), account.local_gateway)
    context = Context(account.client, _scratch(account), deployed, say=lambda line: typer.echo(line, err=True))
    found = run_checks(checks, context, local=local, has_api=_has_api(deployed))
    summary = reports.document(
        found, account=account.number, region=account.region, environment=environment, local=local
    )
    show(summary, *reports.lines(found), as_json=as_json)
    end(found)


def clean(account: Account, *, as_json: bool) -> None:
    """Remove what earlier runs have left, and print it. Raises `typer.Exit` with status 1 if something is left."""
    removed, left = _scratch(account).remove_leftovers()
    lines = [*(f"removed {each}" for each in removed), *(f"could not remove {each}" for each in left)]
    show({"removed": removed, "left": left}, *(lines or ["there is nothing to remove"]), as_json=as_json)
    if left:
        raise typer.Exit(FAILED)


def _scratch(account: Account) -> Scratch:
    return Scratch(account.client, uuid4().hex[:8], time.time, time.sleep)


def _has_api(environment: Environment) -> bool:
    try:
        return "ApiUrl" in environment.stack("Api")
    except ConfigurationError:
        return False


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
