"""Bounded JSON input: the text of a body or a message, or an event that Lambda has parsed.

A parser builds everything that it reads: 17 MB of `[],[],...` become 6 million lists. So values are first counted in
the text.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from dynashard.errors import RequestTooLargeError
from dynashard_serving.limits import MAX_DEPTH, MAX_DIGITS, MAX_NAME_LENGTH, MAX_VALUES

_TOKEN: Final = re.compile(rb'"[^"]*+"?|[\[{](?:\s*+[\]}])?|,')
"""A string without escapes, an empty list or object, or a character that comes just before one more value."""
_BEFORE_VALUE: Final = frozenset({b"[", b"{", b","})
_SHOWN: Final = 40
_EXACT: Final = 2**53
"""A float holds every whole number up to this one exactly."""


class MalformedJsonError(ValueError):
    """The text is not JSON by RFC 8259, or exceeds a bound. The message continues a sentence that names the text.

    For example `is not valid JSON at line 1, column 2: ...` continues "The body".
    """


def read_json(raw: bytes, *, depth: int = MAX_DEPTH) -> Any:
    """Parse JSON by RFC 8259: in UTF-8, without NaN, without repeated names in an object, without text after the value.

    Args:
        raw: the text.
        depth: the most levels of nesting.

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
        raise MalformedJsonError("holds half of a surrogate pair, which is not a character.") from error
    except UnicodeDecodeError as error:
        raise MalformedJsonError(f"is not valid UTF-8 at byte {error.start}.") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise MalformedJsonError(f"is not valid JSON at {where}: {error.msg}.") from error
    except RecursionError as error:
        raise _too_deep(depth) from error
    check_values(document, depth=depth)
    return document


def check_values(document: Any, *, depth: int) -> None:
    """Refuse a document that exceeds a bound of a request. Stop at the first excess.

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


def plain_numbers(document: Any) -> Any:
    """JSON that was parsed elsewhere, with its whole numbers as `read_json` gives them.

    Raises:
        MalformedJsonError: a number is infinite, or none.
    """
    if isinstance(document, dict):
        return {name: plain_numbers(value) for name, value in document.items()}
    if isinstance(document, list):
        return [plain_numbers(value) for value in document]
    if isinstance(document, float):
        if not math.isfinite(document):
            raise MalformedJsonError(f"is not valid JSON: {document} is not a JSON number.")
        return _whole(document)
    return document


def _refuse_many(raw: bytes) -> None:
    """Refuse text with too many values, before any of them is built."""
    # This is almost always enough: each value except the first follows one of these characters.
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") < MAX_VALUES:
        return
    # Without escapes every quote begins or ends a string. Pairs of backslashes go first: `\\"` ends a string.
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in raw else raw
    values = others = 0
    for token in _TOKEN.finditer(plain):
        if token[0] in _BEFORE_VALUE:
            values += 1
        else:
            others += 1
        # Each value of valid JSON has at most two strings. Invalid text may consist of strings alone.
        if values >= MAX_VALUES or others > 2 * MAX_VALUES:
            raise _too_many()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise MalformedJsonError(f"is not accepted: the name {name[:100]!a} appears twice in one object.")
            seen.add(name)
    return document


def _no_constant(name: str) -> NoReturn:
    raise MalformedJsonError(f"is not valid JSON: {name} is not a JSON number.")


def _finite(digits: str) -> float | int:
    """Return the number; a whole one as an int, because 5 and 5.0 are one number in JSON (JSON Schema, "integer")."""
    _refuse_long(digits)
    number = float(digits)
    if not math.isfinite(number):
        raise MalformedJsonError(f"is not accepted: the number {digits[:_SHOWN]} is too large for a double.")
    return _whole(number)


def _whole(number: float) -> float | int:
    return int(number) if number.is_integer() and abs(number) <= _EXACT else number


def _integer(digits: str) -> int:
    _refuse_long(digits)
    return int(digits)


def _refuse_long(digits: str) -> None:
    if len(digits) > MAX_DIGITS:
        raise _too_long(digits[:_SHOWN] + "...")


def _refuse_digits(value: Any) -> None:
    # A digit takes at most 10/3 bits. Converting a huge number to text to count its digits would be slow.
    if isinstance(value, int) and value.bit_length() > MAX_DIGITS * 10 // 3 + 1:
        raise _too_long(f"of {value.bit_length()} bits")


def _refuse_names(document: Mapping[Any, Any]) -> None:
    for name in document:
        if len(name) > MAX_NAME_LENGTH:
            raise MalformedJsonError(
                f"is not accepted: the name {name[:_SHOWN]!a}... has {len(name)} characters; "
                f"at most {MAX_NAME_LENGTH} are allowed."
            )


def _too_long(number: str) -> MalformedJsonError:
    return MalformedJsonError(f"is not accepted: the number {number} has more than {MAX_DIGITS} digits.")


def _too_deep(depth: int) -> MalformedJsonError:
    return MalformedJsonError(f"is nested deeper than {depth} levels.")


def _too_many() -> RequestTooLargeError:
    return RequestTooLargeError(
        f"The request holds more than {MAX_VALUES} JSON values; send fewer values in one request.",
        limit=MAX_VALUES,
    )
