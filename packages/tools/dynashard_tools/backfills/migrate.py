"""`dynashard migrate`."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from dynashard.backfills import Migration, Options
from dynashard.entity import EntityDefinition, definition
from dynashard.entity.versions import version_in
from dynashard.schema import MOVED_TO, PK, SK, TYPE, VERSION
from dynashard.transport.interface import Call, Transport, Wire
from dynashard.transport.paging import pages
from dynashard_tools.backfills.running import DEFAULTS, ReadUnits, Restart, WriteUnits, announce, run_backfill
from dynashard_tools.connection import open_backend
from dynashard_tools.counting import plural
from dynashard_tools.entities import exposed, family, own_rows
from dynashard_tools.failure import CommandError
from dynashard_tools.options import AsJson, DryRun, EntityName, Environment
from dynashard_tools.printing import show


def migrate(
    entity: EntityName,
    write_units: WriteUnits = DEFAULTS.write_units,
    read_units: ReadUnits = DEFAULTS.read_units,
    environment: Environment = None,
    *,
    restart: Restart = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Store all items of earlier versions of an entity in the form of its present one: `dynashard migrate users`.

    It works during normal traffic, and can be killed and run again: it goes on where it was. Run it when no process of
    an earlier release runs any more. `--dry-run` counts the stored items by version, and writes nothing.

    Exit status: 0 if no item of an earlier version is left; 3 if items stay as they are because they cannot be
    upgraded, which are named.
    """
    model = exposed(entity).entity
    found = definition(model)
    backend = open_backend(environment)
    if dry_run:
        numbers = dict(sorted(counted(backend.transport, backend.table, found).items()))
        show(
            {"entity": found.name, "version": found.versions.number, "items": numbers},
            *_lines(found, numbers),
            as_json=as_json,
        )
        return
    if not found.versions.upgrades:
        raise CommandError(f"{found.name} has no upgrades: declare version=2 and upgrade={{1: function}} first")
    announce(f"storing all items of {found.name} in version {found.versions.number}", backend)
    options = Options(write_units=write_units, read_units=read_units)
    run_backfill(backend, model, Migration, options, "the migration", restart=restart, as_json=as_json)


def counted(transport: Transport, table: str, entity: EntityDefinition[Any]) -> Counter[str]:
    """Count the stored items of an entity by version. Cost: half a read unit for 4 KB of the table."""
    request: Wire = {
        "TableName": table,
        "FilterExpression": f"{own_rows(entity)} AND attribute_not_exists({MOVED_TO})",
        "ProjectionExpression": f"{PK}, {SK}, #type, {VERSION}",
        "ExpressionAttributeNames": {"#type": TYPE},
        "ExpressionAttributeValues": {":type": {"S": entity.name}},
    }
    found: Counter[str] = Counter()
    known = family(entity)
    for answer in pages(transport, Call("Scan", request)):
        own = (item for item in answer["Items"] if known.owner(item) is entity)
        found.update(str(version_in(item) or "unknown") for item in own)
    return found


def _lines(entity: EntityDefinition[Any], numbers: dict[str, int]) -> Iterator[str]:
    for version, number in numbers.items():
        mark = " (the present one)" if version == str(entity.versions.number) else ""
        yield f"version {version}{mark}: {plural(number, 'item')}"
    if not numbers:
        yield "no items"
