"""Listings of indexes: entries with equal sort keys, sharded by item key, by index key, or not at all."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard import Budget, Entity, Filter, Index, Key, Registry, Shards
from dynashard.reads.fences import MOVING_LIFE_SECONDS
from tests.depth import examples
from tests.engine.reads.listing_world import (
    INDEXES,
    NOW,
    ORDERS,
    Counts,
    Note,
    World,
    alive,
    fields_of,
    listed,
    some_notes,
    tenant,
)

pytestmark = [pytest.mark.engine, pytest.mark.one_face]


@pytest.fixture(scope="module")
def tied(world: World) -> str:
    """A tenant with 500 entries in 4 shards, all with the same index sort key."""
    of, world.counts = tenant(), Counts(16, 4)
    world.collection().batch_write(put=[Note(tenant=of, id=f"{n:03d}", group="g", rank="same") for n in range(500)])
    return of


@pytest.mark.sampled(12)
@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("size", [1, 3, 16, 50, 499])
def test_five_hundred_equal_entries_are_listed_once(
    world: World, tied: str, *, direction: str, order: str, index: str, size: int
) -> None:
    world.counts = Counts(16, 4)
    # Pages of one item over all entries take more than a thousand Queries, so fewer are listed.
    pages: list[list[str]] = []

    for page in world.collection().pages(
        {"tenant": tied, "group": "g"}, index=index, order=order, direction=direction, limit=size
    ):
        pages.append([item.id for item in page.items])
        if size == 1 and len(pages) == 60:
            break

    ids = [each for page in pages for each in page]
    assert len(set(ids)) == len(ids)
    assert len(ids) == (500 if size > 1 else 60)
    assert len(pages) <= 500 // size + 5


@settings(max_examples=examples(100))
@given(
    seed=st.integers(0, 2**32),
    size=st.integers(0, 120),
    count=st.sampled_from([1, 4, 16]),
    index=st.sampled_from(INDEXES),
    order=st.sampled_from(ORDERS),
    direction=st.sampled_from(["asc", "desc"]),
    ranks=st.sampled_from([1, 3, 1000]),
    span=st.sampled_from([{}, {"prefix": "r1"}, {"start": "r1"}, {"end": "r2"}, {"start": "r1", "end": "r2"}]),
    filtered=st.booleans(),
    limits=st.sampled_from([[1, 2, 5], [7, 50], [1000]]),
    waves=st.sampled_from([1, 2, 1000]),
)
def test_every_matching_entry_is_listed_once_and_the_listing_ends(
    world: World,
    *,
    seed: int,
    size: int,
    count: int,
    index: str,
    order: str,
    direction: str,
    ranks: int,
    span: dict[str, str],
    filtered: bool,
    limits: list[int],
    waves: int,
) -> None:
    random, of = Random(seed), tenant()
    world.counts = Counts(16, count)
    notes = some_notes(random, size if limits != [1, 2, 5] else size // 5, of=of, ranks=ranks)
    collection = world.collection()
    collection.batch_write(put=notes)

    items = listed(
        collection,
        {"tenant": of, "group": "g"},
        lambda: random.choice(limits),
        index=index,
        order=order,
        direction=direction,
        filters=[Filter("kept", "=", value=True)] if filtered else [],
        budget=Budget(requests=count * (waves - 1) + 1),
        **span,
    )

    expected = [note for note in notes if alive(note) and note.group == "g" and (note.kept or not filtered)]
    assert fields_of(items) == fields_of(note for note in expected if _within(note.rank or "", span))
    assert order != "ordered" or _sorted([item.rank for item in items], direction)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("index", INDEXES)
def test_chosen_fields_of_an_index_are_listed_alone(world: World, order: str, index: str) -> None:
    of, world.counts = tenant(), Counts(16, 4)
    collection = world.collection()
    notes = [note for note in some_notes(Random(5), 40, of=of) if alive(note)]
    collection.batch_write(put=notes)

    items = listed(collection, {"tenant": of, "group": "g"}, lambda: 7, order=order, index=index, fields=["id", "rank"])

    expected = [{"id": note.id, "rank": note.rank} for note in notes if note.group == "g"]
    assert sorted(items, key=lambda item: str(item["id"])) == sorted(expected, key=lambda item: str(item["id"]))


class Ranked(
    Entity,
    name="listing.v1.Ranked",
    key=Key("{tenant}", "{id}"),
    indexes=[Index("GSI1", "by_rank", "{tenant}", "{rank}#{id}", shards=Shards(64))],
    registry=Registry(),
):
    tenant: str
    id: str
    rank: str


def test_an_item_that_an_update_moves_behind_a_page_is_listed_after_seconds_though_its_key_is_in_the_index(
    world: World,
) -> None:
    of, now, world.counts = tenant(), NOW.timestamp(), Counts(16, 64)
    ranked = world.collection(Ranked, clock=lambda: now)
    ranked.batch_write(put=[Ranked(tenant=of, id=f"{n:03d}", rank=f"{n:03d}") for n in range(300)])
    page = ranked.list({"tenant": of}, index="by_rank", order="ordered", limit=10)
    moved = [f"{n:03d}" for n in range(290, 300)]
    for each in moved:
        ranked.update({"tenant": of, "id": each}, {"rank": "009"})

    now += MOVING_LIFE_SECONDS + 1
    after = ranked.list({"tenant": of}, index="by_rank", order="ordered", limit=10, cursor=page.cursor)

    assert [item.id for item in after] == moved


def _within(rank: str, span: dict[str, str]) -> bool:
    return (
        rank.startswith(span.get("prefix", ""))
        and rank >= span.get("start", "")
        and ("end" not in span or rank < span["end"])
    )


def _sorted(ranks: list[str], direction: str) -> bool:
    return ranks == sorted(ranks, reverse=direction == "desc")
