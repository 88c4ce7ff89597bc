"""Access rules of writes that are done later, and of items that nobody can judge."""

import json
from pathlib import Path
from typing import Final

import pytest

from dynashard import Entity, Key, Shards
from dynashard.transport import Transport
from dynashard_serving.api.app import build_app
from dynashard_serving.declare import Access, Exposed
from dynashard_serving.domain import Domain, domain_of
from dynashard_serving.operation_records import Operation, OperationState
from tests.api_caller import TENANT, Answer, Caller
from tests.engine.api.api_on_engine import TOPOLOGY, settings_of
from tests.engine.commands.commands_on_engine import commands_on
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.writer.queue_world import INTAKE, OPERATIONS, QueueWorld
from tests.roles import as_function

pytestmark = pytest.mark.engine

LATER: Final = {"prefer": "respond-async"}
JSON_PATCH: Final = {**LATER, "content-type": "application/json-patch+json"}
GUESS: Final = [{"op": "test", "path": "/text", "value": "secret"}]
"""A patch that fits only an item with this text."""


class Note(Entity, name="note.v1.QueuedNote", key=Key("{tenant_id}", "{id}"), shards=Shards(4)):
    tenant_id: str
    id: str
    owner: str
    text: str = "secret"


class Board(Entity, name="note.v1.QueuedBoard", key=Key("{tenant_id}", "{id}"), shards=Shards(4)):
    tenant_id: str
    id: str
    owner: str
    text: str = "secret"


class Event(Entity, name="note.v1.QueuedEvent", key=Key("{tenant_id}", "{id}"), shards=Shards(4)):
    tenant_id: str
    id: str
    owner: str


class Judged(Entity, name="note.v1.JudgedNote", key=Key("{tenant_id}", "{id}"), shards=Shards(4)):
    tenant_id: str
    id: str
    owner: str
    number: int = 0


RULES: Final = Access(read="n:read", write="n:write", owner="{owner}", any_owner="n:all")
NOTES: Final = Exposed(Note, path="notes", access=RULES)
BOARDS: Final = Exposed(
    Board, path="boards", access=Access(read="n:read", write="n:write", owner="{owner}", owned=("read",))
)
"""Everybody writes them, and their owners read them."""
EVENTS: Final = Exposed(Event, path="events", queued=True, access=RULES)
JUDGED: Final = Exposed(
    Judged,
    path="judged",
    access=Access(
        read="n:read", write="n:write", policy=lambda caller, _right, item: item is None or item.owner == caller.subject
    ),
)


@pytest.fixture(scope="module")
def domain() -> Domain:
    return domain_of(NOTES, BOARDS, EVENTS, JUDGED)


@pytest.fixture
def world(transport: Transport, table: str, tmp_path: Path, domain: Domain) -> QueueWorld:
    return QueueWorld(transport, table, tmp_path, domain=domain)


@pytest.fixture
def ada(world: QueueWorld) -> Caller:
    """The owner of an item of each kind."""
    ada = world.caller.who("ada", "n:read", "n:write")
    for path in ("notes", "boards"):
        assert ada.post(f"/v1/{path}", {"id": "1", "owner": "ada"}).status == 201
    return ada


@pytest.fixture
def bob(ada: Caller) -> Caller:
    return ada.who("bob", "n:read", "n:write")


def ended(world: QueueWorld, accepted: Answer) -> Operation:
    """Return the record of an accepted write after the queue is empty."""
    assert accepted.status == 202, accepted.content
    world.drain(OPERATIONS)
    key = {"tenant_id": TENANT, "id": accepted.headers["location"].rpartition("/")[2]}
    return world.operations.get(key, consistent=True)


def code_of(world: QueueWorld, accepted: Answer) -> str:
    """Return the code with which an accepted write failed."""
    record = ended(world, accepted)
    assert record.problem is not None, record
    return str(record.problem["code"])


def test_an_item_of_another_owner_is_refused_before_it_is_accepted(world: QueueWorld, ada: Caller, bob: Caller) -> None:
    mine = {"id": "2", "owner": "ada"}

    assert bob.post("/v1/notes", mine, headers=LATER).code == "forbidden"
    assert bob.put("/v1/notes/2", mine, headers=LATER).code == "forbidden"
    assert ended(world, ada.put("/v1/notes/2", mine, headers=LATER)).state is OperationState.DONE
    assert ada.get("/v1/notes/2").json["owner"] == "ada"


