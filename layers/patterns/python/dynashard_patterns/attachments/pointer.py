"""What an item holds of an attachment: which version is current, and how to know it whole."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from dynashard.codec import decode_value, encode_value
from dynashard.errors import UndecodableItemError
from dynashard.transport.interface import Wire


@dataclass(frozen=True, slots=True)
class Pointer:
    """A version of an attachment.

    Attributes:
        version: its random id, part of the keys of its pieces.
        pieces: how many there are.
        size: bytes of the JSON before it was compressed.
        checksum: XXH3-128 of that JSON, in hexadecimal digits.
    """

    version: str
    pieces: int
    size: int
    checksum: str

    def stored(self) -> Wire:
        """The pointer as an attribute of the item, about 100 bytes."""
        return encode_value({"V": self.version, "N": self.pieces, "B": self.size, "X": self.checksum})

    @classmethod
    def of(cls, attribute: Mapping[str, Any]) -> Self:
        """The pointer in a stored attribute.

        Raises:
            UndecodableItemError: it is none.
        """
        try:
            stored = decode_value(attribute)
            return cls(str(stored["V"]), int(stored["N"]), int(stored["B"]), str(stored["X"]))
        except (KeyError, TypeError, ValueError):
            raise UndecodableItemError(
                "An attachment holds something else than a pointer: it was stored before the field was declared "
                "so. Move what it holds to a field of another name"
            ) from None


def pointers_left(item: Mapping[str, Any] | None, fields: Iterable[str]) -> dict[str, Pointer]:
    """As `pointers`, without values that were stored before the field became an attachment: they go with the item."""
    found: dict[str, Pointer] = {}
    for name in fields:
        with suppress(UndecodableItemError):
            found |= pointers(item, [name])
    return found


def pointers(item: Mapping[str, Any] | None, fields: Iterable[str]) -> dict[str, Pointer]:
    """The pointers that a stored item, if there is one, holds for these fields."""
    return {name: Pointer.of(item[name]) for name in fields if item is not None and name in item}
