"""Listings over several logical partitions in memory: equal keys, answers of any length, distinct values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dynashard.reads.allowance import Allowance
from dynashard.reads.by_shard import decode_positions, encode_positions, list_by_shard
from dynashard.reads.dedup import MEMORY, SETTLING, Dedup
from dynashard.reads.fetch import Fetch
from dynashard.reads.ordered import list_ordered
from dynashard.reads.query import Budget
from dynashard.reads.sources import Source
from dynashard.transport.interface import Wire
from tests.depth import examples
from tests.query_source import SLOT, MemoryTransport, index_row, layout, reading, table_row

pytestmark = pytest.mark.unit

NOW = 1_900_000_000


@dataclass
class World:
    """Rows of some partitions with different shard counts."""

    transport: MemoryTransport
    counts: list[int]
    rows: list[Wire]
    random: Random
    slot: str | None

    @property
    def partitions(self) -> list[str]:
        return [f"p{part}" for part in range(len(self.counts))]

    def fetch(self, *, forward: bool, filtered: bool = False, budget: int = 2000) -> Fetch:
        how = reading(self.slot, forward=forward, filtered=filtered)
        layouts = [
            layout(how, [Source(number, f"{partition}:{number}") for number in range(count)])
            for partition, count in zip(self.partitions, self.counts, strict=True)
        ]
        return Fetch(self.transport, Budget(requests=budget), lambda: layouts)

    def wanted(self, *, filtered: bool = False) -> list[Wire]:
        return [row for row in self.rows if not row["hidden"]["BOOL"] and (row["kept"]["BOOL"] or not filtered)]


@st.composite
def worlds(draw: st.DrawFn, slot: str | None) -> World:
    random = Random(draw(st.integers(0, 2**32)))
    counts = draw(st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=4))
    different = draw(st.sampled_from([1, 2, 5, 1000]))
    rows: dict[tuple[str, str], Wire] = {}
    for number in range(draw(st.integers(0, 100))):
        part = random.randrange(len(counts))
        shard = f"p{part}:{random.randrange(counts[part])}"
        flags = {"kept": random.random() < 0.3, "hidden": random.random() < 0.2}
        key = f"k{random.randrange(different):03d}"
        if slot is None:
            # A key is unique in a partition, but several partitions may have it.
            rows[f"p{part}", key] = table_row(shard, key, **flags)
        else:
            rows[shard, f"item-{number}"] = index_row(shard, key, f"item-{number}", **flags)
    transport = MemoryTransport(slot, random, cut=draw(st.sampled_from([None, 1, 2, 7])))
    transport.store(rows.values())
    return World(transport, counts, list(rows.values()), random, slot)


def ordered(
    world: World,
    *,
    forward: bool,
    limits: Sequence[int],
    once: bool = False,
    filtered: bool = False,
    budget: int = 2000,
) -> Iterator[tuple[list[Wire], Fetch]]:
    """Return all pages. Each starts with the state in the cursor of the page before."""
    state: list[Any] | None = None
    for _ in range(3000):
        fetch = world.fetch(forward=forward, filtered=filtered, budget=budget)
        recent, *left = state or [{}]
        end = [decode_positions(*each) for each in zip(left, world.partitions, strict=True)] if left else None
        drops = Dedup("said", "changed", recent) if once else None
        limit = world.random.choice(limits)
        rows, after, _ = list_ordered(fetch, end, limit=limit, item_bytes=1000, dedup=drops)
        assert len(rows) <= limit
        yield rows, fetch
        if after is None:
            return
        state = [drops.remembered(rows, NOW) if drops else {}, *map(encode_positions, after, world.partitions)]
    raise AssertionError("the listing does not end")


@pytest.mark.parametrize("slot", [None, SLOT])
@settings(max_examples=examples(120))
@given(
    data=st.data(),
    forward=st.booleans(),
    filtered=st.booleans(),
    limits=st.sampled_from([[1], [1, 2, 3], [7, 50], [1000]]),
    budget=st.sampled_from([1, 5, 2000]),
)
def test_every_item_of_all_partitions_is_listed_once_and_in_order(
    slot: str | None, data: st.DataObject, *, forward: bool, filtered: bool, limits: list[int], budget: int
) -> None:
    world = data.draw(worlds(slot))

    pages = [rows for rows, _ in ordered(world, forward=forward, limits=limits, filtered=filtered, budget=budget)]

    listed = [row for page in pages for row in page]
    attribute = "SK" if slot is None else f"{slot}SK"
    keys = [row[attribute]["S"] for row in listed]
    assert keys == sorted(keys, reverse=not forward)
    assert sorted(map(str, listed)) == sorted(map(str, world.wanted(filtered=filtered)))


@pytest.mark.parametrize("slot", [None, SLOT])
@settings(max_examples=examples(80))
@given(data=st.data(), forward=st.booleans(), in_turn=st.booleans(), limits=st.sampled_from([[1, 2, 3], [7, 50]]))
def test_every_item_of_all_partitions_is_listed_once_by_round_robin(
    slot: str | None, data: st.DataObject, *, forward: bool, in_turn: bool, limits: list[int]
) -> None:
    world = data.draw(worlds(slot))
    listed: list[Wire] = []
    state: list[Any] | None = None

    for _ in range(1000):
        positions = None
        if state is not None:
            positions = [decode_positions(*each) for each in zip(state, world.partitions, strict=True)]
        fetch = world.fetch(forward=forward)
        rows, after = list_by_shard(fetch, positions, limit=world.random.choice(limits), in_turn=in_turn)
        listed += rows
        if after is None:
            break
        state = [encode_positions(*each) for each in zip(after, world.partitions, strict=True)]

    assert sorted(map(str, listed)) == sorted(map(str, world.wanted()))


def two_partitions() -> World:
    """Two partitions of one shard with three items each, whose Queries answer one item."""
    transport = MemoryTransport(None, Random(1), cut=1)
    transport.store([table_row(f"p{part}:0", f"k{part}{number}") for part in range(2) for number in range(3)])
    return World(transport, [1, 1], [], Random(1), None)


def keys_of(rows: Sequence[Wire]) -> list[str]:
    return [row["SK"]["S"] for row in rows]


def test_a_page_without_requests_left_leaves_the_turn_to_the_next_partition() -> None:
    world = two_partitions()
    short = world.fetch(forward=True)
    short.allowance = Allowance(1)

    first, state = list_by_shard(short, None, limit=2, in_turn=True)
    second, _ = list_by_shard(world.fetch(forward=True), state, limit=1, in_turn=True)

    assert keys_of([*first, *second]) == ["k00", "k10"]


def test_a_page_that_is_overtaken_goes_on_with_the_partition_whose_turn_it_is() -> None:
    world = two_partitions()
    first, state = list_by_shard(world.fetch(forward=True), None, limit=1, in_turn=True)
    fetch = world.fetch(forward=True)
    now = fetch.layouts()
    ended = [replace(layout, expires=0.0, signature="before") for layout in now]
    looks = iter([ended])
    fetch.layouts = lambda: next(looks, now)

    second, _ = list_by_shard(fetch, state, limit=1, in_turn=True)

    assert keys_of([*first, *second]) == ["k00", "k10"]


def test_a_page_that_ends_at_a_key_of_two_partitions_leaves_the_second_item_to_the_next_page() -> None:
    rows = [*(table_row("p0:0", f"k{number}") for number in range(9)), table_row("p1:0", "k3")]
    transport = MemoryTransport(None, Random(1))
    transport.store(rows)
    world = World(transport, [1, 1], rows, Random(1), None)
    fetches = [world.fetch(forward=True, budget=2) for _ in range(2)]

    first, after, _ = list_ordered(fetches[0], None, limit=6, item_bytes=None)
    second, _, _ = list_ordered(fetches[1], after, limit=6, item_bytes=None)

    assert keys_of(first) == ["k0", "k1", "k2", "k3"]
    assert keys_of(second)[:2] == ["k3", "k4"]


@st.composite
def copied(draw: st.DrawFn) -> World:
    """Things with copies in some of the partitions, under the same sort key in each."""
    world = draw(worlds(SLOT))
    random = world.random
    world.rows = []
    for number in range(draw(st.integers(0, 60))):
        for part in random.sample(range(len(world.counts)), random.randint(1, len(world.counts))):
            shard = f"p{part}:{random.randrange(world.counts[part])}"
            row = index_row(shard, f"k{number:03d}", f"copy-{number}-{part}", hidden=random.random() < 0.1)
            world.rows.append({**row, "said": {"S": f"thing-{number}"}})
    world.transport.store(world.rows)
    return world


@settings(max_examples=examples(200))
@given(
    world=copied(),
    forward=st.booleans(),
    limits=st.sampled_from([[1], [1, 2, 3], [7, 20], [1000]]),
    budget=st.sampled_from([1, 5, 2000]),
)
def test_one_of_several_copies_is_returned(world: World, *, forward: bool, limits: list[int], budget: int) -> None:
    listed = [
        row for rows, _ in ordered(world, forward=forward, limits=limits, once=True, budget=budget) for row in rows
    ]

    said = [row["said"]["S"] for row in listed]
    assert said == sorted({row["said"]["S"] for row in world.wanted()}, key=_number, reverse=not forward)


def _number(thing: str) -> int:
    return int(thing.removeprefix("thing-"))


@settings(max_examples=examples(100))
@given(world=copied(), forward=st.booleans(), size=st.sampled_from([1, 5, 20, 100]), once=st.booleans())
def test_two_rounds_suffice_for_any_number_of_partitions(world: World, *, forward: bool, size: int, once: bool) -> None:
    world.transport.cut = None
    world.transport.store(world.wanted())

    pages = list(ordered(world, forward=forward, limits=[size], once=once))

    assert max(fetch.rounds for _, fetch in pages) <= 2


def _item(value: str, changed: str | None) -> Wire:
    item: Wire = {"said": {"S": value}}
    return item if changed is None else {**item, "changed": {"S": changed}}


def test_recent_changes_are_remembered_until_they_have_settled() -> None:
    once = Dedup("said", "changed")
    lately = "2030-03-17T17:46:00.000000Z"  # 40 s before NOW

    recent = once.remembered([_item("a", lately), _item("b", "2030-03-17T17:00:00Z"), _item("c", None)], NOW)

    later = Dedup("said", "changed", recent)
    assert later.drop_repeats([_item("a", None), _item("b", None), _item("c", None)], lambda item: item) == [
        _item("b", None),
        _item("c", None),
    ]
    assert later.remembered([], NOW + SETTLING) == {}


def test_the_latest_changes_are_remembered_if_there_are_too_many() -> None:
    once = Dedup("said", "changed")
    items = [_item(f"v{n}", f"2030-03-17T17:{45 + n // 60:02d}:{n % 60:02d}Z") for n in range(90)]

    recent = once.remembered(items, NOW)

    assert len(recent) == MEMORY
    assert Dedup("said", None, recent).drop_repeats(items, lambda item: item) == items[: 90 - MEMORY]
