"""Functions that make an item's key, and its stored attributes with all index keys, generated once for each entity.

The layer's codec finds out the type of every value, and walks through the parts of every key template, for each item
again. Both are known from the declaration, so a generated function only checks that the values are as declared. It
returns exactly what the layer makes of the same values, or None if it does not know: for a value that is refused or
unusual, and for a large item. Then the layer makes it step by step, which has the errors.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from types import NoneType
from typing import Any, Final, NamedTuple

import orjson

from dynashard.errors import InvalidKeyError, InvalidValueError
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

Former = Callable[..., Any]


class _UnknownFormError(Exception):
    """A generated function does not know how the value is stored."""


def key_former(entity: Any, make: Callable[[tuple[str, str]], Any]) -> Former:
    """Return a function from a mapping with the fields of an item's key to that key, or to None.

    `make` returns a key from its logical partition and its sort key.
    """
    source = _Source(whole=False)
    for name in entity.key_fields:
        source.take(name, frozenset({str}) if entity.model.model_fields[name].annotation is str else frozenset())
    partition, sort = source.key(entity, source.lines)
    source.lines.append(f"return {source.use(make)}(({partition}, {sort}))")
    return source.function("values")


def item_former(entity: Any, rule: Any, classes_of: Callable[[Any], frozenset[type]]) -> Former:
    """Return a function that makes a stored item, without its stored key, or None.

    Its arguments are the fields of an item, the item's key, the times of the write and of the item's creation, the
    new revision, and the shard counts of indexes by name, 0 for the unsharded layout. `rule` is their placement;
    `classes_of` returns the classes that an annotation allows, or none if it is not plain.
    """
    source = _Source(whole=True)
    stamps = dict.fromkeys(entity.updated_fields, "stamp") | dict.fromkeys(entity.created_fields, "created")
    source.lines.append(f"if len(values) != {len(entity.model.model_fields)}: return None")
    if stamps:
        source.lines.append(f"stamped = {source.use(_LastTime().text)}(stamp)")
    for name, field in entity.model.model_fields.items():
        plain = name != entity.expires and name not in entity.attachments
        source.take(name, classes_of(field.annotation) if plain else frozenset(), stamps.get(name))
    always = {TYPE: f"{{'S': {entity.name!r}}}", REV: "{'S': revision}"}
    later: list[str] = []
    if any(index.shards and index.by_item_key for index in entity.indexes.values()):
        source.lines.append(f"hashed = {source.hashed(rule, '{key[0]}', '{key[1]}')}")
    for index in entity.indexes.values():
        unset = [
            f"{source.fields[name].value} is None" for name in sorted(index.fields) if source.fields[name].optional
        ]
        lines: list[str] = [] if unset else source.lines
        key = source.key(index, lines)
        entry = {index_pk(index.slot): source.shard(index, rule, key, lines), index_sk(index.slot): key[1]}
        if unset:
            lines += [f"wire[{name!r}] = {{'S': {text}}}" for name, text in entry.items()]
            later += [f"if not ({' or '.join(unset)}):", *(f"    {line}" for line in lines)]
        else:
            always |= {name: f"{{'S': {text}}}" for name, text in entry.items()}
    later += _attributes(entity, source, always)
    source.lines.append(f"wire = {{{', '.join(f'{name!r}: {stored}' for name, stored in always.items())}}}")
    source.lines += later
    fields = ", ".join(["**values", *(f"{name!r}: {stamp}" for name, stamp in stamps.items())])
    source.lines.append(f"for check in {source.use(entity.checks)}.values(): check({{{fields}}})")
    source.lines.append(f"return wire if {_fits(entity, source)} else None")
    if not stamps.keys().isdisjoint(source.rendered):
        source.lines.insert(0, f"values = {{{fields}}}")
    return source.function("values, key, stamp, created, revision, counts")


def _fits(entity: Any, source: "_Source") -> str:
    """Return the condition that an item fits: by the lengths of its texts, or else by all of it as JSON.

    The lengths take a tenth of the time. They suffice for ASCII, of which JSON has at most six bytes a character.
    """
    exact = f"len({source.use(orjson.dumps)}(wire)) <= {MOST_BYTES}"
    fields = source.fields.values()
    if not all(field.tag for field in fields):
        return exact
    texts = [f"{field.value} or ''" for field in fields if field.tag == "S" and field.text == field.value]
    others = sum(len(orjson.dumps(name)) + _LONGEST_OTHER for name in (*source.fields, entity.name, TYPE, REV))
    keys = 2 * _LONGEST_OTHER + MAX_PARTITION_KEY_BYTES + MAX_SORT_KEY_BYTES
    most = (MOST_BYTES - others) // _JSON_BYTES - keys * len(entity.indexes)
    joined = f"{source.use(''.join)}(({', '.join(['revision', *texts])}))"
    return f"(texts := {joined}).isascii() and len(texts) <= {most} or {exact}"


def _attributes(entity: Any, source: "_Source", always: dict[str, str]) -> Iterable[str]:
    """Add the attributes of the fields that are always set; return the lines that set the others."""
    for name, field in source.fields.items():
        if field.tag and not field.optional:
            always[name] = f"{{{field.tag!r}: {field.text}}}"
        elif field.tag:
            yield f"if {field.value} is not None: wire[{name!r}] = {{{field.tag!r}: {field.text}}}"
            if name not in entity.optional:
                yield f"else: wire[{name!r}] = {{'NULL': True}}"
        elif name in entity.attachments:
            yield f"if {field.value} is not None: return None"
        else:
            stored = name
            if name == entity.expires:
                stored = EXPIRES_AT
                yield f"if {field.value} is not None and {field.value}.__class__ is not datetime: return None"
            encoded = f"{source.use(entity.encode_field)}({name!r}, {field.value})"
            yield f"if not {source.use(entity.left_out)}({name!r}, {field.value}): wire[{stored!r}] = {encoded}"


class _Field(NamedTuple):
    """A field in a generated function.

    Attributes:
        value: the variable with its value.
        text: the variable with what is stored, which is the text in keys unless it is a bool.
        tag: of what is stored; empty if only the layer knows how.
        optional: whether it may be None.
    """

    value: str
    text: str
    tag: str
    optional: bool


class _Source:
    """The lines of a function, which return None for what they do not know, and the objects that they use."""

    def __init__(self, *, whole: bool) -> None:
        self.lines: list[str] = []
        self.fields: dict[str, _Field] = {}
        self.rendered: set[str] = set()
        """The fields whose texts in keys the layer makes."""
        self._whole = whole
        """Whether the function makes a whole item, and not only its key."""
        self._used: dict[str, Any] = {}
        self._bound: dict[str, str] = {}

    def use(self, thing: Any) -> str:
        """Return the name under which the function finds an object."""
        name = next((known for known, each in self._used.items() if each == thing), f"used{len(self._used)}")
        self._used[name] = thing
        return name

    def take(self, name: str, classes: frozenset[type], given: str | None = None) -> None:
        """Take a field's value, or the argument `given` for it, and check that it is of one of these classes."""
        number = len(self.fields)
        kinds = classes - {NoneType}
        kind = next(iter(kinds)) if len(kinds) == 1 else NoneType
        value, tag, optional = f"value{number}", _TAGS.get(kind, ""), not classes or NoneType in classes
        text = f"text{number}" if kind in (int, datetime) else value
        self.fields[name] = _Field(value, text, tag, optional)
        self.lines.append(f"{value} = values[{name!r}]")
        if given:
            self.lines.append(f"{value} = {given}")
        if not tag:
            return
        checks = [f"if {value}.__class__ is not {kind.__name__}: return None"]
        if kind is int:
            # Longer ones are not stored as Python writes them.
            checks += [f"if not -{10**38} < {value} < {10**38}: return None", f"{text} = repr({value})"]
        elif kind is datetime:
            known = f"stamped if {value} is stamp else " if given else ""
            checks = [f"{text} = {known}{self.use(_time_text)}({value})"]
        if optional:
            checks = [f"if {value} is not None:", *(f"    {check}" for check in checks)]
        self.lines += checks

    def key(self, templates: Any, lines: list[str]) -> tuple[str, str]:
        """Return the variables with the two parts of a key; add the lines that make and check them."""
        sort = self._bind(self._text(templates.sort, lines), MAX_SORT_KEY_BYTES, lines)
        before = _escaped(f"{templates.prefix}{templates.separator}") if templates.prefix else ""
        return self._bind(before + self._text(templates.partition, lines), _MOST_PARTITION_BYTES, lines), sort

    def hashed(self, rule: Any, partition: str, sort: str) -> str:
        """Return the expression for the hash of a key."""
        return f'{self.use(rule.hash)}(f"{partition}{_escaped(rule.joiner)}{sort}")'

    def shard(self, index: Any, rule: Any, entry: tuple[str, str], lines: list[str]) -> str:
        """Return the expression for the stored partition key of an index entry; add a line for its own hash."""
        partition, sort = entry
        if not index.shards:
            return partition
        hashed = "hashed"
        if not index.by_item_key:
            hashed = f"hashed{index.slot}"
            lines.append(f"{hashed} = {self.hashed(rule, f'{{{partition}}}', f'{{{sort}}}')}")
        count = f"count{index.slot}"
        number = f"{{{self.use(rule.shard)}({hashed}, {count})}}"
        sharded = f'f"{{{partition}}}{_escaped(index.separator)}{number}"'
        return f"({sharded} if ({count} := counts[{index.name!r}]) else {partition})"

    def _text(self, template: Any, lines: list[str]) -> str:
        """Return the inside of an f-string that renders a template; add the lines that check its fields."""
        return "".join(
            _escaped(part) if isinstance(part, str) else f"{{{self._part(template, part, lines)}}}"
            for part in template.parts
        )

    def _part(self, template: Any, part: Any, lines: list[str]) -> str:
        field = self.fields[part.name]
        # What ends a field is one character, or the layer looks for it.
        excluded = {*template.reserved, part.after, part.before} - {""}
        if not field.tag or field.tag == "BOOL" or part.spec or max(map(len, excluded), default=1) > 1:
            self.rendered.add(part.name)
            return f"{self.use(partial(template.field_text, part))}(values)"
        problems = [f"not {field.text}", *(f"{each!r} in {field.text}" for each in sorted(excluded))]
        self._check(" or ".join(problems), lines)
        return field.text

    def _bind(self, text: str, most: int, lines: list[str]) -> str:
        """Return the variable of a text, which is the inside of an f-string, after checking its bytes."""
        name = text[1:-1]
        if text != f"{{{name}}}" or not name.isidentifier():
            name = f"key{len(self._bound)}"
            lines.append(f'{name} = f"{text}"')
        self._bound[name] = text
        problem = f"len({name} if {name}.isascii() else {name}.encode()) > {most}"
        # No character has more than 4 bytes; halves of surrogate pairs are found when the item is written as JSON.
        self._check(f"len({name}) > {most // 4} and {problem}" if self._whole else problem, lines)
        return name

    def _check(self, problem: str, lines: list[str]) -> None:
        line = f"if {problem}: return None"
        if line not in self.lines:
            lines.append(line)

    def function(self, arguments: str) -> Former:
        """Return the function."""
        body = "\n".join(f"        {line}" for line in self.lines)
        text = f"def former({arguments}):\n    try:\n{body}\n    except unknown:\n        return None\n"
        names = {**self._used, "datetime": datetime, "unknown": _UNKNOWN}
        exec(compile(text, "<generated by dynashard.compiled.written_form>", "exec"), names)  # noqa: S102 - our own text
        former: Former = names["former"]
        return former


