"""Readers of the answers of BatchGetItem, which make entities of an answer's bytes, as `page_form` does of Queries."""

from contextlib import suppress
from functools import lru_cache
from types import GenericAlias
from typing import Any

from msgspec import UNSET, UnsetType, defstruct
from orjson import JSONDecodeError, loads

from dynashard.compiled.row_form import Capacity, parser_of, row_form
from dynashard.entity import EntityDefinition
from dynashard.repository.batch import ENTITY
from dynashard.schema import PK, SK
from dynashard.transport.interface import Reader, Wire


@lru_cache(maxsize=1024)
def entities_of(entity: EntityDefinition[Any]) -> Reader | None:
    """Return a reader that puts the key and the entity, under `ENTITY`, in place of each stored item of it.

    Items that `row_form` does not know are left as they are stored: among them relocation markers, items that expire,
    those with errors and those without a key. The reader is None if a field is not plain.
    """
    form = row_form(entity)
    if form is None:
        return None
    rows = GenericAlias(dict, (str, GenericAlias(list, form.row)))
    others = [("UnprocessedKeys", Any, UNSET), ("ConsumedCapacity", list[Capacity] | UnsetType, UNSET)]
    parse, make = parser_of(defstruct("Answer", [("Responses", rows), *others], gc=False)), form.make

    def reader(body: bytes | bytearray) -> Wire | None:
        answer = parse(body)
        with suppress(JSONDecodeError):
            return None if answer is None else read(answer, body)
        return None

    def read(answer: Any, body: bytes | bytearray) -> Wire:
        found: Wire = {"Responses": {}}
        found |= {name: value for name, *_ in others if (value := getattr(answer, name)) is not UNSET}
        stored = None
        for table, rows in answer.Responses.items():
            items = found["Responses"][table] = []
            for number, row in enumerate(rows):
                item = make(row)
                if item is None or row.pk.S is UNSET or row.sk.S is UNSET:
                    stored = stored or loads(body)["Responses"]
                    items.append(stored[table][number])
                else:
                    items.append({PK: {"S": row.pk.S}, SK: {"S": row.sk.S}, ENTITY: item})
        return found

    return reader
