"""Readers of the answers of BatchGetItem, which make entities of bytes, as `reads.answers` does of those of Queries."""

from contextlib import suppress
from functools import lru_cache
from math import inf
from types import GenericAlias
from typing import Any

from msgspec import UNSET, UnsetType, defstruct
from orjson import JSONDecodeError, loads

from dynashard.compiled.reader import entity_reader
from dynashard.compiled.rows import Capacity, parser_of
from dynashard.entity import EntityDefinition
from dynashard.repository.projection import ENTITY
from dynashard.schema import EXPIRES_AT, PK, SK
from dynashard.transport.interface import Reader, Wire


@lru_cache(maxsize=1024)
def entities_of(entity: EntityDefinition[Any]) -> Reader | None:
    """Return a reader that puts the key, the time of expiry and the entity in place of each stored item of it.

    The entity is under `ENTITY`. Items that the compiled reader does not know are left as they are stored: among them
    relocation markers, those with errors and those without a key. The reader is None if there is no compiled one.
    """
    rows = entity_reader(entity)
    if rows is None:
        return None
    tables = GenericAlias(dict, (str, GenericAlias(list, rows.structure)))
    others = [("UnprocessedKeys", Any, UNSET), ("ConsumedCapacity", list[Capacity] | UnsetType, UNSET)]
    parse, make = parser_of(defstruct("Answer", [("Responses", tables), *others], gc=False)), rows.make

    def reader(body: bytes | bytearray) -> Wire | None:
        answer = parse(body)
        with suppress(JSONDecodeError):
            return None if answer is None else read(answer, body)
        return None

    def read(answer: Any, body: bytes | bytearray) -> Wire:
        found: Wire = {"Responses": {}}
        found |= {name: value for name, *_ in others if (value := getattr(answer, name)) is not UNSET}
        stored = None
        for table, items in answer.Responses.items():
            made = found["Responses"][table] = []
            for number, row in enumerate(items):
                item = make(row, -inf)
                if item is None or row.pk is UNSET:
                    stored = stored or loads(body)["Responses"]
                    made.append(stored[table][number])
                    continue
                known: Wire = {PK: {"S": row.pk.S}, SK: {"S": row.sk.S}, ENTITY: item}
                if row.expires is not UNSET:
                    known[EXPIRES_AT] = {"N": row.expires.N}
                made.append(known)
        return found

    return reader
