"""A count grows by epochs while items are written: nothing moves, and every item is found."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal

import pytest

from dynashard import Budget, Create, Dynashard, Entity, Put, declared_counts
from dynashard.errors import ConfigurationError, InvalidCursorError, NotFoundError, ReshardRefusedError
from dynashard.key_time import KSUID
from dynashard.keys import key_text
from dynashard.resharding import Scope
from dynashard.schema import PK, SK
from dynashard.transport.interface import metered
from tests.engine.epochs.epochs_world import (
    CLOCKS,
    KEYS,
    LEASE,
    Epochs,
    Event,
    Reading,
    declared,
    partition,
    whole,
)

pytestmark = pytest.mark.engine

KEY = partition().key
ORDERS = ("ordered", "round_robin", "shard")


def grown(world: Epochs, *counts: int, each: int = 25) -> Dynashard:
    """Write some events in each of several epochs."""
    db = world.process()
    world.write(db, each)
    for count in counts:
        world.grow(count)
        world.clock.now += 1
        world.write(db, each)
    return db


def moved_by(world: Epochs, calculated: type[Entity], to: int, scope_of: Callable[..., Scope] = partition) -> None:
    """Resize a partition, or all of them, with calculated placement, which moves items."""
    scope, resharder = scope_of(model=calculated), world.resharder(entities=[calculated])
    resharder.start(scope, to)
    while (step := resharder.advance(scope.key)).kind != "done":
        for task in step.tasks:
            resharder.work(scope.key, task, seconds=60.0)
        world.clock.now += step.seconds


def stored(world: Epochs, sort: str) -> dict[str, Any]:
    """Return an item as it is stored."""
    key = {PK: {"S": world.raw()[sort]}, SK: {"S": sort}}
    item: dict[str, Any] = world.inner.call("GetItem", {"TableName": world.table, "Key": key})["Item"]
    return item


def test_a_count_grows_while_items_are_written_and_nothing_moves(world: Epochs) -> None:
    db = world.process()
    for count in (4, 16):
        before = world.raw()
        resharder = world.resharder()
        resharder.start(partition(), count)
        for _ in range(20):
            world.write(db, 3)
            step = resharder.advance(partition().key)
            if step.kind == "done":
                break
            world.clock.now += min(step.seconds, 10.0)
        else:
            world.finish()
        world.write(db, 30)
        assert before.items() <= world.raw().items()

    reader = world.process().collection(Event)
    assert world.counts() == [(1, "confirmed"), (4, "confirmed"), (16, "confirmed")]
    assert len(world.shards()) > 4
    assert all(reader.get(tenant="abc", id=each).n == n for each, n in world.written.items())


@pytest.mark.sampled(6)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("limit", [3, 40, 1000])
def test_listings_return_every_item_once_over_all_epochs(world: Epochs, order: str, direction: str, limit: int) -> None:
    db = grown(world, 4, 16, 2)

    found = [
        each.id for each in db.collection(Event).items(tenant="abc", order=order, direction=direction, limit=limit)
    ]

    assert sorted(found) == sorted(world.written)
    if order == "ordered":
        assert found == sorted(found, reverse=direction == "desc")


def test_scans_counts_ranges_and_batches_see_all_epochs(world: Epochs) -> None:
    events = grown(world, 16, 4).collection(Event)
    ids = sorted(world.written)

    assert sorted(each.id for each in events.scan(tenant="abc")) == ids
    assert events.count(tenant="abc") == len(ids)
    assert [each.id for each in events.items(tenant="abc", order="ordered", start=ids[20], end=ids[60])] == ids[20:60]
    assert sorted(each.id for each in events.items(tenant="abc", prefix=ids[3][:12])) == [
        each for each in ids if each.startswith(ids[3][:12])
    ]
    assert [each and each.id for each in events.batch_get([{"tenant": "abc", "id": each} for each in ids])] == ids
    assert sum(load.items for load in events.shards(tenant="abc")) == len(ids)


def test_a_read_by_key_takes_one_request_in_every_epoch(world: Epochs) -> None:
    events = grown(world, 4, 16).collection(Event)
    for each in world.written:
        events.get(tenant="abc", id=each)

        with metered() as meter:
            events.get(tenant="abc", id=each)

        assert meter.consumed.requests == 1


def test_an_ordered_page_reads_only_the_shards_of_the_epochs_it_touches(world: Epochs) -> None:
    events = grown(world, 4, 16, each=60).collection(Event)

    oldest = events.list(tenant="abc", order="ordered", limit=20)
    newest = events.list(tenant="abc", order="ordered", direction="desc", limit=20)
    middle = events.list(tenant="abc", order="ordered", start=sorted(world.written)[70], limit=20)

    assert oldest.consumed.requests == 1
    assert 16 <= newest.consumed.requests <= 32
    assert 4 <= middle.consumed.requests <= 8


def test_an_ordered_listing_goes_on_from_one_epoch_to_the_next_with_one_request_a_page(world: Epochs) -> None:
    world.grow(4, partition(model=Reading, tenant="s1"))
    start = world.clock.now
    readings = world.process().collection(Reading)
    at = [datetime.fromtimestamp(start - 1000 + n, UTC) for n in range(5)]
    for n, moment in enumerate([*at, datetime.fromtimestamp(start, UTC)]):
        readings.create(sensor="s1", at=moment, id="x", n=n)

    # The bare partition key has only the first epoch: what it lacks is read in the second round.
    pages = list(islice(readings.pages(sensor="s1", order="ordered", limit=10, budget=Budget(requests=1)), 5))

    later = readings.pages(
        sensor="s1", order="ordered", start=str(key_text("at", at[-1]))[:-1] + "~", budget=Budget(requests=1)
    )

    assert [each.n for page in pages for each in page.items] == [0, 1, 2, 3, 4, 5]
    assert len(pages) <= 3
    assert [each.n for page in islice(later, 3) for each in page.items] == [5]


@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_a_page_whose_budget_ends_before_it_asks_shards_that_had_ended_is_read_again(
    world: Epochs, direction: Literal["asc", "desc"]
) -> None:
    world.grow(4)
    world.clock.now += 1
    db = world.process()
    events = db.collection(Event)

    def kept(shard: int, number: int) -> list[str]:
        """Write items, and keep so many of this shard."""
        before = set(world.written)
        world.write(db, 40)
        new, placed = sorted(world.written.keys() - before), world.raw()
        of_shard = [each for each in new if placed[each].endswith(f":{shard}")][:number]
        for each in set(new) - set(of_shard):
            events.delete(tenant="abc", id=each)
        world.clock.now += 1
        return of_shard

    read, ahead = (kept(0, 2), kept(1, 1)) if direction == "asc" else reversed((kept(1, 1), kept(0, 2)))
    since = min(world.written)
    first = events.list(tenant="abc", order="ordered", direction=direction, limit=2, start=since)
    events.delete(tenant="abc", id=ahead[0])
    later = kept(2, 1) if direction == "asc" else []

    rest = events.pages(
        tenant="abc",
        order="ordered",
        direction=direction,
        limit=2,
        start=since,
        budget=Budget(requests=1),
        cursor=first.cursor,
    )

    pages = [first, *islice(rest, 5)]
    assert sorted(each.id for page in pages for each in page.items) == read + later
    assert pages[-1].cursor is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_a_listing_that_began_before_changes_continues_exactly(world: Epochs, order: str, direction: str) -> None:
    db = world.process()
    world.write(db, 40)
    events, before = db.collection(Event), set(world.written)
    page = events.list(tenant="abc", order=order, direction=direction, limit=5)
    found = [each.id for each in page.items]

    for count in (4, 8, 2, 16):
        world.grow(count)
        world.write(db, 10)
        page = events.list(tenant="abc", order=order, direction=direction, limit=5, cursor=page.cursor)
        found += [each.id for each in page.items]
    while page.cursor:
        page = events.list(tenant="abc", order=order, direction=direction, limit=5, cursor=page.cursor)
        found += [each.id for each in page.items]

    assert len(found) == len(set(found))
    assert before <= set(found) <= set(world.written)
    if order == "ordered":
        assert found == sorted(found, reverse=direction == "desc")


def test_a_cursor_outlives_an_epoch_that_was_taken_back(world: Epochs) -> None:
    db = world.process()
    world.write(db, 30)
    resharder = world.resharder()
    resharder.start(partition(), 8)
    world.clock.now += LEASE + 1
    events = db.collection(Event)
    page = events.list(tenant="abc", limit=4)
    found = [each.id for each in page.items]

    resharder.abort(partition())
    world.clock.now += LEASE + 1
    while page.cursor:
        page = events.list(tenant="abc", limit=4, cursor=page.cursor)
        found += [each.id for each in page.items]

    assert sorted(found) == sorted(world.written)
    assert world.counts() == [(1, "confirmed"), (8, "void")]


def test_several_partitions_with_different_epochs_are_one_ordered_listing(world: Epochs) -> None:
    db = world.process()
    for _ in range(3):
        world.write(db, 10, tenant="abc")
        world.write(db, 10, tenant="xyz")
        world.grow(4 << len(world.written) // 20)
        world.clock.now += 1

    pages = db.collection(Event).pages([{"tenant": "abc"}, {"tenant": "xyz"}], order="ordered", limit=7)
    found = [each.id for page in pages for each in page.items]

    assert found == sorted(world.written)


def test_an_old_key_goes_to_its_own_epoch_however_late_it_is_written(world: Epochs) -> None:
    began = world.clock.now
    db = grown(world, 4, 16)

    [old] = world.write(db, at=began)

    assert world.raw()[old] == "epoch.v1.Event:abc:0"
    assert world.process().collection(Event).get(tenant="abc", id=old)


def test_batches_updates_deletes_and_transactions_use_the_epoch_of_the_key(world: Epochs) -> None:
    db = grown(world, 16)
    events = db.collection(Event)
    ids = [world.id() for _ in range(12)]
    old = min(world.written)

    events.batch_write([Event(tenant="abc", id=each, n=1) for each in ids[:6]])
    db.transact(
        *[Create(Event(tenant="abc", id=each, n=1)) for each in ids[6:9]], Put(Event(tenant="abc", id=old, n=5))
    )
    for each in ids[9:]:
        events.create(tenant="abc", id=each, n=1, handling="exactly-once")
    for each in (*ids, old):
        events.update(tenant="abc", id=each, add={"n": 1})
    for each in ids[::2]:
        events.delete(tenant="abc", id=each)

    reader = world.process().collection(Event)
    assert [reader.find(tenant="abc", id=each) is None for each in ids] == [True, False] * 6
    assert all(reader.get(tenant="abc", id=each).n == 2 for each in ids[1::2])
    assert reader.get(tenant="abc", id=old).n == 6
    assert len(world.shards()) > 2


def test_index_entries_of_all_epochs_are_listed(world: Epochs) -> None:
    db = world.process()
    events = db.collection(Event)
    made = []
    for count in (4, 16):
        made += [events.create(tenant="abc", id=world.id(), kind="a").id for _ in range(8)]
        world.grow(count)
        world.clock.now += 1
    made += [events.create(tenant="abc", id=world.id(), kind="a").id for _ in range(8)]

    found = [each.id for each in events.items(tenant="abc", kind="a", order="ordered", limit=5)]

    assert found == sorted(made)


def test_an_unsharded_partition_grows_without_being_resharded(world: Epochs) -> None:
    readings = world.process().collection(Reading)
    scope = partition(model=Reading, tenant="s1")
    for n in range(10):
        readings.create(sensor="s1", at=datetime.fromtimestamp(world.clock.now - n, UTC), id=f"{n}", n=n)
    page = readings.list(sensor="s1", limit=3)
    found = [each.n for each in page.items]
    world.grow(8, scope)
    for n in range(10, 30):
        readings.create(sensor="s1", at=datetime.fromtimestamp(world.clock.now, UTC), id=f"{n}", n=n)

    listed = sorted(each.n for each in readings.items(sensor="s1", order="ordered", limit=7))
    while page.cursor:
        page = readings.list(sensor="s1", limit=3, cursor=page.cursor)
        found += [each.n for each in page.items]

    assert listed == list(range(30))
    assert set(range(10)) <= set(found)
    assert len(found) == len(set(found))
    bare = [place for place in world.raw().values() if place == "epoch.v1.Reading:s1"]
    assert len(bare) == 10


def test_all_partitions_of_an_entity_grow_together_and_one_of_them_alone_afterwards(world: Epochs) -> None:
    db = world.process()
    world.write(db, 5, tenant="abc")
    world.write(db, 5, tenant="xyz")
    world.grow(4, whole())
    world.write(db, 20, tenant="abc")
    world.grow(16)
    world.write(db, 40, tenant="abc")
    world.write(db, 20, tenant="xyz")

    events = world.process().collection(Event)
    assert world.counts("epoch.v1.Event") == [(1, "confirmed"), (4, "confirmed")]
    assert world.counts() == [(1, "confirmed"), (4, "confirmed"), (16, "confirmed")]
    listed = [each.id for tenant in ("abc", "xyz") for each in events.items(tenant=tenant, order="ordered", limit=9)]
    assert sorted(listed) == sorted(world.written)


def test_calculated_items_are_declared_epochs_and_back_without_moving(world: Epochs) -> None:
    calculated = world.process().collection(declared("calculated", 4))
    made = [calculated.create(tenant="abc", id=world.id(), n=n).id for n in range(30)]
    page = calculated.list(tenant="abc", limit=7)
    before = world.raw()

    by_epochs = world.process().collection(Event)
    page = by_epochs.list(tenant="abc", limit=7, cursor=page.cursor)
    again = world.process().collection(declared("calculated", 4))
    assert all(collection.get(tenant="abc", id=each) for collection in (by_epochs, again) for each in made)
    assert len(again.list(tenant="abc", limit=7, cursor=page.cursor).items) == 7
    world.grow(16)
    page = by_epochs.list(tenant="abc", limit=1000, cursor=page.cursor)
    by_epochs.create(tenant="abc", id=world.id())

    assert len(page.items) == 16
    assert before.items() <= world.raw().items()
    with pytest.raises(ConfigurationError, match=r"epochs with different counts \(4, 16\)"):
        world.process().collection(declared("calculated", 4)).find(tenant="abc", id=made[0])


def test_a_cursor_of_more_shards_than_the_first_epoch_has_is_refused(world: Epochs) -> None:
    calculated = declared("calculated", 16)
    events = world.process().collection(calculated)
    for n in range(40):
        events.create(tenant="abc", id=world.id(), n=n)
    page = events.list(tenant="abc", limit=7)
    moved_by(world, calculated, 4)

    by_epochs = world.process().collection(Event)
    assert by_epochs.list(tenant="abc", limit=7, cursor=page.cursor).items
    world.grow(8)

    with pytest.raises(InvalidCursorError, match="list from the start"):
        world.process().collection(Event).list(tenant="abc", limit=7, cursor=page.cursor)
    assert world.process().collection(Event).count(tenant="abc") == 40


def test_an_item_that_a_former_resize_has_left_elsewhere_is_not_listed_in_any_epoch(world: Epochs) -> None:
    calculated = declared("calculated", 1)
    events = world.process().collection(calculated)
    [kept, *_] = [events.create(tenant="abc", id=world.id(), n=n).id for n in range(10)]
    moved_by(world, calculated, 4)
    stray = {
        **stored(world, kept),
        PK: {"S": next(f"{KEY}:{n}" for n in range(4) if world.raw()[kept] != f"{KEY}:{n}")},
    }
    world.grow(8)
    world.inner.call("PutItem", {"TableName": world.table, "Item": stray})

    listed = world.process().collection(Event)
    for order in ORDERS:
        assert sorted(each.n for each in listed.items(tenant="abc", order=order, limit=3)) == list(range(10))


def test_declared_counts_do_not_hold_for_a_partition_with_epochs(world: Epochs) -> None:
    world.grow(4)
    topology = declared_counts(topology_table=world.topology)
    db = Dynashard(
        world.inner, table=world.table, cursor_keys=KEYS, topology=topology, runtime=world.runtime(), clocks=CLOCKS
    )

    with pytest.raises(ConfigurationError, match="4 for its latest keys, and other counts for earlier ones"):
        db.collection(Event).find(tenant="abc", id=world.id())


def test_a_partition_with_epochs_is_not_resharded_by_moving(world: Epochs) -> None:
    world.grow(4)

    with pytest.raises(ReshardRefusedError) as refused:
        world.resharder(entities=[declared("calculated")]).start(partition(model=declared("calculated")), 8)

    assert refused.value.reason == "epochs"


@pytest.mark.parametrize("scope_of", [partition, whole])
def test_a_count_that_never_grew_by_an_epoch_grows_by_moving_again(
    world: Epochs, scope_of: Callable[..., Scope]
) -> None:
    events = world.process().collection(Event)
    made = world.write(world.process(), 30)
    resharder = world.resharder()
    resharder.start(scope_of(), 16)
    resharder.abort(scope_of())
    calculated = declared("calculated")
    assert world.resharder(entities=[calculated]).advance(scope_of().key).kind == "done"

    moved_by(world, calculated, 4, scope_of)

    moved = world.raw()
    assert world.shards() == {"0", "1", "2", "3"}
    assert all(world.process().collection(calculated).get(tenant="abc", id=each) for each in made)
    world.grow(16)
    world.clock.now += 1
    later = world.write(world.process(), 30)
    assert world.counts() == [(4, "confirmed"), (16, "confirmed")]
    assert moved.items() <= world.raw().items()
    assert all(events.get(tenant="abc", id=each) for each in [*made, *later])


def test_a_key_of_an_epoch_that_never_held_is_placed_under_the_count_that_followed(world: Epochs) -> None:
    world.write(world.process())
    world.resharder().start(partition(), 16)
    begins = KSUID.moment_of(world.record().epochs[-1].first)
    db, calculated = world.process(), declared("calculated")
    world.clock.now = begins - LEASE + 5
    # Its view has the epoch as pending.
    world.write(db)
    world.clock.now = begins - 1
    world.resharder().abort(partition())
    world.resharder(entities=[calculated]).start(partition(model=calculated), 4)

    [latest] = world.write(db, at=begins + 1)

    assert world.shards() == {"0"}
    assert world.process().collection(Event).get(tenant="abc", id=latest)


def test_nothing_is_found_under_a_key_of_the_far_future(world: Epochs) -> None:
    db = grown(world, 4)
    events = db.collection(Event)
    key = {"tenant": "abc", "id": world.id(world.clock.now + 3600)}

    with metered() as meter:
        assert events.find(key) is None
        assert list(events.batch_get([key])) == [None]

    assert meter.consumed.requests == 0
    with pytest.raises(NotFoundError):
        events.get(key)


def test_a_record_shows_a_release_that_knows_no_epochs_that_it_must_not_use_it(world: Epochs) -> None:
    world.grow(4)

    request = {"TableName": world.topology, "Key": {"partition": {"S": "epoch.v1.Event:abc"}}}
    stored = world.inner.call("GetItem", request)["Item"]

    assert stored["phase"] == {"S": "epochs"}
    assert stored["number_of_shards"] == {"N": "4"}
    assert PK not in stored
