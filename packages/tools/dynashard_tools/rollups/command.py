"""`dynashard rollups`."""

from dataclasses import asdict
from itertools import islice
from typing import Annotated, Any, Final

import typer

from dynashard import definition
from dynashard_patterns import RollUps
from dynashard_patterns.rollups import Drift, RollUpRepair
from dynashard_serving.domain import declared
from dynashard_tools.connection import open_backend
from dynashard_tools.export.choice import TENANT, choose
from dynashard_tools.failure import WITH_ERRORS, CommandError, on_interrupt
from dynashard_tools.left_out import LeftOut
from dynashard_tools.options import AsJson, Day, Environment, Month
from dynashard_tools.progress import show, working
from dynashard_tools.verify.derived import row_text, sums_text

_SHOWN: Final = 20
_NAMES: Final = ", ".join(each.name for each in declared().declarations.roll_ups) or "none are declared"

HELP: Final = """Compare roll-ups with the items that they sum up, or repair them: `dynashard rollups check plays --tenant abc --day 2026-11-20`.

The items are the truth. Spans whose items have begun to expire cannot be compared any more.
"""  # noqa: E501 - the terminal's width breaks the lines

rollups = typer.Typer(help=HELP, no_args_is_help=True)

Name = Annotated[str, typer.Argument(help=f"The roll-ups: {_NAMES}.")]
Tenant = Annotated[str, typer.Option(help="The tenant.")]


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
    """Report the rows that differ from the items. Exit status 0 if there are none, 3 if there are.

    Items that do not fit their declaration are named and not summed up; the exit status is 3 then.

    Costs what reading the items and rows does. Items of the last moments may not be counted yet.
    """
    found, choice = _chosen(name, day, month)
    db, left_out = open_backend(environment).entities, LeftOut()
    with working("{:>11,} items read") as work, on_interrupt(lambda: "not all items were compared"):
        compared = RollUpRepair(db, found, {TENANT: tenant}, advance=work.advance, left_out=left_out.add)
        drifts = compared.check(choice.start, choice.end)
        shown, more = list(islice(drifts, _SHOWN)), sum(1 for _ in drifts)
    total = len(shown) + more
    line = f"{total:,} rows of {name} differ from the items" + (f"; {more:,} are not shown" if more else "")
    summary = {"roll_ups": name, "differing": total, "first": [_as_dict(each) for each in shown]}
    show(summary, *(f"{row_text(each)}: {sums_text(each)}" for each in shown), line, as_json=as_json)
    if total:
        raise typer.Exit(WITH_ERRORS)
    left_out.end()


@rollups.command()
def repair(
    name: Name,
    tenant: Tenant,
    day: Day = None,
    month: Month = None,
    environment: Environment = None,
    *,
    lower: Annotated[
        bool, typer.Option("--lower", help="Also lower rows that count more than the items; not if items were deleted.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Raise the rows that count less than the items to what the items sum up to. Safe during normal traffic.

    Exit status 3 if rows are left that could not be repaired because others changed them again and again, or if items
    do not fit their declaration. Those are named, and no row is lowered.
    """
    found, choice = _chosen(name, day, month)
    db, left_out = open_backend(environment).writer(), LeftOut()
    with working("{:>11,} items read") as work, on_interrupt(lambda: "run it again to repair the rest"):
        repairing = RollUpRepair(db, found, {TENANT: tenant}, advance=work.advance, left_out=left_out.add)
        mended = repairing.repair(choice.start, choice.end, lower=lower)
    line = (
        f"{mended.mended:,} rows of {name} mended, {mended.kept:,} that say more than the items kept, "
        f"{mended.left:,} left for another time"
    )
    show({"roll_ups": name, **asdict(mended)}, line, as_json=as_json)
    if mended.left:
        raise typer.Exit(WITH_ERRORS)
    left_out.end()


def _chosen(name: str, day: str | None, month: str | None) -> tuple[RollUps[Any], Any]:
    found = next((each for each in declared().declarations.roll_ups if each.name == name), None)
    if found is None:
        raise CommandError(f"no roll-ups are called {name!r}. There are: {_NAMES}")
    if day is None and month is None:
        raise CommandError("the span is missing: give --day or --month")
    return found, choose(found.of, day=day, month=month, time=found.at, tenant=None)


def _as_dict(drift: Drift) -> dict[str, Any]:
    key = {field: str(value) for field, value in drift.row.key}
    stored, expected = ({field: str(value) for field, value in each.items()} for each in (drift.stored, drift.expected))
    return {"entity": definition(drift.row.model).name, **key, "told": stored, "truth": expected}
