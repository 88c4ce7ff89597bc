"""Runs queries of CloudWatch Logs Insights over lines of a local stack, as far as the saved queries use the language.

The stages are `filter`, `fields`, `parse` with a regular expression, `stats`, `sort` and `limit`. A stage or function
that is not among them is an error, so a saved query that this cannot run is found by its test.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from dynashard_tools.failure import CommandError

Record = dict[str, Any]
"""A line of a log: the members of its JSON, and `@timestamp`, `@log` and `@message`."""
Row = dict[str, str]
Predicate = Callable[[Record], bool]

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<regex>/(?:\\.|[^/\\])*/)|(?P<text>"(?:\\.|[^"\\])*")|(?P<number>-?\d+(?:\.\d+)?)"""
    r"""|(?P<word>[@\w.]+)|(?P<sign>>=|<=|!=|[=<>()\[\],]))"""
)
_STAGE: Final = re.compile(r"\n\s*\|\s*")
_AGGREGATE: Final = re.compile(r"(\w+)\(\s*([@\w.*]+)\s*(?:,\s*(\d+)\s*)?\)(?:\s+as\s+(\w+))?$")
_BIN: Final = re.compile(r"bin\((\d+)([smh])\)(?:\s+as\s+(\w+))?$")
_PARSE: Final = re.compile(r"(@?\w+)\s+/(.*)/$", re.DOTALL)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}
_DEFAULT_LIMIT: Final = 10_000


def run_query(text: str, records: Iterable[Record]) -> list[Row]:
    """Return the rows of a query over records in the order of their time.

    Raises:
        CommandError: the query has a part that is not known here.
    """
    found: list[Record] = list(records)
    shown: list[str] | None = None
    limit = _DEFAULT_LIMIT
    for stage in _STAGE.split(text.strip()):
        name, _, rest = stage.partition(" ")
        match name:
            case "filter":
                keep = _predicate(rest)
                found = [record for record in found if keep(record)]
            case "parse":
                found = [_parsed(record, rest) for record in found]
            case "fields":
                shown = _names(rest)
            case "stats":
                found, shown = _aggregated(found, rest)
            case "sort":
                found = _sorted(found, rest)
            case "limit":
                limit = int(rest)
            case _:
                raise CommandError(f"the stage {name!r} of a query runs in CloudWatch only")
    return [_row(record, shown) for record in found[:limit]]


def record_of(log: str, at: str, message: str) -> Record:
    """Return a line as a record; `at` is its time as Insights writes it."""
    own = {"@timestamp": at, "@log": log, "@message": message}
    if message.startswith("{"):
        try:
            members = json.loads(message)
        except ValueError:
            return own
        return {**members, **own}
    return own


def _row(record: Record, shown: Sequence[str] | None) -> Row:
    names = shown if shown is not None else ["@timestamp", "@message"]
    return {name: _text(record[name]) for name in names if record.get(name) is not None}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _names(text: str) -> list[str]:
    return [each.strip() for each in text.replace("\n", " ").split(",")]


def _parsed(record: Record, text: str) -> Record:
    found = _PARSE.match(text.strip())
    if found is None:
        raise CommandError(f"the query's parse of {text!r} runs in CloudWatch only")
    match = re.search(_python(found[2]), str(record.get(found[1], "")))
    return record if match is None else {**record, **match.groupdict()}


def _python(pattern: str) -> str:
    return pattern.replace("(?<", "(?P<")


def _sorted(found: list[Record], text: str) -> list[Record]:
    name, _, way = text.strip().partition(" ")
    have = [record for record in found if record.get(name) is not None]
    lack = [record for record in found if record.get(name) is None]
    return sorted(have, key=lambda record: record[name], reverse=way.strip() == "desc") + lack


# Aggregates


def _aggregated(found: list[Record], text: str) -> tuple[list[Record], list[str]]:
    what, _, by = text.replace("\n", " ").partition(" by ")
    groups: dict[tuple[Any, ...], list[Record]] = {}
    keys = [_key(each) for each in _split(by)]
    for record in found:
        groups.setdefault(tuple(_text_or_none(value(record)) for _, value in keys), []).append(record)
    if not keys and not groups:
        groups[()] = []
    aggregates = [_aggregate(each) for each in _split(what)]
    names = [*(name for name, _ in keys), *(name for name, _ in aggregates)]
    rows = [
        dict(zip(names, [*group, *(value(records) for _, value in aggregates)], strict=True))
        for group, records in groups.items()
    ]
    return rows, names


