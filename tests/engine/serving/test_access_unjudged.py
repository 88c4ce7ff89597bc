"""Writes over stored items that do not fit their declaration, which no rule can judge: at once, in batches, queued."""

from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest

from dynashard import Entity, Key, Registry, Shards, created_at
from dynashard.transport import Transport
from dynashard_serving.declare import Access, Exposed, Transitions
from dynashard_serving.domain import domain_of
from dynashard_serving.operation_records import OperationState
from tests.api_caller import TENANT, Answer, Caller
from tests.engine.commands.commands_on_engine import commands_on
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.writer.queue_world import OPERATIONS, QueueWorld

pytestmark = pytest.mark.engine

OWN: Final = Registry()
LATER: Final = {"prefer": "respond-async"}
SCOPES: Final = ("n:read", "n:write")
UNFIT: Final[tuple[dict[str, Any], ...]] = ({"owner": {"M": {}}}, {"number": {"L": []}}, {"made_at": {"S": "soon"}})


class Owned(Entity, name="unjudged.v1.Owned", key=Key("{tenant_id}", "{id}"), shards=Shards(2), registry=OWN):
    tenant_id: str
    id: str
    owner: str
    number: int = 0
    made_at: datetime = created_at()


class Judged(Entity, name="unjudged.v1.Judged", key=Key("{tenant_id}", "{id}"), shards=Shards(2), registry=OWN):
    tenant_id: str
    id: str
    owner: str
    number: int = 0
    made_at: datetime = created_at()


class Staged(Entity, name="unjudged.v1.Staged", key=Key("{tenant_id}", "{id}"), shards=Shards(2), registry=OWN):
    tenant_id: str
    id: str
    number: int = 0
    state: str = "open"


def is_owner(caller: Any, _right: str, item: Any) -> bool:
    return item is None or item.owner == caller.subject


EXPOSED: Final = (
    Exposed(Owned, path="owned", access=Access(read="n:read", write="n:write", owner="{owner}", any_owner="n:all")),
    Exposed(Judged, path="judged", access=Access(read="n:read", write="n:write", policy=is_owner)),
    Exposed(Staged, path="staged", transitions=(Transitions("state", {"open": ("closed",), "closed": ()}),)),
)
LIMITED: Final = pytest.mark.parametrize("path", ["owned", "judged"])


@pytest.fixture
def world(transport: Transport, table: str, tmp_path: Path) -> QueueWorld:
    return QueueWorld(transport, table, tmp_path, domain=domain_of(*EXPOSED))


@pytest.fixture
def ada(world: QueueWorld) -> Caller:
    return world.caller.who("ada", *SCOPES)


@pytest.fixture
def every(world: QueueWorld) -> Caller:
    """A caller whom the owner rule does not limit."""
    return world.caller.who("eve", *SCOPES, "n:all")


