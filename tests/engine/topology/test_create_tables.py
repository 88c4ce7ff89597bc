"""`create_tables` makes what the stacks make, once, and refuses tables that do not fit."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest

from dynashard import Dynashard, Entity, Index, Key, Registry, Shards, declared_counts, new_id
from dynashard.errors import ConfigurationError, EngineUnavailableError
from dynashard.runtime import Runtime
from dynashard.schema import EXPIRES_AT
from dynashard.tables import CREATION_SECONDS, ITEMS, TOPOLOGY
from dynashard.testing.faults import Fault, FaultyTransport, Send
from dynashard.transport import Transport
from dynashard.transport.interface import Wire

pytestmark = pytest.mark.engine


class Note(
    Entity,
    name="tables.v1.Note",
    key=Key("{tenant}", "{id}"),
    shards=Shards(4),
    indexes=[Index("GSI1", "by_tag", "{tenant}", "{tag}")],
    registry=Registry(),
):
    """An entity with an index."""

    tenant: str
    id: str = new_id()
    tag: str


@dataclass
class Place:
    """Two names of tables that do not exist yet."""

    wire: Transport
    table: str = field(default_factory=lambda: f"dynashard-made-{uuid4().hex}")

    @property
    def topology(self) -> str:
        return f"{self.table}-topology"

    def opened(self, wire: Transport | None = None, **more: Any) -> Dynashard:
        return Dynashard(
            wire or self.wire,
            table=self.table,
            topology_table=self.topology,
            cursor_keys=["a key of this test that is long enough"],
            **more,
        )

    def described(self, name: str) -> Wire:
        found: Wire = self.wire.call("DescribeTable", {"TableName": name})["Table"]
        return found

    def ttl(self) -> Wire:
        found: Wire = self.wire.call("DescribeTimeToLive", {"TableName": self.table})["TimeToLiveDescription"]
        return found


def _renamed(request: Wire, old: str, new: str) -> Wire:
    for part in [
        *request["AttributeDefinitions"],
        *request["KeySchema"],
        *(key for index in request["GlobalSecondaryIndexes"] for key in index["KeySchema"]),
    ]:
        if part["AttributeName"] == old:
            part["AttributeName"] = new
    return request


def _typed(request: Wire, name: str, kind: str) -> Wire:
    for part in request["AttributeDefinitions"]:
        if part["AttributeName"] == name:
            part["AttributeType"] = kind
    return request


def _without_index(request: Wire, name: str) -> Wire:
    kept = [index for index in request["GlobalSecondaryIndexes"] if index["IndexName"] != name]
    gone = {f"{name}PK", f"{name}SK"}
    attributes = [each for each in request["AttributeDefinitions"] if each["AttributeName"] not in gone]
    return {**request, "GlobalSecondaryIndexes": kept, "AttributeDefinitions": attributes}


def _keys_only(request: Wire) -> Wire:
    request["GlobalSecondaryIndexes"][0]["Projection"] = {"ProjectionType": "KEYS_ONLY"}
    return request


@pytest.fixture
def place(wire: Transport) -> Iterator[Place]:
    made = Place(wire)
    yield made
    for name in wire.call("ListTables", {})["TableNames"]:
        if name.startswith(made.table):
            wire.call("DeleteTable", {"TableName": name})


def test_a_script_has_tables_of_its_own_and_uses_them_at_once(place: Place) -> None:
    with place.opened() as db:
        created = db.create_tables()

        notes = db.collection(Note)
        note = notes.create(Note(tenant="t", tag="red"))
        assert notes.get(tenant="t", id=note.id) == note
        assert [each.id for each in notes.list(tenant="t", tag="red")] == [note.id]

    assert created == [place.table, place.topology]
    assert place.ttl()["AttributeName"] == EXPIRES_AT
    for name, schema in ((place.table, ITEMS), (place.topology, TOPOLOGY)):
        described = place.described(name)
        assert schema.mistakes(described) == []
        assert described["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"


def test_creating_them_again_changes_nothing(place: Place) -> None:
    with place.opened() as db:
        db.create_tables()
        note = db.collection(Note).create(Note(tenant="t", tag="red"))

        assert db.create_tables() == []
        assert db.collection(Note).get(tenant="t", id=note.id) == note


def test_only_the_missing_table_is_created(place: Place) -> None:
    place.wire.call("CreateTable", ITEMS.request(place.table))

    with place.opened() as db:
        assert db.create_tables() == [place.topology]

    # What was left undone, such as the TTL after a crash, is done.
    assert place.ttl()["AttributeName"] == EXPIRES_AT


def test_a_table_that_another_process_creates_meanwhile_is_waited_for(place: Place) -> None:
    def meanwhile(send: Send, request: Mapping[str, Any]) -> Wire:
        place.wire.call("CreateTable", request)
        return send(request)

    faulty = FaultyTransport(place.wire, [Fault("CreateTable", meanwhile)])

    with place.opened(faulty) as db:
        assert db.create_tables() == [place.topology]

    assert faulty.waiting == []


def test_declared_counts_without_a_table_of_counts_need_one_table(place: Place) -> None:
    keys = ["a key of this test that is long enough"]
    trusted = declared_counts(topology_table=None)

    with Dynashard(place.wire, table=place.table, topology=trusted, cursor_keys=keys) as db:
        assert db.create_tables() == [place.table]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda request: _renamed(request, "PK", "id"), "its keys are id .S. and SK .S., not PK .S. and SK .S."),
        (lambda request: _typed(request, "SK", "N"), "its keys are PK .S. and SK .N., not PK .S. and SK .S."),
        (lambda request: _without_index(request, "GSI3"), "it has no index GSI3 with the keys GSI3PK .S. and GSI3SK"),
        (lambda request: _renamed(request, "GSI2PK", "email"), "the keys of index GSI2 are email .S. and GSI2SK"),
        (_keys_only, "index GSI1 projects KEYS_ONLY, not ALL attributes"),
    ],
    ids=["key", "type", "no-index", "index-key", "projection"],
)
def test_an_existing_table_with_another_schema_is_refused_before_anything_is_created(
    place: Place, change: Callable[[Wire], Wire], message: str
) -> None:
    place.wire.call("CreateTable", change(ITEMS.request(place.table)))

    with place.opened() as db, pytest.raises(ConfigurationError, match=message):
        db.create_tables()

    assert place.topology not in place.wire.call("ListTables", {})["TableNames"]


def test_a_wrong_table_of_shard_counts_is_refused_before_the_table_of_items_is_created(place: Place) -> None:
    place.wire.call("CreateTable", ITEMS.request(place.topology))

    with place.opened() as db, pytest.raises(ConfigurationError, match="does not fit"):
        db.create_tables()

    assert place.table not in place.wire.call("ListTables", {})["TableNames"]


def test_a_table_that_deletes_items_by_another_attribute_is_refused(place: Place) -> None:
    place.wire.call("CreateTable", ITEMS.request(place.table))
    specification = {"Enabled": True, "AttributeName": "ttl"}
    place.wire.call("UpdateTimeToLive", {"TableName": place.table, "TimeToLiveSpecification": specification})

    with place.opened() as db, pytest.raises(ConfigurationError, match="deletes items by ttl, not by ExpiresAt"):
        db.create_tables()


def test_tables_are_waited_for_until_table_and_indexes_can_be_used(place: Place) -> None:
    slow = Slow(place.wire, [("CREATING", "CREATING"), ("ACTIVE", "CREATING"), ("ACTIVE", "ACTIVE")])
    place.wire.call("CreateTable", ITEMS.request(place.table))

    with place.opened(slow.wire, runtime=slow.runtime) as db:
        db.create_tables()

    assert slow.slept == [1.0, 1.0]


def test_a_table_that_does_not_get_ready_is_named_with_its_status(place: Place) -> None:
    slow = Slow(place.wire, [("CREATING", "CREATING")])
    place.wire.call("CreateTable", ITEMS.request(place.table))

    message = "not ready after 300 seconds; its status is CREATING"
    with place.opened(slow.wire, runtime=slow.runtime) as db, pytest.raises(EngineUnavailableError, match=message):
        db.create_tables()

    assert sum(slow.slept) == CREATION_SECONDS


class Slow:
    """An engine whose table of items gets ready in steps; the last one lasts. Its sleeps pass at once."""

    def __init__(self, inner: Transport, steps: Sequence[tuple[str, str]]) -> None:
        self.slept: list[float] = []
        # The first description is read before anything is created.
        self._steps = iter([steps[0], *steps])
        self._last = steps[0]
        self.wire = FaultyTransport(inner, [Fault("DescribeTable", self._describe, nth=None)])
        self.runtime = Runtime(sleep=self.slept.append, monotonic=lambda: sum(self.slept))

    def _describe(self, send: Send, request: Mapping[str, Any]) -> Wire:
        answer = send(request)
        if str(request["TableName"]).endswith("topology"):
            return answer
        self._last = next(self._steps, self._last)
        table, index = self._last
        answer["Table"]["TableStatus"] = table
        answer["Table"]["GlobalSecondaryIndexes"][0]["IndexStatus"] = index
        return answer
