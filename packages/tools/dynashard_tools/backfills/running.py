"""What the commands of backfills have in common: options, progress, and the summary at the end."""

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from dynashard import Entity
from dynashard.backfills import Backfill, Options, Report, Unfit
from dynashard.backfills.work import BackfillWork
from dynashard.entity import EntityDefinition, definition
from dynashard.repository import Store
from dynashard.resharding.scope import Family
from dynashard_tools.connection import Backend
from dynashard_tools.counting import plural
from dynashard_tools.entities import family
from dynashard_tools.failure import STILL_WRONG, WITH_ERRORS, on_interrupt
from dynashard_tools.printing import show
from dynashard_tools.progress import working

WriteUnits = Annotated[
    float, typer.Option("--write-units", min=1.0, help="The most write units that it consumes in a second.")
]
ReadUnits = Annotated[
    float, typer.Option("--read-units", min=1.0, help="The most read units that it consumes in a second.")
]
Restart = Annotated[
    bool,
    typer.Option("--restart", help="Begin anew, because an earlier release was still running when it was interrupted."),
]
DEFAULTS = Options()
MakeWork = Callable[[Store, EntityDefinition[Any], Family], BackfillWork]


def run_backfill(
    backend: Backend,
    model: type[Entity],
    make: MakeWork,
    options: Options,
    what: str,
    *,
    needs: Callable[[], str | None] = lambda: None,
    restart: bool,
    as_json: bool,
) -> None:
    """Run a backfill of an entity to its end, and print what it has done.

    `what` names it in the summary. `needs` returns another command that must end before listings are complete, if any.

    Ends the command with the status `WITH_ERRORS` if items stay as they are, and `STILL_WRONG` if it `needs` another.
    """
    entity = definition(model)
    store = backend.entities.store
    backfill = Backfill(store, backend.topology_table, make(store, entity, family(entity)), options)
    with (
        working("{:>11,} items written, {:,} left, segment {} of {}{}") as work,
        on_interrupt(lambda: f"{what} is not complete: run the command again, and it goes on"),
    ):
        report = backfill.run(lambda now: work.advance(*_shown(now)), restart=restart)
        other = needs()
    show(
        {"entity": entity.name, **summary(report, other)},
        *[f"left as it is: {each.key}: {each.problem}" for each in report.unfit],
        line_of(report, what, other),
        as_json=as_json,
    )
    if other is not None:
        raise typer.Exit(STILL_WRONG)
    if report.left:
        raise typer.Exit(WITH_ERRORS)


def summary(report: Report, needs: str | None = None) -> dict[str, Any]:
    """Return what a report says, as JSON; `needs` is the command that must end before listings are complete."""
    return {
        "complete": report.complete and needs is None,
        "needs": needs,
        "written": report.written,
        "left": report.left,
        "rounds": report.rounds,
        "unfit": [Unfit(*each)._asdict() for each in report.unfit],
        "read_units": round(report.read_units, 1),
        "write_units": round(report.write_units, 1),
    }


def line_of(report: Report, what: str, needs: str | None = None) -> str:
    """Return the last line of the summary for people."""
    state = "is not complete" if not report.complete else "is complete" if needs is None else "is built"
    left = f", {report.left:,} left because they do not fit their declaration" if report.left else ""
    used = f"{report.read_units:,.1f} read units, {report.write_units:,.0f} write units"
    rest = "" if needs is None else f". Its listings may lack items until `{needs}` is complete"
    return f"{what} {state}: {plural(report.written, 'item')} written{left}; {used}{rest}"


def _shown(report: Report) -> tuple[int, int, int, int, str]:
    waiting = "; waiting for a resize" if report.waiting else ""
    return report.written, report.left, report.done_tasks, report.tasks, waiting


def announce(text: str, backend: Backend) -> None:
    """Print on standard error what a command is going to write, and where."""
    print(f"{text} in {backend.target}", file=sys.stderr)
