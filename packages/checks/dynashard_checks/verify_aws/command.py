"""`dynashard verify-aws`."""

from typing import Annotated

import typer

from dynashard_tools.options import AsJson


def verify_aws(
    *,
    environment: Annotated[str | None, typer.Option("--env", help="The environment, such as dev.")] = None,
    names: Annotated[list[str] | None, typer.Option("--check", help="A check; several times for several.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the checks with their costs, and end.")] = False,
    budget: Annotated[float, typer.Option(min=0, help="The most dollars that the checks may cost.")] = 3.0,
    deploying: Annotated[bool, typer.Option("--deploy/--no-deploy", help="Deploy the environment first.")] = True,
    cdk: Annotated[
        list[str] | None, typer.Option("--cdk", metavar="ARGUMENT", help="An argument of cdk deploy, such as -c=a=b.")
    ] = None,
    signing_in: Annotated[
        bool, typer.Option("--scratch-sign-in", help="Deploy with a scratch sign-in; for an environment without one.")
    ] = False,
    number: Annotated[str | None, typer.Option("--account", help="The number of the account that may be used.")] = None,
    assumed: Annotated[bool, typer.Option("--yes", help="Do not ask; needs --account.")] = False,
    cleaning: Annotated[bool, typer.Option("--clean", help="Remove what earlier runs have left, and end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check the facts about AWS that this backend relies on, on a real account. It costs money.

    Prints what it may cost, asks for the account's number, deploys the environment, calls its API, and works on scratch
    tables and queues of its own, which it removes. `--list` shows the checks; `--clean` removes what an interrupted run
    has left. Calls of the API need a bearer token of the environment's issuer in DYNASHARD_TOKEN.
    """
    # Only this command needs the SDK and an HTTP client.
    from dynashard_checks.verify_aws import verification  # noqa: PLC0415

    if listed:
        verification.show_checks(as_json=as_json)
    elif cleaning:
        verification.clean(verification.confirmed_account(environment, number, assumed=assumed), as_json=as_json)
    else:
        checks = verification.chosen(environment, names or (), budget)
        account = verification.confirmed_account(environment, number, assumed=assumed, checks=checks)
        deployment = verification.Deployment(cdk or (), scratch_sign_in=signing_in) if deploying else None
        verification.verify(account, str(environment), checks, deployment=deployment, as_json=as_json)
