"""The compiled writer: functions that make an item's key, and its stored attributes with all index keys.

The codec finds out the type of every value, and walks through the parts of every key template, for each item again.
Both are known from the declaration, so a generated function only checks that the values are as declared. It returns
exactly what the codec and the key templates make of the same values, or None if it does not know: for a value that is
refused or unusual, and for a large item. Then the layer makes it step by step, which has the errors.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from enum import Enum
from types import NoneType
from typing import Any, Final, Protocol, TypeVar

import orjson
from msgspec import Struct

from dynashard.codec import encode_value
from dynashard.compiled.declared import Declared, DeclaredIndex, Templates
from dynashard.compiled.function import Function, escaped, formatted, refusal
from dynashard.compiled.key_text import KeyField, KeyTexts, UnknownValueError, expiry_text, time_text
from dynashard.errors import InvalidKeyError, InvalidValueError
from dynashard.placement import Placement
from dynashard.schema import (
    EXPIRES_AT,
    MAX_ITEM_BYTES,
    MAX_PARTITION_KEY_BYTES,
    MAX_SHARDS,
    MAX_SORT_KEY_BYTES,
    REV,
    TYPE,
    index_pk,
    index_sk,
)

MOST_BYTES: Final = MAX_ITEM_BYTES - 4096
"""Of an item without its stored key, as JSON, which is never shorter than the item's size."""
_JSON_BYTES: Final = 6
"""Of an ASCII character as JSON, at most: `\\u0000`."""
_LONGEST_OTHER: Final = 60
"""Bytes, at least, of an attribute as JSON besides its name, if it is a number, a time or a bool."""
_MOST_PARTITION_BYTES: Final = MAX_PARTITION_KEY_BYTES - len(f":{MAX_SHARDS}")
_TAGS: Final = {str: "S", int: "N", datetime: "S", bool: "BOOL"}
"""How values of these classes, but not of their subclasses, are stored."""
_UNKNOWN: Final = (
    UnknownValueError, InvalidKeyError, InvalidValueError, AttributeError, KeyError, UnicodeEncodeError,
    orjson.JSONEncodeError,
)  # fmt: skip
"""Errors of generated functions, for which the layer has a better one."""

K = TypeVar("K")


class Counts(Protocol):
    """The shard counts of indexes by name, 0 for the unsharded layout."""

    def __getitem__(self, name: str, /) -> int:
        """Return the count of an index."""
        ...


ItemWriter = Callable[[Mapping[str, Any], tuple[str, str], datetime, datetime, str, Counts], dict[str, Any] | None]
"""Makes a stored item, without its stored key; None if it does not know.

Takes an item's fields and key, the times of the write and of the item's creation, the new revision, and the counts.
"""


def key_writer(entity: Declared, make: Callable[[tuple[str, str]], K]) -> Callable[[Mapping[str, Any]], K | None]:
    """Return a function from a mapping with the fields of an item's key to that key, or to None.

    `make` returns a key from its logical partition and its sort key.
    """
    source = _Source(Function("values", __name__, _UNKNOWN), whole=False)
    for name in entity.key_fields:
        source.take(name, frozenset({str}) if entity.model.model_fields[name].annotation is str else frozenset())
    partition, sort = source.key(entity, source.lines)
    source.lines.append(f"return {source.function.use(make)}(({partition}, {sort}))")
    return source.function.made()


def item_writer(entity: Declared, rule: Placement, classes_of: Callable[[Any], frozenset[type]]) -> ItemWriter:
    """Return the function that makes stored items of an entity.

    `rule` is the placement of index entries; `classes_of` returns the classes that an annotation allows, or none if it
    is not plain.
    """
    source = _Source(Function("values, key, stamp, created, revision, counts", __name__, _UNKNOWN), whole=True)
    use = source.function.use
    stamps = dict.fromkeys(entity.updated_fields, "stamp") | dict.fromkeys(entity.created_fields, "created")
    # Every field is looked up below but those that get a time, so as many values as fields are the fields.
    missing = "".join(f" or {name!r} not in values" for name in stamps)
    source.lines.append(f"if len(values) != {len(entity.model.model_fields)}{missing}: return None")
    if stamps:
        source.lines.append(f"stamped = {use(_LastTime().text)}(stamp)")
    for name, field in entity.model.model_fields.items():
        classes = frozenset() if name in entity.attachments else classes_of(field.annotation)
        source.take(name, classes, stamps.get(name), expires=name == entity.expires)
    if entity.expires is not None and any(entity.expires in index.fields for index in entity.indexes.values()):
        expires = source.fields[entity.expires].value
        # It is stored to the second, and keys have it as it is stored.
        source.lines.append(f"if {expires} is not None and {expires}.microsecond: return None")
    always = {TYPE: use({"S": entity.name}), REV: "{'S': revision}"}
    always |= {name: repr(stored) for name, stored in entity.versions.stored.items()}
    later: list[str] = []
    if any(index.shards and index.by_item_key for index in entity.indexes.values()):
        source.lines.append(f"hashed = {source.hashed(rule, '{key[0]}', '{key[1]}')}")
    for index in entity.indexes.values():
        unset = [
            f"{source.fields[name].value} is None" for name in sorted(index.fields) if source.fields[name].optional
        ]
        lines: list[str] = [] if unset else source.lines
        key = source.key(index, lines)
        shard = f"{{'S': {source.shard(index, rule, key, lines)}}}"
        entry = {index_pk(index.slot): shard, index_sk(index.slot): source.shared(key[1])}
        if unset:
            lines += [f"wire[{name!r}] = {stored}" for name, stored in entry.items()]
            later += [f"if not ({' or '.join(unset)}):", *(f"    {line}" for line in lines)]
        else:
            always |= entry
    later += _attributes(entity, source, always)
    source.lines.append(f"wire = {{{', '.join(f'{name!r}: {stored}' for name, stored in always.items())}}}")
    source.lines += later
    fields = ", ".join(["**values", *(f"{name!r}: {stamp}" for name, stamp in stamps.items())])
    source.lines.append(f"for check in {use(entity.checks)}.values(): check({{{fields}}})")
    source.lines.append(f"return wire if {_fits(entity, source)} else None")
    if not stamps.keys().isdisjoint(source.texts.rendered):
        source.lines.insert(0, f"values = {{{fields}}}")
    return source.function.made()


