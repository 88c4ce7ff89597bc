"""`dynashard index`."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer

from dynashard.backfills import IndexBuild, Options
from dynashard.entity import EntityDefinition, IndexDefinition, definition
from dynashard.topology import family_of
from dynashard.topology.backfilled import index_goal, is_complete
from dynashard_tools.backfills.running import DEFAULTS, ReadUnits, Restart, WriteUnits, announce, run_backfill
from dynashard_tools.connection import Backend, open_backend
from dynashard_tools.entities import exposed, models
from dynashard_tools.failure import CommandError
from dynashard_tools.options import AnyEntity, AsJson, EntityName, Environment
from dynashard_tools.printing import show

index = typer.Typer(help="Build new and changed indexes, and see which are complete.", no_args_is_help=True)

IndexName = Annotated[str, typer.Argument(help="An index of the entity, such as by_email.")]


@index.command()
def build(
    entity: EntityName,
    name: IndexName,
    write_units: WriteUnits = DEFAULTS.write_units,
    read_units: ReadUnits = DEFAULTS.read_units,
    environment: Environment = None,
    *,
    restart: Restart = False,
    as_json: AsJson = False,
) -> None:
    """Bring all stored items into a new or changed index: `dynashard index build users by_email`.

    It works during normal traffic, and can be killed and run again: it goes on where it was. Until it has ended,
    listings of an index with `backfill=True` say that they may lack items. Run it when no process of an earlier release
    runs any more, because such a process does not keep the index up.

    Exit status: 0 if the index is complete; 3 if it is, but for items that do not fit their declaration, which are
    named; 4 if it is built, and its listings may lack items all the same until `dynashard migrate` is complete, which
    is named then.
    """
    model = exposed(entity).entity
    found = definition(model)
    chosen = _index_of(found, name)
    backend = open_backend(environment)
    announce(f"writing the entries of the index {name} of {found.name}", backend)
    options = Options(write_units=write_units, read_units=read_units)
    make = partial(IndexBuild, index=chosen)
    needs = partial(_needs, backend, found, name)
    what = f"the index {name}"
    run_backfill(backend, model, make, options, what, needs=needs, restart=restart, as_json=as_json)


@index.command()
def status(entity: AnyEntity = None, environment: Environment = None, *, as_json: AsJson = False) -> None:
    """Show which indexes are complete: of an entity, or of all.

    An index is not complete if it is declared with `backfill=True` and was not built since its templates changed, or if
    items of its entity may be of an earlier version.

    Exit status: 0, whether or not all are complete.
    """
    chosen = [exposed(entity).entity] if entity is not None else models()
    backend = open_backend(environment)
    states = index_states(backend, [definition(each) for each in chosen])
    show(
        {"indexes": states},
        *[f"{each['entity']} {each['index']}: {_words(each)}" for each in states],
        *([] if states else ["no indexes"]),
        as_json=as_json,
    )


def index_states(backend: Backend, entities: Sequence[EntityDefinition[Any]]) -> list[dict[str, Any]]:
    """Return the state of each index. Cost: 1 round trip, 1 read unit a family."""
    records = backend.topology.read(list(dict.fromkeys(map(family_of, entities))))
    states: list[dict[str, Any]] = []
    for entity in entities:
        record = records.get(family_of(entity))
        backfilled = {} if record is None else record.backfilled
        for each in entity.indexes.values():
            goal = index_goal(entity, each)
            states.append({
                "entity": entity.name,
                "index": each.name,
                "complete": is_complete(entity, each, backfilled),
                "built": backfilled.get(goal.key) == goal.value,
            })  # fmt: skip
    return states


def _needs(backend: Backend, entity: EntityDefinition[Any], name: str) -> str | None:
    """Return the command without which an index that is built may lack items; None if it is complete."""
    [state] = [each for each in index_states(backend, [entity]) if each["index"] == name]
    return None if state["complete"] else f"dynashard migrate {entity.name}"


def _words(state: dict[str, Any]) -> str:
    if not state["complete"]:
        return "built, but may lack items of earlier versions" if state["built"] else "may lack items"
    return "complete, built" if state["built"] else "complete, as declared"


def _index_of(entity: EntityDefinition[Any], name: str) -> IndexDefinition:
    chosen = entity.indexes.get(name)
    if chosen is None:
        known = ", ".join(entity.indexes) or "none"
        raise CommandError(f"{entity.name} has no index {name!r}. There are: {known}")
    return chosen
