"""`dynashard rollups`."""

import json
from dataclasses import asdict
from itertools import islice
from typing import Annotated, Any, Final

import typer

from domain import ROLL_UPS
from dynashard import definition
from dynashard_patterns import RollUps
from dynashard_patterns.rollups import Drift, RollUpRepair
from tools.connection import open_backend
from tools.export.choice import TENANT, choose
from tools.failure import WITH_ERRORS, CommandError, CommandInterruptedError
from tools.progress import counting

_SHOWN: Final = 20

HELP: Final = """Compare roll-ups with the items that they sum up, or mend them: `dynashard rollups check plays --tenant abc --day 2026-11-20`.

The items are the truth. Spans whose items have begun to expire cannot be compared any more.
"""  # noqa: E501 - the terminal's width breaks the lines

rollups = typer.Typer(help=HELP, no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Which: " + ", ".join(each.name for each in ROLL_UPS) + ".")]
Tenant = Annotated[str, typer.Option(help="Whose.")]
Day = Annotated[str | None, typer.Option(help="A day in UTC, such as 2026-11-20: its minutes, hours and the day.")]
Month = Annotated[str | None, typer.Option(help="A month in UTC, such as 2026-11: all within it, and the month.")]
Environment = Annotated[str | None, typer.Option("--env", help="A deployed environment; the local stack if left out.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@rollups.command()
def check(
    name: Name,
    tenant: Tenant,
    day: Day = None,
    month: Month = None,
    environment: Environment = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Tell the rows that differ from the items. Exit status 0 if there are none, 3 if there are.

    Costs what reading the items and rows does. Items of the last moments may still be on their way.
    """
    found, choice = _chosen(name, day, month)
    try:
        with counting("{:>11,} items read") as advance:
            mender = RollUpRepair(open_backend(environment).entities, found, {TENANT: tenant}, advance=advance)
            drifts = mender.check(choice.start, choice.end)
            shown, more = list(islice(drifts, _SHOWN)), sum(1 for _ in drifts)
    except KeyboardInterrupt:
        raise CommandInterruptedError("interrupted: not all items were compared") from None
    total = len(shown) + more
    if as_json:
        typer.echo(json.dumps({"roll_ups": name, "differing": total, "first": [_as_dict(each) for each in shown]}))
    else:
        for each in shown:
            typer.echo(_line(each))
        typer.echo(f"{total:,} rows of {name} differ from the items" + (f"; {more:,} are not shown" if more else ""))
    if total:
        raise typer.Exit(WITH_ERRORS)


@rollups.command()
def repair(
    name: Name,
    tenant: Tenant,
    day: Day = None,
    month: Month = None,
    environment: Environment = None,
    *,
    lower: Annotated[
        bool, typer.Option("--lower", help="Also lower rows that say too much; not where items were deleted.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Set the rows that say less than the items to what they come to, while everything goes on.

    Exit status 3 if rows are left that could not be mended, because others changed them again and again.
    """
    found, choice = _chosen(name, day, month)
    try:
        with counting("{:>11,} items read") as advance:
            mender = RollUpRepair(open_backend(environment).writer(), found, {TENANT: tenant}, advance=advance)
            mended = mender.repair(choice.start, choice.end, lower=lower)
    except KeyboardInterrupt:
        raise CommandInterruptedError("interrupted; what is mended is right, run it again for the rest") from None
    if as_json:
        typer.echo(json.dumps({"roll_ups": name, **asdict(mended)}))
    else:
        typer.echo(
            f"{mended.mended:,} rows of {name} mended, {mended.kept:,} that say more than the items kept, "
            f"{mended.left:,} left for another time"
        )
    if mended.left:
        raise typer.Exit(WITH_ERRORS)


def _chosen(name: str, day: str | None, month: str | None) -> tuple[RollUps[Any], Any]:
    found = next((each for each in ROLL_UPS if each.name == name), None)
    if found is None:
        raise CommandError(f"no roll-ups are called {name!r}; there are {', '.join(each.name for each in ROLL_UPS)}")
    if day is None and month is None:
        raise CommandError("say of when: give --day or --month")
    return found, choose(found.of, day=day, month=month, time=found.at, tenant=None)


def _as_dict(drift: Drift) -> dict[str, Any]:
    key = {field: str(value) for field, value in drift.row.key}
    told, truth = ({field: str(value) for field, value in each.items()} for each in (drift.stored, drift.expected))
    return {"entity": definition(drift.row.model).name, **key, "told": told, "truth": truth}


def _line(drift: Drift) -> str:
    key = ", ".join(f"{field} {value}" for field, value in drift.row.key)
    sums = ", ".join(
        f"{field} {value} instead of {drift.expected.get(field, 0)}" for field, value in drift.stored.items()
    )
    return f"{definition(drift.row.model).name} {key}: {sums}"