_UNKNOWN: Final = (
    _UnknownFormError, InvalidKeyError, InvalidValueError, KeyError, UnicodeEncodeError, orjson.JSONEncodeError,
)  # fmt: skip
"""Errors of generated functions, for which the layer has a better one."""


def _time_text(value: Any) -> str:
    """Return the text of a time in UTC as it is stored; raises `_UnknownFormError` for anything else."""
    if value.__class__ is datetime and not value.utcoffset():
        # In half the time that `isoformat` takes.
        text = orjson.dumps(value, option=orjson.OPT_UTC_Z).decode()[1:-1]
        if text[-1] == "Z":
            return text if value.microsecond else f"{text[:-1]}.000000Z"
    raise _UnknownFormError


class _LastTime:
    """The text of a time, kept until it is asked for another one: all items of a batch are written at one time."""

    def __init__(self) -> None:
        # Replaced as a whole, so threads need no lock.
        self._last: tuple[object, str] = (None, "")

    def text(self, value: Any) -> str:
        """Return what `_time_text` returns."""
        last, text = self._last
        if last is not value:
            text = _time_text(value)
            self._last = (value, text)
        return text


def _escaped(text: str) -> str:
    """Return a text as it stands inside an f-string in double quotes."""
    plain = text.encode("unicode_escape", "surrogatepass").decode("ascii")
    return plain.replace('"', '\\"').replace("{", "{{").replace("}", "}}")
