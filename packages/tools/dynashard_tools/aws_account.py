"""Names the AWS account that a command would change, if cdk.json does not say which account is meant.

An environment whose settings have an `account` needs none of this: `environment_named` refuses other credentials.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import typer

from dynashard_tools.environments import Credentials, backend_context, credentials_of, environment_named
from dynashard_tools.failure import CommandError

OPTION: Final = "--aws-account"


@dataclass(frozen=True, slots=True)
class _Unnamed:
    """Credentials that a command would use in an environment whose account cdk.json does not name."""

    environment: str
    region: str
    credentials: Credentials

    def show(self) -> None:
        """Print whose credentials these are."""
        line = f"the credentials are of {self.credentials}, Region {self.region}"
        typer.echo(f"{line}; cdk.json names no account for {self.environment}", err=True)

    def nobody(self, option: str) -> CommandError:
        """Return the error for a command that nobody can confirm."""
        return CommandError(
            f"standard input is not a terminal, so nobody can confirm account {self.credentials.account}: set "
            f"environments.{self.environment}.account in cdk.json, or add {option}. Nothing was done"
        )


def answerable() -> bool:
    """Whether a person can answer a question."""
    return sys.stdin.isatty()


def show_account(environment: str | None, *, answered: bool) -> None:
    """Print whose credentials these are, unless cdk.json names the account. The question of the command follows it.

    Args:
        environment: its name; None for the local stack, which is in no account.
        answered: whether an option has answered that question, or a person can.

    Raises:
        CommandError: nobody can answer that question; or the credentials cannot be used.

    Cost: 1 GetCallerIdentity; none if cdk.json names the account.
    """
    if environment is None or _account_of(environment) is not None:
        return
    if (found := _unnamed(environment)) is not None:
        found.show()
        if not answered:
            raise found.nobody("--yes")


def require_account(
    environment: str | None,
    named: str | None,
    *,
    terminal: Callable[[], bool] = answerable,
    ask: Callable[[str], bool] = lambda text: typer.confirm(text, err=True),
) -> None:
    """Let `--aws-account` or a person confirm the account of the credentials, unless cdk.json names it.

    Args:
        environment: its name; None for the local stack, which is in no account.
        named: the value of `--aws-account`, which is compared with the account of cdk.json, too.
        terminal: whether a person can answer.
        ask: asks a person.

    Raises:
        CommandError: another account is named, the answer was no, or nobody can answer; or the credentials cannot be
            used.

    Cost: as `show_account`.
    """
    if environment is None:
        if named is not None:
            raise CommandError(f"{OPTION} is {named}, and the local stack is in no account: add --env, or leave it out")
        return
    account = _account_of(environment)
    if account is None:
        found = _unnamed(environment)
        if found is None:
            return
        account = found.credentials.account
        if named is None:
            found.show()
            if not terminal():
                raise found.nobody(f"{OPTION} with the number of the account that you mean")
            if not ask(f"Is this the account of {environment}?"):
                raise CommandError("the answer was no: nothing was done")
    if named not in (None, account):
        raise CommandError(f"{OPTION} is {named}, and {environment} is in account {account}. Nothing was done")


def _account_of(environment: str) -> str | None:
    """Return the account of an environment in cdk.json, which `environment_named` has compared with the credentials."""
    found = backend_context()["environments"].get(environment, {}).get("account")
    return None if found is None else str(found)


def _unnamed(environment: str) -> _Unnamed | None:
    """Return whose credentials are used in an environment; None with a local AWS."""
    place = environment_named(environment)
    credentials = credentials_of(place)
    return None if credentials.local_url is not None else _Unnamed(environment, place.region, credentials)
