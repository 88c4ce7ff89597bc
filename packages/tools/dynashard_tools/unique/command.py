"""`dynashard unique`."""

from collections.abc import Sequence
from typing import Annotated, Final

import typer

from dynashard.backfills import Movements
from dynashard.entity import definition
from dynashard.resharding.scope import Family
from dynashard.topology import family_of
from dynashard_tools.app import new_app
from dynashard_tools.connection import open_backend
from dynashard_tools.counting import plural
from dynashard_tools.entities import exposed, models
from dynashard_tools.failure import STILL_WRONG, CommandError, on_interrupt
from dynashard_tools.left_out import LeftOut
from dynashard_tools.options import AsJson, DryRun, EntityName, Environment
from dynashard_tools.printing import show
from dynashard_tools.progress import Work, working
from dynashard_tools.unique.building import Build, Built
from dynashard_tools.unique.duplicates import Duplicate
from dynashard_tools.verify.stored import ReadPace

_SHOWN: Final = 100

unique = new_app("Unique fields: reserve the values of items that were stored before the fields were declared unique.")


@unique.callback()
def _group() -> None:
    """Keep `build` a command of its own."""


@unique.command()
def build(
    entity: EntityName,
    read_units: Annotated[
        float | None, typer.Option(min=1.0, help="The most read units a second for reading the table.")
    ] = None,
    write_units: Annotated[
        float | None, typer.Option(min=1.0, help="The most write units a second for the reservations.")
    ] = None,
    environment: Environment = None,
    *,
    dry_run: DryRun = False,
    despite_duplicates: Annotated[
        bool,
        typer.Option("--despite-duplicates", help="Reserve the other values, although some items have the same."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Reserve the unique values of all stored items of an entity: `dynashard unique build users`.

    Deploy the declaration with building=True first, so that every writer reserves what it writes from then on. Items
    that have the same values are listed first; then nothing is reserved, unless `--despite-duplicates`. It can be
    interrupted and run again. When it ends with status 0, remove building=True.

    Exit status: 0 if every value is reserved for its item; 3 if items were left out because they do not fit their
    declaration, which are named; 4 if items have the same values, or were changed again and again.
    """
    declared = definition(exposed(entity).entity)
    if not declared.unique:
        names = ", ".join(each.name for each in map(definition, models()) if each.unique) or "none"
        raise CommandError(f"{declared.name} declares no unique fields. Entities that do: {names}")
    backend, left_out = open_backend(environment), LeftOut()
    family = Family([each for each in map(definition, models()) if family_of(each) == family_of(declared)])
    with (
        working("{:>11,} items, {:,} values reserved") as work,
        on_interrupt(lambda: "not every value is reserved: run it again"),
    ):
        db = backend.entities if dry_run else backend.writer()
        task = Build(
            db,
            declared,
            family,
            Movements(backend.topology, declared, db.store.runtime, lease=backend.timing.lease),
            ReadPace(read_units),
            ReadPace(write_units),
            left_out=lambda item: left_out.add([item]),
            advance=lambda done: work.advance(done.items, done.reserved),
        )
        duplicates = task.duplicates()
        done = Built() if dry_run or (duplicates and not despite_duplicates) else task.run()
    summary = {"duplicates": [each._asdict() for each in duplicates], **done.as_dict(), **work.units}
    show({**summary, "seconds": work.seconds, "dry_run": dry_run}, *_lines(duplicates, done, work), as_json=as_json)
    if duplicates or done.left:
        raise typer.Exit(STILL_WRONG)
    left_out.end()


def _lines(duplicates: Sequence[Duplicate], done: Built, work: Work) -> list[str]:
    lines = [
        f"the same {', '.join(each.fields)}: {'; '.join(each.items)}{f'; and {each.more:,} more' if each.more else ''}"
        for each in duplicates[:_SHOWN]
    ]
    if len(duplicates) > _SHOWN:
        lines.append(f"and {len(duplicates) - _SHOWN:,} more")
    if duplicates and not done.items:
        lines.append("Nothing was reserved: change these items, or pass --despite-duplicates to reserve the others.")
    counts = f"{plural(len(duplicates), 'value')} that several items have"
    counts += f"; {plural(done.items, 'item')}, {done.reserved:,} reserved"
    units = f"{work.read_units:,.1f} read units, {work.write_units:,.0f} write units"
    return [*lines, f"{counts}; {work.seconds:.1f} s, {units}"]
