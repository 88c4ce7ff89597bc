"""Python values to DynamoDB's JSON. `dynashard.codec` has the table of types."""

from binascii import b2a_base64
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final, TypeVar
from uuid import UUID

from dynashard.codec.numeric import decimal_text, float_text, int_text
from dynashard.codec.refusal import RefusedError
from dynashard.errors import ConfigurationError

Attribute = dict[str, Any]
"""A value in DynamoDB's JSON: `{"S": "text"}`."""

T = TypeVar("T")
Encoder = Callable[[Any, int], Attribute]
"""Encodes a value at a level; an item's own attributes are at level 1."""

MAX_LEVELS: Final = 32
"""DynamoDB's limit, counting the attribute itself: a scalar may be inside 31 lists or maps."""
MAX_NAME_BYTES: Final = 65535


def encode_value(value: object, *, path: str = "") -> Attribute:
    """Return a value in DynamoDB's JSON.

    A value that cannot be stored exactly raises `InvalidValueError`, which names its place in the item: `path`, such as
    `address.lines`, and the steps from there.
    """
    try:
        return _ENCODERS[value.__class__](value, 1)
    except RefusedError as refused:
        raise refused.public(path) from None


def register_encoder(kind: type[T], make: Callable[[T], object]) -> None:
    """Store values of a type, and of its subclasses, as the storable values that `make` returns for them.

    Call it once for a type, at import: it holds for the whole process. It raises `ConfigurationError` for a type that
    the codec stores by itself, in a fixed form.
    """
    if kind in _BUILT_IN or kind is object:
        raise ConfigurationError(f"The stored form of {kind.__name__} is fixed: register a type of your own.")
    _REGISTERED[kind] = make
    # A type that was resolved before may resolve to this encoder now.
    for known in [known for known in _ENCODERS if known not in _BUILT_IN]:
        del _ENCODERS[known]


def _encode_members(values: Mapping[Any, object], level: int) -> dict[str, Attribute]:
    encoded: dict[str, Attribute] = {}
    name: Any = None
    try:
        for name, value in values.items():
            plain = name.__class__ is str and name.isascii() and 0 < len(name) <= MAX_NAME_BYTES
            encoded[name if plain else _checked_name(name)] = _ENCODERS[value.__class__](value, level)
    except RefusedError as refused:
        refused.steps.append(str(name.value if isinstance(name, Enum) else name))
        raise
    if len(encoded) < len(values):
        raise RefusedError("two keys of the map are the same text once stored: use one of them")
    return encoded


def _checked_name(name: object) -> str:
    plain = name.value if isinstance(name, Enum) else name
    if not isinstance(plain, str):
        raise RefusedError(f"the keys of a map are text, not {plain.__class__.__name__}: convert them")
    plain = str.__str__(plain)
    if not 0 < len(_utf8(plain)) <= MAX_NAME_BYTES:
        raise RefusedError(f"the keys of a map have 1 to {MAX_NAME_BYTES} bytes: choose another")
    return plain


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise RefusedError(
            f"the text has half of a surrogate pair at position {error.start}, which UTF-8 cannot express: "
            "repair it, or store it as bytes"
        ) from None


def _encode_text(value: str, _: int) -> Attribute:
    if not value.isascii():
        _utf8(value)
    return {"S": value}


def _encode_bytes(value: bytes | bytearray, _: int) -> Attribute:
    return {"B": b2a_base64(value, newline=False).decode("ascii")}


def _encode_list(value: Iterable[object], level: int) -> Attribute:
    _check_depth(value, level)
    encoded: list[Attribute] = []
    try:
        for member in value:
            encoded.append(_ENCODERS[member.__class__](member, level + 1))  # noqa: PERF401 - its length is the index
    except RefusedError as refused:
        refused.steps.append(len(encoded))
        raise
    return {"L": encoded}


def _encode_map(value: Mapping[Any, object], level: int) -> Attribute:
    _check_depth(value, level)
    return {"M": _encode_members(value, level + 1)}


def _check_depth(members: object, level: int) -> None:
    if members and level == MAX_LEVELS:
        raise RefusedError(
            f"lists and maps are nested deeper than DynamoDB's {MAX_LEVELS} levels: flatten them, or store "
            "the inner ones as text"
        )


