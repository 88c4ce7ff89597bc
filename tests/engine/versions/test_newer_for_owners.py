"""Older code and newer items, for callers whose rights depend on the item: no answer says that such an item is gone."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from dynashard import Entity, Key, Registry, Shards
from dynashard.transport import Transport
from dynashard_serving.declare import Access, Exposed
from tests.api_caller import TENANT, Caller
from tests.engine.api.api_on_engine import caller_exposing
from tests.engine.commands.commands_on_engine import Service, commands_on
from tests.engine.versions.two_versions import Version

pytestmark = pytest.mark.engine

NAME: Final = "owned.v1.Note"
NOTE: Final = {"tenant_id": TENANT, "id": "1", "owner": "ada", "code": "c"}
RULES: Final = Access(read="n:read", write="n:write", owner="{owner}")
ADA: Final = {"subject": "ada", "scopes": ["n:read", "n:write"]}


class Older(Entity, name=NAME, key=Key("{tenant_id}", "{id}"), shards=Shards(2), unique=("code",), registry=Registry()):
    tenant_id: str
    id: str
    owner: str
    code: str


class Newer(
    Entity,
    name=NAME,
    key=Key("{tenant_id}", "{id}"),
    shards=Shards(2),
    unique=("code",),
    version=2,
    upgrade={1: lambda values: {**values, "color": "red"}},
    registry=Registry(),
):
    tenant_id: str
    id: str
    owner: str
    code: str
    color: str


OLDER: Final = Exposed(Older, "notes", access=RULES)


@pytest.fixture(autouse=True)
def newer(transport: Transport, table: str) -> Version:
    version = Version(Newer, transport, table)
    version.tasks.create(Newer(**NOTE, color="blue"))
    return version


@pytest.fixture
def service(transport: Transport, table: str) -> Service:
    return Service(commands_on(transport, table, exposed=(OLDER,)), entity=NAME)


@pytest.fixture
def caller(transport: Transport, table: str) -> Caller:
    claims = {"tenant_id": TENANT, "sub": "ada", "scope": "n:read n:write"}
    return Caller(caller_exposing(transport, table, OLDER).app, claims)


def code_of(outcome: Mapping[str, Any]) -> str | None:
    return None if outcome["ok"] else str(outcome["error"]["code"])


def test_a_batch_of_reads_says_that_an_item_is_newer(service: Service) -> None:
    (outcome,) = service.ask("batch_get", keys=[{"id": "1"}], caller=ADA)["result"]

    assert code_of(outcome) == "newer_item"


@pytest.mark.parametrize(
    "writes", [{"delete": [{"id": "1"}]}, {"put": [{"id": "1", "owner": "ada", "code": "d"}]}], ids=["delete", "put"]
)
def test_a_batch_of_writes_does_not_claim_to_have_written_a_newer_item(
    service: Service, newer: Version, writes: dict[str, Any]
) -> None:
    result = service.ask("batch_write", **writes, caller=ADA)["result"]

    assert [code_of(each) for each in (*result["put"], *result["delete"])] == ["newer_item"]
    assert newer.tasks.get({"tenant_id": TENANT, "id": "1"}).color == "blue"


def test_a_look_up_by_a_unique_field_does_not_hide_a_newer_item(caller: Caller) -> None:
    answer = caller.get("/v1/notes", query="code=c")

    assert (answer.status, answer.code) == (503, "newer_item")
