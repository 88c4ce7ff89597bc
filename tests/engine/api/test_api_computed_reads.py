"""Reads that a domain computes, over HTTP and directly, whose answers are too large for one answer."""

import pytest
from pydantic import BaseModel

from dynashard import Dynashard, Entity, Key, Registry
from dynashard.transport import Transport
from dynashard_serving.declare import endpoint, serve
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import caller_exposing
from tests.engine.commands.commands_on_engine import Service, commands_on

pytestmark = pytest.mark.engine


@serve(path="books")
class Book(Entity, name="computed.v1.Book", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    tenant_id: str
    id: str


class Wanted(BaseModel):
    """How many lines."""

    lines: int


class Line(BaseModel):
    """A line."""

    text: str = "ß" * 500


@endpoint("lines")
def lines(db: Dynashard, tenant_id: str, wanted: Wanted) -> list[Line]:
    """List lines."""
    del db, tenant_id
    return [Line() for _ in range(wanted.lines)]


@endpoint("print", of=Book)
def print_of(db: Dynashard, book: Book, wanted: Wanted) -> Line:
    """Print a book."""
    del db, book
    return Line(text='"' * 1000 * wanted.lines)


@pytest.fixture
def caller(transport: Transport, table: str) -> Caller:
    return caller_exposing(transport, table, Book, lines, print_of)  # type: ignore[arg-type]


@pytest.mark.parametrize(("path", "most"), [("/v1/lines", 5000), ("/v1/books/1/print", 1500)])
def test_an_answer_that_lambda_cannot_give_is_refused(caller: Caller, path: str, most: int) -> None:
    caller.put("/v1/books/1", {})

    whole = caller.get(path, query=f"lines={most}")
    refused = caller.get(path, query=f"lines={2 * most}")

    assert whole.status == 200
    assert (refused.status, refused.code) == (406, "answer_too_large")


def test_direct_invocation_refuses_it_too(transport: Transport, table: str) -> None:
    service = Service(commands_on(transport, table, exposed=(lines,)), entity="lines")  # type: ignore[arg-type]

    assert len(service.result("list", lines=5000)["items"]) == 5000
    assert service.error("list", lines=10_000)["code"] == "answer_too_large"