def _encode_set(value: Iterable[object], level: int) -> Attribute:
    members = [_ENCODERS[member.__class__](member, level) for member in value]
    tags = {tag for member in members for tag in member}
    if len(tags) != 1 or not tags <= {"S", "N", "B"}:
        if not tags:
            raise RefusedError("DynamoDB cannot store an empty set: leave the attribute out, or store None")
        raise RefusedError("the members of a set are all text, all numbers or all binary: use a list")
    (tag,) = tags
    texts = sorted(member[tag] for member in members)
    distinct = len({Decimal(text) for text in texts} if tag == "N" else set(texts))
    if distinct < len(texts):
        raise RefusedError("members of the set differ in Python but are equal once stored: use one type")
    return {f"{tag}S": texts}


def _encode_datetime(value: datetime, _: int) -> Attribute:
    if value.tzinfo is UTC:
        return {"S": f"{value.isoformat(timespec='microseconds')[:-6]}Z"}
    if value.utcoffset() is None:
        raise RefusedError(f"{value} has no time zone: add one, as in datetime.now(UTC)")
    try:
        moment = value.astimezone(UTC)
    except OverflowError:
        raise RefusedError(f"{value} is outside the years 1 to 9999 in UTC") from None
    return {"S": f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"}


def _encode_time(value: time, _: int) -> Attribute:
    if value.tzinfo is not None:
        raise RefusedError(f"{value} has a time zone, but times of day are stored without one: store a datetime")
    return {"S": value.isoformat(timespec="microseconds")}


def _encode_timedelta(value: timedelta, _: int) -> Attribute:
    microseconds = (value.days * 86400 + value.seconds) * 1_000_000 + value.microseconds
    seconds, rest = divmod(abs(microseconds), 1_000_000)
    text = f"{seconds}.{rest:06d}" if rest else str(seconds)
    return {"N": f"-{text}" if microseconds < 0 else text}


class _Encoders(dict[type, Encoder]):
    """Encoder by exact type; a type met for the first time is resolved once and kept."""

    def __missing__(self, kind: type) -> Encoder:
        encoder = _resolve(kind)
        self[kind] = encoder
        return encoder


def _resolve(kind: type) -> Encoder:
    for known in kind.__mro__:
        if known in _REGISTERED:
            return _made(_REGISTERED[known], kind)
    if issubclass(kind, Enum):
        return lambda value, level: _ENCODERS[value.value.__class__](value.value, level)
    for known in kind.__mro__:
        if known in _PLAIN:
            return _made(_PLAIN[known], kind)
        if known in _BUILT_IN:
            return _BUILT_IN[known]
    raise RefusedError(
        f"values of type {kind.__module__}.{kind.__qualname__} cannot be stored: convert the value, or "
        "register an encoder for its type with register_encoder"
    )


def _made(make: Callable[[Any], object], kind: type) -> Encoder:
    def encode(value: object, level: int) -> Attribute:
        made = make(value)
        if made.__class__ is kind:
            raise RefusedError(f"the encoder of {kind.__qualname__} returns a {kind.__qualname__}")
        return _ENCODERS[made.__class__](made, level)

    return encode


_BUILT_IN: Final[dict[type, Encoder]] = {
    str: _encode_text,
    int: lambda value, _: {"N": int_text(value)},
    float: lambda value, _: {"N": float_text(value)},
    Decimal: lambda value, _: {"N": decimal_text(value)},
    bool: lambda value, _: {"BOOL": value},
    type(None): lambda _value, _: {"NULL": True},
    bytes: _encode_bytes,
    bytearray: _encode_bytes,
    memoryview: lambda value, level: _encode_bytes(value.tobytes(), level),
    list: _encode_list,
    tuple: _encode_list,
    dict: _encode_map,
    set: _encode_set,
    frozenset: _encode_set,
    datetime: _encode_datetime,
    date: lambda value, _: {"S": value.isoformat()},
    time: _encode_time,
    timedelta: _encode_timedelta,
    UUID: lambda value, _: {"S": str(value)},
}
_PLAIN: Final[dict[type, Callable[[Any], object]]] = {
    # A subclass may print itself differently; the value it holds is stored.
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    Decimal: Decimal,
}
_REGISTERED: Final[dict[type, Callable[[Any], object]]] = {}
_ENCODERS: Final = _Encoders(_BUILT_IN)
