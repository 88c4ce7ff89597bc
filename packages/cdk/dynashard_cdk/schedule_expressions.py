"""Times of a schedule: what an operator writes, checked and in the form that EventBridge Scheduler takes."""

import re
from calendar import monthrange
from difflib import get_close_matches
from typing import Final, NamedTuple
from zoneinfo import available_timezones

EXAMPLES: Final = 'write a time of day such as "17:00", a cron(0 17 ? * MON-FRI *), or an at(2026-12-24T17:00:00)'
_CLOCK: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_MOMENT: Final = re.compile(rf"(20\d\d)-(0[1-9]|1[0-2])-(\d\d)T{_CLOCK.pattern}:[0-5]\d")
_CALL: Final = re.compile(r"(\w+)\((.*)\)")
_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class _Field(NamedTuple):
    """A field of a cron expression: its name, bounds, names of values, and pattern of what only this field allows."""

    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()
    special: str = r"(?!)"


_FIELDS: Final = (
    _Field("minutes", 0, 59),
    _Field("hours", 0, 23),
    _Field("day of month", 1, 31, special=r"\?|L|LW|([1-9]|[12]\d|3[01])W"),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 1, 7, _DAYS, special=r"\?|L|([1-7]|SUN|MON|TUE|WED|THU|FRI|SAT)(L|#[1-5])"),
    _Field("year", 1970, 2199),
)
_DAY_OF_MONTH, _DAY_OF_WEEK = 2, 4


def expression(text: str) -> str:
    """Return a schedule expression of EventBridge Scheduler for a time of day, a `cron(...)` or an `at(...)`.

    Raises:
        ValueError: it is none of these; the message says what to write.
    """
    # Digits of other scripts are digits to Python, and not to the scheduler.
    if not text.isascii():
        raise ValueError(f"{text!r} is not a time of a schedule: {EXAMPLES}")
    if clock := _CLOCK.fullmatch(text):
        return f"cron({int(clock[2])} {int(clock[1])} * * ? *)"
    call = _CALL.fullmatch(text)
    if call and call[1] == "cron":
        _check_cron(call[2].split())
        return f"cron({' '.join(call[2].split())})"
    if call and call[1] == "at":
        _check_moment(call[2])
        return text
    raise ValueError(f"{text!r} is not a time of a schedule: {EXAMPLES}")


def time_zone(name: str) -> str:
    """Return the name of a time zone of the IANA database.

    Raises:
        ValueError: it is unknown; the message has similar names.
    """
    known = available_timezones()
    if name in known:
        return name
    similar = get_close_matches(name, known, n=3, cutoff=0.5) or ["Europe/Berlin", "America/New_York", "UTC"]
    raise ValueError(f"{name!r} is not a time zone of the IANA database: write one such as {', '.join(similar)}")


def _check_moment(text: str) -> None:
    moment = _MOMENT.fullmatch(text)
    if moment is None or not 1 <= int(moment[3]) <= monthrange(int(moment[1]), int(moment[2]))[1]:
        raise ValueError(
            f"at({text}) is not a date and time: write at(2026-12-24T17:00:00); the zone belongs in time_zone"
        )


def _check_cron(fields: list[str]) -> None:
    if len(fields) != len(_FIELDS):
        names = ", ".join(field.name for field in _FIELDS)
        raise ValueError(f"cron({' '.join(fields)}) has {len(fields)} fields; it needs {len(_FIELDS)}: {names}")
    for field, text in zip(_FIELDS, fields, strict=True):
        for part in text.upper().split(","):
            _check_part(field, part)
    if [fields[_DAY_OF_MONTH], fields[_DAY_OF_WEEK]].count("?") != 1:
        raise ValueError(
            f"cron({' '.join(fields)}) must have ? as its day of month or as its day of week, and not as both"
        )


def _check_part(field: _Field, part: str) -> None:
    """Check one of the values, ranges or steps that a field lists."""
    if re.fullmatch(field.special, part):
        return
    values, _, every = part.partition("/")
    if "/" in part and not re.fullmatch("[1-9][0-9]*", every):
        raise ValueError(f"{part!r} is not a step of {field.name}: write such as */15")
    if values == "*":
        return
    bounds = [_value(field, value) for value in values.split("-")]
    if len(bounds) > 2 or bounds != sorted(bounds):  # noqa: PLR2004 - a range has two ends
        raise ValueError(f"{part!r} is not a range of {field.name}: write the lower value first, such as 1-5")


def _value(field: _Field, text: str) -> int:
    if text in field.names:
        return field.names.index(text) + field.lowest
    if text.isdigit() and field.lowest <= int(text) <= field.highest:
        return int(text)
    raise ValueError(f"{text!r} is not allowed as {field.name}: write {field.lowest} to {field.highest}, or *")
