"""Values in a query string and a path, of types that JSON writes in another way than as text."""

from typing import Annotated, Literal

import pytest
from openapi_schema_validator import OAS31Validator
from pydantic import Field

from dynashard import Entity, Key, Registry
from dynashard.transport import Transport
from dynashard_serving.api.openapi.document import document_of
from dynashard_serving.declare import Exposed, serve
from dynashard_serving.domain import domain_of
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


class Line(Entity, name="values.v1.Line", key=Key("{tenant_id}", "{seq:06d}#{id}"), registry=Registry()):
    tenant_id: str
    seq: Annotated[int, Field(ge=0, le=10)]
    id: str


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


@pytest.mark.parametrize("value", [-1, 0, 10, 11])
def test_the_document_has_the_bounds_of_numbers_that_begin_a_range(
    transport: Transport, table: str, value: int
) -> None:
    lines = Exposed(Line, path="lines")
    schema = document_of(domain_of(lines))["components"]["parameters"]["Line.seq.gte"]["schema"]

    answer = caller_exposing(transport, table, lines).get("/v1/lines", query=f"seq[gte]={value}")

    assert answer.status == (200 if 0 <= value <= 10 else 422)
    assert OAS31Validator(schema).is_valid(value) is (answer.status == 200)