def test_a_put_over_the_item_of_another_owner_is_refused_when_it_is_done(
    world: QueueWorld, ada: Caller, bob: Caller
) -> None:
    taken = bob.put("/v1/notes/1", {"owner": "bob", "text": "mine"}, headers=LATER)

    assert code_of(world, taken) == "forbidden"
    assert ada.get("/v1/notes/1").json["text"] == "secret"


def test_a_patch_that_gives_an_item_away_is_refused_when_it_is_done(world: QueueWorld, ada: Caller) -> None:
    given = ada.patch("/v1/notes/1", {"owner": "bob"}, headers=LATER)
    by_any = ada.who("eve", "n:read", "n:write", "n:all").patch("/v1/notes/1", {"text": "x"}, headers=LATER)

    assert code_of(world, given) == "forbidden"
    assert ended(world, by_any).state is OperationState.DONE
    assert ada.get("/v1/notes/1").json == {**ada.get("/v1/notes/1").json, "owner": "ada", "text": "x"}


def test_another_owners_item_does_not_exist_for_a_patch_or_a_delete(
    world: QueueWorld, ada: Caller, bob: Caller
) -> None:
    patched = bob.patch("/v1/notes/1", {"text": "x"}, headers=LATER)
    deleted = bob.delete("/v1/notes/1", headers=LATER)

    assert [code_of(world, each) for each in (patched, deleted)] == ["not_found", "not_found"]
    assert ada.get("/v1/notes/1").json["text"] == "secret"


@pytest.mark.parametrize("path", ["notes", "boards"])
def test_a_json_patch_of_who_may_not_read_is_not_accepted(ada: Caller, path: str) -> None:
    writer = ada.who("ada", "n:write")

    assert writer.patch(f"/v1/{path}/1", GUESS, headers=JSON_PATCH).code == "forbidden"


@pytest.mark.parametrize("guess", ["secret", "something else"])
def test_a_json_patch_does_not_reveal_what_an_item_holds_that_its_sender_may_not_read(
    world: QueueWorld, ada: Caller, bob: Caller, guess: str
) -> None:
    """It is done at once, whatever its sender prefers, so no record reports whether it fits."""
    patch = [{**GUESS[0], "value": guess}]

    assert bob.patch("/v1/boards/1", patch, headers=JSON_PATCH).code == "forbidden"
    done = ada.patch("/v1/boards/1", GUESS, headers=JSON_PATCH)
    assert (done.status, "preference-applied" in done.headers) == (200, False)
    # Everybody may write a board.
    assert ended(world, bob.patch("/v1/boards/1", {"text": "x"}, headers=LATER)).state is OperationState.DONE


def test_a_queued_item_of_another_owner_is_not_accepted(world: QueueWorld, bob: Caller) -> None:
    items = [{"id": "1", "owner": "bob"}, {"id": "2", "owner": "ada"}]

    assert bob.post("/v1/events", items[1]).code == "forbidden"
    assert bob.post("/v1/events", items).code == "forbidden"
    assert bob.post("/v1/events", items[0]).status == 202
    world.drain(INTAKE)
    assert [item["id"] for item in bob.get("/v1/events", query="consistent=true").json["items"]] == ["1"]


# What nobody can judge


def test_an_item_that_cannot_be_judged_is_only_counted_for_whom_a_policy_limits(
    transport: Transport, table: str, dynamodb: RawDynamoDB, domain: Domain
) -> None:
    allowed = as_function("api", transport, table, TOPOLOGY)
    ada = Caller(build_app(settings_of(table), allowed, domain=domain)).who("ada", "n:read", "n:write")
    for name in ("1", "2"):
        ada.post("/v1/judged", {"id": name, "owner": "ada"})
    rows = dynamodb.call("Scan", TableName=table)["Items"]
    [row] = [row for row in rows if row["SK"]["S"] == "2"]
    dynamodb.call("PutItem", TableName=table, Item={**row, "number": {"L": []}})
    commands = commands_on(transport, table, exposed=(JUDGED,))
    request = {"operation": "batch_get", "entity": "judged", "tenant_id": TENANT, "keys": [{"id": "1"}, {"id": "2"}]}

    listed = ada.get("/v1/judged")
    found = commands.answer({**request, "caller": {"subject": "ada", "scopes": ["n:read"]}})
    whole = commands.answer(request)

    assert [item["id"] for item in listed.json["items"]] == ["1"]
    assert listed.headers["undecodable-items"] == "1"
    assert ada.get("/v1/judged/2").code == "not_found"
    assert [part.get("error", {}).get("code") for part in found["result"]] == [None, "not_found"]
    assert [part.get("error", {}).get("code") for part in whole["result"]] == [None, "undecodable_item"]
    assert table not in json.dumps(found)
