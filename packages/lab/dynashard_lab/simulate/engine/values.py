"""Compares and combines values in DynamoDB's JSON, such as `{"N": "12"}`."""

from base64 import b64decode
from decimal import Context, Decimal
from typing import Any, Final

from dynashard.transport.interface import Wire
from dynashard_lab.simulate.engine.refusal import invalid

_SETS: Final = ("SS", "NS", "BS")
_ORDERED: Final = ("S", "N", "B")
_DIGITS: Final = 38
_EXACT: Final = Context(prec=400)
_LARGEST: Final = 125
_SMALLEST: Final = -130


def equal(left: Wire, right: Wire) -> bool:
    """Whether two values are the same: numbers by value, sets in any order."""
    ((kind, mine),), ((other, theirs),) = left.items(), right.items()
    if kind != other or mine == theirs:
        return kind == other
    if kind == "N":
        return Decimal(mine) == Decimal(theirs)
    if kind in _SETS:
        return set(_members(kind, mine)) == set(_members(kind, theirs))
    if kind == "L":
        return len(mine) == len(theirs) and all(map(equal, mine, theirs))
    return kind == "M" and mine.keys() == theirs.keys() and all(equal(mine[name], theirs[name]) for name in mine)


def _members(kind: str, texts: list[str]) -> list[Any]:
    return [Decimal(text) for text in texts] if kind == "NS" else texts


def ordering(left: Wire, right: Wire) -> int | None:
    """Return -1, 0 or 1 as a value is before, at or after another; None if the two have no order."""
    ((kind, mine),), ((other, theirs),) = left.items(), right.items()
    if kind != other or kind not in _ORDERED:
        return None
    if kind == "N":
        mine, theirs = Decimal(mine), Decimal(theirs)
    elif kind == "B":
        mine, theirs = _decoded(mine), _decoded(theirs)
    return int(mine > theirs) - int(mine < theirs)


def begins_with(value: Wire, prefix: Wire) -> bool:
    """Whether a text or bytes begin with others."""
    ((kind, text),), ((other, start),) = value.items(), prefix.items()
    if kind != other or kind not in ("S", "B"):
        return False
    if kind == "B":
        text, start = _decoded(text), _decoded(start)
    return bool(text.startswith(start))


def contains(value: Wire, sought: Wire) -> bool:
    """Whether a text has a part, or a set or list a member."""
    ((kind, held),), ((other, wanted),) = value.items(), sought.items()
    if kind == other == "S":
        return wanted in held
    if kind == other == "B":
        return _decoded(wanted) in _decoded(held)
    if kind == "L":
        return any(equal(member, sought) for member in held)
    return kind == f"{other}S" and any(equal({other: member}, sought) for member in held)


def size(value: Wire) -> Wire:
    """Return the length of a text, bytes or a collection."""
    ((kind, held),) = value.items()
    if kind not in ("S", "B", "L", "M", *_SETS):
        raise invalid(f"size() has no meaning for a value of type {kind}")
    return {"N": str(len(held.encode()) if kind == "S" else len(_decoded(held)) if kind == "B" else len(held))}


def added(value: Wire | None, more: Wire) -> Wire:
    """Return the sum of two numbers, or the union of two sets; `more` itself if there is no value."""
    ((kind, addend),) = more.items()
    if value is None and (kind == "N" or kind in _SETS):
        return more
    if kind == "N" and value is not None and "N" in value:
        return {"N": _text(_EXACT.add(Decimal(value["N"]), Decimal(addend)))}
    if kind in _SETS and value is not None and kind in value:
        new = [member for member in addend if not contains(value, {kind[0]: member})]
        return {kind: [*value[kind], *new]}
    raise invalid("An operand in the update expression has an incorrect data type")


def subtracted(value: Wire, less: Wire) -> Wire:
    """Return the difference of two numbers."""
    if "N" not in value or "N" not in less:
        raise invalid("An operand in the update expression has an incorrect data type")
    return {"N": _text(_EXACT.subtract(Decimal(value["N"]), Decimal(less["N"])))}


def without(value: Wire, members: Wire) -> Wire | None:
    """Return a set without some members; None if nothing is left."""
    ((kind, taken),) = members.items()
    if kind not in _SETS or kind not in value:
        raise invalid("An operand in the update expression has an incorrect data type")
    left = [member for member in value[kind] if not contains({kind: taken}, {kind[0]: member})]
    return {kind: left} if left else None


def _text(number: Decimal) -> str:
    """Return a number as DynamoDB writes it."""
    number = number.normalize(_EXACT)
    if len(number.as_tuple().digits) > _DIGITS:
        raise invalid("Attempting to store more than 38 significant digits in a Number")
    if number and not _SMALLEST <= number.adjusted() <= _LARGEST:
        kind = "overflow" if number.adjusted() > 0 else "underflow"
        raise invalid(f"Number {kind}. Attempting to store a number out of range")
    return f"{number:f}"


def _decoded(text: str) -> bytes:
    return b64decode(text)
