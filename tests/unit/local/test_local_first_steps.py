"""The commands that the local stack offers to try: of the domain that it serves, whichever that is."""

import asyncio
import json
import shlex
from typing import Any

import pytest
from pydantic import Field

from dynashard import Entity, Key, Registry, new_id
from dynashard_local.gateway.description import Description
from dynashard_local.gateway.events import HttpRequest, HttpResponse
from dynashard_local.gateway.first_steps import commands_of, first_steps
from dynashard_local.gateway.landing import landing_page
from dynashard_serving.api.openapi.document import document_of
from dynashard_serving.declare import Exposed
from dynashard_serving.domain import domain_of

pytestmark = pytest.mark.unit

URL = "http://127.0.0.1:8000"
REGISTRY = Registry()


class Note(Entity, name="steps.v1.Note", key=Key("{tenant_id}", "{id}"), registry=REGISTRY):
    tenant_id: str
    id: str = new_id()
    text: str
    colour: str = Field(default="red", examples=["blue"])


class Seen(Entity, name="steps.v1.Seen", key=Key("{tenant_id}", "{id}"), registry=REGISTRY):
    tenant_id: str
    id: str


class Described:
    """A gateway whose function answers with this."""

    def __init__(self, status: int, body: bytes) -> None:
        self.response = HttpResponse(status, (), body)

    async def answer(self, request: HttpRequest) -> HttpResponse:
        assert (request.method, request.path) == ("GET", "/v1/openapi.json")
        return self.response


def steps(status: int, body: bytes) -> str:
    gateway: Any = Described(status, body)
    return asyncio.run(described(gateway))


async def described(gateway: Any) -> str:
    return await first_steps(Description(gateway), URL)


def test_a_domain_of_ones_own_is_tried_by_its_own_entity() -> None:
    document = document_of(domain_of(Exposed(Seen, path="seen", operations=("list",)), Exposed(Note, path="notes")))

    commands = shlex.split(steps(200, json.dumps(document).encode()))

    assert commands.count(f"{URL}/v1/notes") == 2
    assert json.loads(commands[commands.index("-d", commands.index(f"{URL}/v1/notes")) + 1]) == {"text": "example"}


def test_an_entity_with_an_example_of_its_own_comes_first() -> None:
    schemas = {"A": {"required": ["x"]}, "B": {"required": ["x"]}}
    paths = {
        path: {
            "get": {},
            "post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": name}, "example": {"x": x}}}}},
        }
        for path, name, x in (("/v1/a", "#/A", "example"), ("/v1/b", "#/B", "it's"))
    }

    commands = shlex.split(commands_of({"paths": paths, "components": {"schemas": schemas}}, URL))

    assert f"{URL}/v1/b" in commands
    assert '{"x": "it\'s"}' in commands


@pytest.mark.parametrize(
    ("status", "body"),
    [(500, b'{"message": "Internal Server Error"}'), (200, b"<html>"), (200, b'{"paths": {}}')],
    ids=["broken", "not JSON", "nothing is created"],
)
def test_without_anything_to_create_the_health_check_is_tried(status: int, body: bytes) -> None:
    assert steps(status, body) == f"  curl {URL}/v1/health"


def test_the_landing_page_shows_the_commands_as_text() -> None:
    assert '<pre>curl -d &lt;b&gt; "x"</pre>' in landing_page('curl -d <b> "x"')
