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


class Complete(dict[str, Any]):
    """The members of a mapping in their stored form. It holds whatever is stored, so no member is undeclared."""


def with_assumed(value: Any, encoded: Wire, *, typed_dicts: bool) -> Wire:
    """Return the stored form of a decoded value, in which each member that is not stored is an `Assumed`.

    A dataclass does not remember what it was given, so each of its members with a default is one. A mapping is
    `Complete`, unless it may be one of `typed_dicts`.
    """
    if isinstance(value, RootModel):
        return with_assumed(value.root, encoded, typed_dicts=typed_dicts)
    if "L" in encoded and isinstance(value, list | tuple):
        pairs = zip(value, encoded["L"], strict=True)
        return {"L": [with_assumed(*pair, typed_dicts=typed_dicts) for pair in pairs]}
    if "M" not in encoded:
        return encoded
    defaults = _defaults(value)
    members = {
        name: Assumed(each) if name in defaults else with_assumed(_member(value, name), each, typed_dicts=typed_dicts)
        for name, each in encoded["M"].items()
    }
    return {"M": Complete(members) if isinstance(value, Mapping) and not typed_dicts else members}


def _defaults(value: Any) -> frozenset[str]:
    """The names of an object's members that are not stored, or may not be."""
    if isinstance(value, BaseModel):
        return frozenset(type(value).model_fields.keys() - value.model_fields_set)
    if is_dataclass(value):
        return frozenset(each.name for each in fields(value) if (each.default, each.default_factory) != _MISSING)
    return frozenset()


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
