"""What a client sends of an item."""

from typing import Any

import pytest

from dynashard_client import Item
from dynashard_client.documents import Document
from dynashard_client.resource import resource_of

pytestmark = pytest.mark.unit


class Note(Item, path="notes", read_only=["created_at"]):
    id: str | None = None
    text: str
    state: str = "draft"
    tags: tuple[str, ...] = ()
    created_at: str | None = None


def sent(note: Note) -> Document:
    resource = resource_of(Note)
    assert resource is not None
    return resource.document(note)


def answered(**fields: Any) -> Note:
    resource = resource_of(Note)
    assert resource is not None
    note = resource.item(fields)
    assert isinstance(note, Note)
    return note


def test_a_new_item_is_sent_with_its_defaults_and_without_what_was_left_at_none() -> None:
    assert sent(Note(text="a")) == {"text": "a", "state": "draft", "tags": []}
    assert sent(Note(text="a", id=None)) == {"text": "a", "id": None, "state": "draft", "tags": []}


def test_an_item_that_was_read_is_sent_without_what_its_answer_did_not_have() -> None:
    note = answered(id="1", text="a", created_at="today", revision="r", other=1)

    assert sent(note) == {"id": "1", "text": "a"}
    assert sent(note.model_copy(update={"tags": ("x",)})) == {"id": "1", "text": "a", "tags": ["x"]}
