"""Key templates: from field values to key text, such that no two different keys become one text.

A template is text with fields in braces, `{tenant_id}` or `{team_id}#shift_{seq:012d}`. A rendered text can be read
back in one way only: from the left up to the *free* field and from the right down to it, each other field ending at the
first occurrence of the literal next to it. A value that would end too early is refused. Nothing is escaped, so stored
keys look like what a person would type.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from enum import Enum
from functools import cached_property
from reprlib import repr as short
from string import Formatter
from typing import Any, Final
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from dynashard.errors import InvalidKeyError

SEPARATORS: Final = frozenset("#:/|")
"""Characters that divide the sort keys of entities in one logical partition into comparable pieces."""

_LARGEST_BITS: Final = 8192
"""No format writes a larger number into the 2048 bytes of the longest key, and Python may refuse to write it at all."""

_FOUR_DIGITS: Final = 1000
"""The first year that is written with four digits everywhere."""
_DIRECTIVE: Final = re.compile("%.", re.DOTALL)
_KEYS: Final = "write a text, an int, a UUID, a date, a datetime, or a member of an enum"
_NUMBER_SPEC: Final = re.compile(r"(?:0(?P<width>\d+))?[dxXob]?")


class TemplateError(ValueError):
    """A template is wrong; the message says why."""


class TemplateField(Struct, frozen=True):
    """A field of a template: its name and its format specification.

    `width` is the exact number of characters, if the specification fixes it. `after` is the literal that ends the field
    when read from the left, and `before` when read from the right; '' if none is needed.
    """

    name: str
    spec: str
    width: int | None
    after: str = ""
    before: str = ""


class KeyTemplate(Struct, frozen=True, dict=True):
    """A template that `parse` has read. No value may contain a `reserved` character, nor what the template excludes."""

    text: str
    parts: tuple[str | TemplateField, ...]
    reserved: frozenset[str] = frozenset()

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of its fields, in order."""
        return tuple(part.name for part in self.parts if isinstance(part, TemplateField))

    @cached_property
    def first_fields(self) -> tuple[str, ...]:
        """The first fields whose values alone decide how a key begins: each ends before the next starts."""
        names: list[str] = []
        for place, part in enumerate(self.parts):
            if isinstance(part, TemplateField):
                if not (part.after or part.width is not None or place == len(self.parts) - 1):
                    break
                names.append(part.name)
        return tuple(names)

    def render(self, values: Mapping[str, Any]) -> str:
        """Return the key text for these field values.

        Raises `InvalidKeyError` if one is missing, empty, of a type that has no key text, contains a character that
        belongs to the template, or does not fit its width.
        """
        return "".join([part if isinstance(part, str) else self.field_text(part, values) for part in self.parts])

    def field_text(self, part: TemplateField, values: Mapping[str, Any]) -> str:
        """Return the text of one field of the template; raises as `render`."""
        name = part.name
        if name not in values:
            raise InvalidKeyError(f"{name} is part of the key and must be given", field=name)
        value = values[name]
        text = value if type(value) is str and not part.spec else key_text(name, value, part.spec)
        if not text:
            raise InvalidKeyError(f"{name} is part of the key and may not be empty", field=name)
        if part.width is not None and (len(text) != part.width or text[0] == "-"):
            raise InvalidKeyError(f"{name}: {value!r} does not fit {part.width} characters", field=name)
        # Together with the literal, because the end of a value and the beginning of the literal may form it too early.
        if part.after and (text + part.after).find(part.after) != len(text):
            raise InvalidKeyError(f"{name} may not contain {part.after!r}: it ends the field in keys", field=name)
        if part.before and (part.before + text).rfind(part.before) != 0:
            raise InvalidKeyError(f"{name} may not contain {part.before!r}: it starts the field in keys", field=name)
        for character in self.reserved:
            if character in text:
                raise InvalidKeyError(f"{name} may not contain {character!r}: it divides keys", field=name)
        return text

    def literals(self) -> str:
        """Return all literal characters, in order."""
        return "".join(part for part in self.parts if isinstance(part, str))

    def shape(self) -> tuple[str, ...]:
        """Return the template without its fields' names: templates of one shape render alike."""
        return tuple(part if isinstance(part, str) else f"{{{part.spec}}}" for part in self.parts)


def parse(
    text: str, *, numeric: Callable[[str], bool] = lambda _: False, reserved: frozenset[str] = frozenset()
) -> KeyTemplate:
    """Parse a template such as `{author}_{year:04d}`; doubled braces stand for themselves.

    Fields that are `numeric` render as digits only; the free field is the last one that does not. No value may contain
    `reserved` characters.

    Raises:
        TemplateError: broken braces, a field twice, something other than a plain field name in braces, or two
            fields with nothing between them.
    """
    parts: list[str | TemplateField] = []
    try:
        pieces = list(Formatter().parse(text))
    except ValueError as error:
        raise TemplateError(f"template {text!r}: {error}; braces hold a field name, such as {{id}}") from None
    for literal, name, spec, conversion in pieces:
        if literal:
            parts.append(literal)
        if name is None:
            continue
        if not name.isidentifier() or conversion:
            raise TemplateError(
                f"template {text!r}: braces hold a field name, such as {{id}}, and a format after a colon"
            )
        if any(isinstance(part, TemplateField) and part.name == name for part in parts):
            raise TemplateError(f"template {text!r} names {name} twice")
        number = _NUMBER_SPEC.fullmatch(spec or "")
        width = int(number["width"]) if number and number["width"] else None
        parts.append(TemplateField(name, spec or "", width))
    if not parts:
        raise TemplateError("a template may not be empty")
    return KeyTemplate(text, _delimited(text, parts, numeric), reserved)


