"""Read replicas: listings are balanced between the table and its copies with equal results."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynashard import Entity, Filter, Index, Key, Registry, Shards, definition
from dynashard.errors import DeclarationError, InvalidQueryError
from dynashard.reads import CursorCodec
from dynashard.repository import Store
from dynashard.routing import Router
from dynashard.runtime import Runtime
from dynashard.service import Collection
from dynashard.topology import Phase
from dynashard.transactions.single_writes import TransactedWrites
from tests.declaring import declare as entity
from tests.depth import examples
from tests.engine.reads.listing_world import CURSOR_KEYS, NOW, ORDERS, Counts, World, listed, tenant
from tests.recording import RecordingTransport

pytestmark = [pytest.mark.engine, pytest.mark.one_face]


def declare(name: str, shards: Shards, **key: Any) -> Any:
    class Record(
        Entity,
        name=name,
        key=Key(**{"partition": "{tenant}", "sort": "{id}", **key}),
        shards=shards,
        registry=Registry(),
    ):
        tenant: str
        id: str
        kept: bool = True

    return Record


CALCULATED = declare("replicas.v1.Calculated", Shards(4, read_replicas=1))
TWICE = declare("replicas.v1.Twice", Shards(2, read_replicas=2))
RANDOM = declare("replicas.v1.Random", Shards(4, placement="random", read_replicas=1))
MODULO = declare("replicas.v1.Modulo", Shards(6, "modulo", read_replicas=1), prefix="", separator="_")
MODELS = [CALCULATED, TWICE, RANDOM, MODULO]


class Reader:
    """A collection whose choice between the table and its replicas a test makes."""

    def __init__(self, world: World, model: Any, drawn: Callable[[], float]) -> None:
        self.recording = RecordingTransport(world.transport)
        store = Store(
            self.recording,
            world.table,
            Router(world.counts),
            TransactedWrites,
            Runtime(NOW.timestamp, random=drawn),
        )
        self.collection: Collection[Any] = Collection(store, CursorCodec(CURSOR_KEYS), model)

    @property
    def slots(self) -> set[str | None]:
        """The index slots that were read so far, with None for the table."""
        return {request.get("IndexName") for request in self.recording.requests if "KeyConditionExpression" in request}


def write(world: World, model: Any, ids: Any) -> str:
    of = tenant()
    world.collection(model).batch_write(put=[model(tenant=of, id=each, kept=bool(n % 2)) for n, each in enumerate(ids)])
    return of


@settings(max_examples=examples(30))
@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from([0, 1, 30, 90]),
    model=st.sampled_from(MODELS),
    order=st.sampled_from(ORDERS),
    direction=st.sampled_from(["asc", "desc"]),
    span=st.sampled_from([{}, {"prefix": "1"}, {"start": "2", "end": "4"}]),
    filtered=st.booleans(),
    limits=st.sampled_from([[1, 2, 5], [7, 50]]),
)
def test_a_listing_over_table_and_replicas_lists_every_item_once(
    world: World,
    *,
    seed: int,
    size: int,
    model: Any,
    order: str,
    direction: str,
    span: dict[str, str],
    filtered: bool,
    limits: list[int],
) -> None:
    random = Random(seed)
    # The counts of table and replica differ.
    world.counts = Counts(random.choice([1, 4, 16]), random.choice([1, 2, 8]))
    ids = [f"{random.randrange(600):03d}" for _ in range(size)]
    of = write(world, model, dict.fromkeys(ids))
    reader = Reader(world, model, random.random)
    question: dict[str, Any] = {**span, "filters": [Filter("kept", "=", value=True)] if filtered else []}

    items = listed(
        reader.collection, {"tenant": of}, lambda: random.choice(limits), order=order, direction=direction, **question
    )

    expected = sorted(
        each
        for n, each in enumerate(dict.fromkeys(ids))
        if each.startswith(span.get("prefix", "")) and span.get("start", "") <= each < span.get("end", "z")
        if n % 2 or not filtered
    )
    came = [item.id for item in items]
    assert sorted(came) == expected
    assert order != "ordered" or came == sorted(came, reverse=direction == "desc")
    assert reader.collection.count({"tenant": of}, **question) == len(expected)
    assert sorted(item.id for item in reader.collection.scan({"tenant": of}, workers=2, **question)) == expected


@pytest.mark.parametrize(
    ("model", "slots"), [(CALCULATED, [None, "GSI3"]), (TWICE, [None, "GSI3", "GSI2"]), (MODULO, [None, "GSI3"])]
)
def test_table_and_replicas_are_chosen_equally_often(world: World, model: Any, slots: list[str | None]) -> None:
    world.counts = Counts(4, 4)
    of = write(world, model, ["a", "b"])

    for copy, slot in enumerate(slots):
        reader = Reader(world, model, partial(float, (copy + 0.5) / len(slots)))
        assert [item.id for item in reader.collection.list({"tenant": of}, order="ordered").items] == ["a", "b"]
        assert reader.slots == {slot}


def last(_: int = 0) -> float:
    """Draws the last replica."""
    return 0.999


@pytest.mark.parametrize("asked", [{"consistent": True}, {"consistent": True, "order": "ordered"}])
def test_consistent_reads_go_to_the_table(world: World, asked: dict[str, Any]) -> None:
    world.counts = Counts(4, 4)
    reader = Reader(world, CALCULATED, last)

    reader.collection.list({"tenant": write(world, CALCULATED, "ab")}, **asked)

    assert reader.slots == {None}


@pytest.mark.parametrize("model", [RANDOM, MODULO])
@pytest.mark.parametrize("order", ["round_robin", "shard"])
def test_positions_by_shard_go_to_the_table_if_the_replica_has_other_shards(
    world: World, model: Any, order: str
) -> None:
    world.counts = Counts(4, 4)
    reader = Reader(world, model, last)

    reader.collection.list({"tenant": write(world, model, "ab")}, order=order)

    assert reader.slots == {None}


@pytest.mark.parametrize(
    "counts",
    [
        Counts(4, 4, resize=(Phase.PREPARE, 8)),
        Counts(4, 4, index_resize=(Phase.PREPARE, 8)),
        Counts(4, 4, marks=True),
    ],
    ids=["the table changes", "the replica changes", "marks are left"],
)
def test_the_table_is_read_while_anything_moves(world: World, counts: Counts) -> None:
    world.counts = Counts(4, 4)
    of = write(world, CALCULATED, [f"{n}" for n in range(9)])
    reader = Reader(world, CALCULATED, last)
    cursor = reader.collection.list({"tenant": of}, order="ordered", limit=4).cursor
    assert reader.slots == {"GSI3"}
    world.counts = counts
    moving = Reader(world, CALCULATED, last)

    page = moving.collection.list({"tenant": of}, order="ordered", limit=100, cursor=cursor)

    assert [item.id for item in page.items] == ["4", "5", "6", "7", "8"]
    assert moving.slots == {None}


def test_a_replica_follows_changes_and_deletions(world: World) -> None:
    world.counts = Counts(4, 4)
    of = write(world, CALCULATED, "abc")
    reader = Reader(world, CALCULATED, last)
    writer = world.collection(CALCULATED)

    writer.update({"tenant": of, "id": "a"}, set={"kept": True})
    writer.delete({"tenant": of, "id": "b"})

    page = reader.collection.list({"tenant": of}, order="ordered")
    assert [(item.id, item.kept) for item in page.items] == [("a", True), ("c", False)]


def test_several_partitions_are_read_from_one_replica(world: World) -> None:
    world.counts = Counts(4, 4)
    partitions = [{"tenant": write(world, CALCULATED, "ab")} for _ in range(3)]
    reader = Reader(world, CALCULATED, last)

    page = reader.collection.list(partitions, order="ordered")

    assert [item.id for item in page.items] == list("aaabbb")
    assert reader.slots == {"GSI3"}


def test_callers_cannot_name_a_replica_as_an_index(world: World) -> None:
    assert "replica_1" in definition(CALCULATED).indexes

    with pytest.raises(InvalidQueryError, match="no index replica_1; it has none"):
        world.collection(CALCULATED).list({"tenant": "t"}, index="replica_1")


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        ({"shards": Shards(4, read_replicas=4)}, "read_replicas is 4; there are 3 index slots"),
        (
            {"shards": Shards(4, read_replicas=1), "indexes": [Index("GSI3", "by_id", "{tenant}", "{id}")]},
            "uses GSI3 twice: for by_id and for replica_1",
        ),
        ({"indexes": [Index("GSI1", "by_id", "{tenant}", "{id}", shards=Shards(2, read_replicas=1))]}, "of the table"),
    ],
)
def test_impossible_replicas_are_refused_at_import(declared: dict[str, Any], reason: str) -> None:
    with pytest.raises(DeclarationError, match=reason):
        entity(**declared)
