"""`dynashard verify`."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Final

import typer

from dynashard_tools.connection import open_backend
from dynashard_tools.counting import plural
from dynashard_tools.entities import declared, models
from dynashard_tools.failure import DONE, STILL_WRONG, WITH_ERRORS, on_interrupt
from dynashard_tools.options import AnyEntity, AsJson, Day, Environment, Month
from dynashard_tools.printing import show
from dynashard_tools.progress import Work, working
from dynashard_tools.verify.arguments import PARTS, Wanted
from dynashard_tools.verify.findings import Finding, Report
from dynashard_tools.verify.parts import Check, Part
from dynashard_tools.verify.stored import ReadPace
from dynashard_tools.verify.task import Declared
from dynashard_tools.verify.verifier import Verifier

_SHOWN: Final = 100
_HOUR: Final = 3600.0
_COMPARED: Final = {
    Part.COPIES: ("source or copy", "sources and copies"),
    Part.EDGES: ("node of edges", "nodes of edges"),
    Part.ROLLUPS: ("item of roll-ups", "items of roll-ups"),
    Part.UNIQUE: ("item or reservation of unique values", "items and reservations of unique values"),
    Part.LEFTOVERS: ("version of attachments", "versions of attachments"),
}
"""What the parts compare: one of them, and several."""


def verify(  # noqa: PLR0917 - typer calls it by name
    entity: AnyEntity = None,
    partition: Annotated[
        str | None,
        typer.Argument(help="A logical partition, such as abc. With --day or --month: the tenant of the roll-ups."),
    ] = None,
    only: Annotated[
        str | None, typer.Option(help=f"What to verify, separated by commas; all if left out: {PARTS}.")
    ] = None,
    day: Day = None,
    month: Month = None,
    read_units: Annotated[
        float | None,
        typer.Option(min=1.0, help="The most read units a second for reading the items; no limit if left out."),
    ] = None,
    grace_hours: Annotated[
        float,
        typer.Option(min=1.0, help="How old a version of an attachment without an item must be to be a leftover."),
    ] = 24.0,
    environment: Environment = None,
    *,
    mend: Annotated[bool, typer.Option("--mend", help="Repair what can be repaired, and report the rest.")] = False,
    lower: Annotated[
        bool,
        typer.Option(
            "--lower", help="Also lower rows of roll-ups that count more than their items. Wrong if items were deleted."
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Also report rows of no entity, and rows of roll-ups that count more than their items."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find stored data that does not agree, and repair it with `--mend`: `dynashard verify users abc`.

    Compares items with their homes, index keys with the fields, copies and roll-ups with the items that they are made
    of, both halves of edges, attachments with the items that point to them, and unique values with their
    reservations. It names topology records that cannot be true. `--only` chooses some of these parts.
    It is safe during normal traffic, and can be interrupted and run again.

    Exit status: 0 if nothing is wrong, or all of it was repaired; 3 if the only rows left do not fit their declaration
    (they are named, and never touched); 4 if something else is still wrong, or if a partition was skipped because its
    shard count is changing.
    """
    wanted = Wanted(entity, partition, only, day, month)
    task = replace(wanted.task(), grace=grace_hours * _HOUR, mend=mend, lower=lower, strict=strict)
    backend, found = open_backend(environment), declared().declarations
    with (
        working("{:>11,} {}, {:,} found wrong") as work,
        on_interrupt(lambda: "not everything was verified: run it again"),
    ):
        verifier = Verifier(
            backend.writer() if mend else backend.entities,
            backend.topology_table,
            Declared(models(), found.copies, found.edges, found.roll_ups),
            pace=ReadPace(read_units),
            advance=lambda report: work.advance(report.done, report.stage, report.total),
        )
        wanted.require(verifier.checks, task)
        if mend:
            print(_announcement(verifier.checks(task)), file=sys.stderr)
        report = verifier.run(task)
    if partition and not _numbers(report):
        print(f"{partition} holds nothing to verify: check the name", file=sys.stderr)
    show({**report.as_dict(), **work.units}, *_lines(report, work, mend=mend), as_json=as_json)
    if (status := _status(report)) != DONE:
        raise typer.Exit(status)


def _announcement(checks: Sequence[Check]) -> str:
    repairs = "; ".join(dict.fromkeys(check.repairs for check in checks if check.repairs))
    if not repairs:
        return "--mend may repair nothing of what is verified."
    return (
        f"--mend may {repairs}. It touches only rows whose key, type and revision are those of an entity. Take a "
        "backup first if you do not know the table."
    )


def _status(report: Report) -> int:
    if report.changing or report.left > report.unfit:
        return STILL_WRONG
    return WITH_ERRORS if report.unfit else DONE


def _lines(report: Report, work: Work, *, mend: bool) -> Iterator[str]:
    for finding in report.findings[:_SHOWN]:
        yield _line(finding, mend=mend)
    unshown = report.total - sum(finding.number for finding in report.findings[:_SHOWN])
    if unshown:
        yield f"and {unshown:,} more"
    for key in sorted(report.changing):
        yield f"{key} is changing its shard count: its items were not compared with their homes. Verify it again."
    if report.uncounted:
        rows = plural(report.uncounted, "row was", "rows were")
        yield f"{rows} not judged, because a topology record of their family is damaged"
    if report.others:
        yield f"{plural(report.others, 'row belongs', 'rows belong')} to no entity, and cannot be judged"
    yield f"{_compared(report)}: {_counts(report, mend=mend)}; {_units(work)}"


def _line(finding: Finding, *, mend: bool) -> str:
    state = "" if not mend else " (mended)" if finding.mended else " (not mended)"
    return f"{finding.kind.value}: {finding.where}: {finding.detail}{state}"


def _numbers(report: Report) -> dict[tuple[str, str], int]:
    """Return how many of each kind were compared, by its nouns; of those of which there were some."""
    numbers = {("item", "items"): report.items}
    numbers |= {nouns: report.compared[part.value] for part, nouns in _COMPARED.items()}
    return {nouns: number for nouns, number in numbers.items() if number}


def _compared(report: Report) -> str:
    shown = ", ".join(plural(number, *nouns) for nouns, number in _numbers(report).items())
    # Each verification reads the topology records, but counts them only if it was to judge them.
    judged = report.compared.get(Part.TOPOLOGY.value)
    return shown or ("0 items" if judged is None else plural(judged, "topology record"))


def _counts(report: Report, *, mend: bool) -> str:
    mended = f", {report.total - report.left:,} mended" if mend else ""
    unfit = f", {report.unfit:,} of them because they do not fit their declaration" if report.unfit else ""
    return f"{report.total:,} found wrong{unfit}{mended}"


def _units(work: Work) -> str:
    return f"{work.read_units:,.1f} read units, {work.write_units:,.0f} write units"