def _fits(entity: Declared, source: "_Source") -> str:
    """Return the condition that an item fits: by the lengths of its texts, or else by all of it as JSON.

    The lengths take a tenth of the time. They suffice for ASCII, of which JSON has at most six bytes a character.
    """
    exact = f"len({source.function.use(orjson.dumps)}(wire)) <= {MOST_BYTES}"
    fields = source.fields.values()
    if not all(field.tag for field in fields):
        return exact
    texts = [f"{field.value} or ''" for field in fields if field.tag == "S" and field.text == field.value]
    others = sum(len(orjson.dumps(name)) + _LONGEST_OTHER for name in (*source.fields, entity.name, TYPE, REV))
    keys = 2 * _LONGEST_OTHER + MAX_PARTITION_KEY_BYTES + MAX_SORT_KEY_BYTES
    most = (MOST_BYTES - others) // _JSON_BYTES - keys * len(entity.indexes)
    joined = f"{source.function.use(''.join)}(({', '.join(['revision', *texts])}))"
    return f"(texts := {joined}).isascii() and len(texts) <= {most} or {exact}"


def _attributes(entity: Declared, source: "_Source", always: dict[str, str]) -> Iterable[str]:
    """Add the attributes of the fields that are always set; return the lines that set the others."""
    use = source.function.use
    for name, field in source.fields.items():
        expires = name == entity.expires
        stored = EXPIRES_AT if expires else name
        if field.tag and not field.optional:
            always[stored] = source.known.get(field.text, f"{{{field.tag!r}: {field.text}}}")
        elif field.tag:
            yield f"if {field.value} is not None: wire[{stored!r}] = {{{field.tag!r}: {field.text}}}"
            if name not in entity.optional:
                yield "else: return None" if expires else f"else: wire[{name!r}] = {{'NULL': True}}"
        elif name in entity.attachments:
            yield f"if {field.value} is not None: return None"
        else:
            if expires:
                yield f"if {field.value} is not None and {field.value}.__class__ is not {use(datetime)}: return None"
            encoded = f"{use(entity.encode_field)}({name!r}, {field.value})"
            yield f"if not {use(entity.left_out)}({name!r}, {field.value}): wire[{stored!r}] = {encoded}"


class _Field(Struct, frozen=True):
    """A field in a generated function.

    Attributes:
        value: the variable with its value.
        text: the variable with what is stored, which is the text in keys unless it is a bool.
        tag: of what is stored; empty if only the codec knows how.
        optional: whether it may be None.
    """

    value: str
    text: str
    tag: str
    optional: bool


