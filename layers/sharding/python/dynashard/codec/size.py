"""Sizes of items as DynamoDB bills them.

Tests compare them with what the local engine bills, for every type, at the 1 KB, 4 KB and 400 KB boundaries.
Sources: "DynamoDB item sizes and formats" in the developer guide; for numbers see `numeric.number_size`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from dynashard.codec.numeric import number_size
from dynashard.errors import ItemTooLargeError
from dynashard.schema import MAX_ITEM_BYTES

_CONTAINER: Final = 3
_ELEMENT: Final = 1


def item_size(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the bytes of an item in DynamoDB's JSON: its names and its values. Keys count like all attributes."""
    size = 0
    for name, attribute in item.items():
        size += _text_size(name) + value_size(attribute)
    return size


def value_size(attribute: Mapping[str, Any]) -> int:
    """Return the bytes of one value in DynamoDB's JSON, without its name."""
    ((tag, value),) = attribute.items()
    return _SIZES[tag](value)


def fits(item: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether an item has at most `schema.MAX_ITEM_BYTES`."""
    # An item's JSON is never shorter than its size, and takes a tenth of the time.
    return len(orjson.dumps(item)) <= MAX_ITEM_BYTES or item_size(item) <= MAX_ITEM_BYTES


def require_fits(item: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise `ItemTooLargeError` if an item has more than `schema.MAX_ITEM_BYTES`."""
    if not fits(item):
        size = item_size(item)
        raise ItemTooLargeError(
            f"The item has {size} bytes; it may have at most {MAX_ITEM_BYTES}. Store large parts elsewhere, such as in "
            "S3, and their address in the item.",
            size=size,
            limit=MAX_ITEM_BYTES,
        )


def _text_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _binary_size(text: str) -> int:
    # Base64 writes 4 characters for 3 bytes and pads the last group with "=".
    return len(text) * 3 // 4 - text.count("=", -2)


_SIZES: Final[dict[str, Callable[[Any], int]]] = {
    "S": _text_size,
    "N": number_size,
    "B": _binary_size,
    "BOOL": lambda _: 1,
    "NULL": lambda _: 1,
    "L": lambda members: _CONTAINER + sum(_ELEMENT + value_size(member) for member in members),
    "M": lambda members: _CONTAINER + _ELEMENT * len(members) + item_size(members),
    "SS": lambda texts: sum(map(_text_size, texts)),
    "NS": lambda texts: sum(map(number_size, texts)),
    "BS": lambda texts: sum(map(_binary_size, texts)),
}
