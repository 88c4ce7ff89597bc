"""Compiled checks of items that are written: whether readers will get the values that an item has.

To decode what is stored shows it for every item, in four times the time. Here a value is validated only if its field
may refuse or change one of its type, and decoded before only if it is stored as a list, a map or the like. The
generated function does not know values of other types than those of their fields, and then the item is decoded.
"""

from collections.abc import Callable, Mapping
from datetime import MAXYEAR, date, datetime
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from dynashard.codec import encode_value
from dynashard.compiled.declared import Declared, Wire, key_fields
from dynashard.compiled.fields import ReadField
from dynashard.compiled.function import Function
from dynashard.compiled.schemas import bare, is_any_time, is_its_fields, value_schema
from dynashard.model_schema import Schema, model_schema

_CLASSES: Final[Mapping[str, type]] = MappingProxyType({
    "str": str, "literal": str, "int": int, "float": float, "bool": bool, "date": date, "datetime": datetime,
    "uuid": UUID,
})  # fmt: skip
"""The classes of the values that schemas of these types have, but not their subclasses."""
_EXACT: Final = frozenset({"date", "datetime", "enum", "uuid"})
"""Types of schemas whose values are stored in another form, so their fields validate others than those of the item."""
_UNRESTRICTED: Final = frozenset({"type", "metadata"})
_EPOCH_YEAR: Final = 1970
_UNKNOWN: Final = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)
"""Errors of validators, among them pydantic's own."""


def read_back_check(entity: Declared) -> Callable[[Mapping[str, Any], Wire], bool | None]:
    """Return a function that says whether readers will get an item with these fields, and under the same keys.

    It takes the fields, and what is stored of them. It returns True, or None if it does not know.
    """
    parts = model_schema(entity.model)
    if entity.attachments or not is_its_fields(entity.model, parts):
        return _unknown
    function = Function("values, wire", __name__, _UNKNOWN)
    keys = key_fields(entity, *entity.indexes.values())
    for number, name in enumerate(parts.fields):
        field = ReadField(number, name, entity, parts)
        known, in_key = _known_class(field), name in keys
        if known is None and not field.expires:
            function.lines += _decoded(function, field, in_key=in_key)
            continue
        checks = ["return None"] if known is None else _checks(function, field, known, in_key=in_key)
        unset = "pass" if field.none_by_default else "return None"
        function.lines += [
            f"if ({field.raw} := values[{name!r}]) is None: {unset}",
            "else:",
            *(f"    {line}" for line in checks),
        ]
    function.lines.append("return True")
    return function.made()


def _decoded(function: Function, field: ReadField, *, in_key: bool) -> list[str]:
    """Return the lines that validate what is stored, as readers do; what is written now has no removed fields."""
    missing = "return None" if field.required else field.default(function, whole=True)
    stored = f"found[{field.tag!r}]" if field.tag else "found"
    validated = [f"{field.raw} = {stored}", *field.validate(function, ignoring=False)]
    same = [f"if {field.value} != values[{field.name!r}]: return None"] if in_key else []
    return [
        f"if (found := wire.get({field.name!r})) is None: {missing}",
        "else:",
        *(f"    {line}" for line in validated),
        *same,
    ]


def _checks(function: Function, field: ReadField, known: type, *, in_key: bool) -> list[str]:
    """Return the lines that end the function if a value may be read as another one, or not at all."""
    raw = field.raw
    lines = [f"if {raw}.__class__ is not {function.use(known)}: return None"]
    if field.expires:
        lines.append(f"if not {_EPOCH_YEAR} < {raw}.year < {MAXYEAR}: return None")
    elif not _takes_all(bare(field.schema)):
        lines += field.validate(function, ignoring=False)
        lines += [f"if {field.value} != {raw}: return None"] if in_key else []
    elif known is datetime and in_key:
        # Readers get it in UTC, and a time that happens twice in another zone equals none of UTC.
        lines.append(f"if {raw}.utcoffset(): return None")
    return lines


def _known_class(field: ReadField) -> type | None:
    """The class of the values of a field that need not be read to know what readers get; None if all are."""
    plain, kind = bare(field.schema), value_schema(field.schema)["type"]
    exact = field.expires or kind in _EXACT
    if (exact and not _takes_all(plain)) or not (field.expires or field.tag):
        return None
    return plain["cls"] if kind == "enum" and plain is not None else _CLASSES.get(kind)


def _takes_all(plain: Schema | None) -> bool:
    """Whether a field takes every value of its class, and changes none."""
    if plain is None:
        return False
    if plain["type"] == "enum":
        return all(encode_value(each) == {"S": each.value} for each in plain["members"])
    return _UNRESTRICTED.issuperset(plain) or is_any_time(plain)


def _unknown(_: Mapping[str, Any], _wire: Wire) -> None:
    """In place of a function: it knows nothing."""
