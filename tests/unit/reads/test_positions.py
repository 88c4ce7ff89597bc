"""Positions of round-robin and shard-ordered listings, through any history of splits and merges."""

from collections.abc import Iterator, Sequence
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dynashard.placement import CALCULATED
from dynashard.reads.by_shard import decode_positions, encode_positions, list_by_shard
from dynashard.reads.fetch import Fetch, States
from dynashard.reads.layout import Layout
from dynashard.reads.positions import DONE, Positions
from dynashard.reads.query import Budget
from dynashard.reads.sources import Position, Reading, Source
from dynashard.transport.interface import Wire
from tests.depth import examples
from tests.query_source import SLOT, MemoryTransport, index_row, layout, reading, table_row

pytestmark = pytest.mark.unit

COUNTS = [1, 2, 4, 8, 16, 32, 64, 256]


class ResizedTable:
    """One logical partition whose items are at their homes under a count that changes."""

    def __init__(self, seed: int, count: int, size: int, cut: int | None) -> None:
        self.random = Random(seed)
        keys = [f"t:{self.random.random():.12f}" for _ in range(size)]
        self.rows = {key: (self.random.random() < 0.4, self.random.random() < 0.1) for key in keys}
        self.transport = MemoryTransport(None, self.random, cut)
        self.resize(count)

    def resize(self, count: int) -> None:
        self.count = count
        self.transport.store(
            table_row(f"p:{CALCULATED.shard(CALCULATED.hash(key), count)}", key, kept=kept, hidden=hidden)
            for key, (kept, hidden) in self.rows.items()
        )

    @property
    def sources(self) -> list[Source]:
        return [Source(number, f"p:{number}") for number in range(self.count)]

    def expected(self, *, filtered: bool) -> list[str]:
        return sorted(key for key, (kept, hidden) in self.rows.items() if not hidden and (kept or not filtered))


def _layouts(how: Reading, table: ResizedTable) -> list[Layout]:
    return [layout(how, table.sources)]


def pages(
    table: ResizedTable, *, forward: bool, in_turn: bool, filtered: bool = False, budget: int = 2000, limits: list[int]
) -> Iterator[list[str]]:
    """Yield the pages of a listing. Each starts with the state in the cursor of the page before."""
    positions: Positions | None = None
    for _ in range(5000):
        how = reading(None, forward=forward, filtered=filtered)
        fetch = Fetch(table.transport, Budget(requests=budget), partial(_layouts, how, table))
        limit = table.random.choice(limits)
        rows, after = list_by_shard(fetch, None if positions is None else [positions], limit=limit, in_turn=in_turn)
        positions = None if after is None else after[0]
        assert len(rows) <= limit
        yield [row["SK"]["S"] for row in rows]
        if positions is None:
            return
        assert decode_positions(encode_positions(positions)) == positions
        positions = decode_positions(encode_positions(positions))
    raise AssertionError("the listing does not end")


@settings(max_examples=examples(300))
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from(COUNTS),
    size=st.integers(0, 300),
    cut=st.sampled_from([None, 1, 5]),
    forward=st.booleans(),
    in_turn=st.booleans(),
    filtered=st.booleans(),
    budget=st.sampled_from([1, 5, 2000]),
    limits=st.sampled_from([[1, 3, 10, 50], [3], [10, 50], [1000]]),
)
def test_each_item_is_listed_once_through_any_history_of_splits_and_merges(
    seed: int,
    count: int,
    size: int,
    *,
    cut: int | None,
    forward: bool,
    in_turn: bool,
    filtered: bool,
    budget: int,
    limits: list[int],
) -> None:
    table = ResizedTable(seed, count, size, cut)
    listed = []

    for page in pages(table, forward=forward, in_turn=in_turn, filtered=filtered, budget=budget, limits=limits):
        listed += page
        if table.random.random() < 0.3:
            table.resize(table.random.choice(COUNTS))

    assert sorted(listed) == table.expected(filtered=filtered)


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32), count=st.sampled_from(COUNTS), limit=st.sampled_from([1, 7, 50, 1000]))
def test_no_item_is_read_twice_without_a_change_of_the_count(seed: int, count: int, limit: int) -> None:
    table = ResizedTable(seed, count, 200, None)

    listed = sum(len(page) for page in pages(table, forward=True, in_turn=True, limits=[limit]))

    assert table.transport.read == 200
    assert listed == len(table.expected(filtered=False))


def test_a_page_that_one_shard_fills_is_one_query_and_the_next_comes_from_the_next_shard() -> None:
    table = ResizedTable(1, 4, 400, None)
    table.rows = dict.fromkeys(table.rows, (True, False))
    table.resize(4)

    listing = pages(table, forward=True, in_turn=True, limits=[20])
    first, second = next(listing), next(listing)

    assert table.transport.waves == [1, 1]
    shards = [{CALCULATED.shard(CALCULATED.hash(key), 4) for key in page} for page in (first, second)]
    assert shards == [{0}, {1}]


