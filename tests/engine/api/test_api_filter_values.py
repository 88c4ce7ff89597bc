"""Values in a query string and a path, of types that JSON writes in another way than as text."""

from typing import Literal

import pytest

from dynashard import Entity, Key, Registry
from dynashard.transport import Transport
from dynashard_serving.declare import serve
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import caller_exposing

pytestmark = pytest.mark.engine


@serve(path="files", filters=("digest", "mark", "level", "rank"))
class File(Entity, name="values.v1.File", key=Key("{tenant_id}", "{level:02d}#{id}"), registry=Registry()):
    tenant_id: str
    level: Literal[1, 12]
    id: str
    digest: bytes = b""
    mark: bytes | None = None
    rank: Literal[-1, 3] | None = None


@pytest.fixture
def caller(transport: Transport, table: str) -> Caller:
    caller = caller_exposing(transport, table, File)  # type: ignore[arg-type]
    caller.put("/v1/files/1/a", {"digest": "-_8=", "mark": "aGk=", "rank": -1})
    caller.put("/v1/files/12/b", {"digest": "AAA=", "rank": 3})
    return caller


@pytest.mark.parametrize(
    "query",
    ["digest=-_8%3D", "digest=%2B%2F8%3D", "mark=aGk%3D", "mark[in]=aGk%3D", "level=1", "rank=-1", "rank[ne]=3"],
)
def test_a_filter_finds_what_a_document_shows(caller: Caller, query: str) -> None:
    assert [each["id"] for each in caller.get("/v1/files", query=query).json["items"]] == ["a"]


def test_a_number_that_is_a_choice_addresses_an_item(caller: Caller) -> None:
    assert caller.get("/v1/files/12/b").json["id"] == "b"
    assert caller.get("/v1/files/2/b").status == 404


@pytest.mark.parametrize(("query", "code"), [("level=2", "literal_error"), ("rank=03", "literal_error")])
def test_another_number_is_refused(caller: Caller, query: str, code: str) -> None:
    assert list(caller.get("/v1/files", query=query).fields.values()) == [code]
