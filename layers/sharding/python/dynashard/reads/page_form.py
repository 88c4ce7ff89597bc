"""Readers of the answers of a Query, which make entities of an answer's bytes, without the dictionaries in between.

Dictionaries of stored attributes take more time to make than entities, and again when the garbage collector looks at
them. Only models whose fields are all plain can do without; `row_form` has the rules. A row that it does not know takes
the ordinary way, and so does an answer that is not as DynamoDB writes it.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from types import GenericAlias
from typing import Any, Final

from msgspec import UNSET, UnsetType, defstruct
from orjson import JSONDecodeError, loads

from dynashard.compiled.row_form import Capacity, RowForm, documents_form, fields_form, parser_of, row_form
from dynashard.entity import EntityDefinition, judged
from dynashard.errors import UndecodableItemError
from dynashard.reads.sources import Chunk, Convert, Reading, StreamRead
from dynashard.schema import EXPIRES_AT, MOVED_TO, SK, TYPE
from dynashard.transport.interface import Reader, Wire

_MEMBERS: Final[Mapping[str, Any]] = {
    "LastEvaluatedKey": Any, "ConsumedCapacity": Capacity | UnsetType, "Count": Any, "ScannedCount": Any,
}  # fmt: skip
_UNUSUAL: Final = (UndecodableItemError, AttributeError, KeyError, TypeError, ValueError)
"""What is raised for items and keys that are not as the layer writes them. Reading them again has the error."""


@lru_cache(maxsize=1024)
def entities_of(entity: EntityDefinition[Any]) -> Convert:
    """Return a `dynashard.reads.sources.Convert` that puts entities in place of stored items, for this definition.

    In place of an item that does not fit its entity it puts the verdict, `dynashard.entity.Undecodable`.
    """
    # Items of other entities in the same partitions are recognised when they are decoded.
    form = row_form(entity) if entity.prefix == entity.name else None
    return _Pages(form, partial(judged, entity.decode)).reader


@lru_cache(maxsize=128)
def fields_of(entity: EntityDefinition[Any], fields: tuple[str, ...]) -> Convert:
    """Return what `entities_of` returns, but with mappings of these fields in place of entities.

    Each mapping is the only member of a tuple, because stored items are mappings as well.
    """
    form = fields_form(entity, fields) if entity.prefix == entity.name else None
    return _Pages(form, partial(judged, lambda stored: (entity.part(stored, fields),))).reader


@lru_cache(maxsize=128)
def documents_of(entity: EntityDefinition[Any], revision: str) -> Convert | None:
    """Return what `entities_of` returns, but with mappings that are written as JSON in place of entities.

    Each mapping is the only member of a tuple, and ends with the revision by this name. Items that the form does not
    know are left as they are stored. None if the entity has no such form.
    """
    form = documents_form(entity, revision) if entity.prefix == entity.name else None
    return None if form is None else _Pages(form, lambda stored: stored).reader


class _Pages:
    """Answers of Queries with what is made of their items: by a form, or from a stored item that it does not know."""

    def __init__(self, form: RowForm | None, decode: Callable[[Wire], Any]) -> None:
        self._form, self._decode = form, decode
        if form is not None:
            members = [(name, kind, UNSET) for name, kind in _MEMBERS.items()]
            self._parse = parser_of(defstruct("Answer", [("Items", GenericAlias(list, form.row)), *members], gc=False))

    def reader(self, reading: Reading, read: StreamRead) -> Reader:
        """Return the reader of the answer to a `StreamRead`."""

        def reader(body: bytes | bytearray) -> Wire | None:
            page = None
            if self._form is not None and reading.slot is None:
                with suppress(*_UNUSUAL):
                    page = self._page(self._form, reading, read, body)
            return page or self._decoded(reading, read, body)

        return reader

    def _page(self, form: RowForm, reading: Reading, read: StreamRead, body: bytes | bytearray) -> Wire | None:
        """The answer with entities; None if it is unusual, or has items beyond the bounds."""
        answer = self._parse(body)
        if answer is None:
            return None
        found = {name: value for name in _MEMBERS if (value := getattr(answer, name)) is not UNSET}
        last, rows = found.get("LastEvaluatedKey"), answer.Items
        end: Any = last[SK]["S"] if last is not None else rows[-1].sk.S if rows else None
        if (last is not None or rows) and (end is UNSET or not (read.bounds or reading.bounds).contains(end)):
            return None
        items, make, stored, shown = [], form.make, None, None
        for number, row in enumerate(rows):
            item = make(row)
            if item is None:
                if self._hidden(reading, row):
                    continue
                stored = stored or loads(body)["Items"]
                if not reading.visible(stored[number]):
                    continue
                item = self._decode(stored[number])
            items.append(item)
            shown = row
        if shown is not None and shown.sk.S is UNSET:
            return None
        at = None if shown is None else reading.position({SK: {"S": shown.sk.S}})
        return {**found, "Items": Chunk(items, None if last is None else reading.position(last), at)}

    def _hidden(self, reading: Reading, row: Any) -> bool:
        """Whether readers may not see a row, because it is a relocation marker, has expired or is of another kind."""
        system = {MOVED_TO: row.moved, EXPIRES_AT: row.expires}
        system = {name: value for name, value in system.items() if value is not UNSET}
        if row.kind.S is not UNSET:
            system[TYPE] = {"S": row.kind.S}
        return bool(system) and not reading.visible(system)

    def _decoded(self, reading: Reading, read: StreamRead, body: bytes | bytearray) -> Wire | None:
        """The answer with this body, read in the ordinary way; None if the body is not an answer."""
        try:
            answer = loads(body)
        except JSONDecodeError:
            return None
        if not isinstance(answer, dict):
            return None
        with suppress(*_UNUSUAL):
            chunk = answer["Items"] = reading.chunk(answer, read)
            end = reading.position(chunk.rows[-1]) if chunk.rows else None
            answer["Items"] = Chunk([self._decode(row) for row in chunk.rows], chunk.last, end)
        return answer
