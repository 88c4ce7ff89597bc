"""A declaration, checked and compiled: from an item's fields to its keys and stored attributes, and back."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import cache, cached_property, lru_cache, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from uuid import UUID

from msgspec.structs import replace
from pydantic import ValidationError

from dynashard.codec import encode_value
from dynashard.cures import hint
from dynashard.entity.assignment import FAILURES, Assignment
from dynashard.entity.checks import checked_template, plain_types, sample_problems
from dynashard.entity.declaration import (
    DEFAULT_SEPARATOR,
    Key,
    OutOfLine,
    Shards,
    fresh_id,
    refuse,
    stamp_created,
    stamp_updated,
)
from dynashard.entity.guarantee import WriteGuarantee
from dynashard.entity.item_keys import IndexDefinition, ItemKey, KeyTemplates
from dynashard.entity.judging import system_problem
from dynashard.entity.values import encoded_expiry, stored_expiry
from dynashard.entity.versions import UNVERSIONED, Versions
from dynashard.errors import InvalidKeyError, InvalidValueError
from dynashard.keys import KeyTemplate
from dynashard.model_schema import NESTED, model_schema
from dynashard.placement import CALCULATED
from dynashard.record import Record
from dynashard.schema import EXPIRES_AT, PK, SK

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from dynashard.compiled.writer import ItemWriter
    from dynashard.entity.reference import ReferenceReader
    from dynashard.entity.stored_lists import StoredLists
    from dynashard.entity.tolerance import Tolerance
    from dynashard.entity.uniqueness import UniqueDefinition
    from dynashard.key_time import TimeFormat

T = TypeVar("T", bound=Record)

_WRITTEN_AS_TEXT: Final = frozenset({date, datetime, UUID})
"""Types of key fields that have several texts, of which keys have one."""
PARTITION_RESERVED: Final = frozenset(DEFAULT_SEPARATOR)


class EntityDefinition(KeyTemplates, Generic[T]):
    """A compiled entity.

    Attributes:
        prefix, separator: the first part of its stored partition keys, and the text between the parts.
        shards: the declared shards; None for the unsharded layout.
        rule: the placement of its items; of an unsharded entity, the one that it would be adopted under.
        time: the form of the time that its sort keys begin with, if they are placed by it; None otherwise.
        partition_fields, sort_fields, key_fields: the fields of each template and of both, in order.
        indexes: its indexes by name, read replicas included.
        expires: the field that holds the time of expiry, if any.
        optional: fields whose default is None.
        created_fields, updated_fields, server_fields: the times that the repository sets, and both together.
        generated_fields: the fields that `new_id` fills in.
        complete: the fields that a complete item has set: required ones and attachments.
        attachments: the fields that are stored out of line, with how they were declared.
        guarantee: how writes handle lost answers unless a call says otherwise.
        unique: its declarations of unique fields.
        reserving: the fields that decide what is reserved for an item: a write of others reserves nothing.
        nested: whether a field holds models.
        typed_dicts: whether a field holds TypedDicts, whose values are like any other mapping.
        versions: the version of the declaration, and what upgrades stored items of earlier ones.
        checks: what `add_check` added, by name.
    """

    def __init__(
        self,
        model: type[T],
        name: str,
        key: Key,
        shards: Shards | None,
        expires: str | None,
        *,
        object_kinds: Collection[str],
        versions: Versions = UNVERSIONED,
    ) -> None:
        self.name = name
        self.model = model
        self.prefix = name if key.prefix is None else key.prefix
        self.separator = key.separator
        self.shards = shards
        self.rule = shards.rule if shards else CALCULATED
        self.expires = expires
        self.guarantee = WriteGuarantee.PLAIN
        self.versions = versions
        self.unique: tuple[UniqueDefinition, ...] = ()
        self.reserving: frozenset[str] = frozenset()
        self.partition = checked_template(model, "partition", key.partition, reserved=PARTITION_RESERVED)
        sort = name if key.sort is None else key.sort
        self.sort = checked_template(model, "sort", sort, unpadded=key.unpadded)
        self.partition_fields, self.sort_fields = self.partition.fields, self.sort.fields
        self.time = _time_format(model, self.sort) if self.rule.by_time else None
        self.key_fields = tuple(dict.fromkeys(self.partition_fields + self.sort_fields))
        self.indexes: dict[str, IndexDefinition] = {}
        fields = model.model_fields
        self.created_fields = frozenset(n for n, f in fields.items() if f.default_factory is stamp_created)
        self.updated_fields = frozenset(n for n, f in fields.items() if f.default_factory is stamp_updated)
        self.server_fields = self.created_fields | self.updated_fields
        self.generated_fields = frozenset(n for n, f in fields.items() if f.default_factory is fresh_id)
        self.optional = frozenset(n for n, f in fields.items() if f.default is None)
        factories = (set, frozenset)
        empty = [n for n, f in fields.items() if isinstance(f.default, factories) and not f.default]
        # DynamoDB cannot store empty sets.
        self._empty_sets = frozenset([*empty, *(n for n, f in fields.items() if f.default_factory in factories)])
        self.attachments = {n: m for n, f in fields.items() for m in f.metadata if isinstance(m, OutOfLine)}
        self.complete = frozenset(n for n, f in fields.items() if f.is_required()) | self.attachments.keys()
        self._fields = frozenset(fields)
        self._stored = self._fields - {expires} - self.attachments.keys()
        found = ((n, plain_types(f.annotation) & _WRITTEN_AS_TEXT) for n, f in fields.items())
        self._texts = {name: next(iter(kinds)) for name, kinds in found if len(kinds) == 1}
        self._keyed_by_texts = not self._texts.keys().isdisjoint(self.key_fields)
        self._objects = bool(object_kinds)
        self.nested = not NESTED.isdisjoint(object_kinds)
        self.typed_dicts = "typed-dict" in object_kinds
        self._parts = lru_cache(maxsize=64)(self._part_reader)
        self._documents = lru_cache(maxsize=4)(self._document_reader)
        self._refuse_none: dict[str, bool] = {}
        self.checks: dict[str, Callable[[Mapping[str, Any]], object]] = {}

    @cached_property
    def placing(self) -> Callable[[Mapping[str, Any]], object]:
        """Returns, of an item's fields, those in keys of the table and of indexes that callers give."""
        named = dict.fromkeys([*self.key_fields, *(name for index in self.indexes.values() for name in index.fields)])
        given = [name for name in named if name not in self.server_fields and name != self.expires]
        return itemgetter(*given) if given else tuple

    @cached_property
    def replicas(self) -> tuple[IndexDefinition, ...]:
        """The indexes that are read replicas of the table."""
        return tuple(index for index in self.indexes.values() if index.replica)

    def reserve_characters(self, characters: frozenset[str]) -> None:
        """Refuse these characters in sort key fields from now on: they divide the keys of entities in one partition."""
        self.sort = replace(self.sort, reserved=characters)
        for compiled in ("_compiled", "_compiled_key"):
            self.__dict__.pop(compiled, None)
        refuse(f"sort {problem}" for problem in sample_problems(self.model, self.sort))

    def values_of(self, item: Record) -> Mapping[str, Any]:
        """Return an item's fields, without what cached properties keep beside them."""
        values, fields = item.__dict__, self._fields
        if len(values) == len(fields):
            return values
        return {name: value for name, value in values.items() if name in fields}

    def add_check(self, name: str, check: Callable[[Mapping[str, Any]], object]) -> None:
        """Refuse items that a stream consumer could not follow, before they are written from now on.

        `check` receives an item's fields and raises `InvalidKeyError`. Another one of the same name replaces it.
        """
        self.checks[name] = check

    def key_of(self, values: Mapping[str, Any] | Record) -> ItemKey:
        """Return the key of an item, from the item itself or from a mapping of its key fields.

        Raises `InvalidKeyError` if a field is missing, unknown, or cannot be part of a key.
        """
        if values.__class__ is self.model:
            # The most frequent one first, because to ask whether it is a mapping takes long.
            values = values.__dict__
        elif values.__class__ is dict or isinstance(values, Mapping):
            for name in values:
                if name not in self.key_fields:
                    known = f"{', '.join(self.key_fields)}{hint(name, self.key_fields)}"
                    if any(name in unique.fields for unique in self.unique):
                        known += "; write unique fields by keyword"
                    message = f"{name} is not part of the key of {self.name}, which is {known}"
                    raise InvalidKeyError(message, field=str(name))
            if self._keyed_by_texts:
                values = self.key_values(values)
        else:
            values = values.__dict__
        return self._compiled_key(values) or self._key(values, "sort")

    def entry(self, index: IndexDefinition, values: Mapping[str, Any]) -> ItemKey | None:
        """Return the key in an index of an item with these fields; None if it is left out.

        A time of expiry is stored to the second, so it is in the key as readers get it.
        """
        name = self.expires
        if name in index.fields and name is not None and isinstance(expires := values.get(name), datetime):
            values = {**values, name: stored_expiry(name, expires)}
        return index.entry(values)

    def key_values(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return fields of keys as their types, such as a datetime for its text, which may be written in several ways.

        Raises `InvalidKeyError` for a value that its field does not have, such as a datetime with a time for a date.
        """
        others = {
            name: _typed(name, kind, value)
            for name, kind in self._texts.items()
            if name in values and (value := values[name]).__class__ is not kind
        }
        return {**values, **others} if others else values

    @cached_property
    def writer(self) -> "ItemWriter":
        """The compiled writer of stored items, index keys included; see `dynashard.compiled.writer`."""
        from dynashard.compiled.writer import item_writer  # noqa: PLC0415 - as in `_compiled`

        return item_writer(self, CALCULATED, plain_types)

    @cached_property
    def reads_back(self) -> Callable[[Mapping[str, Any], Mapping[str, Any]], bool | None]:
        """Whether readers will get an item's fields of what is stored of them, under the same keys.

        None if that is not known. Then `decode` shows it.
        """
        from dynashard.compiled.read_back import read_back_check  # noqa: PLC0415 - as in `_compiled`

        return read_back_check(self)

    @cached_property
    def _compiled_key(self) -> Callable[[Mapping[str, Any]], ItemKey | None]:
        from dynashard.compiled.writer import key_writer  # noqa: PLC0415 - as in `_compiled`

        return key_writer(self, partial(tuple.__new__, ItemKey))

    def encode(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the stored attributes of an item's fields, without system attributes except `ExpiresAt`.

        A field that is None, or an empty set, is left out if that is its default.

        Raises:
            InvalidValueError: a value that DynamoDB cannot store exactly, or one of an attachment.
            InvalidKeyError: a check that `add_check` added refuses the item.
        """
        for name in self.attachments:
            if values.get(name) is not None:
                raise InvalidValueError(
                    f"{name} is stored out of line: write it by create, replace, put or update of a collection, "
                    "not as a part of a batch or transaction",
                    field=name,
                )
        if self.checks and values.keys() >= set(self.key_fields):
            for check in self.checks.values():
                check(values)
        stored: dict[str, Any] = {}
        for name, value in values.items():
            if value.__class__ is str and value.isascii():
                stored[name] = {"S": value}
            elif not self.left_out(name, value):
                stored[self._attribute(name)] = self.encode_field(name, value)
        return stored

    def _attribute(self, field: str) -> str:
        return EXPIRES_AT if field == self.expires else field

    def left_out(self, name: str, value: Any) -> bool:
        """Whether a value is not stored, because it is empty and the field's default."""
        if value is None:
            return name in self.optional or self._is_never_none(name)
        return not value and name in self._empty_sets and isinstance(value, set | frozenset)

    def _is_never_none(self, name: str) -> bool:
        """Whether a required field cannot be None: one that is was not stored by another version; see `tolerance`."""
        if name not in self._refuse_none:
            field = self.model.model_fields.get(name)
            self._refuse_none[name] = field is not None and field.is_required() and not self.takes_none(name)
        return self._refuse_none[name]

    def takes_none(self, name: str) -> bool:
        """Whether a field can be None."""
        try:
            self.assignment.check(name, None)
        except FAILURES:
            return False
        return True

    def encode_field(self, name: str, value: Any) -> dict[str, Any]:
        """Return a value as a field stores it; raises `InvalidValueError` if that is not possible exactly."""
        return encoded_expiry(name, value) if name == self.expires else encode_value(value, path=name)

    @cached_property
    def assignment(self) -> Assignment:
        """Checks of single fields; built when first needed."""
        return Assignment(self.model)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The names of the stored attributes of all fields."""
        return self.attributes_of(self.model.model_fields)

    def attributes_of(self, fields: Iterable[str]) -> tuple[str, ...]:
        """Return the names of the stored attributes of some fields."""
        return tuple(map(self._attribute, fields))

    @cached_property
    def reference(self) -> "ReferenceReader[T]":
        """Reads every stored item, attribute by attribute; built when first needed."""
        from dynashard.entity.reference import ReferenceReader  # noqa: PLC0415 - compiled readers read most items

        return ReferenceReader(self)

    def decode_fields(self, wire: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
        """Return some fields of a stored item; raises as `decode`.

        Those that are not stored have their defaults, or None if they have none, or one that a function makes.
        """
        return self.reference.fields(wire, fields)

    def part(self, wire: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
        """Return what `decode_fields` returns of an item that was read with its key and the fields of the key.

        Raises as `decode`; other fields are not looked at, unless some of these follow from them. Then the whole item
        must have been read.
        """
        if (found := self._parts(tuple(fields))(wire)) is not None:
            return found[0]
        return self.reference.part(wire, fields)

    def needs_whole(self, fields: Iterable[str]) -> bool:
        """Return whether these fields are only known if the whole item is read: an upgrade or a validator takes it."""
        return bool(self.versions.upgrades) or not self.following.isdisjoint(fields)

    @cached_property
    def following(self) -> frozenset[str]:
        """The fields that a validator, or a function that makes their default, sees together with those before them."""
        from dynashard.compiled.schemas import asks_for_others  # noqa: PLC0415 - only for reads of some fields

        fields = model_schema(self.model).fields
        return frozenset(name for name, each in fields.items() if asks_for_others(each))

    def decode(self, wire: Mapping[str, Any]) -> T:
        """Return the item from its stored attributes, which include its key.

        Raises `UndecodableItemError` if they do not fit its fields, or its fields contradict its key.
        """
        if (item := self._compiled(wire)) is not None:
            return item
        return self.reference.decode(wire)

    def document(self, wire: Mapping[str, Any], revision: str) -> T | tuple[dict[str, Any]]:
        """Return what is written as JSON of a stored item; raises as `decode`.

        That is a mapping of its fields and its revision, by this name, as the only member of a tuple; or the item, if
        its JSON is more than that.
        """
        return self._documents(revision)(wire) or self.decode(wire)

    @cached_property
    def rewritten(self) -> frozenset[str]:
        """The stored fields whose values may be read as objects of another form than they are stored in."""
        if not self._objects:
            return frozenset()
        from dynashard.compiled.stored_form import rewritten_fields  # noqa: PLC0415 - few items have objects

        return rewritten_fields(self.model) & self._stored

    @cached_property
    def stored_lists(self) -> "StoredLists":
        """The lists of objects that items have as they are stored."""
        from dynashard.entity.stored_lists import stored_lists  # noqa: PLC0415 - only for writes of what was read

        return stored_lists(self.model)

    @cached_property
    def tolerance(self) -> "Tolerance[T]":
        """Reads what only another version declares; built when first needed."""
        from dynashard.entity.tolerance import Tolerance  # noqa: PLC0415 - few items are of another version

        return Tolerance(self.model, self.key_fields)

    @cached_property
    def _compiled(self) -> Callable[[Mapping[str, Any]], T | None]:
        """The compiled reader, which returns None for what only the reference reads; see `dynashard.compiled`."""
        # Generated code is loaded when first needed, which is not when a class is declared.
        from dynashard.compiled.reader import entity_reader  # noqa: PLC0415

        return reader.read if (reader := entity_reader(self)) else _unknown

    def _document_reader(self, revision: str) -> Callable[[Mapping[str, Any]], tuple[dict[str, Any]] | None]:
        from dynashard.compiled.reader import document_reader  # noqa: PLC0415 - as in `_compiled`

        return reader.read if (reader := document_reader(self, revision)) else _unknown

    def _part_reader(self, fields: tuple[str, ...]) -> Callable[[Mapping[str, Any]], tuple[dict[str, Any]] | None]:
        from dynashard.compiled.reader import fields_reader  # noqa: PLC0415 - as in `_compiled`

        return reader.read if (reader := fields_reader(self, fields)) else _unknown

    @property
    def adopts(self) -> bool:
        """Whether it is declared with `adopt`."""
        return self.shards is not None and self.shards.adopt is not None

    @property
    def untyped(self) -> bool:
        """Whether its items may have neither a type nor a revision, by `adopt` or the separator of published keys."""
        return self.adopts or self.separator != DEFAULT_SEPARATOR

    def problem(self, values: Mapping[str, Any], wire: Mapping[str, Any]) -> str | None:
        """Return why a stored item with these fields is not one of the entity; None if it is."""
        expires = self.expires is not None
        return system_problem(self.name, wire, expires=expires) or self.misplaced(values, wire)

    def misplaced(self, values: Mapping[str, Any], wire: Mapping[str, Any]) -> str | None:
        """Return how the fields of a stored item contradict its key; None if they do not."""
        try:
            key = self._key(values, "sort")
        except InvalidKeyError as error:
            return f"its fields form no key: {error}"
        place, sort = wire[PK]["S"], wire[SK]["S"]
        if sort == key.sort and place.startswith(key.partition):
            shard = place[len(key.partition) :]
            if not shard or (shard[0] == self.separator and shard[1:].isdecimal()):
                return None
        return f"its fields belong to the key {key.partition} {key.sort}"


def _time_format(model: type[Record], sort: KeyTemplate) -> "TimeFormat":
    from dynashard.entity.key_times import time_format  # noqa: PLC0415 - few entities are placed by time

    return time_format(model, sort)


def _unknown(_: Mapping[str, Any]) -> None:
    """In place of a compiled reader: it knows nothing."""


def _typed(name: str, kind: type[Any], value: object) -> object:
    """Return a value of a key's field as its type. None and naive times stay, and are refused by the key."""
    try:
        return value if value is None else _adapters()[kind].validate_python(value)
    except ValidationError as error:
        raise InvalidKeyError(f"{name}: {error.errors()[0]['msg']}", field=name) from error


@cache
def _adapters() -> "Mapping[type[Any], TypeAdapter[Any]]":
    from pydantic import TypeAdapter  # noqa: PLC0415 - most keys are plain text, or of their types

    return {kind: TypeAdapter(kind) for kind in _WRITTEN_AS_TEXT}
