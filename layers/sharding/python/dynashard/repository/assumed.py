"""Which members of the objects in a decoded item are not stored: those that have a default, which decoding has added.

An object that was stored before its class got a member lacks it. An update cannot set a path within what is not there.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Final

from pydantic import BaseModel, RootModel

from dynashard.transport.interface import Wire

_MISSING: Final = (MISSING, MISSING)


class Assumed(dict[str, Any]):
    """The stored form of a value that is not stored, or may not be."""


def with_assumed(value: Any, encoded: Wire) -> Wire:
    """Return the stored form of a decoded value, in which each member that is not stored is an `Assumed`.

    A dataclass does not remember what it was given, so each of its members with a default is one.
    """
    if isinstance(value, RootModel):
        return with_assumed(value.root, encoded)
    if "L" in encoded and isinstance(value, list):
        return {"L": [with_assumed(*pair) for pair in zip(value, encoded["L"], strict=True)]}
    if "M" not in encoded:
        return encoded
    defaults = _defaults(value)
    return {
        "M": {
            name: Assumed(member) if name in defaults else with_assumed(_member(value, name), member)
            for name, member in encoded["M"].items()
        }
    }


def _defaults(value: Any) -> frozenset[str]:
    """The names of an object's members that are not stored, or may not be."""
    if isinstance(value, BaseModel):
        return frozenset(type(value).model_fields.keys() - value.model_fields_set)
    if is_dataclass(value):
        return frozenset(each.name for each in fields(value) if (each.default, each.default_factory) != _MISSING)
    return frozenset()


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
