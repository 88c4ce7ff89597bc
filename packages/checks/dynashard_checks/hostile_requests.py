"""The most expensive known requests, as events of the two functions that callers can reach."""

import base64
import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import reduce
from itertools import product
from string import ascii_letters
from typing import Any, Final
from urllib.parse import urlencode

from dynashard_serving.access import SCOPE
from dynashard_serving.domain import declared

TENANT: Final = "hostile"
API: Final = "functions.api.handler"
COMMANDS: Final = "functions.commands.handler"
_MEGABYTE: Final = 1_000_000
_GZIP: Final = "application/gzip"
_JSON: Final = "application/json"

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Hostile:
    """A hostile request.

    Attributes:
        name: a short description.
        function: the module of the handler that gets it.
        build: makes the event.
        refused: whether it must be refused. Otherwise it must be answered within the same bounds.
    """

    name: str
    function: str
    build: Callable[[], Event]
    refused: bool = True


def rest(
    method: str,
    path: str,
    query: str = "",
    *,
    body: bytes = b"",
    kind: str = _JSON,
    headers: Mapping[str, str] | None = None,
) -> Event:
    """Return an event of the API as the gateway sends it."""
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {"content-type": kind, **(headers or {})},
        "body": base64.b64encode(body).decode() if body else None,
        "isBase64Encoded": bool(body),
        "requestContext": {
            "stage": "$default",
            "requestId": "hostile",
            "http": {"method": method, "path": path},
            "authorizer": {"jwt": {"claims": {"tenant_id": TENANT, SCOPE: " ".join(declared().declarations.scopes)}}},
        },
    }


def direct(operation: str, entity: str = "users", **members: Any) -> Event:
    """Return the event of a direct invocation."""
    return {"operation": operation, "entity": entity, "tenant_id": TENANT, **members}


def _names(count: int) -> list[str]:
    return ["".join(each) for each, _ in zip(product(ascii_letters, repeat=3), range(count), strict=False)]


def _object(names: list[str]) -> bytes:
    return b"{" + b",".join(f'"{name}":1'.encode() for name in names) + b"}"


def _days(count: int) -> list[str]:
    return [f"{date(2026, 1, 1) + timedelta(days=number)}T00:00:00Z" for number in range(count)]


def _listed(path: str, **values: Any) -> Event:
    return rest("GET", path, urlencode(values, doseq=True))


def _nested(depth: int) -> Any:
    inner: Any = 1
    for _ in range(depth):
        inner = [inner]
    return inner


def _squeezed(text: bytes, times: int = 1) -> bytes:
    return reduce(lambda inner, _: gzip.compress(inner, mtime=0), range(times), text)


