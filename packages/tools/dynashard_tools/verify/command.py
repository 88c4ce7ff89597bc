"""`dynashard verify`."""

import sys
from collections.abc import Iterator
from typing import Annotated, Final

import typer

from dynashard_serving.domain import declared
from dynashard_tools.connection import open_backend
from dynashard_tools.entities import exposed, models, partition_fields
from dynashard_tools.failure import WITH_ERRORS, on_interrupt
from dynashard_tools.options import AnyEntity, AsJson, Environment
from dynashard_tools.progress import Work, show, working
from dynashard_tools.verify import Declared, Finding, Report, Verifier
from dynashard_tools.verify.stored import ReadPace

_SHOWN: Final = 100
_MAY: Final = (
    "--mend may move items to their homes, delete relocation markers of changes that have ended, write index keys "
    "anew, and repair copies, edges, counts and roll-ups, and remove attachments that no item points to. It touches "
    "only rows whose key, type and revision are those of an entity. Take a backup first if you do not know the table."
)

HELP: Final = """Find stored data that does not agree: `dynashard verify`, `dynashard verify users abc`. --mend repairs it.

Finds items away from their home, left-over relocation markers, index keys that do not match the fields, and copies,
edges, counts, roll-ups and attachments that differ. It is safe during normal traffic, and can be interrupted.
Exit status: 0 if nothing is wrong, or all of it was repaired; 3 if something is still wrong or a partition was skipped.
"""  # noqa: E501 - the terminal's width breaks the lines


def verify(
    entity: AnyEntity = None,
    partition: Annotated[str | None, typer.Argument(help="A logical partition, such as abc; all if left out.")] = None,
    read_units: Annotated[
        float | None, typer.Option(min=1.0, help="The most read units a second; no bound if left out.")
    ] = None,
    environment: Environment = None,
    *,
    mend: Annotated[bool, typer.Option("--mend", help="Repair what can be repaired, and report the rest.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find stored data that does not agree."""
    model = None if entity is None else exposed(entity).entity
    fields = None if model is None or partition is None else partition_fields(model, partition)
    backend, report = open_backend(environment), Report()
    found = declared().declarations
    chosen = Declared(models(), found.copies, found.edges, found.roll_ups)
    if mend:
        print(_MAY, file=sys.stderr)
    verifier = Verifier(backend.entities, backend.topology_table, chosen, pace=ReadPace(read_units))
    with (
        working("{:>11,} items, {:,} found wrong, {}") as work,
        on_interrupt(lambda: "not everything was verified: run it again"),
    ):
        for report in verifier.run(model, fields, mend=mend):
            work.advance(report.items, report.total, report.stage)
    show({**report.as_dict(), **work.units}, *_lines(report, work, mend=mend), as_json=as_json)
    if report.left or report.changing:
        raise typer.Exit(WITH_ERRORS)


def _lines(report: Report, work: Work, *, mend: bool) -> Iterator[str]:
    for finding in report.findings[:_SHOWN]:
        yield _line(finding, mend=mend)
    unshown = report.total - sum(finding.number for finding in report.findings[:_SHOWN])
    if unshown:
        yield f"and {unshown:,} more"
    for key in sorted(report.changing):
        yield f"{key} is changing its shard count: its items were not compared with their homes. Verify it again."
    if report.others:
        yield f"{report.others:,} rows of others: they belong to no entity, and were not judged"
    mended = f", {report.total - report.left:,} mended" if mend else ""
    units = f"{work.read_units:,.1f} read units, {work.write_units:,.0f} write units"
    yield f"{report.items:,} items: {report.total:,} found wrong{mended}; {units}"


def _line(finding: Finding, *, mend: bool) -> str:
    state = "" if not mend else " (mended)" if finding.mended else " (not mended)"
    return f"{finding.kind.value}: {finding.where}: {finding.detail}{state}"
