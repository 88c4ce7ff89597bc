"""The data of the requests in `operations_table`. It is noon of 21 November 2026."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

Items = Sequence[tuple[str, Mapping[str, Any]]]
"""Items by the resource names of their entities."""
Value = str | int | Sequence[Any]
"""A result other than an object."""


def user(**fields: Any) -> dict[str, Any]:
    """Return the body of a user."""
    return {"id": "ada", "email": "ada@example.com", "display_name": "Ada", **fields}


def ping_at(at: str) -> dict[str, Any]:
    """Return the body of a ping at this time."""
    return {"series": "s", "episode": "e", "at": at, "id": "p", "session_id": "x"}


ADA: Final = user(department="eng")
PING: Final = ping_at("2026-11-21T12:00:00Z")
OLD: Final = ping_at("2026-10-21T12:00:00Z")
"""A time outside of the accepted window that has not expired."""
PINGED: Final[Items] = (("pings", PING),)
LAST_MONTH: Final[Items] = (("pings", OLD),)
INCIDENT: Final = {"id": "i1", "number": 1, "title": "Down"}
USED: Final = {"path": "/a.txt", "accessed_at": "2026-11-21T12:00:00Z", "action": "read", "user_id": "ada"}
SENT: Final = {"id": "3MPq27ik2ypKrhIqPOnUWjZAF6N", "user_id": "ada", "channel": "sms", "text": "Down"}

_TURN: Final = {"user_id": "ada", "starts_at": "2026-11-21T08:00:00Z", "ends_at": "2026-11-21T16:00:00Z"}
_TAKES_PART: Final = {"number": 1, "title": "Down", "status": "x", "created_at": "2026-11-01T00:00:00Z"}

STORED: Final[Mapping[str, Items]] = {
    "people": (
        ("users", user(department="eng", manager_id="eve")),
        ("users", user(id="bob", email="bob@example.com", department="eng", status="disabled")),
        ("users", user(id="cy", email="cy@example.com", department="ops", manager_id="eve")),
        ("users", user(id="dan", email="dan@example.com")),
        ("users", user(id="eve", email="eve@example.com", expires_at="2026-11-21T11:00:00Z")),
    ),
    "press": tuple(
        ("articles", {"author": author, "title": title, "published_at": f"{year}-05-04T00:00:00Z"})
        for author, title, year in (
            ("amy", "On", 2017),
            ("amy", "Off", 2017),
            ("amy", "Up", 2018),
            ("ben", "Low", 2017),
        )
    ),
    "on-call": (
        ("teams", {"team_id": "core", "name": "Core"}),
        ("teams", {"team_id": "web", "name": "Web"}),
        ("schedules", {"team_id": "core", "schedule_id": "day", "name": "Day"}),
        ("shifts", {"team_id": "core", "schedule_id": "day", "shift_id": "1", **_TURN}),
        ("overrides", {"team_id": "core", "schedule_id": "day", "override_id": "1", **_TURN}),
        ("contact-methods", {"user_id": "ada", "method_id": "1", "channel": "sms", "address": "1"}),
        ("notification-rules", {"user_id": "ada", "rule_id": "1", "method_id": "1"}),
        ("contact-methods", {"user_id": "bob", "method_id": "2", "channel": "sms", "address": "2"}),
    ),
    "trouble": (
        ("incidents", {**INCIDENT, "details": {"a": [1]}}),
        *(
            (
                "participations",
                {"incident_id": incident, "participant": who, "state": state, "since": since, **_TAKES_PART},
            )
            for incident, who, state, since in (
                ("i1", "user_ada", "OPEN", "2026-11-01T00:00:00Z"),
                ("i1", "team_core", "OPEN", "2026-11-01T00:00:00Z"),
                ("i2", "user_ada", "CLOSED", "2026-11-02T00:00:00Z"),
            )
        ),
    ),
    "played": (
        ("pings", PING),
        ("pings", {**PING, "episode": "f", "id": "q"}),
        ("pings", {**ping_at("2026-11-20T12:00:00Z"), "id": "r"}),
    ),
}
"""Items that are only read, by their tenant."""