def _split(text: str) -> list[str]:
    return [each.strip() for each in re.split(r",(?![^(]*\))", text) if each.strip()]


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _key(text: str) -> tuple[str, Callable[[Record], Any]]:
    if found := _BIN.match(text):
        seconds = int(found[1]) * _SECONDS[found[2]]
        return found[3] or text, lambda record: _binned(record["@timestamp"], seconds)
    return text, lambda record: record.get(text)


def _binned(at: str, seconds: int) -> str:
    hours, minutes, rest = at[11:13], at[14:16], at[17:19]
    since = int(hours) * 3600 + int(minutes) * 60 + int(rest)
    since -= since % seconds
    return f"{at[:11]}{since // 3600:02d}:{since % 3600 // 60:02d}:{since % 60:02d}.000"


def _aggregate(text: str) -> tuple[str, Callable[[Sequence[Record]], Any]]:
    found = _AGGREGATE.match(text)
    if found is None or found[1] not in _FUNCTIONS:
        raise CommandError(f"the query's {text!r} runs in CloudWatch only")
    function, field, share = _FUNCTIONS[found[1]], found[2], float(found[3] or 0)
    if field == "*":
        return found[4] or text, len

    def aggregate(records: Sequence[Record]) -> Any:
        return function([value for each in records if (value := _value(each, field)) is not None], share)

    return found[4] or text, aggregate


def _value(record: Record, field: str) -> Any:
    value = record.get(field)
    # Metrics of a line are lists of one value, which CloudWatch reads as numbers.
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _percentile(values: Sequence[Any], share: float) -> Any:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share / 100))] if ordered else None


_FUNCTIONS: Final[Mapping[str, Callable[[Sequence[Any], float], Any]]] = {
    "count": lambda values, _: len(values),
    "sum": lambda values, _: sum(values),
    "max": lambda values, _: max(values, default=None),
    "min": lambda values, _: min(values, default=None),
    "avg": lambda values, _: round(sum(values) / len(values), 3) if values else None,
    "latest": lambda values, _: values[-1] if values else None,
    "pct": _percentile,
}


# Conditions


def _predicate(text: str) -> Predicate:
    tokens = _tokens(text)
    found = _any(tokens)
    if tokens:
        raise CommandError(f"the query's condition {text!r} runs in CloudWatch only")
    return found


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if found is None:
            raise CommandError(f"the query's condition {text!r} runs in CloudWatch only")
        tokens.append(found[0].strip())
        at = found.end()
    return tokens


def _any(tokens: list[str]) -> Predicate:
    parts = [_all(tokens)]
    while tokens and tokens[0] == "or":
        tokens.pop(0)
        parts.append(_all(tokens))
    return lambda record: any(part(record) for part in parts)


def _all(tokens: list[str]) -> Predicate:
    parts = [_one(tokens)]
    while tokens and tokens[0] == "and":
        tokens.pop(0)
        parts.append(_one(tokens))
    return lambda record: all(part(record) for part in parts)


def _one(tokens: list[str]) -> Predicate:
    first = tokens.pop(0)
    if first == "(":
        inside = _any(tokens)
        tokens.pop(0)
        return inside
    if first == "ispresent":
        name = tokens[1]
        del tokens[:3]
        return lambda record: record.get(name) is not None
    sign = tokens.pop(0)
    if sign == "like":
        pattern = re.compile(_python(tokens.pop(0)[1:-1]))
        return lambda record: pattern.search(_text(record.get(first, ""))) is not None
    if sign == "in":
        end = tokens.index("]")
        values = {str(_literal(each)) for each in tokens[1:end] if each != ","}
        del tokens[: end + 1]
        return lambda record: str(record.get(first)) in values
    return _compared(first, sign, _literal(tokens.pop(0)))


def _compared(name: str, sign: str, wanted: Any) -> Predicate:
    compare = _COMPARISONS[sign]

    def holds(record: Record) -> bool:
        value = _value(record, name)
        if isinstance(wanted, str):
            return value is not None and compare(_text(value), wanted)
        return isinstance(value, int | float) and compare(value, wanted)

    return holds


_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": lambda one, other: bool(one == other),
    "!=": lambda one, other: bool(one != other),
    ">=": lambda one, other: bool(one >= other),
    "<=": lambda one, other: bool(one <= other),
    ">": lambda one, other: bool(one > other),
    "<": lambda one, other: bool(one < other),
}


def _literal(token: str) -> Any:
    return json.loads(token)
