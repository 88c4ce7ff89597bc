"""Listings of an index that has grown for new entries alone, while writers move older entries to their places."""

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard.testing.one_by_one import OneByOne
from dynashard.topology import Phase
from dynashard.transport.interface import Resend, Wire
from tests.depth import examples
from tests.engine.reads.listing_world import INDEXES, ORDERS, Note, World, listed, tenant
from tests.engine.reads.test_listing_moving import INDEX_SPANS, check, notes_of, paged, questions
from tests.engine.repository.moving_world import Leased, Resize

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

COUNTS = [((1,), 4), ((1,), 16), ((4,), 8), ((2,), 16), ((1, 4), 16), ((1, 2, 4), 8)]
"""Earlier counts, and the present one."""


class Written(Resize):
    """No count changes: writers write older notes anew."""

    def _index_step(self) -> None:
        self.write_anew(self.random.choice(self.present))


def grown(world: World, random: Random, notes: list[Note], former: tuple[int, ...], count: int) -> Written:
    """Return a world whose notes were written while the index grew."""
    counts = world.counts = Leased(count=4)
    for number, at in enumerate((*former, count)):
        counts.index_count, counts.former = at, former[:number]
        world.collection().batch_write(put=notes[number :: len(former) + 1])
    made = Written(world, random, [], index=True, counts=counts)
    made.staying = made.present = list(notes)
    made.rate = random.choice([0.3, 0.95])
    return made


@settings(max_examples=examples(150))
@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from([10, 60, 150]),
    order=st.sampled_from(ORDERS),
    asked=questions(INDEX_SPANS),
    ranks=st.sampled_from([8, 20, 200]),
    limits=st.sampled_from([[1, 2, 5], [7, 20]]),
    index=st.sampled_from(INDEXES),
    counts=st.sampled_from(COUNTS),
)
def test_a_grown_index_lists_each_item_once_while_older_entries_move(
    world: World,
    *,
    seed: int,
    size: int,
    order: str,
    asked: dict[str, str],
    ranks: int,
    limits: list[int],
    index: str,
    counts: tuple[tuple[int, ...], int],
) -> None:
    random, of = Random(seed), tenant()
    notes = notes_of(random, size if limits[0] > 1 else min(size, 40), of, ranks)
    writers = grown(world, random, notes, *counts)

    items = paged(writers, {"tenant": of, "group": "g"}, limits, order=order, index=index, **asked)

    check(writers, items, asked, index)
    places = [item.rank or "" for item in items]
    assert order != "ordered" or places == sorted(places, reverse=asked["direction"] == "desc")


@pytest.mark.parametrize("order", ORDERS)
def test_an_entry_that_moves_ahead_of_a_listing_or_behind_it_is_listed_once(world: World, order: str) -> None:
    of = tenant()
    notes = [Note(tenant=of, id=f"{n:04d}", group="g", rank=f"r{n:04d}") for n in range(64)]
    writers = grown(world, Random(1), notes, (1,), 16)
    collection, partition = world.collection(), {"tenant": of, "group": "g"}
    first = collection.list(partition, index="by_rank", order=order, limit=10)
    for note in notes:
        writers.write_anew(note)
    rest, cursor = list[Note](), first.cursor
    while cursor is not None:
        page = collection.list(partition, index="by_rank", order=order, limit=10, cursor=cursor)
        rest, cursor = rest + page.items, page.cursor

    assert sorted(note.id for note in [*first.items, *rest]) == [note.id for note in notes]


class Between(OneByOne):
    """Writes all notes anew after the first Query."""

    def __init__(self, writers: Written) -> None:
        self._writers, self._moved = writers, False

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        answer = self._writers.world.transport.call(operation, request, resend=resend)
        if operation == "Query" and not self._moved:
            self._moved = True
            for note in self._writers.present:
                self._writers.write_anew(note)
        return answer


@pytest.mark.parametrize("order", ORDERS)
def test_an_entry_that_moves_between_two_queries_of_a_page_is_returned_once(world: World, order: str) -> None:
    of = tenant()
    notes = [Note(tenant=of, id=f"{n:04d}", group="g", rank=f"r{n:04d}") for n in range(30)]
    writers = grown(world, Random(1), notes, (1,), 8)
    collection = world.collection(through=Between(writers))

    items = listed(collection, {"tenant": of, "group": "g"}, lambda: 100, index="by_rank", order=order)

    assert sorted(note.id for note in items) == [note.id for note in notes]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rewritten", [False, True])
def test_a_cursor_continues_exactly_while_an_index_grows_and_is_rewritten(
    world: World, order: str, *, rewritten: bool
) -> None:
    of = tenant()
    notes = [Note(tenant=of, id=f"{n:04d}", group="g", rank=f"r{n % 7}") for n in range(60)]
    writers = grown(world, Random(1), notes, (2,), 4)
    counts, partition = writers.counts, {"tenant": of, "group": "g"}
    counts.former, counts.index_count = (), 2
    world.collection().batch_write(put=notes)
    items, cursor, pages = list[Note](), None, 0
    while pages == 0 or cursor is not None:
        page = world.collection().list(partition, index="by_rank", order=order, limit=5, cursor=cursor)
        items, cursor, pages = items + page.items, page.cursor, pages + 1
        if pages == 2:
            counts.index_resize = (Phase.PREPARE, 8)
        if pages == 4:
            counts.index_count, counts.former, counts.index_resize = 8, (2,), (Phase.STABLE, None)
            for note in notes[::3]:
                writers.write_anew(note)
        if pages == 7 and rewritten:
            counts.index_resize = (Phase.MOVE, 8)
            for note in notes:
                writers.write_anew(note)
            counts.former, counts.index_resize = (), (Phase.STABLE, None)
        counts.resizes += 1

    assert sorted(note.id for note in items) == [note.id for note in notes]


def test_a_scan_and_a_count_of_a_grown_index_have_every_entry(world: World) -> None:
    of = tenant()
    notes = [Note(tenant=of, id=f"{n:04d}", group="g", rank=f"r{n:04d}") for n in range(40)]
    grown(world, Random(1), notes, (1, 4), 16)
    collection, partition = world.collection(), {"tenant": of, "group": "g"}

    assert sorted(note.id for note in collection.scan(partition, index="by_rank")) == [note.id for note in notes]
    assert collection.count(partition, index="by_rank") == 40
    assert len(listed(collection, partition, lambda: 7, index="by_rank_key")) == 40
