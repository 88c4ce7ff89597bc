"""Scans, counts and loads of shards while counts change."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard import Filter, RetryPolicy
from dynashard.errors import ThrottledError
from dynashard.runtime import Runtime
from dynashard.testing.faults import FaultyTransport, throttled
from dynashard.testing.one_by_one import OneByOne
from dynashard.topology import Phase
from dynashard.transport.interface import Call, Resend, Transport, Wire
from tests.depth import examples
from tests.engine.reads.listing_world import INDEXES, Counts, Note, World, some_notes, tenant
from tests.engine.repository.moving_world import Amid, Leased, Resize, client
from tests.recording import RecordingTransport

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

WITHOUT_PAUSES = RetryPolicy(runtime=Runtime(sleep=lambda _: None))
KEPT = [Filter("kept", "=", value=True)]


def notes_of(random: Random, size: int, of: str) -> list[Note]:
    """Return notes that do not expire, few of which share an index key."""
    return [note.model_copy(update={"expires_at": None}) for note in some_notes(random, size, of=of, ranks=1000)]


@st.composite
def resizes(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "seed": draw(st.integers(0, 2**32)),
        "index": draw(st.sampled_from([None, None, *INDEXES])),
        "own": draw(st.booleans()),
        "filters": draw(st.sampled_from([[], KEPT])),
    }


def begun(world: World, seed: int, *, own: bool) -> tuple[Resize, str]:
    random, of = Random(seed), tenant()
    resize = Resize(world, random, notes_of(random, 60, of), index=own)
    resize.go_on(random.choice([0, 3, 12, 30]))
    return resize, of


def listed(note: Note, index: str | None, filters: list[Filter]) -> bool:
    return (index is None or note.group is not None) and (note.kept or not filters)


def inside(key: str, asked: dict[str, str]) -> bool:
    start, end = asked.get("start", ""), asked.get("end")
    return key.startswith(asked.get("prefix", "")) and key >= start and (end is None or key < end)


@settings(max_examples=examples(12))
@given(resize=resizes(), workers=st.sampled_from([1, 3]))
def test_a_scan_returns_lasting_items_once_while_counts_change(
    world: World, resize: dict[str, Any], workers: int
) -> None:
    index, filters = resize["index"], resize["filters"]
    going_on, of = begun(world, resize["seed"], own=resize["own"] and index is not None)
    # The consumer uses only the first layout, so it does not delay the resize.
    going_on.counts.idle.add(client())
    collection = world.collection(through=Amid(world.transport, going_on, page=9), retry_policy=WITHOUT_PAUSES)
    partition = {"tenant": of} if index is None else {"tenant": of, "group": "g"}

    items = list(collection.scan(partition, workers=workers, index=index, filters=filters))

    came = Counter(item.id for item in items)
    notes = [*going_on.staying, *going_on.passing]
    assert set(came) <= {note.id for note in notes if listed(note, index, filters)}
    assert [key for key, times in came.items() if times > 1] == []
    assert [n.id for n in going_on.staying if listed(n, index, filters) and not came[n.id]] == []


@settings(max_examples=examples(12))
@given(resize=resizes(), span=st.sampled_from([{}, {"prefix": "b"}, {"start": "a", "end": "b5"}]))
def test_a_count_counts_lasting_items_once_while_counts_change(
    world: World, resize: dict[str, Any], span: dict[str, str]
) -> None:
    index, filters = resize["index"], resize["filters"]
    going_on, of = begun(world, resize["seed"], own=resize["own"] and index is not None)
    going_on.left_to_come, going_on.passing = [], []
    asked: dict[str, Any] = {**span} if index is None else {}
    there = [n for n in going_on.present if listed(n, index, filters) and inside(n.id, asked)]
    collection = world.collection(through=Amid(world.transport, going_on, page=9), retry_policy=WITHOUT_PAUSES)
    partition = {"tenant": of} if index is None else {"tenant": of, "group": "g"}

    assert collection.count(partition, index=index, filters=filters, **asked) == len(there)


def test_the_loads_of_shards_are_those_of_both_counts_while_items_move(world: World) -> None:
    notes = notes_of(Random(4), 60, "loads")
    resize = Resize(world, Random(1), notes, index=False, counts=Leased(count=4))
    stored = len(resize.present)
    moved = resize.move_some(8, 10)

    loads = world.collection().shards({"tenant": "loads"})

    assert [load.partition_key.rpartition(":")[2] for load in loads] == [str(n) for n in range(8)]
    assert sum(load.items for load in loads) == stored
    assert sum(load.items for load in loads[4:]) == moved == 10


@pytest.mark.parametrize("order", ["round_robin", "shard", "ordered"])
def test_a_listing_follows_many_markers_with_one_request(world: World, order: str) -> None:
    notes = notes_of(Random(6), 60, f"marks {order}")
    resize = Resize(world, Random(1), notes, index=False, counts=Leased(count=1))
    assert resize.move_some(2, 100) >= 15
    recording = RecordingTransport(world.transport)

    page = world.collection(through=recording).list({"tenant": f"marks {order}"}, order=order, limit=100)

    assert sorted(item.id for item in page.items) == sorted(note.id for note in resize.present)
    assert (page.rounds, page.consumed.requests) == (2, 2)
    assert len(recording.requests) == 2


@pytest.mark.parametrize("order", ["round_robin", "shard", "ordered"])
def test_an_entry_whose_index_key_changed_is_listed_only_under_the_new_one(world: World, order: str) -> None:
    notes = [Note(tenant=f"again {order}", id=f"{n:02d}", group="g", rank="b") for n in range(30)]
    resize = Resize(world, Random(1), notes, index=False, counts=Leased(count=1, marks=True))
    resize.move_some(2, 100)
    for note in resize.present:
        resize.write_anew(note, rank="a" if int(note.id) % 2 else "c")

    partition = {"tenant": f"again {order}", "group": "g"}
    items = [i for p in world.collection().pages(partition, index="by_rank", order=order, limit=4) for i in p.items]

    assert sorted(item.id for item in items) == sorted(note.id for note in resize.present)
    assert {item.rank for item in items} == {"a", "c"}
    assert world.collection().count(partition, index="by_rank", start="b", end="c") == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", ["round_robin", "shard", "ordered"])
@pytest.mark.parametrize("index", [None, "by_rank"])
def test_filters_apply_to_the_item_and_not_to_its_marker(world: World, index: str | None, order: str) -> None:
    of = f"filtered {index} {order}"
    notes = [Note(tenant=of, id=f"{n:02d}", group="g", rank="r", kept=n % 2 == 0) for n in range(30)]
    resize = Resize(world, Random(1), notes, index=False, counts=Leased(count=2, marks=True))
    resize.move_some(8, 100)
    for note in resize.present:
        resize.write_anew(note, kept=not note.kept)

    partition = {"tenant": of} if index is None else {"tenant": of, "group": "g"}
    asked: dict[str, Any] = {"index": index, "filters": KEPT}
    items = [i for p in world.collection().pages(partition, order=order, limit=4, **asked) for i in p.items]

    assert sorted(item.id for item in items) == sorted(note.id for note in resize.present if not note.kept)
    assert world.collection().count(partition, **asked) == len(items)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("order", ["round_robin", "shard", "ordered"])
@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("index", ["by_rank", "by_rank_bare"])
def test_a_cursor_from_before_a_whole_resize_continues_among_equal_index_keys(
    world: World, index: str, order: str, direction: str
) -> None:
    of = f"asleep {index} {order} {direction}"
    notes = [Note(tenant=of, id=f"{n:02d}", group="g", rank="same") for n in range(9)]
    resize = Resize(world, Random(1), notes, index=False, counts=Leased(count=2, index_count=1))
    asked: dict[str, Any] = {"index": index, "order": order, "direction": direction, "limit": 3}

    first = world.collection().list({"tenant": of, "group": "g"}, **asked)
    resize.move_some(16, 100)
    resize.finish()
    pages = [first, *world.collection().pages({"tenant": of, "group": "g"}, cursor=first.cursor, **asked)]

    assert resize.counts.resize[0] is Phase.STABLE
    assert sorted(item.id for page in pages for item in page.items) == sorted(note.id for note in resize.present)


class Asked(OneByOne):
    """Checks that a view was requested before each round trip, because a lease may have ended."""

    def __init__(self, inner: Transport, counts: Leased) -> None:
        self.inner, self.counts = inner, counts

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        assert self.counts.asked, f"{operation} was sent under an old view"
        self.counts.asked.clear()
        return self.inner.call(operation, request, resend=resend)

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        assert self.counts.asked, f"{calls[0].operation} was sent under an old view"
        self.counts.asked.clear()
        return self.inner.call_all(calls, concurrency=concurrency)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", ["round_robin", "shard", "ordered"])
@pytest.mark.parametrize("index", [None, "by_rank"])
def test_the_view_is_requested_before_every_round_trip(world: World, index: str | None, order: str) -> None:
    of = f"asked {index} {order}"
    notes = [Note(tenant=of, id=f"{n:02d}", group="g", rank=f"{n:02d}") for n in range(60)]
    resize = Resize(world, Random(1), notes, index=False, counts=Leased(count=2, index_count=2))
    resize.move_some(8, 100)
    for note in resize.present[:5]:
        resize.delete(note)
    collection = world.collection(through=Asked(world.transport, resize.counts))
    partition = {"tenant": of} if index is None else {"tenant": of, "group": "g"}

    items = [i for p in collection.pages(partition, index=index, order=order, limit=7) for i in p.items]

    assert sorted(item.id for item in items) == sorted(note.id for note in resize.present)
    assert len(list(collection.scan(partition, index=index))) == collection.count(partition, index=index) == len(items)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", ["round_robin", "shard", "ordered"])
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_more_equal_entries_than_a_cursor_remembers_are_listed_completely(
    world: World, order: str, direction: str
) -> None:
    of = f"ties {order} {direction}"
    notes = [Note(tenant=of, id=f"{n:03d}", group="g", rank="same") for n in range(150)]
    resize = Resize(world, Random(1), notes, index=False, counts=Leased(count=4, index_count=2, marks=True))
    resize.move_some(16, 30)
    asked: dict[str, Any] = {"index": "by_rank_bare", "order": order, "direction": direction, "limit": 45}

    seen = [i.id for page in world.collection().pages({"tenant": of, "group": "g"}, **asked) for i in page.items]

    assert set(seen) == {note.id for note in resize.present}


def test_a_throttle_is_reported_to_the_callback_before_the_caller_sees_it(world: World) -> None:
    world.counts = Counts(4)
    reported: list[Any] = []
    faulty = FaultyTransport(world.transport, [throttled("Query", nth=None)])
    collection = world.collection(
        through=faulty, retry_policy=RetryPolicy(seconds=0), throttled=lambda *about: reported.append(about)
    )
    entity = collection.entity
    ways: list[Callable[[], object]] = [
        lambda: collection.list({"tenant": "t"}),
        lambda: collection.list({"tenant": "t"}, order="ordered"),
        lambda: collection.count({"tenant": "t"}),
        lambda: list(collection.scan({"tenant": "t"})),
        lambda: collection.shards({"tenant": "t"}),
    ]

    for way in ways:
        with pytest.raises(ThrottledError) as raised:
            way()
        assert reported.pop() == (entity, "listing.v1.Note:t", raised.value)
    with pytest.raises(ThrottledError) as raised:
        collection.list({"tenant": "t", "group": "g"}, index="by_rank")
    assert reported == [(entity, None, raised.value)]
