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
            raise UndecodableItemError("The attribute is not the pointer of an attachment.") from None


def pointers(item: Mapping[str, Any] | None, fields: Iterable[str]) -> dict[str, Pointer]:
    """The pointers that a stored item, if there is one, holds for these fields.

    A value that was stored in the item itself, before the field was declared as an attachment, is none: see `inline`.
    """
    found: dict[str, Pointer] = {}
    for name in fields:
        if item is not None and name in item:
            with suppress(UndecodableItemError):
                found[name] = Pointer.of(item[name])
    return found


def inline(item: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    """The values of these fields that a stored item holds itself: they were stored before they became attachments."""
    held = [name for name in fields if name in item]
    return {name: decode_value(item[name]) for name in held if name not in pointers(item, [name])}
