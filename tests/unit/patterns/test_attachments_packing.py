"""Attachments as pieces: the value is read back unchanged, and damaged pieces are refused."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from types import new_class as create_class
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, JsonValue

from dynashard import Entity, Index, Key, Registry, Shards, definition
from dynashard.errors import DeclarationError, InvalidValueError, ItemTooLargeError, UndecodableItemError
from dynashard_patterns import Attachment
from dynashard_patterns.attachments.packing import PIECE_BYTES, Packer
from dynashard_patterns.attachments.pointer import Pointer

pytestmark = pytest.mark.unit

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


class Kept(BaseModel):
    model_config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")

    at: datetime
    raw: bytes


class Box(Entity, name="test.v1.Box", key=Key("{tenant}", "{id}"), registry=Registry()):
    tenant: str
    id: str
    anything: Annotated[JsonValue | None, Attachment(max_bytes=3_000_000)] = None
    kept: Annotated[Kept | None, Attachment()] = None
    raw: Annotated[bytes | None, Attachment()] = None


def packer(name: str) -> Packer:
    return Packer(name, Box.model_fields[name], definition(Box).attachments[name].max_bytes)


def noise(size: int) -> str:
    return Random(size).randbytes(size // 2).hex()


@given(JSON_VALUES)
def test_a_value_is_returned_unchanged(value: JsonValue) -> None:
    packed = packer("anything").pack(value)

    again = packer("anything").unpack(packed.pointer("v"), packed.pieces)

    assert (again, type(again)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "value"),
    [("kept", Kept(at=datetime(2026, 11, 21, 12, 0, 0, 123456, UTC), raw=b"\x00\xff")), ("raw", bytes(range(256)))],
)
def test_typed_values_are_returned(name: str, value: Any) -> None:
    packed = packer(name).pack(value)

    assert packer(name).unpack(packed.pointer("v"), packed.pieces) == value


def test_pieces_fit_into_items_and_pointers_are_small() -> None:
    packed = packer("anything").pack(noise(2_900_000))

    assert len(packed.pieces) > 2
    assert all(len(piece) <= PIECE_BYTES for piece in packed.pieces)
    assert packer("anything").unpack(packed.pointer("v"), packed.pieces) == noise(2_900_000)
    assert len(str(packed.pointer("sixteen-letters-").stored())) < 200


def test_json_is_compressed() -> None:
    packed = packer("anything").pack([{"name": "a name", "value": number} for number in range(40_000)])

    assert packed.size > 1_000_000
    assert sum(map(len, packed.pieces)) < packed.size / 5


def test_a_value_that_is_too_large_is_refused() -> None:
    with pytest.raises(
        ItemTooLargeError, match="anything has 3000003 bytes as JSON; it takes at most 3000000"
    ) as raised:
        packer("anything").pack("x" * 3_000_001)

    assert raised.value.details == {"size": 3_000_003, "limit": 3_000_000}


@pytest.mark.parametrize("value", [{"a": float("nan")}, [float("inf")], {"a": object()}, "\ud800"])
def test_a_value_that_json_cannot_express_is_refused(value: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"^anything: "):
        packer("anything").pack(value)


def damaged(pieces: tuple[bytes, ...], pointer: Pointer) -> list[tuple[Pointer, list[bytes]]]:
    [piece, *rest] = pieces
    return [
        (pointer, [piece[:-9], *rest]),
        (pointer, [piece[:20] + bytes([piece[20] ^ 1]) + piece[21:], *rest]),
        (pointer, [b"nonsense"]),
        (pointer, []),
        (replace(pointer, checksum="0" * 32), list(pieces)),
        (replace(pointer, size=pointer.size - 1), list(pieces)),
        (replace(pointer, size=pointer.size + 1), list(pieces)),
    ]


def test_damaged_pieces_are_refused() -> None:
    packed = packer("anything").pack({"a": noise(1000)})

    for pointer, pieces in damaged(packed.pieces, packed.pointer("v7")):
        with pytest.raises(UndecodableItemError, match="version v7 are damaged"):
            packer("anything").unpack(pointer, pieces)


def test_a_stored_value_that_no_longer_fits_its_field_is_reported() -> None:
    packed = packer("anything").pack({"at": "yesterday"})

    with pytest.raises(UndecodableItemError, match=r"kept: .*Its declaration has changed"):
        packer("kept").unpack(packed.pointer("v"), packed.pieces)


def test_a_value_that_is_not_a_pointer_is_not_followed() -> None:
    for stored in ({"S": "inline"}, {"M": {"V": {"S": "a"}}}, {"NULL": True}):
        with pytest.raises(UndecodableItemError, match="pointer of an attachment"):
            Pointer.of(stored)


def test_a_value_that_the_item_holds_itself_becomes_that_of_the_field() -> None:
    stored = {"a": [1, Decimal("1.5"), Decimal("12345678901234567890123.5")], "b": b"x"}

    assert packer("anything").unpacked(stored) == {"a": [1, 1.5, "12345678901234567890123.5"], "b": "eA=="}
    with pytest.raises(UndecodableItemError, match=r"kept: .*Its declaration has changed"):
        packer("kept").unpacked({"at": "yesterday"})


def declare(**more: Any) -> None:
    fields: dict[str, Any] = {"tenant": str, "id": str, **more.pop("fields")}
    values = {name: kind[1] for name, kind in fields.items() if isinstance(kind, tuple)}
    kinds = {name: kind[0] if isinstance(kind, tuple) else kind for name, kind in fields.items()}
    namespace = {"__annotations__": kinds, "__module__": __name__, **values}
    declared = {"name": "test.v1.Wrong", "key": Key("{tenant}", "{id}"), "registry": Registry(), **more}
    create_class("Wrong", (Entity,), declared, lambda body: body.update(namespace))


TEXT = Annotated[str | None, Attachment()]
REFUSED = [
    (
        {"fields": {"far": Annotated[str, Attachment()]}},
        "far is an attachment: give it None as its default",
    ),
    ({"fields": {"far": (TEXT, "")}}, "far is an attachment: give it None as its default"),
    (
        {"fields": {"far": (Annotated[str | None, Attachment(max_bytes=2**30)], None)}},
        "far is an attachment with max_bytes=1073741824: use 1 to 16777216",
    ),
    (
        {
            "fields": {"far": (TEXT, None)},
            "indexes": [Index("GSI1", "by_far", partition="{tenant}", sort="{far}")],
        },
        "far is an attachment, so no key and no expiry",
    ),
    (
        {"fields": {"far": (Annotated[datetime | None, Attachment()], None)}, "expires": "far"},
        "far is an attachment, so no key and no expiry",
    ),
    (
        {"fields": {"far": (TEXT, None)}, "shards": Shards(4, placement="random")},
        "has attachments and random placement",
    ),
]


@pytest.mark.parametrize(("declared", "message"), REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_a_wrong_declaration_is_refused_with_the_reason(declared: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=f"^test.v1.Wrong: .*{message}"):
        declare(**{**declared, "fields": dict(declared["fields"])})