def shards_of(sizes: Sequence[int]) -> list[Wire]:
    """Return rows so that shard 0 has the first number of them, shard 1 the second one, and so on."""
    return [table_row(f"p:{shard}", f"{shard:02d}-{n:04d}") for shard, size in enumerate(sizes) for n in range(size)]


def page_of(
    transport: MemoryTransport, count: int, state: States = None, *, limit: int, filtered: bool = False, **more: Any
) -> tuple[list[Wire], States]:
    sources = [Source(number, f"p:{number}") for number in range(count)]
    now = replace(layout(reading(None, forward=True, filtered=filtered), sources), **more)
    return list_by_shard(Fetch(transport, Budget(), lambda: [now]), state, limit=limit, in_turn=True)


@pytest.mark.parametrize(
    ("sizes", "limit", "waves"),
    [
        # The first shard gives 10 of 35, so three shards are read for the other 25, for 8 each.
        ([10] * 16, 35, [1, 3, 1]),
        # An empty first shard suggests that the others have little.
        ([0] * 9 + [1] + [0] * 6, 35, [1, 15]),
        ([0] * 9 + [1] + [0] * 6, 4, [1, 4, 4, 4, 3, 1]),
    ],
)
def test_the_rest_of_a_page_is_read_from_as_many_shards_as_seem_to_hold_it(
    sizes: list[int], limit: int, waves: list[int]
) -> None:
    transport = MemoryTransport(None, Random(1))
    transport.store(shards_of(sizes))

    rows, _ = page_of(transport, 16, limit=limit)

    assert (len(rows), transport.waves) == (min(limit, sum(sizes)), waves)


def test_a_shard_that_ends_at_its_position_does_not_suggest_a_small_listing() -> None:
    transport, rows = MemoryTransport(None, Random(1)), shards_of([10] * 4)
    transport.store(rows)
    state: States = None
    for _ in range(4):
        _, state = page_of(transport, 4, state, limit=5)
    transport.store(row for row in rows if row["SK"]["S"] < "00-0005" or row["SK"]["S"] > "01")
    transport.waves.clear()

    page_of(transport, 4, state, limit=5)

    assert transport.waves == [1, 1]


@pytest.mark.parametrize(
    ("limit", "more", "read"),
    [
        (10, {}, 500),
        (1000, {}, 1000),
        (10, {"follows": True}, 500),
        (10, {"follows": True, "moving": True}, 100),
        (200, {"follows": True, "moving": True}, 200),
    ],
)
def test_a_filtered_query_reads_500_items_and_100_while_markers_are_followed(
    limit: int, more: dict[str, Any], read: int
) -> None:
    transport = MemoryTransport(None, Random(1))
    transport.store(shards_of([3000]))

    page_of(transport, 1, limit=limit, filtered=True, **more)

    assert (transport.waves, transport.read) == ([1], read)


def test_shard_order_reads_each_shard_to_its_end() -> None:
    table = ResizedTable(2, 8, 200, None)

    listed = [key for page in pages(table, forward=True, in_turn=False, limits=[7]) for key in page]

    assert listed == sorted(listed, key=lambda key: (CALCULATED.shard(CALCULATED.hash(key), 8), key))


def test_children_of_a_split_inherit_the_position_of_their_parent() -> None:
    before = Positions(2, 0, ((Position("a"), 0b01),), turn=1)

    after = before.under(4)

    assert after == Positions(4, 0, ((Position("a"), 0b0101),), turn=1)


def test_a_merged_shard_is_read_from_the_earliest_position_of_its_parts() -> None:
    parted = Positions(4, 0b1010, ((Position("c"), 0b0001), (Position("a"), 0b0100)), turn=3)

    merged = parted.under(2)

    assert merged.start(0, 2, forward=True) == Position("a")
    assert merged.start(0, 2, forward=False) == Position("c")
    assert merged.left(2) == 0b01
    read = merged.read(0b01, 2, Position("b"), forward=True)
    assert [read.at(v) for v in range(4)] == [Position("c"), DONE, Position("b"), DONE]
    assert merged.read(0b01, 2, None, forward=True).ended


@pytest.mark.parametrize("forward", [True, False])
def test_a_position_is_right_although_equal_index_keys_have_no_order(*, forward: bool) -> None:
    # DynamoDB does not define the order of index entries with equal sort keys.
    positions = Positions(1, 0, ((Position("same", ("items", "m"), "p:0"), 1),))

    for item in ("z", "a"):
        last = Position("same", ("items", item), "p:0")
        assert positions.read(0b1, 1, last, forward=forward).start(0, 1, forward=forward) == last


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("in_turn", [True, False])
def test_index_entries_with_equal_sort_keys_are_listed_once_in_any_order(*, forward: bool, in_turn: bool) -> None:
    random = Random(4)
    transport = MemoryTransport(SLOT, random, cut=9)
    transport.store(index_row(f"p:{random.randrange(4)}", f"k{n % 2}", f"item-{n}") for n in range(300))
    sources = [Source(number, f"p:{number}") for number in range(4)]
    listed: list[str] = []

    positions: Positions | None = Positions(4)
    while positions is not None:
        fetch = Fetch(transport, Budget(), lambda: [layout(reading(SLOT, forward=forward), sources)])
        rows, after = list_by_shard(fetch, [positions], limit=7, in_turn=in_turn)
        positions = None if after is None else after[0]
        listed += [row["SK"]["S"] for row in rows]
        assert len(listed) <= 300

    assert sorted(listed) == sorted(f"item-{n}" for n in range(300))


