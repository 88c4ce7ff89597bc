"""Ordered listings on sources in memory: equal keys in any order, answers of any length, any budget."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from random import Random

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dynashard.reads.allowance import Allowance
from dynashard.reads.bounds import Bounds
from dynashard.reads.by_shard import FILTERED_READ, decode_positions, encode_positions
from dynashard.reads.fences import LIFE_SECONDS, MOVING_LIFE_SECONDS, Fences
from dynashard.reads.fetch import Fetch
from dynashard.reads.first_round import LARGE_BYTES, MAX_ROUND_BYTES, first_limit
from dynashard.reads.ordered import list_ordered
from dynashard.reads.query import Budget
from dynashard.reads.sources import Reading, Source
from dynashard.transport.interface import Wire
from tests.depth import examples
from tests.query_source import KEPT, SLOT, MemoryTransport, hash_of, index_row, layout, reading, table_row

pytestmark = pytest.mark.unit

AMPLE = Budget()
ITEM_BYTES = st.sampled_from([None, 1024, 300_000])


@dataclass
class Paged:
    items: list[Wire]
    fetch: Fetch


def pages_of(
    transport: MemoryTransport,
    sources: list[Source],
    how: Reading,
    limits: Iterator[int],
    *,
    budget: Budget = AMPLE,
    item_bytes: float | None = 1024,
    every: float = 0,
) -> Iterator[Paged]:
    """Yield the pages of a listing, so many seconds apart."""
    end, fences = None, None
    for number in range(2000):
        now = 1000 + number * every
        fetch = Fetch(transport, budget, lambda: [layout(how, sources)], clock=partial(float, now))
        items, end, fences = list_ordered(fetch, end, fences, limit=next(limits), item_bytes=item_bytes)
        end = end and [decode_positions(encode_positions(end[0], "p"), "p")]
        if fences is not None and end is not None:
            fences = Fences.unpack(orjson.loads(orjson.dumps(fences.pack())), end[0].open[0][0].sort)
        yield Paged(items, fetch)
        if end is None:
            return
    raise AssertionError("the listing does not end")


def sizes(random: Random, *choices: int) -> Iterator[int]:
    while True:
        yield random.choice(choices)


@dataclass
class World:
    transport: MemoryTransport
    sources: list[Source]
    rows: list[Wire]
    random: Random


@st.composite
def worlds(draw: st.DrawFn, slot: str | None) -> World:
    random = Random(draw(st.integers(0, 2**32)))
    count = draw(st.sampled_from([1, 2, 4, 16]))
    different = draw(st.sampled_from([1, 2, 5, 1000]))
    shards = [f"p:{number}" for number in range(count)]
    rows = []
    for number in range(draw(st.integers(0, 120))):
        shard = random.choice(shards[: draw(st.sampled_from([1, count]))])
        flags = {"kept": random.random() < 0.3, "hidden": random.random() < 0.2}
        if slot is None:
            rows.append(table_row(shard, f"k{random.randrange(10**6):06d}-{number}", **flags))
        else:
            rows.append(index_row(shard, f"k{random.randrange(different):03d}", f"item-{number}", **flags))
    transport = MemoryTransport(slot, random, cut=draw(st.sampled_from([None, 1, 2, 7])))
    transport.store(rows)
    return World(transport, [Source(number, shard) for number, shard in enumerate(shards)], rows, random)


@pytest.mark.parametrize("slot", [None, SLOT])
@settings(max_examples=examples(250))
@given(data=st.data(), forward=st.booleans(), filtered=st.booleans(), waves=st.sampled_from([1, 2, 3, 1000]))
def test_every_visible_item_is_listed_once_and_in_order(
    slot: str | None, data: st.DataObject, *, forward: bool, filtered: bool, waves: int
) -> None:
    world = data.draw(worlds(slot))
    edges = [None, "k", "k001", "k002", "k500", "z"]
    low, high = data.draw(st.sampled_from(edges)), data.draw(st.sampled_from(edges))
    bounds = Bounds(low=low, high=high, high_open=data.draw(st.booleans()))
    how = reading(slot, forward=forward, filtered=filtered, bounds=bounds)
    attribute = how.sort_attribute
    budget = Budget(requests=len(world.sources) * (waves - 1) + 1)
    limits = sizes(world.random, *data.draw(st.sampled_from([(1,), (1, 2, 3), (7, 50), (1000,)])))
    size = data.draw(ITEM_BYTES)

    listed = [p.items for p in pages_of(world.transport, world.sources, how, limits, budget=budget, item_bytes=size)]

    items = [row for page in listed for row in page]
    keys = [row[attribute]["S"] for row in items]
    assert keys == sorted(keys, reverse=not forward)
    wanted = [
        row
        for row in world.rows
        if bounds.contains(row[attribute]["S"]) and not row["hidden"]["BOOL"] and (row["kept"]["BOOL"] or not filtered)
    ]
    assert sorted(row["SK"]["S"] for row in items) == sorted(row["SK"]["S"] for row in wanted)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 50])
@pytest.mark.parametrize("cut", [None, 4])
def test_entries_with_equal_keys_are_listed_once_with_any_page_size(
    *, forward: bool, size: int, cut: int | None
) -> None:
    random = Random(size)
    transport = MemoryTransport(SLOT, random, cut=cut)
    transport.store([index_row(f"p:{random.randrange(4)}", "same", f"item-{n}") for n in range(500)])
    sources = [Source(number, f"p:{number}") for number in range(4)]

    pages = list(pages_of(transport, sources, reading(SLOT, forward=forward), sizes(random, size)))

    listed = [row["SK"]["S"] for page in pages for row in page.items]
    assert sorted(listed) == sorted(f"item-{n}" for n in range(500))
    assert len(pages) <= 500 // size + 2


@settings(max_examples=examples(100))
@given(
    seed=st.integers(0, 2**32),
    forward=st.booleans(),
    size=st.sampled_from([1, 2, 7, 30]),
    ties=st.sampled_from([1, 3, 8]),
    cut=st.sampled_from([None, 2, 5]),
    item_bytes=ITEM_BYTES,
)
@example(seed=0, forward=False, size=1, ties=3, cut=None, item_bytes=None)
def test_entries_are_listed_once_and_in_order_through_any_history_of_counts(
    seed: int, *, forward: bool, size: int, ties: int, cut: int | None, item_bytes: float | None
) -> None:
    # A cursor remembers up to 8 entries with equal sort keys.
    random = Random(seed)
    rows = [index_row("", f"k{n // ties:04d}", f"item-{n}") for n in range(random.randrange(60))]
    transport, how = MemoryTransport(SLOT, random, cut=cut), reading(SLOT, forward=forward)
    listed, end, fences, left, count = [], None, None, True, 16

    while left:
        count = random.choice([1, 2, 4, count, count, 16])
        transport.store({**row, f"{SLOT}PK": {"S": f"p:{hash_of(row) & (count - 1)}"}} for row in rows)
        layouts = [layout(how, [Source(number, f"p:{number}") for number in range(count)])]
        fetch = Fetch(transport, AMPLE, lambda layouts=layouts: layouts)  # type: ignore[misc]
        items, end, fences = list_ordered(fetch, end, fences, limit=size, item_bytes=item_bytes)
        end = end and [decode_positions(encode_positions(end[0], "p"), "p")]
        left = end is not None
        listed += items

    keys = [row[f"{SLOT}SK"]["S"] for row in listed]
    assert keys == sorted(keys, reverse=not forward)
    assert sorted(row["SK"]["S"] for row in listed) == sorted(row["SK"]["S"] for row in rows)


@settings(max_examples=examples(100))
@given(seed=st.integers(0, 2**32), forward=st.booleans(), size=st.sampled_from([1, 10, 50, 200]))
def test_two_rounds_suffice_if_no_answer_is_cut_or_filtered(seed: int, *, forward: bool, size: int) -> None:
    random = Random(seed)
    transport = MemoryTransport(None, random)
    skew = random.choice([1, 4, 16])
    transport.store([table_row(f"p:{random.randrange(skew)}", f"k{random.random()}") for _ in range(120)])
    sources = [Source(number, f"p:{number}") for number in range(16)]

    pages = list(pages_of(transport, sources, reading(None, forward=forward), sizes(random, size)))

    assert max(page.fetch.rounds for page in pages) <= 2
    assert all(len(page.items) == size for page in pages[:-2])


def test_the_first_round_fills_the_blocks_it_pays_for() -> None:
    assert first_limit(50, 16, 1024) == 8
    assert first_limit(50, 16, 4096) == 5
    assert first_limit(50, 16, 256) == 14
    assert first_limit(10, 1, 1024) == 10
    assert first_limit(1, 64, 1024) == 1
    assert first_limit(1000, 4, 5000) == 266


@pytest.mark.parametrize("size", [None, 300 * 1024])
def test_of_large_items_and_of_items_of_unknown_size_round_1_reads_the_share_and_a_quarter_of_the_deviation(
    size: float | None,
) -> None:
    assert first_limit(20, 16, size) == 2
    assert first_limit(50, 16, size) == 4
    # With the share alone, 1, the 16th key would be the last of all shards, and round 2 would read up to there.
    assert first_limit(16, 16, size) == 2
    assert first_limit(1, 64, size) == 1
    assert first_limit(1, 1, size) == 1


def test_a_filter_reads_as_much_of_items_of_unknown_size_as_of_items_of_1_kb() -> None:
    assert first_limit(50, 16, None, filtered=True) == first_limit(50, 16, 1024, filtered=True)


@given(st.integers(1, 1000), st.integers(1, 1024), st.integers(50, 400_000))
@example(limit=102, sources=8, size=LARGE_BYTES)
@example(limit=102, sources=8, size=LARGE_BYTES - 1)
def test_the_first_round_reads_no_items_that_hardly_any_page_needs(limit: int, sources: int, size: int) -> None:
    share = limit / sources

    read = first_limit(limit, sources, size)

    assert 1 <= read <= min(limit, share + 6 * share**0.5 + 1)
    if limit * sources * size <= MAX_ROUND_BYTES:
        deviations = 0.25 if size >= LARGE_BYTES else 1
        assert read >= min(limit, share + deviations * share**0.5)


def test_a_filtered_first_round_fills_its_blocks_four_times() -> None:
    assert first_limit(50, 16, 1024, filtered=True) == 32
    assert first_limit(50, 16, 100, filtered=True) == 160
    assert first_limit(1000, 1, 100, filtered=True) == FILTERED_READ


def test_an_exhausted_source_is_read_once_a_page() -> None:
    transport = MemoryTransport(None, Random(1))
    transport.store([table_row("p:0", f"k{n:03d}") for n in range(40)])
    sources = [Source(number, f"p:{number}") for number in range(4)]

    first = next(pages_of(transport, sources, reading(None, forward=True), iter([20])))

    assert len(first.items) == 20
    assert transport.waves == [4, 1]


def test_a_page_limited_by_its_budget_advances_although_all_sort_keys_are_equal() -> None:
    transport = MemoryTransport(SLOT, Random(2), cut=1)
    transport.store([index_row(f"p:{n % 4}", "same", f"item-{n}") for n in range(40)])
    sources = [Source(number, f"p:{number}") for number in range(4)]

    pages = list(
        pages_of(transport, sources, reading(SLOT, forward=True), sizes(Random(3), 10), budget=Budget(requests=6))
    )

    assert sorted(row["SK"]["S"] for page in pages for row in page.items) == sorted(f"item-{n}" for n in range(40))
    assert len(pages) <= 41


def test_a_short_page_continues_at_the_least_advanced_source() -> None:
    transport = MemoryTransport(SLOT, Random(0), cut=1)
    rows = [
        index_row("p:0", "k1", "a"),
        index_row("p:0", "k3", "d"),
        index_row("p:1", "k1", "b"),
        *[index_row("p:1", "k2", f"hidden-{n}", hidden=True) for n in range(5)],
        index_row("p:2", "k2", "c"),
        index_row("p:2", "k3", "e"),
    ]
    transport.store(rows)
    sources = [Source(number, f"p:{number}") for number in range(3)]

    pages = list(
        pages_of(transport, sources, reading(SLOT, forward=True), sizes(Random(0), 3), budget=Budget(requests=4))
    )

    assert [row["SK"]["S"] for page in pages for row in page.items] == ["a", "b", "c", "d", "e"]


@settings(max_examples=examples(200))
@given(
    seed=st.integers(0, 2**32),
    slot=st.sampled_from([None, SLOT]),
    forward=st.booleans(),
    size=st.sampled_from([1, 3, 10, 40]),
    cut=st.sampled_from([None, 3]),
    every=st.sampled_from([0, 20, LIFE_SECONDS]),
)
def test_deletes_and_later_items_between_pages_hide_no_other_item(
    seed: int, *, slot: str | None, forward: bool, size: int, cut: int | None, every: int
) -> None:
    random = Random(seed)
    transport, how = MemoryTransport(slot, random, cut=cut), reading(slot, forward=forward)
    rows = {}
    for n in range(200):
        shard, key = f"p:{random.randrange(32)}", f"k{random.randrange(10**4):04d}"
        rows[n] = table_row(shard, f"{key}-{n}") if slot is None else index_row(shard, key, f"item-{n}")
    attribute, transport_rows, deleted = how.sort_attribute, dict(rows), set[int]()
    transport.store(transport_rows.values())
    sources = [Source(number, f"p:{number}") for number in range(32)]
    listed: list[Wire] = []

    for page in pages_of(transport, sources, how, sizes(random, size), every=every):
        listed += page.items
        deleted |= set(random.sample(sorted(transport_rows), min(4, len(transport_rows))))
        transport_rows = {n: row for n, row in rows.items() if n not in deleted}
        transport.store(transport_rows.values())

    keys = [row[attribute]["S"] for row in listed]
    assert keys == sorted(keys, reverse=not forward)
    names = [row["SK"]["S"] for row in listed]
    assert len(names) == len(set(names))
    assert {row["SK"]["S"] for row in transport_rows.values()} <= set(names)


def rows_of(shards: int, items: int) -> list[Wire]:
    random = Random(5)
    return [table_row(f"p:{random.randrange(shards)}", f"k{n:06d}") for n in range(items)]


def spread(shards: int, items: int) -> tuple[MemoryTransport, list[Source]]:
    transport = MemoryTransport(None, Random(5))
    transport.store(rows_of(shards, items))
    return transport, [Source(number, f"p:{number}") for number in range(shards)]


@pytest.mark.parametrize("forward", [True, False])
def test_a_page_asks_only_the_shards_that_can_have_a_part_of_it(*, forward: bool) -> None:
    transport, sources = spread(256, 2000)

    pages = list(pages_of(transport, sources, reading(None, forward=forward), sizes(Random(1), 50)))

    asked = [page.fetch.consumed.requests for page in pages]
    assert asked[0] == 256
    assert sum(asked[1:-1]) <= 100 * len(asked[1:-1])
    # What was left out before is asked before the listing ends.
    assert asked[-1] == 256
    assert sum(len(page.items) for page in pages) == 2000


def test_fences_are_left_out_when_they_are_old_or_reads_are_consistent_or_filtered() -> None:
    transport, sources = spread(64, 600)
    how = reading(None, forward=True)

    def asked(how: Reading, *, every: float = 0) -> list[int]:
        paged = pages_of(transport, sources, how, sizes(Random(1), 10), every=every)
        return [page.fetch.consumed.requests for page in paged]

    assert min(asked(how, every=LIFE_SECONDS + 1)) >= 64
    assert min(asked(replace(how, consistent=True))) >= 64
    assert min(asked(replace(how, filters=KEPT))) >= 64
    assert min(asked(how)) < 32


@pytest.mark.parametrize("forward", [True, False])
def test_somebody_who_reads_a_page_every_20_seconds_pays_a_part_of_the_confirmations_with_each(
    *, forward: bool
) -> None:
    transport, sources = spread(256, 5_000)

    pages = list(pages_of(transport, sources, reading(None, forward=forward), sizes(Random(1), 50), every=20))

    # In memory each Query consumes half a unit; 23 units are the least.
    units = [page.fetch.consumed.read_units for page in pages[1:-4]]
    assert sum(units) / len(units) <= 35
    assert max(units) <= 40
    assert sum(len(page.items) for page in pages) == 5_000


@pytest.mark.parametrize("every", [5, 20, 100])
def test_no_fence_is_used_for_longer_than_its_life(every: int) -> None:
    # Every shard was asked at most a life before each page, so an item that is older than that is never missed.
    transport, sources = spread(64, 2000)
    asked = dict[str, float]()
    paged = pages_of(transport, sources, reading(None, forward=True), sizes(Random(1), 5), every=every)

    for number, _ in enumerate(islice(paged, 4 * LIFE_SECONDS // every)):
        asked |= dict.fromkeys(transport.asked, number * every)
        transport.asked.clear()
        assert min(asked.values()) >= number * every - LIFE_SECONDS


@pytest.mark.parametrize("stationary", [True, False])
def test_where_an_update_can_move_an_item_fences_hold_for_seconds(*, stationary: bool) -> None:
    transport, sources = spread(64, 600)
    where = [replace(layout(reading(None, forward=True), sources), stationary=stationary)]
    now = 1000.0
    _, end, fences = list_ordered(
        Fetch(transport, AMPLE, lambda: where, clock=lambda: now), None, limit=10, item_bytes=1024
    )

    now += MOVING_LIFE_SECONDS + 1
    later = Fetch(transport, AMPLE, lambda: where, clock=lambda: now)
    list_ordered(later, end, fences, limit=10, item_bytes=1024)

    assert (later.consumed.requests >= 64) is not stationary


@pytest.mark.parametrize("forward", [True, False])
def test_the_page_after_one_that_did_not_know_the_size_of_small_items_asks_as_few_shards_as_later_ones(
    *, forward: bool
) -> None:
    # Round 1 of the first page reads one item of each shard, which were 80 and more Queries on the second.
    transport, sources = spread(256, 10_000)
    where = [layout(reading(None, forward=forward), sources)]
    first, second = (Fetch(transport, AMPLE, lambda: where) for _ in range(2))

    _, end, fences = list_ordered(first, None, limit=50, item_bytes=None)
    items, _, _ = list_ordered(second, end, fences, limit=50, item_bytes=1024)

    assert len(items) == 50
    assert second.consumed.read_units <= 30


def test_a_listing_whose_budget_ends_before_an_item_is_found_goes_on() -> None:
    transport, sources = spread(64, 2000)
    where = [layout(reading(None, forward=True), sources)]
    # As time goes on, more shards are asked first.
    fetch = partial(Fetch, transport, layouts=lambda: where, clock=lambda: 0.0)
    first, end, fences = list_ordered(fetch(AMPLE), None, limit=20, item_bytes=1024)
    assert fences is not None
    asked, others = fences.parted(20, fences.turn)
    left = [row for row in rows_of(64, 2000) if int(row["PK"]["S"][2:]) in others]
    transport.store(left)

    one_round = fetch(Budget(requests=1))
    nothing, again, unknown = list_ordered(one_round, end, fences, limit=20, item_bytes=1024)
    rest, _, _ = list_ordered(fetch(AMPLE), again, unknown, limit=2000, item_bytes=1024)

    assert (len(first), nothing, unknown) == (20, [], None)
    assert asked
    beyond = [row["SK"]["S"] for row in left if row["SK"]["S"] > first[-1]["SK"]["S"]]
    assert [row["SK"]["S"] for row in rest] == sorted(beyond)


@pytest.mark.parametrize(
    ("budget", "rounds"), [(Budget(read_units=0), 2), (Budget(requests=1), 1), (Budget(requests=1, read_units=0), 1)]
)
def test_a_page_whose_last_key_is_known_is_completed_although_its_read_units_are_used(
    budget: Budget, rounds: int
) -> None:
    transport, sources = spread(16, 2000)
    fetch = Fetch(transport, budget, lambda: [layout(reading(None, forward=True), sources)])

    items, _, _ = list_ordered(fetch, None, limit=50, item_bytes=None)

    assert fetch.rounds == rounds
    assert (len(items) == 50) is (rounds == 2)


LARGE = 300 * 1024
"""The bytes of a large item, of which a Query returns 3: 20 of them take 750 units."""


def large_pages(limit: int, seed: int) -> list[Paged]:
    """The pages of 160 large items in 16 shards by a process that has not read any yet."""
    random = Random(seed)
    transport = MemoryTransport(None, random, size=LARGE)
    text = {"text": {"S": "x" * LARGE}}
    transport.store(table_row(f"p:{random.randrange(16)}", f"{random.random():.15f}") | text for _ in range(160))
    sources = [Source(number, f"p:{number}") for number in range(16)]
    end, fences, pages = None, None, list[Paged]()
    while end is not None or not pages:
        fetch = Fetch(transport, AMPLE, lambda: [layout(reading(None, forward=True), sources)], clock=lambda: 1000.0)
        known = float(LARGE) if pages else None
        items, end, fences = list_ordered(fetch, end, fences, limit=limit, item_bytes=known)
        pages.append(Paged(items, fetch))
    assert sum(len(page.items) for page in pages) == 160
    return pages


@pytest.mark.parametrize("seed", range(8))
def test_a_page_of_large_items_is_full_although_1_mb_a_query_ends_its_second_round_in_a_shard(seed: int) -> None:
    # Both rounds use the budget's 1,000 units, and in some pages a shard has 4 items or more of the page.
    pages = large_pages(20, seed)

    assert [len(page.items) for page in pages] == [20] * 8
    assert max(page.fetch.consumed.read_units for page in pages) <= 2.3 * 20 * LARGE / 8192


@pytest.mark.parametrize("seed", range(8))
def test_a_page_of_large_items_that_1_mb_a_query_ends_is_smaller_and_read_once(seed: int) -> None:
    # Round 1 returns 48 items; without a smaller page, the first one returned those before the shortest shard's end.
    pages = large_pages(50, seed)

    assert len(pages[0].items) == 32
    assert pages[0].fetch.consumed.read_units <= 2 * 32 * LARGE / 8192
    assert sum(page.fetch.consumed.read_units for page in pages) <= 1.8 * 160 * LARGE / 8192


def test_a_page_whose_last_key_is_known_is_not_completed_when_the_time_is_over() -> None:
    transport, sources = spread(16, 2000)
    over = Allowance(seconds=0)
    fetch = Fetch(transport, AMPLE, lambda: [layout(reading(None, forward=True), sources)], allowance=over)

    items, end, _ = list_ordered(fetch, None, limit=50, item_bytes=None)

    assert fetch.rounds == 1
    assert len(items) < 50
    assert end is not None


def test_a_page_whose_last_key_is_unknown_ends_when_its_read_units_are_used() -> None:
    transport, sources = spread(16, 51)
    fetch = Fetch(transport, Budget(read_units=0), lambda: [layout(reading(None, forward=True), sources)])

    items, end, _ = list_ordered(fetch, None, limit=50, item_bytes=None)

    assert fetch.rounds == 1
    assert len(items) < 50
    assert end is not None


@pytest.mark.parametrize(("item_bytes", "read"), [(300 * 1024, 2), (16 * 1024, 2), (4096, 3)])
def test_large_items_are_read_by_their_share_of_the_page_alone(item_bytes: int, read: int) -> None:
    assert first_limit(20, 16, item_bytes) == read