class _Source:
    """The lines of a function that takes the fields of an item, or with `whole` False only those of its key.

    `known` are the variables with attributes that an item has twice, by the variables with their texts.
    """

    def __init__(self, function: Function, *, whole: bool) -> None:
        self.function, self.lines = function, function.lines
        self.fields: dict[str, _Field] = {}
        self._in_keys: dict[str, KeyField] = {}
        self.texts = KeyTexts(function, self._in_keys)
        self.known: dict[str, str] = {}
        self._whole = whole
        self._bound = 0

    def take(self, name: str, classes: frozenset[type], given: str | None = None, *, expires: bool = False) -> None:
        """Take a field's value, or the argument `given` for it, and check that it is of one of these classes.

        A time by which an item `expires` is stored as a number, and is another text in keys.
        """
        number = len(self.fields)
        kinds = classes - {NoneType}
        kind = next(iter(kinds)) if len(kinds) == 1 else NoneType
        chosen = _is_choice_of_texts(kind)
        tag, optional = "S" if chosen else _TAGS.get(kind, ""), not classes or NoneType in classes
        if expires:
            tag = "N" if kind is datetime else ""
        value = f"value{number}"
        text = f"text{number}" if chosen or kind in (int, datetime) else value
        self.fields[name] = _Field(value, text, tag, optional)
        in_keys = tag in ("S", "N") and not expires
        self._in_keys[name] = KeyField(text if in_keys else "", value if kind is int and in_keys else "")
        self.lines.append(f"{value} = {given or f'values[{name!r}]'}")
        if not tag:
            return
        checks = [f"if {value}.__class__ is not {self.function.use(kind)}: return None"]
        if chosen:
            checks.append(f"{text} = {value}._value_")
        elif kind is int:
            # Longer ones are not stored as Python writes them.
            checks += [f"if not -{10**38} < {value} < {10**38}: return None", f"{text} = repr({value})"]
        elif expires:
            checks = [f"{text} = {self.function.use(expiry_text)}({value})"]
        elif kind is datetime:
            known = f"stamped if {value} is stamp else " if given else ""
            checks = [f"{text} = {known}{self.function.use(time_text)}({value})"]
        if optional:
            checks = [f"if {value} is not None:", *(f"    {check}" for check in checks)]
        self.lines += checks

    def key(self, templates: Templates, lines: list[str]) -> tuple[str, str]:
        """Return the variables with the two parts of a key; add the lines that make and check them."""
        text, checks = self.texts.text(templates.sort)
        self._add(checks, lines)
        sort = self._bind(text, MAX_SORT_KEY_BYTES, lines)
        text, checks = self.texts.logical_partition(templates)
        self._add(checks, lines)
        return self._bind(text, _MOST_PARTITION_BYTES, lines), sort

    def shared(self, text: str) -> str:
        """Return the expression for the attribute with a text; if that is a field's own, `known` has it for both."""
        if any(field.text == text and field.tag == "S" and not field.optional for field in self.fields.values()):
            if text not in self.known:
                self.known[text] = f"stored_{text}"
                self.lines.append(f"stored_{text} = {{'S': {text}}}")
            return self.known[text]
        return f"{{'S': {text}}}"

    def hashed(self, rule: Placement, partition: str, sort: str) -> str:
        """Return the expression for the hash of a key."""
        return f'{self.function.use(rule.hash)}(f"{partition}{escaped(rule.joiner)}{sort}")'

    def shard(self, index: DeclaredIndex, rule: Placement, entry: tuple[str, str], lines: list[str]) -> str:
        """Return the expression for the stored partition key of an index entry; add a line for its own hash."""
        partition, sort = entry
        if not index.shards:
            return partition
        # This is `routing.index_home` and `Placement.shard` as text: a call for each index takes 5% of a batch write.
        hashed = "hashed"
        if not index.by_item_key:
            hashed = f"hashed{index.slot}"
            lines.append(f"{hashed} = {self.hashed(rule, f'{{{partition}}}', f'{{{sort}}}')}")
        count = f"count{index.slot}"
        shard = (
            f"{hashed} & ({count} - 1)" if rule.powers_of_two else f"{self.function.use(rule.shard)}({hashed}, {count})"
        )
        number = f"{{{shard}}}"
        sharded = f'f"{{{partition}}}{escaped(index.separator)}{number}"'
        return f"({sharded} if ({count} := counts[{index.name!r}]) else {partition})"

    def _bind(self, text: str, most: int, lines: list[str]) -> str:
        """Return the variable of a text, which is the inside of an f-string, after checking its bytes."""
        name = formatted(text)
        if not name.isidentifier():
            name = f"key{self._bound}"
            self._bound += 1
            lines.append(f"{name} = {formatted(text)}")
        problem = f"len({name} if {name}.isascii() else {name}.encode()) > {most}"
        # No character has more than 4 bytes; halves of surrogate pairs are found when the item is written as JSON.
        self._add(refusal([f"len({name}) > {most // 4} and {problem}" if self._whole else problem]), lines)
        return name

    def _add(self, checks: Iterable[str], lines: list[str]) -> None:
        """Add checks that the function does not make already."""
        lines += [check for check in checks if check not in self.lines]


def _is_choice_of_texts(kind: type) -> bool:
    """Whether a class is an enumeration whose members are stored as their values, which are texts."""
    return issubclass(kind, Enum) and all(
        type(each.value) is str and encode_value(each) == {"S": each.value} for each in kind
    )


class _LastTime:
    """The text of a time, kept until it is asked for another one: all items of a batch are written at one time."""

    def __init__(self) -> None:
        # Replaced as a whole, so threads need no lock.
        self._last: tuple[object, str] = (None, "")

    def text(self, value: Any) -> str:
        """Return what `time_text` returns."""
        last, text = self._last
        if last is not value:
            text = time_text(value)
            self._last = (value, text)
        return text
