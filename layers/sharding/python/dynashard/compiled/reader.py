"""The compiled reader of stored items: functions that make entities, some of their fields or documents of rows.

A function is generated for each entity and each way to read it. Msgspec finds the attributes; pydantic-core validates
each value by the schema of its field, except texts that the field does not restrict; the fields are rendered as the key
and compared with the stored one, which decides whether the item stands where it belongs. Then the instance is made as
pydantic makes it.

A function returns None for what it does not know: a relocation marker, an adopted item, an attribute of another type, a
value that is refused, an object that a validator made of something else. The reference codec reads those, and has the
errors.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Final

from msgspec import UNSET, Struct, convert
from msgspec import ValidationError as OtherStructureError
from pydantic import BaseModel, ValidationError

from dynashard.compiled.declared import Declared, DeclaredIndex, Templates, Wire, key_fields
from dynashard.compiled.documents import as_text, is_written_as_fields
from dynashard.compiled.fields import ReadField, stamped_alike
from dynashard.compiled.function import Function, formatted
from dynashard.compiled.key_text import KeyField, KeyTexts, UnknownValueError
from dynashard.compiled.rows import Row, structure
from dynashard.compiled.schemas import (
    asks_for_others,
    is_its_fields,
    sees_validated_fields,
)
from dynashard.errors import InvalidKeyError, UndecodableItemError
from dynashard.model_schema import ModelSchema, model_schema
from dynashard.record import REVISION, revision_in, set_private, with_revision
from dynashard.schema import BORN, MAX_PARTITION_KEY_BYTES, MAX_SHARDS, PREV, REV, VERSION

_UNKNOWN: Final = (
    ValidationError, UnknownValueError, UndecodableItemError, InvalidKeyError, ArithmeticError, AttributeError,
    LookupError, OSError, TypeError, ValueError,
)  # fmt: skip
"""Errors of generated functions, for which the reference codec has a better one, or the value after all."""
_SLOTS: Final = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__")
_SURELY_STORABLE: Final = (MAX_PARTITION_KEY_BYTES - len(f":{MAX_SHARDS}")) // 4
"""Characters of a partition key whose bytes need not be counted: each has at most 4."""
_MOST_CHECKED: Final = 1024


class RowReader(Struct, frozen=True):
    """How the stored items of an entity are read in one way.

    Attributes:
        structure: of a stored item.
        make: returns what is made of a row, or None if the reference codec reads it. It takes the row, and the time in
            epoch seconds by which items have expired: of these it makes nothing.
    """

    structure: type[Row]
    make: Callable[[Row, float], Any]

    def read(self, stored: Wire) -> Any:
        """Return what is made of a stored item, expired or not; None if the reference codec reads it."""
        try:
            row = convert(stored, self.structure)
        except (OtherStructureError, RecursionError):
            return None
        return self.make(row, -inf)


def entity_reader(entity: Declared, index: DeclaredIndex | None = None) -> RowReader | None:
    """Return what makes entities of rows, or of the entries of an index; None if a validator must see decoded values.

    Entries that contradict the fields of their items are not known.
    """
    parts = model_schema(entity.model)
    if not all(map(sees_validated_fields, parts.outer)):
        return None
    reader = _Reader(entity, parts, list(parts.fields), index)
    if is_its_fields(entity.model, parts):
        reader.assemble()
    else:
        reader.validate()
    return reader.made()


def fields_reader(entity: Declared, names: Sequence[str], index: DeclaredIndex | None = None) -> RowReader | None:
    """Return what makes mappings of some fields; None if one of them is validated together with others.

    Each mapping is the only member of a tuple, because stored items are mappings as well. The fields of the keys are
    read too, and compared with the keys.
    """
    parts = model_schema(entity.model)
    keys = sorted(key_fields(entity, *([index] if index else [])))
    read = list(dict.fromkeys([*names, *keys]))
    if asks_for_others([[parts.fields[name] for name in read], list(parts.definitions.values())]):
        return None
    # Listings of the table do not ask for the revision.
    reader = _Reader(entity, parts, read, index, judges_revision=index is not None)
    reader.select({name: name for name in names}, whole=False)
    return reader.made()


def document_reader(entity: Declared, revision: str, index: DeclaredIndex | None = None) -> RowReader | None:
    """Return what makes mappings that orjson writes as pydantic writes the entities, or refuses.

    Each mapping is the only member of a tuple, and ends with the item's revision by this name. None if the JSON of an
    entity is more than that of its fields.
    """
    parts = model_schema(entity.model)
    if entity.attachments or revision in parts.fields or not is_written_as_fields(parts):
        return None
    keys = key_fields(entity, *([index] if index else []))
    texts = {name: as_text(each["schema"]) for name, each in parts.fields.items() if name not in keys}
    reader = _Reader(entity, parts, list(parts.fields), index, texts)
    reader.select({**{name: name for name in parts.fields}, revision: None}, whole=True)
    return reader.made()


class _Reader:
    """The structure of the rows of an entity, and the function that reads them.

    `texts` are schemas in place of those of some fields.
    """

    def __init__(
        self,
        entity: Declared,
        parts: ModelSchema,
        names: Iterable[str],
        index: DeclaredIndex | None,
        texts: Mapping[str, Any] | None = None,
        *,
        judges_revision: bool = True,
    ) -> None:
        self._entity, self._index, self._parts = entity, index, parts
        validated = texts or {}
        self._fields = [ReadField(at, name, entity, parts, validated.get(name)) for at, name in enumerate(names)]
        self._alike = stamped_alike(self._fields, entity)
        self._function = Function("row, now", __name__, _UNKNOWN)
        use = self._function.use
        self._function.refuse([f"row.kind.S != {entity.name!r}", f"row.moved is not {use(UNSET)}"])
        stored = entity.versions.stored.get(VERSION, UNSET)
        self._function.refuse([f"row.version {'is not' if stored is UNSET else '!='} {use(stored)}"])
        self._lines = self._function.lines
        self._lines += [
            f"unset = {use(UNSET)}",
            "if row.expires is not unset:",
            "    ends = float(row.expires.N)",
            "    if ends <= now: return None",
        ]
        if judges_revision:
            self._lines += [
                "if row.rev is unset or not (revision := row.rev.S): return None",
                f"if not row.prev is row.born is unset: revision = {use(_later_revision)}(row)",
            ]
        else:
            # It may be among the attributes of an item all the same.
            self._lines.append("if row.rev is not unset and not row.rev.S: return None")

    def made(self) -> RowReader:
        """Return the structure and the function."""
        members = [member for field in self._fields if (member := field.member) is not None]
        slot = None if self._index is None else self._index.slot
        return RowReader(structure(members, slot), self._function.made())

    def assemble(self) -> None:
        """Validate the fields one by one, and make an instance of them as pydantic does."""
        use, model = self._function.use, self._entity.model
        given = _Given(field.name for field in self._fields if field.stored)
        self._lines.append("absent = 0")
        for field in self._fields:
            self._take(field, whole=True, absent=[f"absent |= {given.bit(field.name)}"] if field.stored else [])
            if field.name in self._entity.rewritten:
                differs = f"not {self._has_form()}({field.value}, found)"
                self._lines.append(f"if found is not unset and {differs}: return None")
        # A set of twelve names takes a fourth of an item's memory, so items that have every field share one, because
        # nothing can be added to it. The names of attachments are added when they are read or assigned.
        shared = "" if self._entity.attachments else f" if absent else {use(given[0])}"
        self._lines.append(f"present = {use(given)}[absent].copy(){shared}")
        self._compare({field.name: field.value for field in self._fields})
        self._lines += [
            f"values = {use(_shared_keys(model).copy)}()",
            *(f"values[{field.name!r}] = {field.value}" for field in self._fields),
            f"item = {use(object.__new__)}({use(model)})",
            *(
                f"{use(BaseModel.__dict__[slot].__set__)}(item, {value})"
                for slot, value in zip(_SLOTS, ("values", "present", "None"), strict=True)
            ),
            f"{use(set_private)}(item, {{{REVISION!r}: revision}})",
            "return item",
        ]

    def validate(self) -> None:
        """Let the model validate what is stored, as its validators and private attributes need it."""
        self._lines.append("values = {}")
        for field in self._fields:
            if not field.stored:
                continue
            taken = [*field.take(), f"values[{field.name!r}] = {field.decoded(self._function)}"]
            found = f"if (found := {field.found}) is not unset:"
            refused = ["else: return None"] if field.required else []
            self._lines += [found, *(f"    {line}" for line in taken), *refused]
        validate = self._entity.model.__pydantic_validator__.validate_python
        more = ", extra='ignore'" if self._entity.nested else ""
        self._lines += [f"item = {self._function.use(validate)}(values{more})", "fields = item.__dict__"]
        compared = key_fields(self._entity, *([self._index] if self._index else []))
        for field in self._fields:
            if field.name in self._entity.rewritten:
                read = f"{self._has_form()}(fields[{field.name!r}], None if {field.found} is unset else {field.found})"
                self._lines.append(f"if {field.name!r} in item.__pydantic_fields_set__ and not {read}: return None")
            if field.name in compared:
                self._lines.append(f"{field.value} = fields[{field.name!r}]")
        self._compare({field.name: field.value for field in self._fields if field.name in compared})
        self._lines.append(f"return {self._function.use(with_revision)}(item, revision)")

    def select(self, names: Mapping[str, str | None], *, whole: bool) -> None:
        """Validate the fields one by one, and return a mapping with these names of fields, or of the revision."""
        for field in self._fields:
            self._take(field, whole=whole, absent=[])
        values = {field.name: field.value for field in self._fields}
        self._compare(values, stored=not whole)
        pairs = (f"{name!r}: {'revision' if of is None else values[of]}" for name, of in names.items())
        self._lines.append(f"return ({{{', '.join(pairs)}}},)")

    def _take(self, field: ReadField, *, whole: bool, absent: list[str]) -> None:
        """Add the lines that set the value of a field; `absent` are those for one that is not stored."""
        if not field.stored:
            self._lines.append(field.default(self._function, whole=whole))
            return
        missing = ["return None"] if field.required else [field.default(self._function, whole=whole), *absent]
        present = [*field.take(), *field.validate(self._function, ignoring=self._entity.nested or not whole)]
        if (other := self._alike.get(field.name)) is not None:
            same = f"if found == {other.found}: {field.value} = {other.value}"
            present = [same, "else:", *(f"    {line}" for line in present)]
        self._lines += [
            f"if (found := {field.found}) is unset:",
            *(f"    {line}" for line in missing),
            "else:",
            *(f"    {line}" for line in present),
        ]

    def _has_form(self) -> str:
        """Return the name of the function that says whether a value has the form in which it is stored."""
        from dynashard.compiled.stored_form import has_stored_form  # noqa: PLC0415 - few items have objects

        return self._function.use(partial(has_stored_form, typed_dicts=self._entity.typed_dicts))

    def _compare(self, values: Mapping[str, str], *, stored: bool = False) -> None:
        """Add the lines that compare the keys of the fields, which have these values, with the stored ones.

        If a row is surely `stored`, it has a key; what was just written has none yet.
        """
        keys = key_fields(self._entity, *([self._index] if self._index else []))
        found: dict[str, KeyField] = {}
        lines: list[str] = []
        for field in self._fields:
            if field.name in keys:
                found[field.name], checks = field.in_keys(self._function)
                lines += checks
        texts = KeyTexts(self._function, found, "keyed")
        lines += self._at(texts, found, self._entity, "row.pk.S", "row.sk.S")
        if self._index is not None and not self._index.replica:
            lines += self._at(texts, found, self._index, "row.entry_pk.S", "row.entry_sk.S")
        if texts.rendered:
            keyed = ", ".join(f"{name!r}: {values[name]}" for name in sorted(texts.rendered))
            lines.insert(0, f"keyed = {{{keyed}}}")
        if stored or self._index is not None:
            self._lines += ["if row.pk is unset: return None", *lines]
        else:
            self._lines += ["if row.pk is not unset:", *(f"    {line}" for line in lines)]

    def _at(self, texts: KeyTexts, fields: Mapping[str, KeyField], key: Templates, place: str, sort: str) -> list[str]:
        """Return the lines that compare a rendered key with the stored one, which these expressions have."""
        text, of_sort = texts.text(key.sort)
        partition, of_partition = texts.logical_partition(key)
        checks = [
            *of_partition,
            f"if not place.startswith(partition := {formatted(partition)}): return None",
            "shard = place[len(partition):]",
            f"if shard and (shard[0] != {key.separator!r} or not shard[1:].isdecimal()): return None",
            f"if len(place) > {_SURELY_STORABLE}: return None",
        ]
        if texts.rendered.isdisjoint(key.partition.fields):
            # Most items of an answer have one partition, and this takes a fourth of the time.
            known = self._function.use(_Checked())
            fields_of_it = [fields[name].text for name in key.partition.fields]
            others = "".join(f" or {text} != last[{n}]" for n, text in enumerate(fields_of_it, 1))
            checks = [
                f"last = {known}.last",
                f"if place != last[0]{others}:",
                f"    checked = (place, {''.join(f'{text}, ' for text in fields_of_it)})",
                f"    if checked not in {known}:",
                *(f"        {line}" for line in checks),
                f"        {known}.note(checked)",
                f"    {known}.last = checked",
            ]
        return [*of_sort, f"if {sort} != {formatted(text)}: return None", f"place = {place}", *checks]


class _Checked(set[tuple[str, ...]]):
    """Stored partition keys with the texts of the fields in them, which were found to agree; and the last of them.

    To compare a text with another takes less time than its hash.
    """

    last: tuple[str | None, ...] = (None,)

    def note(self, checked: tuple[str, ...]) -> None:
        """Remember one more, and forget the others if they are many."""
        if len(self) >= _MOST_CHECKED:
            self.clear()
        self.add(checked)


class _Given(dict[int, set[str]]):
    """The names of the fields that an item has, by those that it lacks: a bit for each, in the order of the fields."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__()
        self._names = tuple(names)

    def bit(self, name: str) -> int:
        """Return the bit that says that a field is not stored."""
        return 1 << self._names.index(name)

    def __missing__(self, absent: int) -> set[str]:
        self[absent] = {name for number, name in enumerate(self._names) if not absent >> number & 1}
        return self[absent]


def _later_revision(row: Row) -> str:
    stored = {REV: row.rev, PREV: row.prev, BORN: row.born}
    return revision_in({
        name: {} if text.S is UNSET else {"S": text.S} for name, text in stored.items() if text is not UNSET
    })  # fmt: skip


def _shared_keys(model: type[BaseModel]) -> dict[str, Any]:
    """Return a dictionary of the model's fields whose copies share its keys, so they take a third of the memory."""
    item = object.__new__(model)
    for name in model.model_fields:
        object.__setattr__(item, name, None)
    return item.__dict__
