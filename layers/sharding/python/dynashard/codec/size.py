"""Sizes of items as DynamoDB bills them, and the capacity units they take.

Verified to the byte against the local engine, for every type, at the 1 KB, 4 KB and 400 KB boundaries.
Sources: "DynamoDB item sizes and formats" in the developer guide; for numbers see `numeric.number_size`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dynashard.codec.numeric import number_size
from dynashard.errors import ItemTooLargeError
from dynashard.schema import MAX_ITEM_BYTES

READ_BLOCK: Final = 4096
"""Bytes that one strongly consistent read unit covers."""
WRITE_BLOCK: Final = 1024
"""Bytes that one write unit covers."""

_CONTAINER: Final = 3
_ELEMENT: Final = 1


def item_size(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Bytes of an item in DynamoDB's JSON: its names and its values. Keys count like all attributes."""
    return sum(_text_size(name) + value_size(attribute) for name, attribute in item.items())


def value_size(attribute: Mapping[str, Any]) -> int:
    """Bytes of one value in DynamoDB's JSON, without its name."""
    ((tag, value),) = attribute.items()
    return _SIZES[tag](value)


def require_fits(item: Mapping[str, Mapping[str, Any]]) -> int:
    """The size of an item in bytes, if it may be stored.

    Raises:
        ItemTooLargeError: it is larger than `schema.MAX_ITEM_BYTES`.
    """
    size = item_size(item)
    if size > MAX_ITEM_BYTES:
        raise ItemTooLargeError(
            f"The item has {size} bytes, and {MAX_ITEM_BYTES} is the most: keep large parts elsewhere, in S3 "
            "for example, and their address in the item.",
            size=size,
            limit=MAX_ITEM_BYTES,
        )
    return size


def read_units(size: int, *, consistent: bool = False, transactional: bool = False) -> float:
    """Read units that DynamoDB bills.

    A Query or Scan is billed for the sum of the sizes of what it read, filtered items included, rounded up
    once; a get for each item, rounded up each. A get that finds nothing is billed as one block.

    Args:
        size: bytes read.
        consistent: a strongly consistent read; others cost half.
        transactional: a transactional read costs double, and is consistent.

    Returns:
        A multiple of a half.
    """
    blocks = max(1, -(-size // READ_BLOCK))
    if transactional:
        return 2.0 * blocks
    return float(blocks) if consistent else blocks / 2


def write_units(size: int, *, transactional: bool = False) -> float:
    """Write units that DynamoDB bills for one item in the table; each index entry is billed the same way.

    Args:
        size: bytes of the item; when one is replaced, updated or deleted, of the larger of old and new.
        transactional: a transactional write costs double.
    """
    blocks = max(1, -(-size // WRITE_BLOCK))
    return 2.0 * blocks if transactional else float(blocks)


def _text_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _binary_size(text: str) -> int:
    # Base64 writes 4 characters for 3 bytes and pads the last group with "=".
    return len(text) * 3 // 4 - text.count("=", -2)


def _list_size(members: list[Mapping[str, Any]]) -> int:
    return _CONTAINER + sum(_ELEMENT + value_size(member) for member in members)


def _map_size(members: Mapping[str, Mapping[str, Any]]) -> int:
    return _CONTAINER + _ELEMENT * len(members) + item_size(members)


_SIZES: Final[dict[str, Callable[[Any], int]]] = {
    "S": _text_size,
    "N": number_size,
    "B": _binary_size,
    "BOOL": lambda _: 1,
    "NULL": lambda _: 1,
    "L": _list_size,
    "M": _map_size,
    "SS": lambda texts: sum(map(_text_size, texts)),
    "NS": lambda texts: sum(map(number_size, texts)),
    "BS": lambda texts: sum(map(_binary_size, texts)),
}
