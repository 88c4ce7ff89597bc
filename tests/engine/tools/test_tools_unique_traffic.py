"""`dynashard unique build` while items are changed and moved, and over items that do not fit their declaration."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import pytest

from dynashard import Dynashard, Entity, Key, Registry, Shards, Unique, definition
from dynashard.backfills import Movements
from dynashard.resharding import Scope
from dynashard.resharding.scope import Family
from dynashard.runtime import Runtime
from dynashard.schema import PK, SK, TOPOLOGY_KEY, TYPE
from dynashard.testing.faults import Fault, FaultyTransport, meanwhile
from dynashard.topology import LeasedTopology, TopologyTable
from dynashard.transport import Transport
from dynashard_tools.unique.building import Build, Built
from dynashard_tools.verify.stored import ReadPace
from tests.engine.resharding.resharding_world import Moving, moving_world
from tests.engine.topology.topology_world import one_clock

pytestmark = pytest.mark.engine

PART: Final[Mapping[str, Any]] = {"tenant": "abc"}


class Plain(Entity, name="member.v1.Member", key=Key("{tenant}", "{id}"), shards=Shards(16), registry=Registry()):
    """As the release before declares it."""

    tenant: str
    id: str
    mail: str
    visits: int = 0


class Member(
    Entity,
    name="member.v1.Member",
    key=Key("{tenant}", "{id}"),
    shards=Shards(16),
    unique=(Unique("mail", building=True),),
    registry=Registry(),
):
    tenant: str
    id: str
    mail: str
    visits: int = 0


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table) as made:
        yield made


def filled(world: Moving, count: int) -> None:
    world.of(Plain).batch_write(put=[Plain(**PART, id=f"{n:04d}", mail=f"{n}@b.c") for n in range(count)])


def built(world: Moving, *faults: Fault) -> tuple[Built, list[str]]:
    """Build with requests that meet these faults; return what was done, and the sort keys that were left out."""
    left_out: list[str] = []
    return building(world, *faults, left_out=left_out)[1], left_out


def building(world: Moving, *faults: Fault, left_out: list[str] | None = None) -> tuple[FaultyTransport, Built]:
    """Build, and return the transport of its requests with what was done; `left_out` gets the keys of unfit items."""
    unfit = [] if left_out is None else left_out
    runtime = Runtime(world.clock, world.sleep)
    topology = LeasedTopology(world.inner, world.topology, lease=30.0, runtime=one_clock(world.clock))
    transport = FaultyTransport(world.inner, faults)
    db = Dynashard(transport, table=world.table, topology=topology, cursor_keys=["k" * 16], runtime=runtime)
    entity = definition(Member)
    movements = Movements(TopologyTable(world.inner, world.topology), entity, runtime)
    build = Build(
        db,
        entity,
        Family([entity]),
        movements,
        ReadPace(),
        ReadPace(),
        left_out=lambda item: unfit.append(item.sort_key),
    )
    done = build.run()
    assert not transport.waiting
    return transport, done


def reserved(world: Moving) -> dict[str, str]:
    """Return the stored reservations: their owners' sort keys by their partition keys."""
    rows = [row for row in world.raw() if row.get(TYPE, {}).get("S", "").endswith("~unique~mail")]
    return {row[PK]["S"]: row["OwnerSort"]["S"] for row in rows}


def owners(world: Moving) -> Sequence[str]:
    return sorted(reserved(world).values())


def visit(world: Moving) -> Callable[[], object]:
    """Return a change of a field that is not unique."""
    return lambda: world.of(Plain).update(**PART, id="0000", add={"visits": 1})


def test_an_item_whose_other_fields_change_meanwhile_is_reserved_for_all_the_same(world: Moving) -> None:
    filled(world, 1)

    done, _ = built(world, meanwhile("TransactWriteItems", visit(world)))

    assert (done.reserved, done.left, owners(world)) == (1, [], ["0000"])


def test_an_item_whose_value_changes_meanwhile_is_reserved_for_with_its_new_one(world: Moving) -> None:
    filled(world, 1)
    changed = meanwhile("TransactWriteItems", lambda: world.of(Plain).update(**PART, id="0000", mail="new@b.c"))

    done, _ = built(world, changed)

    assert (done.reserved, done.left, len(reserved(world))) == (1, [], 1)
    assert built(world)[0].reserved == 0


def test_an_item_that_is_deleted_meanwhile_needs_nothing(world: Moving) -> None:
    filled(world, 1)
    gone = meanwhile("TransactWriteItems", lambda: world.of(Plain).delete(**PART, id="0000"))

    done, _ = built(world, gone)

    assert (done.reserved, done.left, reserved(world)) == (0, [], {})


def test_an_item_that_is_changed_again_and_again_is_reported(world: Moving) -> None:
    filled(world, 1)

    done, _ = built(world, *(meanwhile("TransactWriteItems", visit(world), nth=nth) for nth in range(1, 9)))

    assert (done.reserved, [each.items for each in done.left]) == (0, [("member.v1.Member:abc / 0000",)])
    assert reserved(world) == {}


def test_items_that_move_meanwhile_are_reserved_for_in_another_round(world: Moving) -> None:
    filled(world, 1200)
    resharder = world.on(world.inner, entities=[Member])
    scope = Scope(definition(Member))

    def resize() -> None:
        resharder.start(scope, 2)
        world.finish(scope, resharder)

    done, _ = built(world, meanwhile("Scan", resize, nth=2))

    assert done.left == []
    assert owners(world) == [f"{n:04d}" for n in range(1200)]


def test_a_table_that_nobody_has_used_is_built_in_one_round(world: Moving) -> None:
    transport, done = building(world)

    assert (done.items, done.reserved) == (0, 0)
    assert transport.sent("Scan") == 1
    assert world.record(definition(Member).prefix).count == 16


def test_items_may_have_moved_if_the_record_of_the_counts_is_gone(world: Moving) -> None:
    key = {TOPOLOGY_KEY: {"S": definition(Member).prefix}}
    forget = meanwhile("Scan", lambda: world.inner.call("DeleteItem", {"TableName": world.topology, "Key": key}))

    transport, done = building(world, forget)

    assert (done.items, transport.sent("Scan")) == (0, 2)


def test_items_that_do_not_fit_are_named_and_nothing_is_reserved_for_them(world: Moving) -> None:
    filled(world, 2)
    good = next(row for row in world.raw() if row[SK]["S"] == "0000")
    world.put({**good, SK: {"S": "list"}, "id": {"S": "list"}, "mail": {"L": []}})
    world.put({**good, SK: {"S": "foreign"}, "id": {"S": "foreign"}, "mail": {"S": "f@b.c"}, "tenant": {"S": "zzz"}})

    done, left_out = built(world)

    assert (sorted(left_out), done.items, owners(world)) == (["foreign", "list"], 2, ["0000", "0001"])
