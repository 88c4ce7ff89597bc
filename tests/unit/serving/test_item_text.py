"""The JSON text of a stored item is that of its document."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from domain.samples.incidents import Incident
from domain.samples.users import User
from dynashard import definition
from dynashard.record import with_revision
from dynashard_serving.documents import item_texts, representation, written
from tests.every_field import items

pytestmark = pytest.mark.unit

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
JSON_VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner))
REVISIONS = st.none() | st.just("") | TEXTS


def text_of(item: Any, *, with_type: bool = False) -> str:
    [text] = item_texts([item], with_type=with_type)
    return text.decode()


@given(JSON_VALUES)
def test_the_text_of_a_document_is_that_of_pydantic(document: Any) -> None:
    assert written(document) == to_json(document).decode()


@pytest.mark.parametrize(
    "document",
    [{"at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}, [User(tenant_id="a", email="a@example.com", display_name="A")]],
)
def test_the_text_of_what_is_not_json_yet_is_that_of_pydantic(document: Any) -> None:
    assert written(document) == to_json(document).decode()


@given(items, REVISIONS)
def test_the_text_of_an_item_is_that_of_its_document(item: Any, revision: str | None) -> None:
    stored = item if revision is None else with_revision(item, revision)

    assert text_of(stored) == written(representation(stored, revision))


@given(items)
def test_the_text_of_an_item_may_begin_with_its_entity(item: Any) -> None:
    name = definition(type(item)).name

    assert text_of(item, with_type=True) == written({"type": name, **representation(item, None)})


def test_items_of_several_entities_have_their_own_texts() -> None:
    incident = Incident(tenant_id="abc", number=1, title="Down")
    user = User(tenant_id="abc", email="ada@example.com", display_name="Ada")
    mixed = [incident, user, user, incident]

    texts = item_texts(mixed, with_type=True)

    assert [json.loads(text) for text in texts] == [
        {"type": definition(type(item)).name, **representation(item, None)} for item in mixed
    ]


@pytest.mark.parametrize("included", [{}, {"details": None}, {"details": {"a": 1}}])
def test_the_text_has_an_attachment_only_if_it_was_read(included: dict[str, Any]) -> None:
    incident = with_revision(Incident(tenant_id="abc", number=1, title="Down", **included), "r")

    assert text_of(incident) == written(representation(incident, "r"))
    assert ("details" in json.loads(text_of(incident))) == ("details" in included)
