"""`dynashard verify`."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer

from domain import COPIES, FOLLOWS, ROLL_UPS
from dynashard.transport.interface import metered
from tools.connection import Backend, open_backend
from tools.entities import exposed, models, names_beginning, partition_fields
from tools.failure import WITH_ERRORS, CommandInterruptedError
from tools.progress import counting
from tools.verify import Declared, Finding, Report, Verifier
from tools.verify.stored import ReadPace

_SHOWN: Final = 100

HELP: Final = """Find stored data that does not agree: `dynashard verify`, `dynashard verify users abc`. --mend repairs it.

Finds items away from their home, left-over relocation markers, index keys that do not match the fields, and copies,
edges, counts, roll-ups and attachments that differ. It is safe during normal traffic, and can be interrupted.
Exit status: 0 if nothing is wrong, or all of it was repaired; 3 if something is still wrong or a partition was skipped.
"""  # noqa: E501 - the terminal's width breaks the lines


def verify(
    entity: Annotated[
        str | None, typer.Argument(help="Which entity; the whole table if left out.", autocompletion=names_beginning)
    ] = None,
    partition: Annotated[str | None, typer.Argument(help="Which partition, such as abc; all if left out.")] = None,
    read_units: Annotated[
        float | None, typer.Option(min=1.0, help="The most read units a second; no bound if left out.")
    ] = None,
    environment: Annotated[
        str | None, typer.Option("--env", help="A deployed environment; the local stack if left out.")
    ] = None,
    *,
    mend: Annotated[bool, typer.Option("--mend", help="Repair what can be repaired, and report the rest.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON object.")] = False,
) -> None:
    """Find stored data that does not agree."""
    model = None if entity is None else exposed(entity).entity
    fields = None if model is None or partition is None else partition_fields(model, partition)
    with metered() as meter, counting("{:>11,} items, {:,} found wrong, {}") as advance:
        report = Report()
        for report in _verified(open_backend(environment), read_units, model, fields, mend=mend):
            advance(report.items, report.total, report.stage)
    units = {"read_units": meter.consumed.read_units, "write_units": meter.consumed.write_units}
    if as_json:
        typer.echo(json.dumps({**report.as_dict(), **units}))
    else:
        _print(report, units, mend=mend)
    if report.left or report.changing:
        raise typer.Exit(WITH_ERRORS)


def _verified(
    backend: Backend, read_units: float | None, model: Any, fields: dict[str, Any] | None, *, mend: bool
) -> Iterator[Report]:
    declared = Declared(models(), COPIES, (FOLLOWS,), ROLL_UPS)
    verifier = Verifier(backend.entities, backend.topology_table, declared, pace=ReadPace(read_units))
    try:
        yield from verifier.run(model, fields, mend=mend)
    except KeyboardInterrupt:
        raise CommandInterruptedError("interrupted: not everything was verified. Run it again") from None


def _print(report: Report, units: dict[str, float], *, mend: bool) -> None:
    for finding in report.findings[:_SHOWN]:
        typer.echo(_line(finding, mend=mend))
    unshown = report.total - sum(finding.number for finding in report.findings[:_SHOWN])
    if unshown:
        typer.echo(f"and {unshown:,} more")
    for key in sorted(report.changing):
        typer.echo(f"{key} is changing its shard count: its items were not compared with their homes. Verify it again.")
    mended = f", {report.total - report.left:,} mended" if mend else ""
    typer.echo(
        f"{report.items:,} items: {report.total:,} found wrong{mended}; "
        f"{units['read_units']:,.1f} read units, {units['write_units']:,.0f} write units"
    )


def _line(finding: Finding, *, mend: bool) -> str:
    state = "" if not mend else " (mended)" if finding.mended else " (not mended)"
    return f"{finding.kind.value}: {finding.where}: {finding.detail}{state}"
