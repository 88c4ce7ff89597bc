"""Listings by the first fields of a sort key: the text with which all keys begin that have their values."""

from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from msgspec.structs import replace

from dynashard.errors import InvalidKeyError
from dynashard.keys import KeyTemplate


def text_of_first_fields(template: KeyTemplate, values: Mapping[str, Any]) -> str:
    """Return the text with which exactly those keys begin whose first fields have these values.

    `{team}#shift_{id}` with a team is `t1#shift_`; with all fields it is the key itself. `values` are those of the
    first one, two, ... of the template's `first_fields`; others raise `InvalidKeyError`, as does what `render` refuses.
    """
    fields = template.first_fields
    for name in values:
        if name not in fields:
            raise InvalidKeyError(f"{name} is not one of the first fields of the key", field=name)
        if missing := [each for each in fields[: fields.index(name)] if each not in values]:
            raise InvalidKeyError(f"{missing[0]} comes before {name} in the key: give both", field=missing[0])
    known = takewhile(lambda part: isinstance(part, str) or part.name in values, template.parts)
    return replace(template, parts=tuple(known)).render(values)