def _many(piece: bytes, size: int) -> bytes:
    return b"[" + piece * (size // len(piece)) + b"1]"


def _post(path: str, body: bytes, kind: str = _JSON) -> Callable[[], Event]:
    return lambda: rest("POST", path, body=body, kind=kind)


LEAVES: Final = 17 * _MEGABYTE
REQUESTS: Final = (
    Hostile("38,000 names, one twice", API, lambda: rest("POST", "/v1/users", body=_object([*_names(38_000), "aaa"]))),
    Hostile("62,000 unknown fields", API, lambda: rest("POST", "/v1/incidents", body=_object(_names(62_000)))),
    Hostile(
        "17 MB of lists in 17 KB of gzip",
        API,
        lambda: rest("POST", "/v1/incidents", body=_squeezed(_many(b"[],", LEAVES)), kind=_GZIP),
    ),
    Hostile(
        "17 MB of lists, 29 deep, in gzip",
        API,
        lambda: rest("POST", "/v1/incidents", body=_squeezed(_many(b"[" * 29 + b"]" * 29 + b",", LEAVES)), kind=_GZIP),
    ),
    Hostile(
        "gzip within gzip, 29 times",
        API,
        lambda: rest("POST", "/v1/incidents", body=_squeezed(_many(b"[],", LEAVES), 29), kind=_GZIP),
    ),
    Hostile(
        "2 GB of spaces in 2 MB of gzip",
        API,
        lambda: rest("POST", "/v1/users", body=b"".join([_squeezed(b" " * 20 * _MEGABYTE)] * 100), kind=_GZIP),
    ),
    Hostile("199,000 objects", API, lambda: rest("POST", "/v1/incidents", body=_many(b"{},", 597_000))),
    Hostile(
        "199,000 wrong texts in a list",
        API,
        lambda: rest("PUT", "/v1/incidents/i", body=b'{"participants":' + _many(b"1,", 398_000) + b"}"),
    ),
    Hostile(
        "a number of 400,000 digits", API, lambda: rest("POST", "/v1/users", body=b'{"id":' + b"9" * 400_000 + b"}")
    ),
    Hostile(
        "100 unknown parameters",
        API,
        lambda: rest("GET", "/v1/users", urlencode([("\U0001f600" * 10, n) for n in range(100)])),
    ),
    Hostile("2,000 tags", API, lambda: rest("GET", "/v1/users/1", headers={"if-match": ",".join(['"a"'] * 2000)})),
    Hostile("an id of 100,000 bytes", API, lambda: rest("GET", "/v1/users/" + "x" * 100_000)),
    Hostile("95 days of pings", API, lambda: _listed("/v1/pings", index="by_time", at=_days(95))),
    Hostile(
        "95 days of pings, ordered", API, lambda: _listed("/v1/pings", index="by_time", at=_days(95), order="ordered")
    ),
    Hostile(
        "100 departments of 4 shards, ordered",
        API,
        lambda: _listed("/v1/users", index="by_department", department=[f"d{n}" for n in range(100)], order="ordered"),
    ),
    Hostile(
        "100 years of articles, ordered, 1,000 a page",
        API,
        lambda: _listed("/v1/articles", author="a", year=list(range(1900, 2000)), order="ordered", limit=1000),
        refused=False,
    ),
    Hostile("direct: 62,000 unknown fields", COMMANDS, lambda: direct("create", item=dict.fromkeys(_names(62_000), 1))),
    Hostile("direct: 62,000 unknown members", COMMANDS, lambda: direct("get") | dict.fromkeys(_names(62_000), 1)),
    Hostile("direct: 300,000 lists", COMMANDS, lambda: direct("create", item={"x": [[] for _ in range(300_000)]})),
    Hostile("direct: 500 levels", COMMANDS, lambda: direct("create", item={"x": _nested(500)})),
    Hostile("direct: a number of 4,000 digits", COMMANDS, lambda: direct("create", item={"id": 10**4000})),
    Hostile("direct: a batch of 100,000", COMMANDS, lambda: direct("batch_write", put=[1] * 100_000)),
    Hostile("direct: 10,000 filters", COMMANDS, lambda: direct("list", filters=dict.fromkeys(_names(10_000), 1))),
    Hostile("direct: 100,000 fields", COMMANDS, lambda: direct("list", fields=["id"] * 100_000)),
    Hostile("direct: a cursor of 5 MB", COMMANDS, lambda: direct("list", cursor="x" * 5 * _MEGABYTE)),
    Hostile(
        "direct: 1,000,000,000 partitions",
        COMMANDS,
        lambda: direct(
            "list", "pings", partition={name: ["2026-01-01"] * 1000 for name in ("series", "episode", "at")}
        ),
    ),
    Hostile(
        "direct: a count of 95 days of pings",
        COMMANDS,
        lambda: direct("count", "pings", index="by_time", partition={"at": _days(95)}),
    ),
    Hostile(
        "direct: 1,000 wrong items",
        COMMANDS,
        lambda: direct("batch_write", put=[dict.fromkeys(_names(100), 1) for _ in range(1000)]),
        refused=False,
    ),
)
"""Each must be refused or answered within the bounds of docs/limits.md."""
WARM: Final[Mapping[str, Event]] = {
    API: rest("GET", "/v1/users", "limit=1"),
    COMMANDS: direct("list", limit=1),
}
"""The request that each function answers first, so that imports and the first connection are not measured."""
