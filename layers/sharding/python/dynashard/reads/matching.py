"""Filter conditions by DynamoDB's rules, for items that a relocation marker led to, not a Query."""

import operator
from base64 import b64decode
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct, field

_ORDERED: Final = frozenset({"S", "N", "B"})
_MEMBER_TYPES: Final = {"SS": "S", "NS": "N", "BS": "B"}


class Term(Struct, frozen=True):
    """One condition on a stored attribute; `value` is in DynamoDB JSON."""

    attribute: str
    operator: str
    value: Mapping[str, Any] = field(default_factory=dict)

    def holds(self, item: Mapping[str, Any]) -> bool:
        """Whether a stored item meets the condition."""
        stored = item.get(self.attribute)
        if self.operator == "exists":
            return stored is not None
        if self.operator == "not_exists":
            return stored is None
        if stored is None:
            # An absent attribute differs from every value, and no other comparison with it holds.
            return self.operator in ("<>", "unset")
        return _OPERATORS[self.operator](stored, self.value)


def _equal(stored: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    return bool(_comparable(stored) == _comparable(value))


def _comparable(value: Mapping[str, Any]) -> Any:
    """A value that equals another one exactly if they are equal in DynamoDB. Numbers have several spellings."""
    [(kind, plain)] = value.items()
    if kind in _MEMBER_TYPES:
        return kind, frozenset(_comparable({_MEMBER_TYPES[kind]: member}) for member in plain)
    if kind == "L":
        return kind, [_comparable(member) for member in plain]
    if kind == "M":
        return kind, {name: _comparable(member) for name, member in plain.items()}
    return kind, _plain(kind, plain)


def _plain(kind: str, value: Any) -> Any:
    if kind == "N":
        return Decimal(value)
    if kind == "B":
        return b64decode(value)
    # Texts are ordered by their UTF-8 bytes, as Python's strings are.
    return value


def _compared(compare: Callable[[Any, Any], bool]) -> Callable[[Mapping[str, Any], Mapping[str, Any]], bool]:
    def holds(stored: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
        [(kind, left)], [(other, right)] = stored.items(), value.items()
        return kind == other and kind in _ORDERED and bool(compare(_plain(kind, left), _plain(kind, right)))

    return holds


def _begins_with(stored: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    [(kind, text)], [(other, start)] = stored.items(), value.items()
    return kind == other and kind in ("S", "B") and bool(_plain(kind, text).startswith(_plain(kind, start)))


def _contains(stored: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    [(kind, members)], [(other, sought)] = stored.items(), value.items()
    if kind in ("S", "B"):
        return kind == other and bool(_plain(kind, sought) in _plain(kind, members))
    if kind in _MEMBER_TYPES:
        member = _MEMBER_TYPES[kind]
        return member == other and _plain(member, sought) in {_plain(member, each) for each in members}
    return kind == "L" and any(_equal(each, value) for each in members)


_OPERATORS: Final[Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], bool]]] = {
    "=": _equal,
    "<>": lambda stored, value: not _equal(stored, value),
    "set": lambda stored, value: not _equal(stored, value),
    "unset": _equal,
    "<": _compared(operator.lt),
    "<=": _compared(operator.le),
    ">": _compared(operator.gt),
    ">=": _compared(operator.ge),
    "in": lambda stored, values: any(_equal(stored, each) for each in values["L"]),
    "begins_with": _begins_with,
    "contains": _contains,
}