def _delimited(
    text: str, parts: list[str | TemplateField], numeric: Callable[[str], bool]
) -> tuple[str | TemplateField, ...]:
    """Give each field but the free one the literal that ends it."""
    places = {i: part for i, part in enumerate(parts) if isinstance(part, TemplateField)}
    texts = [i for i, part in places.items() if part.width is None and not numeric(part.name)]
    free = [-1, *places, *texts][-1]
    result: list[str | TemplateField] = []
    for i, part in enumerate(parts):
        if isinstance(part, str) or i == free:
            result.append(part)
            continue
        neighbour = parts[i + 1] if i < free else parts[i - 1]
        if part.width is not None:
            result.append(part)
        elif isinstance(neighbour, str):
            result.append(replace(part, after=neighbour) if i < free else replace(part, before=neighbour))
        else:
            raise TemplateError(f"template {text!r}: it is unclear where {part.name} ends; put text next to it")
    return tuple(result)


def key_text(name: str, value: object, spec: str = "") -> str:
    """Return a value as keys have it: times in UTC with fixed digits, so that text order is time order.

    Raises `InvalidKeyError` if the type has no key text, a time has no zone, or the format does not fit the value.
    """
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, datetime):
        return _time_text(name, value, spec)
    if isinstance(value, str):
        # A subclass may print itself differently; the text itself is stored.
        value = str.__str__(value)
    if isinstance(value, bool) or not isinstance(value, str | int | UUID | date):
        raise InvalidKeyError(f"{name} is {short(value)}, which cannot be part of a key; {_KEYS}", field=name)
    if isinstance(value, int) and value.bit_length() > _LARGEST_BITS:
        raise InvalidKeyError(f"{name}: the number is too long for a key", field=name)
    try:
        if isinstance(value, date):
            return date_text(value, spec) if spec else str(value)
        return format(value, spec) if spec else str(value)
    except ValueError:
        cure = "; write a number" if isinstance(value, str) else ""
        raise InvalidKeyError(f"{name}: {value!r} does not fit the format {spec!r}{cure}", field=name) from None


def _time_text(name: str, value: datetime, spec: str) -> str:
    if value.tzinfo is None:
        raise InvalidKeyError(
            f"{name}: a time in a key needs a time zone: add one, as in datetime.now(UTC)", field=name
        )
    try:
        utc = value.astimezone(UTC)
    except OverflowError:
        raise InvalidKeyError(f"{name}: the time lies outside the years 1 to 9999 in UTC", field=name) from None
    return date_text(utc, spec) if spec else f"{utc.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def date_text(value: date, spec: str) -> str:
    """Return a date or a time in a format of `strftime`.

    Some platforms write the years before 1000 without zeros, which would put them last, and is another key.
    """
    if value.year >= _FOUR_DIGITS:
        return value.strftime(spec)
    years = {"%Y": f"{value.year:04d}", "%G": f"{value.isocalendar().year:04d}", "%F": f"{value.year:04d}-%m-%d"}
    return value.strftime(_DIRECTIVE.sub(lambda found: years.get(found[0], found[0]), spec))


def storable_key(text: str, what: str, limit: int) -> str:
    """Return a key; raises `InvalidKeyError` if it has more than `limit` bytes, or half of a surrogate pair."""
    if len(text) <= limit and text.isascii():
        return text
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidKeyError(f"the {what} key has half of a surrogate pair, which UTF-8 cannot express") from None
    if size > limit:
        raise InvalidKeyError(f"the {what} key has {size} bytes; DynamoDB takes at most {limit}")
    return text


def separators(templates: list[KeyTemplate]) -> frozenset[str]:
    """Return the separators in any of these templates."""
    return frozenset(c for template in templates for c in template.literals() if c in SEPARATORS)


def may_collide(one: KeyTemplate, other: KeyTemplate, divided_by: frozenset[str]) -> bool:
    """Whether two templates could render the same text, if no value contains a character of `divided_by`.

    Errs on the side of yes: it compares the number of pieces, the separators between them, and the constant text at
    both ends of a piece.
    """
    mine, theirs = _divided(one, divided_by), _divided(other, divided_by)
    return len(mine) == len(theirs) and all(map(_may_equal, mine, theirs))


_FIELD: Final = "\0"


def _divided(template: KeyTemplate, divided_by: frozenset[str]) -> list[str]:
    """Return the pieces of a template and the separators between them, with `_FIELD` in place of each field."""
    text = "".join(part if isinstance(part, str) else _FIELD for part in template.parts)
    return re.split(f"([{re.escape(''.join(divided_by))}])", text) if divided_by else [text]


def _may_equal(one: str, other: str) -> bool:
    if _FIELD not in one and _FIELD not in other:
        return one == other
    start, end = one.partition(_FIELD)[0], one.rpartition(_FIELD)[2]
    other_start, other_end = other.partition(_FIELD)[0], other.rpartition(_FIELD)[2]
    if _FIELD not in one:
        return one.startswith(other_start) and one.endswith(other_end) and len(one) > len(other_start + other_end)
    if _FIELD not in other:
        return _may_equal(other, one)
    starts = start.startswith(other_start) or other_start.startswith(start)
    return starts and (end.endswith(other_end) or other_end.endswith(end))
