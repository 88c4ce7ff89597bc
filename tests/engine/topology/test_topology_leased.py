"""Leased views of the topology table: their content, their end and their cost."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from msgspec.structs import replace

from dynashard import EntityDefinition, LeasedTopology, Shards, definition
from dynashard.errors import ConfigurationError, EngineUnavailableError, UndecodableItemError
from dynashard.placement import UNSHARDED
from dynashard.testing.faults import FaultyTransport, afterwards, lost_request, meanwhile
from dynashard.topology import DEFAULT_LEASE, DeclaredTopology, Phase, Record, TopologyTable, View
from dynashard.topology.backfilled import Goal, index_goal, version_goal
from dynashard.topology.records import first_record
from dynashard.transport import Transport
from tests.declaring import an_index, declare
from tests.engine.topology.topology_world import (
    FAMILY,
    INDEX,
    ONE,
    OTHER,
    THING,
    Clock,
    by_rank,
    leased,
    put_by_hand,
    thing,
    topology_table_on,
)

pytestmark = pytest.mark.engine

LEASE = 30.0


class Client:
    """A leased topology with a record of its requests."""

    def __init__(self, wire: Transport, table: str, faults: Any = (), *, lease: float = LEASE) -> None:
        self.clock = Clock()
        self.wire = FaultyTransport(wire, faults)
        self.topology: LeasedTopology = leased(self.wire, table, self.clock, lease)

    def count(self, partition: str = ONE, entity: EntityDefinition[Any] = THING) -> int:
        return self.topology.view(entity, partition).count

    def sent(self) -> int:
        """Return the number of requests since the last call."""
        sent = len(self.wire.calls)
        self.wire.calls.clear()
        return sent


@pytest.fixture
def table(wire: Transport) -> Iterator[str]:
    with topology_table_on(wire) as name:
        yield name


@pytest.fixture
def client(wire: Transport, table: str) -> Client:
    return Client(wire, table)


def resize(wire: Transport, table: str, key: str = FAMILY, **fields: Any) -> Record:
    """Change a record as a controller does."""
    records = TopologyTable(wire, table)
    was = records.find(key)
    assert was is not None
    records.save((was, new := was.revised(Clock().now, **fields)))
    return new


def part(wire: Transport, table: str, partition: str = ONE, count: int = 32, lease: float = LEASE) -> None:
    """Give a logical partition a record of its own."""
    resize(wire, table, differ_since=Clock().now)
    put_by_hand(wire, table, first_record(partition, count, now=Clock().now, lease=lease))


def test_the_first_reader_stores_the_declared_counts(client: Client, wire: Transport, table: str) -> None:
    view = client.topology.view(THING, ONE)

    assert view == View(8, Phase.STABLE, None, client.clock.now + LEASE)
    assert client.topology.index_view(THING, by_rank()).count == 4
    records = TopologyTable(wire, table).read([FAMILY, INDEX, ONE])
    assert records == {
        key: first_record(key, count, now=client.clock.now, lease=LEASE) for key, count in ((FAMILY, 8), (INDEX, 4))
    }


@pytest.mark.parametrize("upgrade", [{}, {1: dict}], ids=["without upgrades", "with an upgrade"])
@pytest.mark.parametrize("backfill", [False, True])
def test_an_index_is_complete_once_it_is_built_and_all_items_are_upgraded(
    client: Client, wire: Transport, table: str, *, backfill: bool, upgrade: dict[int, Any]
) -> None:
    made = definition(declare(indexes=[an_index(backfill=backfill)], version=1 + len(upgrade), upgrade=upgrade))
    index = made.indexes["by_id"]
    built, migrated = index_goal(made, index), version_goal(made)
    needed = {built: backfill, migrated: bool(upgrade)}

    def complete(*reached: Goal) -> bool:
        if made.name in TopologyTable(wire, table).read([made.name]):
            resize(wire, table, made.name, backfilled={goal.key: goal.value for goal in reached})
        client.topology.refresh(made, made.name)
        return client.topology.index_view(made, index).complete

    assert complete() is not any(needed.values())
    for reached in ((built,), (migrated,), (built, migrated)):
        assert complete(*reached) is all(goal in reached for goal in needed if needed[goal])
    assert complete(built._replace(value="others"), migrated._replace(value="0")) is not any(needed.values())


def test_a_declaration_that_changes_later_changes_nothing(client: Client) -> None:
    client.count()
    later = thing(Shards(64), Shards(32))
    client.topology.refresh(THING, ONE)

    assert client.count(entity=later) == 8
    assert client.topology.index_view(later, by_rank(later)).count == 4


def test_two_concurrent_first_writers_both_follow_the_first(wire: Transport, table: str) -> None:
    first = Client(wire, table)
    second = Client(wire, table, [meanwhile("PutItem", first.count)])
    later = thing(Shards(64), Shards(32))

    assert second.count(entity=later) == 8
    assert second.topology.index_view(later, by_rank(later)).count == 4
    assert not second.wire.waiting


def test_an_interrupted_first_write_is_finished_by_the_next_reader(wire: Transport, table: str) -> None:
    broken = Client(wire, table, [lost_request("PutItem", nth=2)])
    with pytest.raises(EngineUnavailableError):
        broken.count()

    assert Client(wire, table).topology.index_view(THING, by_rank()).count == 4


def test_items_to_be_adopted_are_unsharded_until_they_are_moved(client: Client) -> None:
    assert client.count(entity=thing(Shards(16, adopt="unsharded"))) == UNSHARDED


def test_an_unsharded_entity_reads_no_topology(client: Client) -> None:
    bare = thing(None, None)

    assert client.topology.view(bare, ONE) == View(UNSHARDED)
    assert client.topology.index_view(bare, by_rank(bare)) == View(UNSHARDED)
    assert client.sent() == 0


def test_a_sharded_index_of_an_unsharded_entity_has_its_count(client: Client) -> None:
    bare = thing(None, Shards(4))

    assert client.topology.index_view(bare, by_rank(bare)).count == 4
    assert client.topology.view(bare, ONE).count == UNSHARDED


def test_a_bare_index_of_a_sharded_entity_may_have_markers(client: Client, wire: Transport, table: str) -> None:
    by_name = THING.indexes["by_name"]
    assert client.topology.index_view(THING, by_name) == View(UNSHARDED, expires=client.clock.now + LEASE)

    resize(wire, table, active=frozenset({ONE}))
    client.clock.now += LEASE

    assert client.topology.index_view(THING, by_name).markers


def test_one_read_a_lease_serves_entity_and_indexes(client: Client) -> None:
    client.count()
    assert client.sent() == 3

    sent = []
    for _ in range(9):
        client.clock.now += 10
        for partition in (ONE, OTHER):
            client.count(partition)
        for index in THING.indexes.values():
            client.topology.index_view(THING, index)
        sent.append(client.sent())

    assert sent == [0, 0, 1, 0, 0, 1, 0, 0, 1]


def test_a_resize_is_seen_when_the_lease_ends_and_not_before(client: Client, wire: Transport, table: str) -> None:
    client.count()
    resize(wire, table, phase=Phase.PREPARE, target=16, active=frozenset({FAMILY}))
    resize(wire, table, INDEX, phase=Phase.MOVE, target=8)

    client.clock.now += LEASE - 0.001
    assert client.topology.view(THING, ONE).stable
    client.clock.now += 0.001
    assert client.topology.view(THING, ONE) == View(8, Phase.PREPARE, 16, client.clock.now + LEASE, markers=True)
    assert client.topology.index_view(THING, by_rank()) == View(
        4, Phase.MOVE, 8, client.clock.now + LEASE, markers=True
    )


def test_the_familys_record_may_shorten_the_lease(client: Client, wire: Transport, table: str) -> None:
    client.count()
    resize(wire, table, lease=5.0)
    client.clock.now += LEASE
    client.count()
    resize(wire, table, count=64)

    client.clock.now += 5

    assert client.count() == 64


@pytest.mark.parametrize("lease", [0.5, 5.0, 900.0])
def test_the_familys_lease_overrides_those_of_its_indexes_and_partitions(
    client: Client, wire: Transport, table: str, lease: float
) -> None:
    client.count()
    part(wire, table, lease=lease)
    resize(wire, table, INDEX, lease=lease)
    resize(wire, table, lease=7.0)
    client.clock.now += LEASE

    expires = client.clock.now + 7
    assert client.topology.index_view(THING, by_rank()).expires == expires
    assert client.topology.view(THING, ONE).expires == expires
    assert client.topology.view(THING, OTHER).expires == expires


def test_no_record_prolongs_a_lease(client: Client, wire: Transport, table: str) -> None:
    client.count()
    resize(wire, table, lease=900.0)
    client.clock.now += LEASE
    client.count()
    resize(wire, table, count=64)

    client.clock.now += LEASE

    assert client.count() == 64


@pytest.mark.parametrize(("lease", "held"), [(7.0, 7.0), (900.0, DEFAULT_LEASE)])
def test_a_record_without_a_lease_gives_the_default_at_most(
    wire: Transport, table: str, lease: float, held: float
) -> None:
    put_by_hand(wire, table, replace(first_record(FAMILY, 64, now=0, lease=1), lease=0.0))
    client = Client(wire, table, lease=lease)

    assert client.topology.view(THING, ONE) == View(64, expires=client.clock.now + held)


def test_a_partition_has_its_own_count_and_others_the_familys(client: Client, wire: Transport, table: str) -> None:
    client.count()
    part(wire, table)
    client.clock.now += LEASE

    assert (client.count(ONE), client.count(OTHER)) == (32, 8)
    assert client.topology.index_view(THING, by_rank()).count == 4


def test_each_partition_with_its_own_count_costs_one_read_a_lease(client: Client, wire: Transport, table: str) -> None:
    client.count()
    part(wire, table)
    client.clock.now += LEASE
    client.sent()

    sent = []
    for _ in range(2):
        for partition in (ONE, OTHER, ONE, OTHER):
            client.count(partition)
            sent.append(client.sent())
        client.clock.now += LEASE

    assert sent == [2, 1, 0, 0, 2, 1, 0, 0]


def test_a_partition_without_a_record_follows_its_family(client: Client, wire: Transport, table: str) -> None:
    client.count()
    part(wire, table)
    client.clock.now += LEASE
    client.count(OTHER)
    resize(wire, table, count=16, active=frozenset({FAMILY}))

    client.clock.now += LEASE

    assert client.topology.view(THING, OTHER) == View(16, expires=client.clock.now + LEASE, markers=True, resized=True)
    assert client.topology.view(THING, ONE) == View(32, expires=client.clock.now + LEASE, markers=True)


@pytest.mark.parametrize("own", [False, True])
def test_a_refresh_reads_the_record_at_once(client: Client, wire: Transport, table: str, own: bool) -> None:  # noqa: FBT001
    client.count()
    if own:
        part(wire, table)
        client.clock.now += LEASE
        client.count()
    resize(wire, table, ONE if own else FAMILY, phase=Phase.MOVE, target=64)
    assert client.topology.view(THING, ONE).stable

    client.topology.refresh(THING, ONE)

    assert client.topology.view(THING, ONE).phase is Phase.MOVE


def test_a_read_that_outlasts_its_lease_is_not_used(wire: Transport, table: str) -> None:
    def late() -> None:
        resize(wire, table, count=64)
        slow.clock.now += LEASE

    Client(wire, table).count()
    slow = Client(wire, table, [afterwards("BatchGetItem", late)])

    assert slow.count() == 64


def test_an_unreachable_topology_table_raises_once_the_lease_ended(wire: Transport, table: str) -> None:
    Client(wire, table).count()
    client = Client(wire, table, [lost_request("BatchGetItem", nth=2)])
    client.count()

    client.clock.now += LEASE

    with pytest.raises(EngineUnavailableError):
        client.count()
    assert client.count() == 8


def test_an_unreadable_record_raises(client: Client, wire: Transport, table: str) -> None:
    wire.call("PutItem", {"TableName": table, "Item": {"partition": {"S": FAMILY}, "number_of_shards": {"S": "many"}}})

    with pytest.raises(UndecodableItemError, match=FAMILY):
        client.count()


def test_half_a_second_is_a_lease(wire: Transport, table: str) -> None:
    client = Client(wire, table, lease=0.5)
    client.count()
    client.sent()

    client.clock.now += 0.25
    client.count()

    assert client.sent() == 0


def test_declared_counts_are_compared_again_after_a_refresh(client: Client, wire: Transport, table: str) -> None:
    declared = DeclaredTopology(client.topology)
    declared.view(THING, ONE)
    resize(wire, table, count=64)
    assert declared.view(THING, ONE).count == 8

    declared.refresh(THING, ONE)

    with pytest.raises(ConfigurationError, match="has 64"):
        declared.view(THING, ONE)


def test_declared_counts_that_are_trusted_have_nothing_to_refresh() -> None:
    trusted = DeclaredTopology()

    trusted.refresh(THING, ONE)

    assert trusted.view(THING, ONE).count == 8


@pytest.mark.parametrize("lease", [0.0, -1.0, float("nan")])
def test_a_lease_of_0_seconds_is_refused(wire: Transport, table: str, lease: float) -> None:
    with pytest.raises(ConfigurationError, match="above 0"):
        LeasedTopology(wire, table, lease=lease)


def test_many_threads_write_and_read_the_record_once(client: Client) -> None:
    threads = 12
    together = Barrier(threads)

    def ask(number: int) -> int:
        together.wait()
        return client.count(ONE if number % 2 else OTHER)

    with ThreadPoolExecutor(threads) as pool:
        counts = set(pool.map(ask, range(threads)))

    assert counts == {8}
    assert client.sent() == 3