def test_only_the_shard_that_an_entry_was_read_from_continues_exactly_after_it() -> None:
    layouts = [layout(reading(SLOT, forward=True), [Source(number, f"p:{number}") for number in range(2)])]
    before = Positions(1, 0, ((Position("same", ("items", "m"), "p:0"), 1),))

    assert [layouts[0].converts(layouts[0].rebase(before), shard) for shard in range(2)] == [True, False]


def test_entries_that_are_read_again_with_their_markers_leave_room_for_a_whole_page() -> None:
    transport, how = MemoryTransport(SLOT, Random(4)), reading(SLOT, forward=True)
    entries = [index_row("p:0", "same", f"item-{n}") for n in range(30)]
    transport.store(entries)
    at = layout(how, [Source(0, "p:0")])
    first, after = list_by_shard(Fetch(transport, Budget(), lambda: [at]), None, limit=8, in_turn=True)
    transport.store([*entries, *(index_row("p:0", "same", f"{row['SK']['S']}-marker", hidden=True) for row in first)])
    now = Fetch(transport, Budget(), lambda: [replace(at, version="later")])

    second, _ = list_by_shard(now, after, limit=8, in_turn=True)

    assert (len({row["SK"]["S"] for row in [*first, *second]}), now.rounds) == (16, 1)


def test_a_listing_goes_on_while_entries_move_and_an_answer_has_only_returned_ones() -> None:
    transport = MemoryTransport(SLOT, Random(4), cut=1)
    transport.store(index_row("p:0", "same", f"item-{n}") for n in range(20))
    moving = replace(layout(reading(SLOT, forward=True), [Source(0, "p:0")]), moving=True)
    state: States = None
    listed: list[str] = []

    for _ in range(20):
        found, state = list_by_shard(Fetch(transport, Budget(), lambda: [moving]), state, limit=2, in_turn=True)
        listed += [row["SK"]["S"] for row in found]
        if state is None:
            break

    assert sorted(listed) == sorted(f"item-{n}" for n in range(20))


def test_entries_that_a_resize_has_put_ahead_of_sixteen_positions_are_not_listed_again() -> None:
    """Each of so many positions names eight entries, and more of them while these may still be ahead."""
    transport = MemoryTransport(SLOT, Random(4))
    rows = [index_row(f"p:{n % 16}", "same", f"item-{n}") for n in range(16 * 60)]
    transport.store(rows)
    still = layout(reading(SLOT, forward=True), [Source(number, f"p:{number}") for number in range(16)])
    now, listed = [replace(still, moving=True)], list[str]()
    state: States = None

    for page in range(100):
        if page == 16:
            # Equal entries come in another order where they stand now.
            transport.store({**row, "PK": {"S": "moved"}} for row in rows)
            now[0] = replace(still, version="later")
        found, state = list_by_shard(Fetch(transport, Budget(), lambda: now), state, limit=14, in_turn=True)
        listed += [row["SK"]["S"] for row in found]
        if state is None:
            break

    assert sorted(listed) == sorted(row["SK"]["S"] for row in rows)


def test_a_part_of_a_merged_shard_that_has_ended_takes_no_position_when_the_other_is_read_on() -> None:
    read = Positions(4, 0b0001).read(0b01, 2, Position("b"), forward=True)

    assert read == Positions(4, 0b0001, ((Position("b"), 0b0100),))
    assert read.alone(4) == 0b0100


def test_a_merged_shard_of_which_a_part_has_not_begun_may_need_one_more_position() -> None:
    begun = Positions(4, 0, ((Position("a"), 0b0001), (Position("b"), 0b1010)))

    assert begun.alone(2) == 0b10


texts = st.text(min_size=1, max_size=40)
of_table = st.tuples(texts, st.sampled_from([-1, 0, 1])).map(lambda each: Position(each[0], side=each[1]))
of_index = st.tuples(
    texts,
    st.tuples(texts, texts),
    st.sampled_from(["p:0", "p:1", "p:3", "p"]),
    st.sampled_from(["", "1>2", "16>4"]),
    st.lists(texts, max_size=3).map(tuple),
    st.booleans(),
    st.booleans(),
).map(lambda each: Position(*each))


@given(
    st.sampled_from([of_table, of_index]).flatmap(lambda one: st.lists(st.none() | st.just(DONE) | one, min_size=1)),
    st.integers(0, 63),
)
def test_the_content_of_a_cursor_is_read_back(at: list[Position | None], turn: int) -> None:
    positions = Positions(len(at), turn=turn)
    for shard, position in enumerate(at):
        if position is not None:
            last = None if position is DONE else position
            positions = positions.read(1 << shard, len(at), last, forward=True)

    assert decode_positions(encode_positions(positions, "p"), "p") == positions
    assert [positions.at(shard) for shard in range(len(at))] == at