class Stored:
    """What is stored of the entities."""

    def __init__(self, dynamodb: RawDynamoDB, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    @property
    def rows(self) -> list[dict[str, Any]]:
        every = self._dynamodb.call("Scan", TableName=self._table)["Items"]
        return [each for each in every if each["PK"]["S"].startswith("unjudged.")]

    def spoil(self, unfit: dict[str, Any] = UNFIT[0]) -> list[dict[str, Any]]:
        """Change the only item so that it does not fit, and return what is stored then."""
        [row] = self.rows
        self._dynamodb.call("PutItem", TableName=self._table, Item={**row, **unfit})
        return self.rows


@pytest.fixture
def stored(dynamodb: RawDynamoDB, table: str) -> Stored:
    return Stored(dynamodb, table)


def mine(**fields: Any) -> dict[str, Any]:
    return {"id": "1", "owner": "ada", **fields}


def code_of(world: QueueWorld, accepted: Answer) -> str | None:
    """Return the code with which an accepted write failed; None if it was done."""
    assert accepted.status == 202, accepted.content
    world.drain(OPERATIONS)
    key = {"tenant_id": TENANT, "id": accepted.headers["location"].rpartition("/")[2]}
    record = world.operations.get(key, consistent=True)
    return None if record.state is OperationState.DONE else str((record.problem or {})["code"])


@LIMITED
@pytest.mark.parametrize("unfit", UNFIT)
@pytest.mark.parametrize("condition", [{}, {"if-match": "*"}, {"if-match": '"x"'}, {"if-none-match": "*"}], ids=str)
def test_who_is_limited_does_not_replace_it(
    ada: Caller, stored: Stored, path: str, unfit: dict[str, Any], condition: dict[str, str]
) -> None:
    assert ada.put(f"/v1/{path}/1", mine()).status == 201
    before = stored.spoil(unfit)

    put = ada.put(f"/v1/{path}/1", mine(number=2), headers=condition)

    assert (put.status, put.code) == (403, "forbidden")
    assert stored.rows == before
    # As over an item of another owner.
    assert ada.get(f"/v1/{path}/1").code == "not_found"


@LIMITED
def test_nor_in_a_batch(transport: Transport, table: str, ada: Caller, stored: Stored, path: str) -> None:
    assert ada.put(f"/v1/{path}/1", mine()).status == 201
    before = stored.spoil()
    commands = commands_on(transport, table, exposed=EXPOSED)
    request = {"entity": path, "tenant_id": TENANT, "caller": {"subject": "ada", "scopes": SCOPES}}

    put = commands.answer({**request, "operation": "batch_write", "put": [mine(number=2)]})["result"]["put"]
    deleted = commands.answer({**request, "operation": "batch_write", "delete": [{"id": "1"}]})["result"]["delete"]
    mixed = ada.post(f"/v1/{path}/batch", {"requests": [{"operation": "put", "item": mine(number=2)}]})

    assert [each["error"]["code"] for each in (*put, *mixed.json["outcomes"])] == ["forbidden", "forbidden"]
    # To them it does not exist, so there is nothing to do.
    assert deleted[0]["ok"]
    assert stored.rows == before


@LIMITED
def test_nor_later(world: QueueWorld, ada: Caller, stored: Stored, path: str) -> None:
    assert ada.put(f"/v1/{path}/1", mine()).status == 201
    before = stored.spoil()

    codes = [
        code_of(world, ada.put(f"/v1/{path}/1", mine(number=2), headers=LATER)),
        code_of(world, ada.patch(f"/v1/{path}/1", {"number": 2}, headers=LATER)),
        code_of(world, ada.delete(f"/v1/{path}/1", headers=LATER)),
        code_of(world, ada.post(f"/v1/{path}", mine(), headers=LATER)),
    ]

    assert codes == ["forbidden", "not_found", "not_found", "already_exists"]
    assert stored.rows == before


@pytest.mark.parametrize("unfit", UNFIT)
def test_who_is_not_limited_replaces_it(
    world: QueueWorld, every: Caller, stored: Stored, unfit: dict[str, Any]
) -> None:
    made = every.put("/v1/owned/1", mine()).json
    stored.spoil(unfit)
    world.later()

    put = every.put("/v1/owned/1", mine(number=2))

    assert (put.status, put.json["number"]) == (200, 2)
    assert every.get("/v1/owned/1").json == put.json
    # A time that cannot be read is not kept.
    assert (put.json["made_at"] == made["made_at"]) == ("made_at" not in unfit)
    assert len(stored.rows) == 1


def test_what_depends_on_what_it_holds_is_refused_to_all(world: QueueWorld, stored: Stored) -> None:
    assert world.caller.put("/v1/staged/1", {}).status == 201
    before = stored.spoil(UNFIT[1])

    put = world.caller.put("/v1/staged/1", {"state": "closed"})

    assert (put.status, put.code) == (500, "undecodable_item")
    assert code_of(world, world.caller.put("/v1/staged/1", {"state": "closed"}, headers=LATER)) == "undecodable_item"
    assert stored.rows == before


@LIMITED
def test_one_of_a_later_version_is_left_to_a_release_that_knows_it(ada: Caller, stored: Stored, path: str) -> None:
    assert ada.put(f"/v1/{path}/1", mine()).status == 201
    before = stored.spoil({"Ver": {"N": "2"}})

    answers = [
        ada.put(f"/v1/{path}/1", mine(number=2)),
        ada.get(f"/v1/{path}/1"),
        ada.patch(f"/v1/{path}/1", {"number": 2}),
        ada.delete(f"/v1/{path}/1"),
    ]

    assert [(each.status, each.code) for each in answers] == [(503, "newer_item")] * 4
    assert stored.rows == before
