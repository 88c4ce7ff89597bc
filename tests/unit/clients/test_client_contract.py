"""What the client knows of the backend by itself is as the backend has it."""

from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum

import pytest

from dynashard import schema
from dynashard.errors import FieldError
from dynashard.keys import parse
from dynashard_client import documents as ours
from dynashard_client import errors
from dynashard_client.sort_keys import SortTemplate
from dynashard_serving import documents
from dynashard_serving.client_resources import client_resources
from tests.domain_served import ENTITIES

pytestmark = pytest.mark.unit


class State(StrEnum):
    OPEN = "OPEN"


def test_names_and_limits_are_those_of_the_backend() -> None:
    assert (ours.REVISION, ours.TENANT) == (documents.REVISION, documents.TENANT)
    assert ours.MAX_SORT_KEY_BYTES == schema.MAX_SORT_KEY_BYTES
    assert errors.FieldError._fields == FieldError._fields


@pytest.mark.parametrize("text", ["{at}#{state}", "{state}_{number:012d}", "{name}", "{at:%Y-%m-%d}/{name}", "all"])
def test_sort_keys_are_rendered_as_the_backend_renders_them(text: str) -> None:
    at = datetime(2026, 11, 20, 1, 2, 3, tzinfo=timezone(timedelta(hours=2)))
    theirs = parse(text, numeric=lambda name: name == "number")

    for moment in (at, at.astimezone(UTC), at.replace(microsecond=5)):
        values = {"at": moment, "state": State.OPEN, "number": 42, "name": "ada"}
        assert SortTemplate(text).render(values) == theirs.render(values)
    assert SortTemplate(text).fields == theirs.fields


def test_every_served_entity_is_a_resource_of_the_client() -> None:
    resources = {each.path: each for each in client_resources(ENTITIES)}

    assert resources.keys() == {each.path for each in ENTITIES}
    articles = resources["articles"]
    assert (articles.address, articles.partition) == (("author", "year", "slug"), ("author", "year"))
    assert articles.sort_key("nowhere") is None
