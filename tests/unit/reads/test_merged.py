"""Listings of an index whose count changes, on entries in memory that move between any two requests."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dynashard import Entity, Index, Key, Registry, Shards, definition
from dynashard.reads.by_shard import decode_positions, encode_positions, list_by_shard
from dynashard.reads.fetch import Fetch
from dynashard.reads.layout import Layout, index_streams
from dynashard.reads.ordered import list_ordered
from dynashard.reads.query import Budget
from dynashard.topology import Phase, View
from dynashard.transport.interface import Wire
from tests.depth import examples
from tests.query_source import SLOT, MemoryTransport, hash_of, index_row, reading

pytestmark = pytest.mark.unit

_BY_SORT = Index(SLOT, "by_sort", "{of}", "{sort}", shards=Shards(4))


class Item(Entity, name="merged.v1.Item", key=Key("{of}", "{id}"), indexes=[_BY_SORT], registry=Registry()):
    of: str
    id: str
    sort: str


INDEX = definition(Item).indexes["by_sort"]
RESIZES = [(1, 2), (2, 1), (2, 8), (8, 2), (4, 8), (4, 2)]


class ChangingIndex:
    """Index entries, some of them placed by the old count and others by the new one."""

    def __init__(self, random: Random, resize: tuple[int, int], size: int, ranks: int, cut: int | None) -> None:
        self.random = random
        self.old, self.new = resize
        self.sorts = {f"item-{n}": f"k{random.randrange(ranks):04d}" for n in range(size)}
        self.left = list(self.sorts)
        random.shuffle(self.left)
        self.moved: set[str] = set()
        self.transport = MemoryTransport(SLOT, random, cut, before=self.step)
        self.store()

    def step(self) -> None:
        """Rewrite some index keys, as the mover does."""
        for _ in range(self.random.choice([0, 0, 1, 5, 40])):
            if self.left:
                self.moved.add(self.left.pop())
        self.store()

    def store(self) -> None:
        rows = []
        for item, sort in self.sorts.items():
            row = index_row("", sort, item)
            count = self.new if item in self.moved else self.old
            rows.append(index_row(f"p:{hash_of(row) & (count - 1)}", sort, item))
        self.transport.store(rows)

    def layout(self, *, forward: bool) -> Layout:
        view = View(self.old, Phase.MOVE, self.new)
        return Layout(
            index_streams(INDEX, "p", view),
            replace(reading(SLOT, forward=forward), resize=f"{self.old}>{self.new}"),
            hash_of=hash_of,
            moving=True,
            identity=lambda _, sort: sort,
        )


def pages(index: ChangingIndex, *, order: str, forward: bool, limits: list[int], budget: int) -> list[list[Wire]]:
    """Return all pages. Each starts with the state in the cursor of the page before."""
    brought: list[list[Wire]] = []
    state = None
    for _ in range(3000):
        fetch = Fetch(index.transport, Budget(requests=budget), lambda: [index.layout(forward=forward)])
        limit = index.random.choice(limits)
        positions = None if state is None else [decode_positions(state, "p")]
        if order == "ordered":
            rows, left, _ = list_ordered(fetch, positions, limit=limit, item_bytes=1000)
        else:
            rows, left = list_by_shard(fetch, positions, limit=limit, in_turn=order == "round_robin")
        state = None if left is None else encode_positions(left[0], "p")
        assert len(rows) <= limit
        brought.append(rows)
        if state is None:
            return brought
    raise AssertionError("the listing does not end")


@settings(max_examples=examples(80))
@given(
    seed=st.integers(0, 2**32),
    resize=st.sampled_from(RESIZES),
    size=st.integers(0, 80),
    ranks=st.sampled_from([1, 5, 1000]),
    cut=st.sampled_from([None, None, 1, 3]),
    order=st.sampled_from(["round_robin", "shard", "ordered"]),
    forward=st.booleans(),
    limits=st.sampled_from([[1, 2, 5], [20], [1000]]),
    budget=st.sampled_from([1, 7, 2000]),
)
def test_every_entry_is_listed_although_all_move_meanwhile(
    seed: int,
    resize: tuple[int, int],
    size: int,
    *,
    ranks: int,
    cut: int | None,
    order: str,
    forward: bool,
    limits: list[int],
    budget: int,
) -> None:
    index = ChangingIndex(Random(seed), resize, size, ranks, cut)

    brought = pages(index, order=order, forward=forward, limits=limits, budget=budget)

    rows = [row for page in brought for row in page]
    came = Counter(row["SK"]["S"] for row in rows)
    assert set(came) == set(index.sorts)
    ties = Counter(index.sorts.values())
    # A cursor remembers 64 of them.
    assert [item for item, times in came.items() if times > 1 and ties[index.sorts[item]] <= 64] == []
    keys = [row[f"{SLOT}SK"]["S"] for row in rows]
    assert order != "ordered" or keys == sorted(keys, reverse=not forward)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("order", ["round_robin", "shard", "ordered"])
@pytest.mark.parametrize("resize", RESIZES)
def test_a_thousand_entries_that_all_tie_are_listed_to_the_end(order: str, resize: tuple[int, int]) -> None:
    index = ChangingIndex(Random(3), resize, 1000, 1, None)
    index.transport.before = lambda: None

    brought = pages(index, order=order, forward=True, limits=[50], budget=2000)

    assert sorted(row["SK"]["S"] for page in brought for row in page) == sorted(index.sorts)
