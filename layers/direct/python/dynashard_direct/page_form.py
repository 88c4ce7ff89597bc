"""Readers of the answers of a Query, which make entities of an answer's bytes in one pass, without the JSON in between.

Dictionaries of stored attributes take more time to make than entities, and again when the garbage collector looks at
them. Only models whose fields are all plain can do without: such fields are validated alike, whether their values come
from JSON or from Python. What a reader refuses takes the ordinary way, which has the errors.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, NamedTuple

from orjson import JSONDecodeError, loads
from pydantic import ValidationError
from pydantic_core import core_schema

from dynashard.errors import UndecodableItemError
from dynashard.transport.interface import Reader, Wire
from dynashard_direct.stored_form import is_plain, item_schema, validator_of

_MEMBERS: Final = ("LastEvaluatedKey", "ConsumedCapacity", "Count", "ScannedCount")


class Layer(NamedTuple):
    """What is handed in of the layer, whose inner rooms this package does not import.

    Attributes:
        chunk: the class `dynashard.reads.sources.Chunk`.
        record: the module `dynashard.entity.record`.
        schema: the module `dynashard.schema`.
    """

    chunk: Any
    record: Any
    schema: Any


@lru_cache(maxsize=1024)
def entities_of(layer: Layer, entity: Any) -> Callable[[Any, Any], Reader]:
    """Return a `dynashard.reads.sources.Convert` that puts entities in place of stored items, for this definition.

    If an item has an error, stored items are left as they are, so that the error is raised when its turn comes.
    """
    validate = _validator_of_pages(layer, entity)

    def reader_of(reading: Any, read: Any) -> Reader:
        def reader(body: bytes | bytearray) -> Wire | None:
            page = None
            if validate is not None and reading.slot is None:
                with suppress(ValidationError):
                    page = _page(layer, entity, reading, read, validate(body))
            return page or _decoded(layer, entity, reading, read, body)

        return reader

    return reader_of


def _decoded(layer: Layer, entity: Any, reading: Any, read: Any, body: bytes | bytearray) -> Wire | None:
    """The answer with this body, read in the ordinary way; None if the body is not an answer."""
    try:
        answer = loads(body)
    except JSONDecodeError:
        return None
    if not isinstance(answer, dict):
        return None
    chunk = reading.chunk(answer, read)
    with suppress(UndecodableItemError):
        chunk = layer.chunk([entity.decode(row) for row in chunk.rows], chunk.last)
    return {**answer, "Items": chunk}


def _page(layer: Layer, entity: Any, reading: Any, read: Any, answer: Wire) -> Wire | None:
    """The answer that was validated; None if it has items beyond the bounds."""
    record, schema = layer.record, layer.schema
    items, private, system = (answer.pop(name) for name in ("items", "private", "system"))
    last, end = answer.get("LastEvaluatedKey"), answer.pop("end", None)
    if last is not None:
        end = last[schema.SK]["S"]
    if end is not None and not (read.bounds or reading.bounds).contains(end):
        return None
    if max(map(len, system), default=1) > 1 or not all(private) or entity.model.__private_attributes__:
        for item, own, more in zip(items, private, system, strict=True):
            row = {schema.REV: {"S": own[record.REVISION]}, **more} if own else more
            record.with_revision(item, record.revision_in(row))
        items = [item for item, more in zip(items, system, strict=True) if reading.visible(more)]
    else:
        deque(map(record.set_private, items, private), maxlen=0)
    return {**answer, "Items": layer.chunk(items, None if last is None else reading.position(last))}


def _validator_of_pages(layer: Layer, entity: Any) -> Callable[[bytes | bytearray], Any] | None:
    """What validates the bytes of an answer; None if a field is not plain, or others share the partitions."""
    schema, record = layer.schema, layer.record
    stored = [name for name in entity.model.model_fields if name not in entity.attachments]
    found = item_schema(entity.model, dict(zip(stored, entity.attributes_of(stored), strict=True)), _refused)
    if found is None or entity.prefix != entity.name or not is_plain(found):
        return None
    # These are the mappings in which items hold their private attributes.
    revision = core_schema.no_info_after_validator_function(record.Revision, core_schema.str_schema(strict=True))
    private = _mapping({record.REVISION: _member([schema.REV, "S"], revision)})
    # All items must be of this kind, and few have another of these.
    kind = _member([schema.TYPE, "S"], core_schema.literal_schema([entity.name]), required=True)
    names = (schema.PREV, schema.BORN, schema.MOVED_TO, schema.EXPIRES_AT)
    system = _mapping({"kind": kind, **{name: _member(name) for name in names}})
    page = {name: _list(each) for name, each in (("items", found), ("private", private), ("system", system))}
    page["end"] = _member(["Items", -1, schema.SK, "S"], core_schema.str_schema())
    page |= {name: _member(name) for name in _MEMBERS}
    return validator_of(_mapping(page), None, {}).validate_json


def _list(each: core_schema.CoreSchema) -> core_schema.TypedDictField:
    return _member("Items", core_schema.list_schema(each, fail_fast=True), required=True)


def _mapping(members: dict[str, core_schema.TypedDictField]) -> core_schema.CoreSchema:
    return core_schema.typed_dict_schema(members, extra_behavior="ignore")


def _member(
    at: Any, schema: core_schema.CoreSchema | None = None, *, required: bool = False
) -> core_schema.TypedDictField:
    return core_schema.typed_dict_field(schema or core_schema.any_schema(), validation_alias=at, required=required)


def _refused(name: str, attribute: Any) -> Any:
    raise NotImplementedError(f"{name} is not plain: {attribute}")
