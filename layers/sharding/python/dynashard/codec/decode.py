"""DynamoDB's JSON to Python values. `dynashard.codec` has the table of types."""

from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from dynashard.codec.numeric import plain_text
from dynashard.errors import UndecodableItemError


def decode_value(attribute: Mapping[str, Any]) -> Any:
    """Return the value of one attribute; raises `UndecodableItemError` if it is not DynamoDB's JSON."""
    try:
        return _decode(attribute)
    except _NOT_A_VALUE as error:
        raise UndecodableItemError(f"The attribute is not in DynamoDB's JSON: {error!r}.") from error


def _decode(attribute: Mapping[str, Any]) -> Any:
    ((tag, value),) = attribute.items()
    return _DECODERS[tag](value)


def _decode_map(members: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    # DynamoDB keeps no order in maps: sorted, a write's answer has the same order as every later read.
    ordered = sorted(members.items())
    # Most attributes are text: decoding those without a call takes a third less time.
    return {name: attribute["S"] if "S" in attribute else _decode(attribute) for name, attribute in ordered}


def _decode_number(text: str) -> int | Decimal:
    if text.isdigit() or (text[:1] == "-" and text[1:].isdigit()):
        return int(text)
    # Writers and engines write one number in many ways; the value read must not depend on the writer.
    plain = plain_text(Decimal(text))
    return Decimal(plain) if "." in plain else int(plain)


_NOT_A_VALUE: Final = (KeyError, ValueError, TypeError, AttributeError, InvalidOperation, Base64Error)
_DECODERS: Final[dict[str, Callable[[Any], Any]]] = {
    "S": lambda value: value,
    "N": _decode_number,
    "B": a2b_base64,
    "BOOL": lambda value: value,
    "NULL": lambda _: None,
    "L": lambda members: [attribute["S"] if "S" in attribute else _decode(attribute) for attribute in members],
    "M": _decode_map,
    "SS": set,
    "NS": lambda texts: {_decode_number(text) for text in texts},
    "BS": lambda texts: {a2b_base64(text) for text in texts},
}
