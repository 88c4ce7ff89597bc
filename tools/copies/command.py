"""`dynashard copies`."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import TextColumn, TimeElapsedColumn

from domain import COPIES, ENTITIES
from dynashard import definition
from dynashard.transport.interface import metered
from dynashard_patterns import MaterializedCopies
from dynashard_patterns.copies import Progress
from tools.connection import open_backend
from tools.entities import exposed
from tools.failure import WITH_ERRORS, CommandError, CommandInterruptedError

_PATHS: Final = {each.entity: each.path for each in ENTITIES}
_NAMES: Final = ", ".join(_PATHS.get(each.copy, definition(each.copy).name) for each in COPIES)

copies = typer.Typer(help="Compare copies with the items they are made of, or mend them.", no_args_is_help=True)

Entity = Annotated[str, typer.Argument(help=f"The entity of the copies: {_NAMES}.")]
Tenant = Annotated[str | None, typer.Option(help="Whose; everybody's if left out.")]
Environment = Annotated[str | None, typer.Option("--env", help="A deployed environment; the local stack if left out.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")]


@copies.command()
def check(entity: Entity, tenant: Tenant = None, environment: Environment = None, *, as_json: AsJson = False) -> None:
    """Tell how many copies differ. Exit status 0 if none does, 3 if some do or some items cannot be copied.

    While items change, what is on its way to their copies counts: check again. Costs what reading all of the items and
    copies does, and a Scan of the table.
    """
    last = _look(entity, tenant, environment, mend=False, as_json=as_json)
    if last.drift.total or last.unfit:
        raise typer.Exit(WITH_ERRORS)


@copies.command()
def repair(entity: Entity, tenant: Tenant = None, environment: Environment = None, *, as_json: AsJson = False) -> None:
    """Mend copies that differ, and remove those whose item is gone. Safe at any time; may be interrupted.

    Exit status 3 if some items cannot be copied; all others are.

    Costs what `check` does, and 2 write units for each copy that is mended.
    """
    if _look(entity, tenant, environment, mend=True, as_json=as_json).unfit:
        raise typer.Exit(WITH_ERRORS)


def _look(entity: str, tenant: str | None, environment: str | None, *, mend: bool, as_json: bool) -> Progress:
    declared = _declared(entity)
    partition = None if tenant is None else _partition(declared, tenant)
    db = open_backend(environment).entities
    last = Progress()
    with metered() as meter, _progress() as advance:
        try:
            for last in (declared.repair if mend else declared.check)(db, partition):
                advance(last)
        except KeyboardInterrupt:
            raise CommandInterruptedError(
                f"interrupted after {last.sources:,} items and {last.copies:,} copies: run it again"
            ) from None
    for reason in last.reasons:
        typer.echo(f"cannot be copied: {reason}", err=True)
    if last.unfit > len(last.reasons):
        typer.echo(f"and {last.unfit - len(last.reasons):,} more", err=True)
    consumed = {"read_units": meter.consumed.read_units, "write_units": meter.consumed.write_units}
    if as_json:
        typer.echo(json.dumps({"copies": entity, "mended": mend, **asdict(last), **consumed}))
        return last
    drift = last.drift
    typer.echo(
        f"{last.sources:,} items, {last.copies:,} copies: {drift.total:,} {'mended' if mend else 'differ'} "
        f"({drift.missing:,} missing, {drift.wrong:,} wrong, {drift.extra:,} too many), "
        f"{consumed['read_units']:,.1f} read units, {consumed['write_units']:,.0f} write units"
    )
    return last


def _declared(entity: str) -> MaterializedCopies[Any, Any]:
    model = exposed(entity).entity
    for declared in COPIES:
        if declared.copy is model:
            return declared
    raise CommandError(f"{entity} are no copies of anything; {_NAMES} are")


def _partition(declared: MaterializedCopies[Any, Any], tenant: str) -> dict[str, str]:
    fields = definition(declared.of).partition_fields
    if len(fields) != 1:
        raise CommandError(f"--tenant does not say which partition: there are {', '.join(fields)}. Leave it out")
    return {fields[0]: tenant}


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None]]:
    """A line on a terminal, nothing elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn("{task.completed:>11,.0f} items, {task.fields[copies]:,} copies"), TimeElapsedColumn())
    with Bar(*columns, console=console) as bar:
        shown = bar.add_task("look", total=None, copies=0)
        yield lambda come: bar.update(shown, completed=come.sources, copies=come.copies)
