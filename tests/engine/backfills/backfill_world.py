"""Items of two versions of one entity, and their backfills as a new process has them."""

from typing import Final

from dynashard import Entity, definition
from dynashard.backfills import Backfill, IndexBuild, Migration, Options
from dynashard.resharding.scope import Family
from dynashard.runtime import Runtime
from dynashard.service import Dynashard
from dynashard.topology import LeasedTopology
from dynashard.transport import Transport
from dynashard_checks.changed_models.entities import TENANT, NewPart, OldPart
from tests.engine.resharding.resharding_world import Moving

DEFAULT: Final = Options()


def filled(world: Moving, count: int) -> None:
    """Store items of version 1."""
    parts = [OldPart(tenant=TENANT, id=f"{n:03d}", name=f"a {n:03d}", amount=str(n)) for n in range(count)]
    world.of(OldPart).batch_write(put=parts)


def backfill_of(
    world: Moving,
    kind: str,
    wire: Transport,
    options: Options = DEFAULT,
    *,
    model: type[Entity] = NewPart,
    beside: type[Entity] | None = None,
) -> Backfill:
    """Return the migration to version 2, or the build of an index with this name, of a model in a family."""
    topology = LeasedTopology(wire, world.topology, lease=30.0)
    runtime = Runtime(world.clock, world.sleep)
    store = Dynashard(wire, table=world.table, topology=topology, cursor_keys=["k" * 16], runtime=runtime).store
    entity = definition(model)
    family = Family([entity] if beside is None else [entity, definition(beside)])
    if kind == "migrate":
        return Backfill(store, world.topology, Migration(store, entity, family), options)
    return Backfill(store, world.topology, IndexBuild(store, entity, family, entity.indexes[kind]), options)
