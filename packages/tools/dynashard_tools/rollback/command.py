"""`dynashard rollback`."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer
from rich.table import Table

from dynashard.schema import TOPOLOGY_UNDERSTOOD
from dynashard_tools.aws_account import answerable, show_account
from dynashard_tools.connection import open_backend
from dynashard_tools.counting import plural
from dynashard_tools.environments import environment_named
from dynashard_tools.failure import CommandError, on_interrupt
from dynashard_tools.options import AsJson, DryRun
from dynashard_tools.printing import print_table, show
from dynashard_tools.rollback.aliases import functions_of, move
from dynashard_tools.rollback.records import UnknownRecord, unknown_records
from dynashard_tools.rollback.releases import Function, Plan, Release, plan, releases_of

_TIME: Final = "%Y-%m-%d %H:%M UTC"
_SHOWN: Final = 20


def rollback(
    environment: Annotated[str, typer.Option("--env", help="The deployed environment.")],
    to: Annotated[str | None, typer.Option("--to", help="The mark of the release, or the beginning of it.")] = None,
    *,
    listing: Annotated[bool, typer.Option("--list", help="List the releases, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    despite_records: Annotated[
        bool, typer.Option("--despite-records", help="Do not look for shard counts that the release cannot read.")
    ] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Return a deployed environment to an earlier release, within seconds and without a deployment.

    All functions run the versions of that release again: the release before the newest, or the one that `--to` names.
    What was written meanwhile stays. If it is interrupted, run it again. The next deployment of another release moves
    the environment forward.

    Before, it lists the shard counts that have grown in a way that the release does not understand. --yes is not enough
    then: it takes --despite-records besides.
    """
    place = environment_named(environment)
    functions = functions_of(place)
    if listing:
        _list(releases_of(functions), as_json=as_json)
        return
    wanted = plan(functions, to)
    records = [] if despite_records else _unknown_records(environment, wanted)
    summary = _summary(wanted, records, done=0)
    if not as_json:
        _print(wanted, environment)
    _warn(wanted, records)
    if wanted.moves and not dry_run:
        show_account(environment, answered=yes or answerable())
        _confirm(environment, wanted, records, yes=yes)
        done, client = 0, place.client("lambda")
        with on_interrupt(lambda: f"{done} of {len(wanted.moves)} functions were changed; run it again"):
            for step in wanted.moves:
                try:
                    move(client, step)
                except CommandError as error:
                    raise CommandError(
                        f"{error}. {done} of {len(wanted.moves)} functions were changed; run it again"
                    ) from error
                done += 1
        summary = _summary(wanted, records, done=done)
    show(summary, _last_line(wanted, environment, dry_run=dry_run), as_json=as_json)


def _unknown_records(environment: str, wanted: Plan) -> list[UnknownRecord]:
    if wanted.understands.issuperset(TOPOLOGY_UNDERSTOOD):
        return []
    topology = open_backend(environment).topology
    return unknown_records(topology.transport, topology.table, wanted.understands)


def _warn(wanted: Plan, records: Sequence[UnknownRecord]) -> None:
    if records:
        typer.echo(f"release {wanted.target.mark} does not understand {len(records):,} shard counts:", err=True)
    for each in records[:_SHOWN]:
        typer.echo(f"  {each}", err=True)
    if len(records) > _SHOWN:
        typer.echo(f"  and {len(records) - _SHOWN:,} more, which --json lists", err=True)


def _confirm(environment: str, wanted: Plan, records: Sequence[UnknownRecord], *, yes: bool) -> None:
    if yes and records:
        raise CommandError(
            f"release {wanted.target.mark} does not understand stored shard counts, and --yes does not confirm that: "
            "deploy a corrected release instead, or add --despite-records. Nothing was changed"
        )
    if yes:
        return
    if not answerable():
        raise CommandError("standard input is not a terminal, so nobody can confirm: add --yes. Nothing was changed")
    if not typer.confirm(f"Run release {wanted.target.mark} in {environment}?", err=True):
        raise CommandError("the answer was no: nothing was changed")


def _print(wanted: Plan, environment: str) -> None:
    typer.echo(f"{environment} to release {wanted.target.mark} of {wanted.target.published.strftime(_TIME)}", err=True)
    table = Table("stack", "function", "runs", "will run")
    for step in wanted.moves:
        table.add_row(step.function.part, step.function.name, _running(step.function), f"{step.to.number}")
    for each in wanted.younger:
        table.add_row(each.part, each.name, _running(each), "stays: it is newer than this release")
    if table.row_count:
        print_table(table, err=True)


def _running(function: Function) -> str:
    release = f" ({function.running.release})" if function.running else ""
    return f"{function.live}{release}"


def _last_line(wanted: Plan, environment: str, *, dry_run: bool) -> str:
    if not wanted.moves:
        return f"{environment} runs release {wanted.target.mark} already; choose another one with --to"
    one, many = ("would be", "would be") if dry_run else ("was", "were")
    moves = plural(len(wanted.moves), f"function {one}", f"functions {many}")
    return f"{moves} changed; {len(wanted.there)} run release {wanted.target.mark} already"


def _summary(wanted: Plan, records: Sequence[UnknownRecord], *, done: int) -> dict[str, Any]:
    moves = [
        {"stack": each.function.part, "function": each.function.name, "from": each.function.live, "to": each.to.number}
        for each in wanted.moves
    ]
    stay = [each.name for each in wanted.younger]
    return {
        "release": wanted.target.mark,
        "moves": moves,
        "changed": done,
        "newer_functions": stay,
        "not_understood": [asdict(each) for each in records],
    }


def _list(releases: Sequence[Release], *, as_json: bool) -> None:
    rows = [
        {
            "release": each.mark,
            "published": each.published.isoformat(),
            "functions": each.functions,
            "live": each.live,
            "rolled_back": each.withdrawn,
        }
        for each in releases
    ]
    lines = [
        f"{each.mark}  {each.published.strftime(_TIME)}  {each.functions} functions"
        f"{f', runs in {each.live}' if each.live else ''}{', rolled back' if each.withdrawn else ''}"
        for each in releases
    ]
    show({"releases": rows}, *lines, as_json=as_json)
