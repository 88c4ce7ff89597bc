"""JSON from callers, bounded before it is built: the text of a body or a message, or an event that is parsed already.

A parser builds what it reads: 17 MB of `[],[],...` become 6 million lists. So values are counted in the text first.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from dynashard.errors import RequestTooLargeError
from dynashard.hosting.limits import MAX_DEPTH, MAX_DIGITS, MAX_NAME_LENGTH, MAX_VALUES

_TOKEN: Final = re.compile(rb'"[^"]*+"?|[\[{](?:\s*+[\]}])?|,')
"""A text without escapes, an empty list or object, or what comes just before one more value."""
_BEFORE_VALUE: Final = frozenset({b"[", b"{", b","})
_SHOWN: Final = 40
_EXACT: Final = 2**53
"""Up to here a float holds every whole number exactly."""


class MalformedJsonError(ValueError):
    """Text that is not JSON as RFC 8259 has it. The message continues a sentence: `is no JSON at line 1, ...`."""


def read_json(raw: bytes, *, depth: int = MAX_DEPTH) -> Any:
    """Parse JSON as RFC 8259 means it: UTF-8, no NaN, no name twice in an object, nothing behind the value.

    Args:
        raw: the text.
        depth: levels of nesting that are taken.

    Raises:
        MalformedJsonError: it is something else, or nested too deep.
        RequestTooLargeError: it holds more than `MAX_VALUES` values.

    Cost: time and memory in proportion to the text, and at most those of `MAX_VALUES` values.
    """
    _refuse_many(raw)
    try:
        document = json.loads(
            raw.decode(),
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_integer,
        )
        if b"\\u" in raw:
            json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise MalformedJsonError("holds half of a surrogate pair.") from error
    except UnicodeDecodeError as error:
        raise MalformedJsonError(f"is no UTF-8 at byte {error.start}.") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise MalformedJsonError(f"is no JSON at {where}: {error.msg}.") from error
    except RecursionError as error:
        raise _too_deep(depth) from error
    check_values(document, depth=depth)
    return document


def check_values(document: Any, *, depth: int) -> None:
    """Refuse a document that is nested too deep, or that holds more than a request may. It stops at the first excess.

    Args:
        document: JSON that is parsed already.
        depth: levels of nesting that are taken.

    Raises:
        MalformedJsonError: too deep, a name too long, or a number with too many digits.
        RequestTooLargeError: more than `MAX_VALUES` values.
    """
    level, count = [document], 1
    for _ in range(depth + 1):
        below: list[Any] = []
        for value in level:
            if isinstance(value, Mapping):
                _refuse_names(value)
                inner: Any = value.values()
            elif isinstance(value, list):
                inner = value
            else:
                _refuse_digits(value)
                continue
            count += len(inner)
            if count > MAX_VALUES:
                raise _too_many()
            below.extend(inner)
        if not below:
            return
        level = below
    raise _too_deep(depth)


def _refuse_many(raw: bytes) -> None:
    """Refuse text with too many values, before any of them is built."""
    # Almost always enough: each value but the first stands behind one of these, or behind a comma of a text.
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") < MAX_VALUES:
        return
    # Escapes go first, pairs of backslashes before escaped quotes: then a quote begins or ends a text.
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in raw else raw
    values = others = 0
    for token in _TOKEN.finditer(plain):
        if token[0] in _BEFORE_VALUE:
            values += 1
        else:
            others += 1
        # A value has at most a name and a text. What is no JSON may have nothing but texts.
        if values >= MAX_VALUES or others > 2 * MAX_VALUES:
            raise _too_many()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise MalformedJsonError(f"is no JSON we take: the name {name[:100]!a} stands twice in one object.")
            seen.add(name)
    return document


def _no_constant(name: str) -> NoReturn:
    raise MalformedJsonError(f"is no JSON we take: {name} is no JSON number.")


def _finite(digits: str) -> float | int:
    """The number; a whole one as an int, because JSON does not tell 5 from 5.0 (JSON Schema, "integer")."""
    _refuse_long(digits)
    number = float(digits)
    if not math.isfinite(number):
        raise MalformedJsonError(f"is no JSON we take: the number {digits[:_SHOWN]} is too large.")
    return int(number) if number.is_integer() and abs(number) <= _EXACT else number


def _integer(digits: str) -> int:
    _refuse_long(digits)
    return int(digits)


def _refuse_long(digits: str) -> None:
    if len(digits) > MAX_DIGITS:
        raise _too_long(digits[:_SHOWN] + "...")


def _refuse_digits(value: Any) -> None:
    # Three bits and a third a digit; writing the number out would take the time that is to be saved.
    if isinstance(value, int) and value.bit_length() > MAX_DIGITS * 10 // 3 + 1:
        raise _too_long(f"of {value.bit_length()} bits")


def _refuse_names(document: Mapping[Any, Any]) -> None:
    for name in document:
        if len(name) > MAX_NAME_LENGTH:
            raise MalformedJsonError(
                f"is no JSON we take: the name {name[:_SHOWN]!a}... has {len(name)} characters; "
                f"at most {MAX_NAME_LENGTH} are taken."
            )


def _too_long(number: str) -> MalformedJsonError:
    return MalformedJsonError(f"is no JSON we take: the number {number} has more than {MAX_DIGITS} digits.")


def _too_deep(depth: int) -> MalformedJsonError:
    return MalformedJsonError(f"is nested deeper than {depth} levels.")


def _too_many() -> RequestTooLargeError:
    return RequestTooLargeError(
        f"The request holds more than {MAX_VALUES} JSON values: send fewer at a time, or large ones as text.",
        limit=MAX_VALUES,
    )
