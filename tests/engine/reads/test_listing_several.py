"""Listings over several logical partitions: ordered, round-robin, and with copies listed once."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard import Budget, EntityDefinition, Filter, RetryPolicy
from dynashard.errors import InvalidCursorError, InvalidQueryError
from dynashard.runtime import Runtime
from dynashard.topology import View
from tests.depth import examples
from tests.engine.reads.listing_world import (
    INDEXES,
    NOW,
    ORDERS,
    BareNote,
    Counts,
    ModuloNote,
    Note,
    World,
    alive,
    fields_of,
    listed,
    some_notes,
    tenant,
)
from tests.engine.reads.teams_world import INDEXES as BY_STATE
from tests.engine.reads.teams_world import Copy, Incidents, Unstamped, asked
from tests.engine.repository.moving_world import Amid, Leased, Resize
from tests.recording import RecordingTransport

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

TEAMS = [f"team{n}" for n in range(7)]
MINE = TEAMS[:5]
CLOSED: dict[str, Any] = {"prefix": "CLOSED#", "order": "ordered", "direction": "desc", "distinct": "incident"}


@dataclass
class Apart(Counts):
    """Counts that differ between partitions."""

    counts: list[int] = field(default_factory=lambda: [1, 8, 2])

    def view(self, entity: EntityDefinition[Any], partition: str) -> View:
        if entity.shards is None or not entity.shards.rule.powers_of_two:
            return super().view(entity, partition)
        return View(self.counts[sum(partition.encode()) % len(self.counts)])


@settings(max_examples=examples(25))
@given(
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=4),
    model=st.sampled_from([Note, BareNote, ModuloNote]),
    order=st.sampled_from(ORDERS),
    direction=st.sampled_from(["asc", "desc"]),
    span=st.sampled_from([{}, {"prefix": "b"}, {"start": "a5", "end": "bb"}]),
    filtered=st.booleans(),
    limits=st.sampled_from([[1, 2, 5], [7, 50], [1000]]),
)
def test_items_of_several_partitions_are_listed_once_under_any_counts(
    world: World,
    *,
    seed: int,
    sizes: list[int],
    model: Any,
    order: str,
    direction: str,
    span: dict[str, str],
    filtered: bool,
    limits: list[int],
) -> None:
    random = Random(seed)
    world.counts = Apart()
    tenants = [tenant() for _ in sizes]
    collection = world.collection(model)
    notes = []
    for of, size in zip(tenants, sizes, strict=True):
        # Half of the ids exist in other partitions, too, so that sort keys tie.
        ids = [f"{random.choice('ab')}{random.randrange(60):02d}" for _ in range(size)]
        notes += [model(tenant=of, id=name, kept=random.random() < 0.5) for name in set(ids)]
    collection.batch_write(put=notes)
    partitions = [{"tenant": of} for of in tenants]
    question: dict[str, Any] = {**span, "filters": [Filter("kept", "=", value=True)] if filtered else []}

    items = listed(collection, partitions, lambda: random.choice(limits), order=order, direction=direction, **question)

    expected = [
        note
        for note in notes
        if note.id.startswith(span.get("prefix", "")) and span.get("start", "") <= note.id < span.get("end", "z")
        if note.kept or not filtered
    ]
    key = sorted((note.tenant, note.id) for note in expected)
    assert sorted((item.tenant, item.id) for item in items) == key
    if order == "ordered":
        ids = [item.id for item in items]
        assert ids == sorted(ids, reverse=direction == "desc")
    assert collection.count(partitions, **question) == len(expected)
    assert sorted((item.tenant, item.id) for item in collection.scan(partitions, **question)) == key


@settings(max_examples=examples(15))
@given(
    seed=st.integers(0, 2**32),
    index=st.sampled_from(INDEXES),
    order=st.sampled_from(ORDERS),
    direction=st.sampled_from(["asc", "desc"]),
    limits=st.sampled_from([[1, 2, 5], [7, 50]]),
    waves=st.sampled_from([1, 1000]),
)
def test_entries_of_several_index_partitions_are_listed_once(
    world: World, *, seed: int, index: str, order: str, direction: str, limits: list[int], waves: int
) -> None:
    random, of = Random(seed), tenant()
    world.counts = Counts(16, random.choice([1, 2, 4]))
    notes = some_notes(random, random.randrange(80), of=of, ranks=random.choice([1, 3, 100]))
    for note in notes:
        note.group = random.choice(["g", "h", "i", None])
    world.collection().batch_write(put=notes)
    partitions = [{"tenant": of, "group": group} for group in ("g", "h", "nobody")]

    items = listed(
        world.collection(),
        partitions,
        lambda: random.choice(limits),
        index=index,
        order=order,
        direction=direction,
        budget=Budget(requests=waves),
    )

    assert fields_of(items) == fields_of(note for note in notes if note.group in ("g", "h") and alive(note))
    ranks = [item.rank for item in items]
    assert order != "ordered" or ranks == sorted(ranks, reverse=direction == "desc")


@dataclass
class PartlyFixedCounts(Leased):
    """Counts that change, except those of partitions whose names end in `fixed`."""

    fixed: str = ""

    def view(self, *about: Any) -> View:
        changing = super().view(*about)
        return View(4, markers=changing.markers) if about[1].endswith(self.fixed) else changing


@settings(max_examples=examples(8))
@given(
    seed=st.integers(0, 2**32),
    order=st.sampled_from(ORDERS),
    limits=st.sampled_from([[3, 5], [7, 50]]),
    direction=st.sampled_from(["asc", "desc"]),
)
def test_a_changing_partition_is_listed_with_unchanging_ones(
    world: World, *, seed: int, order: str, limits: list[int], direction: str
) -> None:
    random, moving, still = Random(seed), tenant(), f"{tenant()}-still"
    steady = PartlyFixedCounts(count=random.choice([1, 4, 16]), index_count=2, fixed=still)
    notes = [note.model_copy(update={"expires_at": None}) for note in some_notes(random, 24, of=moving)]
    resize = Resize(world, random, notes, index=False, counts=steady)
    others = [note.model_copy(update={"tenant": still}) for note in resize.staying]
    world.collection().batch_write(put=others)
    collection = world.collection(
        through=Amid(world.transport, resize), retry_policy=RetryPolicy(runtime=Runtime(sleep=lambda _: None))
    )
    came: list[Note] = []
    cursor: str | None = None

    for _ in range(2000):
        page = collection.list(
            [{"tenant": moving}, {"tenant": still}],
            order=order,
            direction=direction,
            limit=random.choice(limits),
            cursor=cursor,
        )
        came += page.items
        cursor = page.cursor
        if cursor is None:
            break
        resize.go_on(random.choice([0, 0, 2, 20]))

    times = Counter((item.tenant, item.id) for item in came)
    assert max(times.values()) == 1
    assert {(note.tenant, note.id) for note in [*resize.staying, *others]} <= set(times)
    ids = [item.id for item in came]
    assert order != "ordered" or ids == sorted(ids, reverse=direction == "desc")


@settings(max_examples=examples(8))
@given(
    seed=st.integers(0, 2**32),
    own=st.booleans(),
    order=st.sampled_from(ORDERS),
    limits=st.sampled_from([[3, 5], [7, 50]]),
)
def test_entries_of_several_index_partitions_are_listed_once_while_counts_change(
    world: World, *, seed: int, own: bool, order: str, limits: list[int]
) -> None:
    random, of = Random(seed), tenant()
    notes = [note.model_copy(update={"expires_at": None}) for note in some_notes(random, 30, of=of, ranks=40)]
    for note in notes:
        note.group = random.choice(["g", "h"])
    resize = Resize(world, random, notes, index=own)
    collection = world.collection(
        through=Amid(world.transport, resize), retry_policy=RetryPolicy(runtime=Runtime(sleep=lambda _: None))
    )
    came: list[str] = []
    cursor: str | None = None

    for _ in range(2000):
        page = collection.list(
            [{"tenant": of, "group": "g"}, {"tenant": of, "group": "h"}],
            index="by_rank",
            order=order,
            limit=random.choice(limits),
            cursor=cursor,
        )
        came += [item.id for item in page.items]
        cursor = page.cursor
        if cursor is None:
            break
        resize.go_on(random.choice([0, 0, 2, 20]))

    assert max(Counter(came).values()) == 1
    assert {note.id for note in resize.staying} <= set(came)


@settings(max_examples=examples(15))
@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from([0, 5, 60]),
    index=st.sampled_from(BY_STATE),
    late=st.sampled_from([0, 5]),
    limits=st.sampled_from([[1, 2, 5], [20]]),
)
def test_closed_incidents_of_several_teams_are_listed_once_while_incidents_change_state(
    world: World, *, seed: int, size: int, index: str, late: int, limits: list[int]
) -> None:
    random, account = Random(seed), tenant()
    world.counts = Counts(16, 2)
    copies = world.collection(Copy)
    incidents = Incidents(copies, account, random, size, TEAMS)
    incidents.change(size // 10, late=late)
    incidents.changed.clear()
    before = incidents.in_state("CLOSED", MINE)
    came: list[Any] = []
    cursor: str | None = None

    for _ in range(500):
        page = copies.list(asked(account, MINE), index=index, limit=random.choice(limits), cursor=cursor, **CLOSED)
        came += page.items
        assert page.rounds <= 2
        cursor = page.cursor
        if cursor is None:
            break
        incidents.change(random.choice([0, 0, 1, 4]), late=late)

    names = [item.incident for item in came]
    keys = [(item.at, item.incident) for item in came]
    assert keys == sorted(keys, reverse=True)
    assert [name for name, times in Counter(names).items() if times > 1] == []
    lagging = late > 0  # A copy that changed just before the listing may be seen in either state.
    unchanged = [name for name in before if name not in incidents.changed]
    assert lagging or set(unchanged) <= set(names)


@pytest.mark.parametrize("model", [Copy, Unstamped])
@pytest.mark.parametrize("limit", [1, 2, 100])
def test_an_outdated_copy_does_not_list_its_item_again(world: World, *, limit: int, model: Any) -> None:
    world.counts, account = Counts(16, 2), tenant()
    copies = world.collection(model)
    for name, team, minute in (("again", "team0", 9), ("again", "team1", 1), ("b", "team0", 5), ("c", "team1", 4)):
        at = NOW + timedelta(minutes=minute)
        copies.put(model(account=account, incident=name, team=team, state="CLOSED", at=at))

    items = listed(copies, asked(account, MINE), lambda: limit, index="by_state", **CLOSED)

    assert [item.incident for item in items] == ["again", "b", "c"]


def test_a_page_over_five_teams_takes_two_rounds_and_reads_little_more_than_it_returns(world: World) -> None:
    world.counts, account = Counts(16, 2), tenant()
    recording = RecordingTransport(world.transport)
    copies = world.collection(Copy, through=recording)
    incidents = Incidents(copies, account, Random(7), 600, TEAMS)
    partitions = asked(account, MINE)
    stored = copies.count(partitions, index="by_state", prefix="CLOSED#")
    recording.clear()

    pages = list(copies.pages(partitions, index="by_state", limit=50, **CLOSED))

    assert [item.incident for page in pages for item in page.items] == incidents.in_state("CLOSED", MINE)
    assert max(page.rounds for page in pages) <= 2
    assert all(len(page.items) == 50 for page in pages[:-1])
    assert len(recording.waves) == sum(page.rounds for page in pages)
    assert recording.scanned <= 2.5 * stored


def test_counts_of_copies_count_each_item_once(world: World) -> None:
    world.counts, account = Counts(16, 2), tenant()
    copies = world.collection(Copy)
    incidents = Incidents(copies, account, Random(8), 80, TEAMS)

    counted = copies.count(asked(account, MINE), index="by_state", prefix="CLOSED#", distinct="incident")

    assert counted == len(incidents.in_state("CLOSED", MINE))


def test_fields_can_be_chosen_if_values_are_listed_once(world: World) -> None:
    world.counts, account = Counts(16, 2), tenant()
    copies = world.collection(Copy)
    incidents = Incidents(copies, account, Random(9), 20, TEAMS)

    page = copies.list(asked(account, MINE), index="by_state", fields=["state"], limit=1000, **CLOSED)

    assert page.items == [{"state": "CLOSED"}] * len(incidents.in_state("CLOSED", MINE))


def test_a_cursor_holds_for_its_partitions_in_any_order_and_for_no_others(world: World) -> None:
    world.counts, of = Counts(4, 2), [tenant() for _ in range(3)]
    collection = world.collection()
    collection.batch_write(put=[Note(tenant=each, id=f"{n}") for each in of for n in range(5)])
    two = [{"tenant": each} for each in of[:2]]

    for order in ORDERS:
        cursor = collection.list(two, order=order, limit=3).cursor

        page = collection.list([two[1], two[0], two[1]], order=order, limit=100, cursor=cursor)
        assert len(page.items) == 7
        for other in (two[0], [{"tenant": each} for each in of], [two[0], {"tenant": of[2]}]):
            with pytest.raises(InvalidCursorError):
                collection.list(other, order=order, cursor=cursor)


def test_one_partition_in_a_sequence_is_that_partition(world: World) -> None:
    world.counts, of = Counts(4, 2), tenant()
    collection = world.collection()
    collection.batch_write(put=[Note(tenant=of, id=f"{n}") for n in range(5)])

    cursor = collection.list([{"tenant": of}], limit=2).cursor

    assert len(collection.list({"tenant": of}, cursor=cursor).items) == 3


@pytest.mark.parametrize(
    ("partition", "more", "field", "reason"),
    [
        ([], {}, "partition", "1 to 100"),
        ([{"account": "a", "team": f"{n}"} for n in range(101)], {}, "partition", "1 to 100"),
        ([{"account": "a", "team": "t"}, {"account": "a", "crew": "t"}], {}, "crew", "not a field of the partition"),
        ([{"account": "a", "team": "t"}], {"distinct": "title", "order": "ordered"}, "distinct", "state, at, incident"),
        ([{"account": "a", "team": "t"}], {"distinct": "incident"}, "distinct", "order='ordered'"),
    ],
)
def test_an_impossible_listing_of_several_partitions_is_refused(
    world: World, partition: list[dict[str, str]], more: dict[str, Any], field: str, reason: str
) -> None:
    with pytest.raises(InvalidQueryError, match=reason) as refused:
        world.collection(Copy).list(partition, index="by_state", **more)

    assert refused.value.field == field
