"""An attachment's value as bytes: JSON, compressed, cut into pieces that fit into items, and back."""

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Final

import xxhash
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError

from dynashard.errors import InvalidValueError, ItemTooLargeError, UndecodableItemError
from dynashard_patterns.attachments.pointer import Pointer

PIECE_BYTES: Final = 384 * 1024
"""Leaves the rest of an item's 400 KB to its keys."""
_LEVEL: Final = 6
"""A write unit a KB costs far more than the time by which higher levels save fewer and fewer of them."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A value ready to be stored: its size and checksum as JSON, and its compressed pieces."""

    size: int
    checksum: str
    pieces: tuple[bytes, ...]

    def pointer(self, version: str) -> Pointer:
        """The pointer to this value under a version."""
        return Pointer(version, len(self.pieces), self.size, self.checksum)


class Packer:
    """Packs the values of one attachment."""

    def __init__(self, name: str, field: FieldInfo, max_bytes: int) -> None:
        self._name = name
        self._limit = max_bytes
        kind: Any = Annotated[field.annotation, *field.metadata]
        config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", allow_inf_nan=False)
        self._values: TypeAdapter[Any] = TypeAdapter(kind, config=config)

    def pack(self, value: Any) -> Packed:
        """The value as pieces. Time: about 30 ms a MB, most of it compression.

        Raises:
            InvalidValueError: JSON cannot hold it.
            ItemTooLargeError: it is larger than declared.
        """
        try:
            # The item was checked when it was made, but its mutable values may have changed since.
            text = self._values.dump_json(self._values.validate_python(value))
        except (ValidationError, PydanticSerializationError, RecursionError) as error:
            reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            raise InvalidValueError(f"{self._name}: {reason}", field=self._name) from error
        if len(text) > self._limit:
            raise ItemTooLargeError(
                f"{self._name} has {len(text)} bytes as JSON; it takes at most {self._limit}",
                size=len(text),
                limit=self._limit,
            )
        squeezed = zlib.compress(text, _LEVEL)
        pieces = tuple(squeezed[at : at + PIECE_BYTES] for at in range(0, len(squeezed), PIECE_BYTES))
        return Packed(len(text), xxhash.xxh3_128_hexdigest(text), pieces)

    def unpack(self, pointer: Pointer, pieces: Sequence[bytes]) -> Any:
        """The value that pieces hold.

        Raises:
            UndecodableItemError: they are not those of the pointer, or the value does not fit the field.
        """
        try:
            unzip = zlib.decompressobj()
            # One byte more than there should be shows that there are more.
            text = unzip.decompress(b"".join(pieces), pointer.size + 1)
        except zlib.error as error:
            raise self._damaged(pointer) from error
        if len(text) != pointer.size or xxhash.xxh3_128_hexdigest(text) != pointer.checksum:
            raise self._damaged(pointer)
        try:
            return self._values.validate_json(text, extra="ignore")
        except ValidationError as error:
            raise self._unfit(error) from error

    def unpacked(self, value: Any) -> Any:
        """Return a value that the item holds itself, as the field has it.

        Raises:
            UndecodableItemError: it does not fit the field.
        """
        try:
            return self._values.validate_json(json.dumps(value, default=_as_json), extra="ignore")
        except ValidationError as error:
            raise self._unfit(error) from error

    def _unfit(self, error: ValidationError) -> UndecodableItemError:
        problem = error.errors()[0]["msg"]
        return UndecodableItemError(f"{self._name}: {problem}. Its declaration has changed incompatibly")

    def _damaged(self, pointer: Pointer) -> UndecodableItemError:
        return UndecodableItemError(
            f"{self._name}: the stored pieces of version {pointer.version} are damaged. Write the field again"
        )


def _as_json(value: Any) -> Any:
    """Return what JSON has for a stored value that is not in it; a number that a float does not hold becomes text."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        number = float(value)
        return number if Decimal(repr(number)) == value else str(value)
    return list(value)
