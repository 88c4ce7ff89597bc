"""`dynashard restore`."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from dynashard_local.root import backend_root
from dynashard_tools.account.recorded import purged
from dynashard_tools.aws_account import show_account
from dynashard_tools.connection import RESTORED, open_backend
from dynashard_tools.environments import aws_errors, backend_context, environment_named
from dynashard_tools.failure import DONE, WITH_ERRORS, CommandError, on_interrupt
from dynashard_tools.progress import working
from dynashard_tools.reshard.description import line
from dynashard_tools.reshard.halting import halt
from dynashard_tools.restore.steps import Restore, Step, pair_of
from dynashard_tools.restore.tables import Tables
from dynashard_tools.restore.writers import PARTS, Writers


def restore(
    to: Annotated[str, typer.Option("--to", help="The moment in UTC, such as 2026-11-20T10:15:00Z.")],
    environment: Annotated[str, typer.Option("--env", help="The deployed environment.")],
) -> None:
    """Restore the tables of an environment to a moment, with a question before each step.

    Stops the functions, restores both tables, verifies them, repeats the purges made after the moment, and gives the
    new tables the settings of the old ones. It prints the setting for cdk.json, and continues when the environment is
    deployed with it.

    To continue after an interruption, run it again with the same `--to`: it finds what is done.
    docs/runbooks/restore.md describes each step.
    """
    with aws_errors("AWS has refused a call", ". Run the command again to continue"):
        found = restore_of(environment, moment_of(to))
        # Each step asks, so nothing is done in this account unless somebody has read its number.
        show_account(environment, answered=True)
        run(found)


def run(found: Restore) -> None:
    """Do the steps that are not done, each after a question.

    Raises:
        CommandError: a step was refused or has failed; the message says how to go on.
    """
    if not found.tables.restored():
        found.tables.refuse_moment(found.moment)
    for number, step in enumerate(found.steps(), 1):
        _take(number, step)
    env = found.environment
    typer.echo(f"Restored. Verify {env}, and repair what is derived from its items, such as copies and roll-ups:")
    typer.echo(f"    dynashard verify --mend --env {env}")


def _take(number: int, step: Step) -> None:
    if step.done():
        typer.echo(f"{number}. {step.title}: done")
        return
    typer.echo(f"{number}. {step.title}")
    for each in step.about():
        typer.echo(f"   {each}")
    try:
        wanted = typer.confirm("   Continue?")
    except typer.Abort:
        raise CommandError(
            "standard input ended without an answer: run the command again with the same --to, and answer"
        ) from None
    if wanted:
        with on_interrupt(lambda: "this step may be done in part: run the command again with the same --to to go on"):
            step.do()
    elif not step.optional:
        raise CommandError("stopped before this step: to continue, run the command again with the same --to")


def moment_of(text: str) -> datetime:
    """Return a moment. Raises `CommandError` if the text is not one, or has no time zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(f"--to is {text!r}; it must be a time such as 2026-11-20T10:15:00Z") from None
    if moment.tzinfo is None:
        raise CommandError(f"--to is {text!r}, without a time zone; add Z for UTC")
    if moment > datetime.now(UTC):
        raise CommandError(f"--to is {text!r}, which is in the future; it must be in the past")
    return moment.astimezone(UTC)


def restore_of(environment: str, moment: datetime) -> Restore:
    """Return the restore of a deployed environment. Raises `CommandError` if it cannot be found."""
    if any(os.environ.get(name) for name in RESTORED):
        raise CommandError(f"{' and '.join(RESTORED)} are set, which this command does itself: unset them")
    found = environment_named(environment)
    outputs = found.outputs("Data")
    pairs = [pair_of(outputs[name], moment) for name in ("TableName", "TopologyName")]
    backend = replace(open_backend(environment), table=pairs[0].target, topology_table=pairs[1].target)
    names = {part.lower(): name for part in PARTS for name in found.resources(part, "AWS::Lambda::Function").values()}

    machines = found.client("stepfunctions")

    def purge(tenant: str) -> None:
        with working("{:>11,} items read, {:,} removed") as work:
            scanned, removed = work.adders(2)
            purged(backend, tenant, scanned, removed)

    return Restore(
        environment=environment,
        moment=moment,
        tables=Tables(found.client("dynamodb"), pairs, time.sleep),
        writers=Writers(found.client("lambda"), names, _concurrency(environment)),
        purges=backend.purge_records(),
        purge=purge,
        verify=lambda: tables_agree(environment, dict(zip(RESTORED, (each.target for each in pairs), strict=True))),
        in_use=lambda: found.output("Data", "TableName"),
        busy=lambda: [line(each) for each in open_backend(environment).resharder().busy()],
        halt=lambda: print(f"   {len(halt(machines, environment, time.sleep))} executions were stopped"),
    )


def _concurrency(environment: str) -> Mapping[str, int]:
    """Return what the functions reserve by the settings; nothing if these reserve nothing."""
    from dynashard_cdk.settings import SettingsError, load  # noqa: PLC0415 - only here

    sign_in = {"issuer": "https://unused.example.com", "audience": "unused", "tenant_claim": "unused"}
    try:
        settings = load(backend_context().get("environments"), environment, **sign_in)
    except SettingsError as error:
        raise CommandError(str(error)) from error
    return settings.concurrency if settings.reserve_concurrency else {}


def tables_agree(environment: str, variables: Mapping[str, str]) -> bool:
    """Verify the restored tables in a process of its own, and return whether they agree.

    Rows that do not fit their declaration were so before, and no restore repairs them; they are named.
    """
    program = [sys.executable, "-c", "from dynashard_tools.cli import main; main()", "verify", "--env", environment]
    done = subprocess.run(program, check=False, env={**os.environ, **variables}, cwd=backend_root())  # noqa: S603
    return done.returncode in (DONE, WITH_ERRORS)
