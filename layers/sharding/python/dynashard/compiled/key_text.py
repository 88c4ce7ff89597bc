"""Texts of keys in generated functions: the writer stores them, and the reader compares them with the stored key.

A text that the declaration decides is an f-string of the fields' variables. The rest, such as a time with a format, is
rendered by the key template, as the layer does by itself.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import orjson
from msgspec import Struct

from dynashard.compiled.declared import Templates
from dynashard.compiled.function import Function, escaped, refusal
from dynashard.keys import KeyTemplate, TemplateField

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)


class UnknownValueError(Exception):
    """A generated function does not know how a value is stored."""


class KeyField(Struct, frozen=True):
    """A field in a generated function.

    Attributes:
        text: the variable with its text in keys; empty if only the template makes it.
        number: the variable with its value if that is an integer, and nothing else; empty for others.
    """

    text: str = ""
    number: str = ""


class KeyTexts:
    """Renders keys of the fields of a function, which finds the values of all others in the mapping `values`.

    `rendered` are the fields that the function needs in the mapping.
    """

    def __init__(self, function: Function, fields: Mapping[str, KeyField], values: str = "values") -> None:
        self._function = function
        self._fields = fields
        self._values = values
        self.rendered: set[str] = set()

    def logical_partition(self, key: Templates) -> tuple[str, list[str]]:
        """Return the inside of an f-string with the logical partition, and the lines that check its fields."""
        text, lines = self.text(key.partition)
        return (escaped(f"{key.prefix}{key.separator}") if key.prefix else "") + text, lines

    def text(self, template: KeyTemplate) -> tuple[str, list[str]]:
        """Return the inside of an f-string that renders a template, and the lines that check its fields."""
        texts, lines = [], list[str]()
        for part in template.parts:
            if isinstance(part, str):
                texts.append(escaped(part))
                continue
            text, checks = self._part(template, part)
            texts.append(f"{{{text}}}")
            lines += checks
        return "".join(texts), lines

    def _part(self, template: KeyTemplate, part: TemplateField) -> tuple[str, list[str]]:
        field = self._fields[part.name]
        # What ends a field is one character, or the template looks for it.
        excluded = {*template.reserved, part.after, part.before} - {""}
        if max(map(len, excluded), default=1) == 1:
            if field.text and not part.spec:
                problems = [f"not {field.text}", *(f"{each!r} in {field.text}" for each in sorted(excluded))]
                return field.text, refusal(problems)
            if field.number and part.width is not None and part.spec.removeprefix("0").rstrip("d").isdecimal():
                # Only digits, so nothing else can be in it.
                text = f"format({field.number}, {part.spec!r})"
                return text, refusal([f"not 0 <= {field.number} < {10**part.width}"])
        self.rendered.add(part.name)
        return f"{self._function.use(partial(template.field_text, part))}({self._values})", []


def time_text(value: Any) -> str:
    """Return the text of a time in UTC as it is stored; raises `UnknownValueError` for anything else."""
    if value.__class__ is datetime and not value.utcoffset():
        # In half the time that `isoformat` takes.
        text = orjson.dumps(value, option=orjson.OPT_UTC_Z).decode()[1:-1]
        if text[-1] == "Z":
            return text if value.microsecond else f"{text[:-1]}.000000Z"
    raise UnknownValueError


def expiry_text(value: Any) -> str:
    """Return a time of expiry in UTC as it is stored; raises `UnknownValueError` for anything else."""
    if value.__class__ is datetime and value.tzinfo is not None and not value.utcoffset():
        return repr((value - _EPOCH) // _SECOND)
    raise UnknownValueError
