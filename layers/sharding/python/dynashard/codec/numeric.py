"""DynamoDB's numbers: finite, 38 significant digits, magnitudes from 1E-130 to 9.9...E+125. Others are refused."""

from decimal import Decimal
from typing import Final

from dynashard.codec.refusal import RefusedError, shown

MAX_DIGITS: Final = 38
MAX_EXPONENT: Final = 125
MIN_EXPONENT: Final = -130

_MIN_FLOAT: Final = 1e-130
_END_FLOAT: Final = 1e126
_PLAIN_INT: Final = 10**MAX_DIGITS
_MAX_INT: Final = 10 ** (MAX_EXPONENT + 1)
_RANGE: Final = "DynamoDB's numbers have magnitudes from 1E-130 to 9.9E+125: store it as text"


def int_text(value: int) -> str:
    """Return the number as DynamoDB takes it."""
    if -_PLAIN_INT < value < _PLAIN_INT:
        return repr(value)
    # The range first: Python refuses to write out integers of thousands of digits.
    if not -_MAX_INT < value < _MAX_INT:
        digits = value.bit_length() * 301 // 1000
        raise RefusedError(f"an integer of about {digits} digits is too large; {_RANGE}")
    return decimal_text(Decimal(value))


def float_text(value: float) -> str:
    """Return the shortest number that reads back as the same float, with at most 17 digits; -0.0 becomes 0."""
    # NaN compares false with everything and so ends below, too.
    if _MIN_FLOAT <= value < _END_FLOAT or -_END_FLOAT < value <= -_MIN_FLOAT:
        return repr(value)
    if value == 0:
        return "0"
    if value - value != 0:
        raise RefusedError(f"{value!r} cannot be stored: DynamoDB's numbers are finite")
    raise RefusedError(f"{value!r} is out of range; {_RANGE}")


def decimal_text(value: Decimal) -> str:
    """Return the number as DynamoDB takes it, in its canonical text: 1.50 is stored as 1.5, and -0 as 0."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise RefusedError(f"{value} cannot be stored: DynamoDB's numbers are finite")
    if not value:
        return "0"
    if not MIN_EXPONENT <= value.adjusted() <= MAX_EXPONENT:
        raise RefusedError(f"{shown(str(value))} is out of range; {_RANGE}")
    significant = len("".join(map(str, digits)).rstrip("0")) if len(digits) > MAX_DIGITS else 0
    if significant > MAX_DIGITS:
        raise RefusedError(
            f"{shown(str(value))} has {significant} significant digits, and DynamoDB keeps {MAX_DIGITS}: round it, "
            "or store it as text"
        )
    return plain_text(value)


def plain_text(value: Decimal) -> str:
    """Return the canonical text of a number: no exponent, no trailing zeros after the point, no negative zero.

    `20.10`, `2.01E1` and `20.1` are all `20.1`; `1E-8` is `0.00000001`. A number that DynamoDB cannot hold is returned
    as Python writes it, because its digits could fill the memory.
    """
    if (value and not MIN_EXPONENT - MAX_DIGITS <= value.adjusted() <= MAX_EXPONENT) or not value.is_finite():
        return str(value)
    if not value:
        return "0"
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def number_size(text: str) -> int:
    """Return the bytes that DynamoDB bills for a number.

    One byte, one for each started pair of digits before the point, one for each started pair after it, one for a minus
    sign; zeros at both ends of the number do not count, and zero itself is one byte. AWS documents this only
    approximately ("1 byte per two significant digits, plus 1"); the authors of the local engine measured it against
    DynamoDB in eu-west-2 (nubo-db/dynoxide, pull request 195).
    """
    if "E" in text or "e" in text:
        text = format(Decimal(text), "f")
    whole, _, fraction = text.lstrip("+-").partition(".")
    whole = whole.lstrip("0")
    fraction = fraction.rstrip("0")
    if not fraction:
        whole = whole.rstrip("0")
        if not whole:
            return 1
    elif not whole:
        fraction = fraction.lstrip("0")
    return 1 + (len(whole) + 1) // 2 + (len(fraction) + 1) // 2 + text.startswith("-")
