"""Readers of the answers of a Query, which make entities of an answer's bytes, without the dictionaries in between.

Dictionaries of stored attributes take more time to make than entities, and again when the garbage collector looks at
them. A row that the compiled reader does not know is read by the reference codec, and so is an answer that is not as
DynamoDB writes it.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from types import GenericAlias, NoneType
from typing import Any, Final, NamedTuple, cast

from msgspec import UNSET, UnsetType, defstruct
from orjson import JSONDecodeError, loads

from dynashard.compiled.reader import RowReader, document_reader, entity_reader, fields_reader
from dynashard.compiled.rows import Capacity, Row, Text, parser_of
from dynashard.entity import EntityDefinition, IndexDefinition, judged
from dynashard.errors import UndecodableItemError
from dynashard.reads.sources import Chunk, Convert, Position, Reading, Source, StreamRead
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, SK, TYPE, index_pk, index_sk
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
    return _Answers(entity, partial(entity_reader, entity), entity.decode).reader


@lru_cache(maxsize=128)
def fields_of(entity: EntityDefinition[Any], fields: tuple[str, ...]) -> Convert:
    """Return what `entities_of` returns, but with mappings of these fields in place of entities.

    Each mapping is the only member of a tuple, because stored items are mappings as well.
    """

    def decode(stored: Mapping[str, Any]) -> tuple[dict[str, Any]]:
        return (entity.part(stored, fields),)

    return _Answers(entity, partial(fields_reader, entity, fields), decode).reader


@lru_cache(maxsize=128)
def documents_of(entity: EntityDefinition[Any], revision: str) -> Convert:
    """Return what `entities_of` returns, but with mappings that are written as JSON in place of entities.

    Each mapping is the only member of a tuple, and ends with the revision by this name. Items whose JSON is more than
    such a mapping are entities.
    """

    def compiled(index: IndexDefinition | None) -> RowReader | None:
        return document_reader(entity, revision, index) or entity_reader(entity, index)

    return _Answers(entity, compiled, partial(entity.document, revision=revision)).reader


class _Compiled(NamedTuple):
    """The compiled reader of rows, and the parser of answers with such rows."""

    rows: RowReader
    parse: Callable[[bytes | bytearray], Any]


class _Answers:
    """Answers of Queries with what is made of their items: by a compiled reader, or by `decode`."""

    def __init__(
        self,
        entity: EntityDefinition[Any],
        compiled: Callable[[IndexDefinition | None], RowReader | None],
        decode: Callable[[Mapping[str, Any]], Any],
    ) -> None:
        self._indexes = {index.slot: index for index in entity.indexes.values()}
        self._compile, self._decode = compiled, partial(judged, decode)
        self._compiled = lru_cache(maxsize=4)(self._of_slot)

    def _of_slot(self, slot: str | None) -> _Compiled | None:
        rows = self._compile(None if slot is None else self._indexes[slot])
        if rows is None:
            return None
        members = [(name, kind, UNSET) for name, kind in _MEMBERS.items()]
        answer = defstruct("Answer", [("Items", GenericAlias(list, rows.structure)), *members], gc=False)
        return _Compiled(rows, parser_of(answer))

    def reader(self, reading: Reading, read: StreamRead) -> Reader:
        """Return the reader of the answer to a `StreamRead`."""

        def reader(body: bytes | bytearray) -> Wire | None:
            if (compiled := self._compiled(reading.slot)) is not None:
                try:
                    page = self._page(compiled, reading, read, body)
                except _UNUSUAL:
                    page = None
                if page is not None:
                    return page
            return self._decoded(reading, read, body)

        return reader

    def _page(self, compiled: _Compiled, reading: Reading, read: StreamRead, body: bytes | bytearray) -> Wire | None:
        """The answer with entities; None if it is unusual, or has items beyond the bounds."""
        answer = compiled.parse(body)
        if answer is None or (reading.slot is not None and any(row.moved is not UNSET for row in answer.Items)):
            # Markers in an index are followed, so their answers are read as they are stored.
            return None
        if reading.fields is not None:
            _complete(answer.Items, reading.slot, Text(cast("Source", read.source).partition))
        found = {name: value for name in _MEMBERS if (value := getattr(answer, name)) is not UNSET}
        last, rows = found.get("LastEvaluatedKey"), answer.Items
        end: Any = None
        if last is not None:
            end = last[reading.sort_attribute]["S"]
        elif rows:
            end = _key_of(rows[-1], reading)[reading.sort_attribute]["S"]
        if (last is not None or rows) and (end is UNSET or not (read.bounds or reading.bounds).contains(end)):
            return None
        items, shown = self._items(compiled.rows, reading, read, rows, body)
        if shown and shown[-1].sk.S is UNSET:
            return None
        at = reading.position(_key_of(shown[-1], reading)) if shown else None
        position = None if last is None else reading.position(last)
        return {**found, "Items": Chunk(items, position, at, _tied(shown, position, reading))}

    def _items(
        self, reader: RowReader, reading: Reading, read: StreamRead, rows: list[Row], body: bytes | bytearray
    ) -> tuple[list[Any], list[Row]]:
        """What is made of the rows that readers may see, and these rows."""
        make, now, stored = reader.make, reading.now, None
        made = [make(row, now) for row in rows]
        if NoneType not in set(map(type, made)):
            return made, rows
        items, shown = [], []
        for number, (row, known) in enumerate(zip(rows, made, strict=True)):
            item = known
            if item is None:
                if _hidden(reading, row):
                    continue
                if stored is None:
                    stored = loads(body)["Items"]
                    reading.complete(stored, read)
                if not reading.visible(stored[number]):
                    continue
                item = self._decode(stored[number])
            items.append(item)
            shown.append(row)
        return items, shown

    def _decoded(self, reading: Reading, read: StreamRead, body: bytes | bytearray) -> Wire | None:
        """The answer with this body, read by the reference codec; None if the body is not an answer."""
        try:
            answer = loads(body)
        except JSONDecodeError:
            return None
        if not isinstance(answer, dict):
            return None
        with suppress(*_UNUSUAL):
            chunk = reading.chunk(answer, read)
            if reading.slot is None:
                answer["Items"] = chunk
                end = reading.position(chunk.rows[-1]) if chunk.rows else None
                answer["Items"] = Chunk([self._decode(row) for row in chunk.rows], chunk.last, end)
        return answer


def _complete(rows: list[Row], slot: str | None, partition: Text) -> None:
    """Give rows the partition key that they were asked for by, as `Reading.complete` gives it to stored items."""
    if slot is None:
        for row in rows:
            row.pk = partition
    else:
        for row in rows:
            row.entry_pk = partition


def _hidden(reading: Reading, row: Row) -> bool:
    """Whether readers may not see a row, because it is a relocation marker, has expired or is of another kind."""
    system: Wire = {} if row.moved is UNSET else {MOVED_TO: row.moved}
    if row.expires is not UNSET and row.expires.N is not UNSET:
        system[EXPIRES_AT] = {"N": row.expires.N}
    if row.kind.S is not UNSET:
        system[TYPE] = {"S": row.kind.S}
    return bool(system) and not reading.visible(system)


def _key_of(row: Row, reading: Reading) -> Wire:
    """The stored key of a row, and that of the entry in the listed index."""
    key: Wire = {PK: {"S": UNSET if row.pk is UNSET else row.pk.S}, SK: {"S": row.sk.S}}
    if reading.slot is not None:
        key |= {index_pk(reading.slot): {"S": row.entry_pk.S}, index_sk(reading.slot): {"S": row.entry_sk.S}}
    return key


def _tied(shown: list[Row], last: Position | None, reading: Reading) -> list[Wire]:
    """The keys of the last rows that are at the sort key of the position after them, in an index."""
    tied: list[Wire] = []
    if last is not None and reading.slot is not None:
        for row in reversed(shown):
            if last.sort != row.entry_sk.S:
                break
            tied.append(_key_of(row, reading))
    return tied[::-1]
