"""`dynashard copies`."""

from dataclasses import asdict
from typing import Annotated, Any, Final

import typer

from dynashard import definition
from dynashard_patterns import MaterializedCopies
from dynashard_patterns.copies import Progress
from dynashard_serving.domain import declared
from dynashard_tools.connection import open_backend
from dynashard_tools.entities import exposed
from dynashard_tools.failure import WITH_ERRORS, CommandError, on_interrupt
from dynashard_tools.options import AsJson, Environment
from dynashard_tools.progress import show, working

_PATHS: Final = {each.entity: each.path for each in declared().entities}
_COPIED: Final = [_PATHS.get(each.copy, definition(each.copy).name) for each in declared().declarations.copies]
_NAMES: Final = ", ".join(_COPIED) or "none are declared"

copies = typer.Typer(help="Compare materialized copies with their sources, or repair them.", no_args_is_help=True)

Entity = Annotated[str, typer.Argument(help=f"The entity of the copies: {_NAMES}.")]
Tenant = Annotated[str | None, typer.Option(help="Copies of this tenant only; of all tenants if left out.")]


@copies.command()
def check(entity: Entity, tenant: Tenant = None, environment: Environment = None, *, as_json: AsJson = False) -> None:
    """Report how many copies differ. Exit status 0 if none does, 3 if some do or some rows were left out.

    An item that cannot be copied, and an item or a copy that does not fit its declaration, is named and left out.

    A change that has not reached its copies yet counts as a difference: check again. Costs what reading all of the
    items and copies does, and a Scan of the table.
    """
    last = _compare(entity, tenant, environment, mend=False, as_json=as_json)
    if last.drift.total or last.unfit:
        raise typer.Exit(WITH_ERRORS)


@copies.command()
def repair(entity: Entity, tenant: Tenant = None, environment: Environment = None, *, as_json: AsJson = False) -> None:
    """Repair copies that differ, and remove those whose item is gone. Safe at any time; may be interrupted.

    Exit status 3 if some items or copies were left out; all others are repaired. Costs what `check` does, and 2 write
    units for each copy that is repaired.
    """
    if _compare(entity, tenant, environment, mend=True, as_json=as_json).unfit:
        raise typer.Exit(WITH_ERRORS)


def _compare(entity: str, tenant: str | None, environment: str | None, *, mend: bool, as_json: bool) -> Progress:
    chosen = _chosen(entity)
    partition = None if tenant is None else _partition(chosen, tenant)
    db, last = open_backend(environment).entities, Progress()
    with (
        working("{:>11,} items, {:,} copies") as work,
        on_interrupt(lambda: f"{last.sources:,} items and {last.copies:,} copies were compared: run it again"),
    ):
        for last in (chosen.repair if mend else chosen.check)(db, partition):
            work.advance(last.sources, last.copies)
    for reason in last.reasons:
        typer.echo(f"left out: {reason}", err=True)
    if last.unfit > len(last.reasons):
        typer.echo(f"and {last.unfit - len(last.reasons):,} more", err=True)
    drift = last.drift
    line = (
        f"{last.sources:,} items, {last.copies:,} copies: {drift.total:,} {'mended' if mend else 'differ'} "
        f"({drift.missing:,} missing, {drift.wrong:,} wrong, {drift.extra:,} too many), "
        f"{work.read_units:,.1f} read units, {work.write_units:,.0f} write units"
    )
    show({"copies": entity, "mended": mend, **asdict(last), **work.units}, line, as_json=as_json)
    return last


def _chosen(entity: str) -> MaterializedCopies[Any, Any]:
    model = exposed(entity).entity
    for each in declared().declarations.copies:
        if each.copy is model:
            return each
    raise CommandError(f"{entity} are not copies. There are: {_NAMES}")


def _partition(copies: MaterializedCopies[Any, Any], tenant: str) -> dict[str, str]:
    fields = definition(copies.of).partition_fields
    if len(fields) != 1:
        raise CommandError(f"--tenant does not name a partition, which is made of {', '.join(fields)}: leave it out")
    return {fields[0]: tenant}
