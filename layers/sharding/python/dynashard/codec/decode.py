"""DynamoDB's JSON to Python values.

    S       str
    N       int if the number is whole, otherwise Decimal without trailing zeros, however it is written
    B       bytes
    BOOL    bool
    NULL    None
    L, M    list, dict in the order of its names
    SS, NS, BS    set

What was a datetime, an enum or a float comes back as the text or number it was stored as: an entity's fields
say what it is to be.
"""

from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from dynashard.codec.numeric import plain_text
from dynashard.errors import UndecodableItemError


def decode_value(attribute: Mapping[str, Any]) -> Any:
    """The value of one attribute in DynamoDB's JSON.

    Raises:
        UndecodableItemError: it is not DynamoDB's JSON.
    """
    try:
        ((tag, value),) = attribute.items()
        return _DECODERS[tag](value)
    except _NOT_A_VALUE as error:
        raise UndecodableItemError(f"The attribute is not in DynamoDB's JSON: {error!r}.") from error


def decode_item(item: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """An item, or part of one, with its values as Python values; the names stay as they are.

    Raises:
        UndecodableItemError: it is not DynamoDB's JSON.
    """
    try:
        return _decode_members(item)
    except _NOT_A_VALUE as error:
        raise UndecodableItemError(f"The item is not in DynamoDB's JSON: {error!r}.") from error


def _decode_members(members: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    decoded = {}
    for name, attribute in members.items():
        # Most attributes are text; no dispatch for them is a third of the whole.
        if "S" in attribute:
            decoded[name] = attribute["S"]
        else:
            ((tag, value),) = attribute.items()
            decoded[name] = _DECODERS[tag](value)
    return decoded


def _decode_map(members: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    # DynamoDB keeps no order in maps: with one of our own, a write's answer reads like every later one.
    return _decode_members(dict(sorted(members.items())))


def _decode_list(members: list[Mapping[str, Any]]) -> list[Any]:
    decoded = []
    for attribute in members:
        if "S" in attribute:
            decoded.append(attribute["S"])
        else:
            ((tag, value),) = attribute.items()
            decoded.append(_DECODERS[tag](value))
    return decoded


def _decode_number(text: str) -> int | Decimal:
    if text.isdigit() or (text[:1] == "-" and text[1:].isdigit()):
        return int(text)
    # Writers and engines write one number in many ways; what is read must not depend on who wrote it.
    plain = plain_text(Decimal(text))
    return Decimal(plain) if "." in plain else int(plain)


def _same(value: Any) -> Any:
    return value


def _none(_: object) -> None:
    return None


_NOT_A_VALUE: Final = (KeyError, ValueError, TypeError, AttributeError, InvalidOperation, Base64Error)
_DECODERS: Final[dict[str, Callable[[Any], Any]]] = {
    "S": _same,
    "N": _decode_number,
    "B": a2b_base64,
    "BOOL": _same,
    "NULL": _none,
    "L": _decode_list,
    "M": _decode_map,
    "SS": set,
    "NS": lambda texts: {_decode_number(text) for text in texts},
    "BS": lambda texts: {a2b_base64(text) for text in texts},
}
