"""Readers of the answers of BatchGetItem, which make entities of an answer's bytes, as `page_form` does of Queries."""

from contextlib import suppress
from functools import lru_cache
from types import GenericAlias
from typing import Any

from msgspec import UNSET, UnsetType, defstruct
from orjson import JSONDecodeError, loads

from dynashard.transport.interface import Reader, Wire
from dynashard_direct.row_form import Capacity, parser_of, row_form


@lru_cache(maxsize=1024)
def entities_of(entity: Any, schema: Any, record: Any, place: str) -> Reader | None:
    """Return a reader that puts the key and the entity, under `place`, in place of each stored item of this definition.

    Items that `row_form` does not know are left as they are stored: among them relocation markers, items that expire,
    those with errors and those without a key. The reader is None if a field is not plain.

    `schema` and `record` are the modules `dynashard.schema` and `dynashard.entity.record`.
    """
    form = row_form(entity, schema, record)
    if form is None:
        return None
    rows = GenericAlias(dict, (str, GenericAlias(list, form.row)))
    others = [("UnprocessedKeys", Any, UNSET), ("ConsumedCapacity", list[Capacity] | UnsetType, UNSET)]
    parse, make = parser_of(defstruct("Answer", [("Responses", rows), *others], gc=False)), form.make
    partition, sort = schema.PK, schema.SK

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
                    items.append({partition: {"S": row.pk.S}, sort: {"S": row.sk.S}, place: item})
        return found

    return reader
