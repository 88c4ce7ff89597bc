"""What `dynashard logs` can look for besides saved queries: a request, an item, or a tenant."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Final
from urllib.parse import quote, unquote

from dynashard_tools.entities import tenant_of
from dynashard_tools.failure import CommandError
from dynashard_tools.logs.insights import Row

SUBJECTS: Final = ("request", "item", "tenant")
"""Words that take a value: `dynashard logs item users/ada`."""
_FIELDS: Final = (
    "@timestamp", "service", "tenant", "method", "route", "operation", "item", "status", "outcome", "code", "revision",
    "before", "caller", "request_id", "error",
)  # fmt: skip
MOST: Final = 500
"""Lines of one look-up: the newest."""

Ask = Callable[[str], list[Row]]
"""Runs a query over all logs."""


def look_up(subject: str, value: str, ask: Ask) -> list[Row]:
    """Return the newest lines about a request, an item such as `users/ada`, or a tenant, in the order of their time.

    There are at most `MOST`. For a request, they include the lines of the stream consumer about the revisions that it
    wrote.

    Raises:
        CommandError: the value is not the path of an item.
    """
    match subject:
        case "request":
            rows = ask(_text(f"request_id = {_quoted(value)} or requestId = {_quoted(value)}"))
            revisions = sorted({row["revision"] for row in rows if row.get("revision") and _writes(row)})
            if revisions:
                rows += ask(_text(f'message = "change" and {_among("revision", revisions)}'))
        case "item":
            rows = ask(_text(_among("item", _spellings(value))))
        case _:
            rows = ask(_text(f"tenant = {_quoted(tenant_of(value))}"))
    return sorted(rows, key=lambda row: row["@timestamp"])


def _writes(row: Row) -> bool:
    return row.get("method") not in ("GET", "HEAD") and row.get("operation") not in ("get", "list")


def path_of(item: str) -> str:
    """Return the path of the entity that an item such as `/v1/users/ada` names: `users`."""
    return _bare(item).partition("/")[0]


def _bare(item: str) -> str:
    return item.strip("/").removeprefix("v1/")


def _spellings(item: str) -> list[str]:
    """Return an item's path as callers may write it: with and without escapes."""
    bare = _bare(item)
    if "/" not in bare:
        raise CommandError(f"{item!r} names no item: write its path, such as users/ada")
    escaped = "/".join(quote(unquote(part), safe="") for part in bare.split("/"))
    return list(dict.fromkeys([bare, escaped, unquote(bare)]))


def _text(condition: str) -> str:
    return f"filter {condition}\n| fields {', '.join(_FIELDS)}\n| sort @timestamp desc\n| limit {MOST}"


def _among(name: str, values: Iterable[str]) -> str:
    return f"{name} in [{', '.join(map(_quoted, values))}]"


def _quoted(value: str) -> str:
    return json.dumps(value)


def without_repeats(rows: Sequence[Row]) -> list[Row]:
    """Return rows without those that two queries have found."""
    return [dict(each) for each in dict.fromkeys(tuple(row.items()) for row in rows)]
