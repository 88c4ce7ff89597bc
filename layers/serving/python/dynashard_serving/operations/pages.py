"""Pages of listings: no larger than Lambda can answer, and refused with the names that callers use.

Their JSON is written without an entity of each item, wherever that gives the same text.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Any, Final

import orjson
from pydantic_core import to_json

from dynashard.entity import Entity
from dynashard.errors import FieldError, InvalidQueryError, ValidationFailedError
from dynashard.reads import Page
from dynashard.repository.left_out import take_back
from dynashard_serving.documents import Document, item_texts, list_text, written
from dynashard_serving.limits import MAX_ANSWER_BYTES

_CURSOR_BYTES: Final = 64 * 1024
"""Room for a cursor that is longer than that of the previous page."""
_OUTSIDE: Final = {"start": "from", "end": "to"}
"""Callers' names of the layer's arguments."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A page as it is answered.

    Attributes:
        text: its items and its cursor as JSON; and `incomplete`, if the listed index may lack items.
        cursor: of the next page; None for the last.
        count: how many items it has.
    """

    text: str
    cursor: str | None
    count: int

    @property
    def document(self) -> Document:
        """Its items and its cursor."""
        found: Document = json.loads(self.text)
        return found


def page_that_fits(
    read: Callable[..., Page[Any]],
    options: dict[str, Any],
    text_of: Callable[[Sequence[Any]], bytes],
) -> Answer:
    """Read a page that Lambda can answer. A page that is too large is read again with a lower `limit`.

    `text_of` writes items as a JSON list. The page is put together from texts, because making documents first takes
    three times the CPU time.

    Raises:
        ValidationFailedError: the query is invalid; with the parameter at fault, as callers name it.
        UndecodableItemError: it is to be `strict`, and a stored item does not fit its entity.

    Cost: that of `read`, twice for a page that was too large.
    """
    while True:
        with named_outside():
            page = read(**options)
        incomplete = "" if page.complete else ',"incomplete":true'
        text = f'{{"items":{text_of(page.items).decode()},"cursor":{written(page.cursor)}{incomplete}}}'
        # A character takes at most 4 bytes, so that most pages need not be counted.
        if 4 * len(text) <= MAX_ANSWER_BYTES or answer_bytes(text) <= MAX_ANSWER_BYTES or options["limit"] == 1:
            return Answer(text, page.cursor, len(page.items))
        take_back(page.undecodable)
        room = MAX_ANSWER_BYTES - _CURSOR_BYTES - len(page.cursor or "")
        sizes = (answer_bytes(text_of([item]).decode()) - 1 for item in page.items)
        options["limit"] = max(1, min(_fitting(sizes, room), options["limit"] - 1))


def _fitting(sizes: Iterable[int], room: int) -> int:
    """Return how many of the first items, with their commas, take at most `room` bytes; at least 1."""
    return max(1, sum(1 for _ in takewhile(lambda size: size <= room, accumulate(sizes))))


def answer_bytes(text: str) -> int:
    """How many bytes JSON text takes in an answer, where it is a string of another JSON document."""
    return len(text.encode()) + text.count('"') + text.count("\\")


@contextmanager
def named_outside() -> Iterator[None]:
    """Name the argument at fault of an invalid query as callers name it."""
    try:
        yield
    except InvalidQueryError as error:
        name = _OUTSIDE.get(error.field or "", error.field or "")
        raise ValidationFailedError(FieldError(name, str(error), error.code)) from error


def stored_text(items: Sequence[Any]) -> bytes:
    """Return the JSON list of what a page has that was read with the revision: documents, in tuples, and entities.

    `dynashard.compiled` makes documents of stored items when an answer is read. Entities are written by pydantic. The
    text is the one that `item_texts` writes of the same items. Cost: 1 us for a document of ten short fields.
    """
    parts = [item[0] if item.__class__ is tuple else orjson.Fragment(_entity_text(item)) for item in items]
    try:
        return orjson.dumps(parts, option=orjson.OPT_UTC_Z)
    except TypeError:
        # Pydantic writes what orjson does not.
        return list_text(to_json(item[0]) if item.__class__ is tuple else _entity_text(item) for item in items)


def _entity_text(item: Entity) -> bytes:
    return item_texts([item])[0]
