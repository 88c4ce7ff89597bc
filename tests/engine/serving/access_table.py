"""What the rules of the sample domain are to allow, written apart from them: for each resource, what its rights need.

`OWNER` owns each item. A right that only owners have is limited; a scope lifts that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

OWNER: Final = "ada"
OTHER: Final = "bob"
HIDDEN: Final = "only-for-readers"
"""A value of every stored item, which nobody may see who may not read the item."""
READS: Final = ("list", "get")
WRITES: Final = ("create", "put", "update", "delete")
ALL: Final = (*READS, *WRITES)
TURN: Final = {"starts_at": "2026-11-21T08:00:00Z", "ends_at": "2026-11-21T16:00:00Z"}
NOON: Final = "2026-11-21T12:00:00Z"


@dataclass(frozen=True)
class Resource:
    """A resource, one of its items, and who may do what with it.

    Attributes:
        path: below `/v1`.
        item: an item of `OWNER`.
        key: the names of its key's fields.
        needs: the scope of each right.
        patch: an update that its owner may send.
        every: the scope that lifts the owner rule.
        limited: the rights that only the owner has.
        partition: the members that a listing needs.
        refuses: whether a listing of another owner is refused, because its partition is the owner's; else it is empty.
        queued: whether creates go through a queue.
    """

    path: str
    item: Mapping[str, Any]
    key: tuple[str, ...]
    needs: Mapping[str, str]
    patch: Mapping[str, Any] = field(default_factory=dict)
    every: str | None = None
    limited: tuple[str, ...] = ()
    partition: Mapping[str, Any] = field(default_factory=dict)
    refuses: bool = False
    queued: bool = False

    @property
    def keys(self) -> Mapping[str, Any]:
        """The key of its item."""
        return {name: self.item[name] for name in self.key}


def scopes(name: str, *rights: str, **others: str) -> Mapping[str, str]:
    """Return the scopes of rights: `name:read` and `name:write`, or others by right."""
    usual = {right: f"{name}:{'read' if right in READS else 'write'}" for right in rights or ALL}
    return {**usual, **others}


_USED: Final = {"path": "/a.txt", "accessed_at": NOON, "action": "read", "user_id": HIDDEN}
_AUDIT: Final = scopes("audit", "list", "get", "create")

RESOURCES: Final = (
    Resource(
        "users",
        {"id": "u1", "email": "u1@example.com", "display_name": HIDDEN, "manager_id": OWNER},
        ("id",),
        scopes("users"),
        {"department": "eng"},
        "users:all",
        ALL,
    ),
    Resource(
        "articles",
        {"author": OWNER, "year": 2026, "slug": "on", "title": "On", "published_at": NOON, "text": HIDDEN},
        ("author", "year", "slug"),
        scopes("articles"),
        {"title": "On and on"},
        "articles:all",
        WRITES,
        {"author": OWNER, "year": 2026},
    ),
    *(
        Resource(path, {**_USED, **more}, key, _AUDIT, partition={"path": "/a.txt"})
        for path, more, key in (
            ("accesses", {"id": "a1"}, ("accessed_at", "id", "path")),
            ("ordered-accesses", {"id": "1vgSEuaUgFO5T5QZTn8nqJOqhUr"}, ("accessed_at", "id", "path")),
            ("timed-accesses", {}, ("accessed_at", "path")),
        )
    ),
    Resource(
        "contact-methods",
        {"user_id": OWNER, "method_id": "m1", "channel": "sms", "address": HIDDEN},
        ("user_id", "method_id"),
        scopes("contacts"),
        {"channel": "phone"},
        "contacts:all",
        ALL,
        {"user_id": OWNER},
        refuses=True,
    ),
    Resource(
        "notification-rules",
        {"user_id": OWNER, "rule_id": "r1", "method_id": HIDDEN},
        ("user_id", "rule_id"),
        scopes("contacts"),
        {"after_minutes": 5},
        "contacts:all",
        ALL,
        {"user_id": OWNER},
        refuses=True,
    ),
    Resource(
        "incidents",
        {"id": "i1", "title": HIDDEN},
        ("id",),
        scopes("incidents", delete="incidents:delete"),
        {"critical": True},
    ),
    Resource(
        "participations",
        {
            "incident_id": "i1",
            "participant": "user_ada",
            "state": "OPEN",
            "since": NOON,
            "number": 1,
            "title": HIDDEN,
            "status": "x",
            "created_at": NOON,
        },
        ("incident_id", "participant"),
        scopes("incidents", *READS),
        partition={"incident_id": "i1"},
    ),
    Resource(
        "notifications",
        {"id": "3MPq27ik2ypKrhIqPOnUWjZAF6N", "user_id": OWNER, "channel": "sms", "text": HIDDEN},
        ("id",),
        scopes("notifications"),
        {"channel": "phone"},
        "notifications:all",
        ALL,
    ),
    Resource(
        "pings",
        {"series": "s", "episode": "e", "at": NOON, "id": "p", "session_id": HIDDEN},
        ("series", "episode", "at", "id"),
        scopes("pings"),
        {"seconds": 5},
        partition={"series": "s", "episode": "e", "at": "2026-11-21"},
        queued=True,
    ),
    Resource("licensors", {"id": "l1", "name": HIDDEN}, ("id",), scopes("revenue"), {"name": "x"}),
    Resource(
        "licences",
        {"series": "s", "licensor_id": "l1"},
        ("series", "licensor_id"),
        scopes("revenue"),
        {"parts": 2},
    ),
    Resource("teams", {"team_id": "t2", "name": HIDDEN}, ("team_id",), scopes("on-call"), {"name": "x"}),
    Resource(
        "schedules",
        {"team_id": "t1", "schedule_id": "s1", "name": HIDDEN},
        ("team_id", "schedule_id"),
        scopes("on-call"),
        {"name": "x"},
    ),
    *(
        Resource(
            path,
            {"team_id": "t1", "schedule_id": "s1", name: "1", "user_id": HIDDEN, **TURN},
            ("team_id", "schedule_id", name),
            scopes("on-call"),
            {"user_id": "x"},
        )
        for path, name in (("shifts", "shift_id"), ("overrides", "override_id"))
    ),
    Resource(
        "members", {"team_id": "t1", "user_id": "u1"}, ("team_id", "user_id"), scopes("on-call"), {"role": "lead"}
    ),
    Resource(
        "escalation-policies",
        {"team_id": "t1", "policy_id": "p1", "steps": [{"targets": [f"user_{HIDDEN}"]}]},
        ("team_id", "policy_id"),
        scopes("on-call"),
        {"repeats": 1},
    ),
)


@dataclass(frozen=True)
class Read:
    """Another route, and the same by direct invocation: what it needs, and who is limited to their own.

    `also` is a second scope that it needs, and the code of its refusal.
    """

    name: str
    method: str
    route: str
    operation: str
    members: Mapping[str, Any]
    need: str
    every: str | None = None
    also: tuple[str, str] | None = None


_DAY: Final = {"key": {"team_id": "t1", "schedule_id": "s1"}}
_RANGE: Final = {"from": "2026-11-21T00:00:00Z", "to": "2026-11-22T00:00:00Z"}
_INCIDENT: Final = "/v1/incidents/{id}"
_SCHEDULE: Final = "/v1/schedules/{team_id}/{schedule_id}"
_EDGE: Final = {"node": f"User.{OWNER}", "other": "User.x"}
_SEATS: Final = {"key": {"screening": "s1"}}
_LIKES: Final = {"key": {"author": OWNER, "year": 2026, "slug": "a"}}
_SPAN: Final = {"from": "2026-11-21", "to": "2026-11-22"}
OTHERS: Final = (
    Read("follows", "POST", "/v1/follows", "create", {"item": _EDGE}, "follows:write", "follows:all"),
    Read("follows", "GET", "/v1/follows", "list", {"of": f"User.{OWNER}"}, "follows:read"),
    Read("follows", "GET", "/v1/follows/counts", "count", {"of": f"User.{OWNER}"}, "follows:read"),
    Read("follows", "GET", "/v1/follows/{node}/{other}", "get", {"key": _EDGE}, "follows:read"),
    Read("follows", "DELETE", "/v1/follows/{node}/{other}", "delete", {"key": _EDGE}, "follows:write", "follows:all"),
    Read("contacts", "GET", "/v1/contacts", "list", {"partition": {"user_id": OWNER}}, "contacts:read", "contacts:all"),
    Read("on-call", "GET", "/v1/on-call", "list", {}, "on-call:read"),
    Read("roll-ups", "GET", "/v1/roll-ups", "list", {"level": "month", **_SPAN}, "pings:read"),
    Read("revenue", "GET", "/v1/revenue", "get", {"month": "2026-11"}, "revenue:read"),
    Read("my-incidents", "GET", "/v1/my-incidents", "get", {}, "incidents:read"),
    Read(
        "feed",
        "GET",
        "/v1/feed",
        "get",
        {"of": f"User.{OWNER}"},
        "articles:read",
        also=("follows:read", "forbidden"),
    ),
    Read("schedules/on-call", "GET", f"{_SCHEDULE}/on-call", "get", _DAY, "on-call:read"),
    Read("schedules/rota", "GET", f"{_SCHEDULE}/rota", "list", {**_DAY, **_RANGE}, "on-call:read"),
    Read(
        "incidents/escalation",
        "GET",
        f"{_INCIDENT}/escalation",
        "list",
        {"key": {"id": "i1"}},
        "contacts:all",
        also=("incidents:read", "insufficient_scope"),
    ),
    *(
        each
        for name, route, key, reads in (
            ("seats", "/v1/seats/{screening}", _SEATS, "seats:read"),
            ("likes", "/v1/likes/{author}/{year}/{slug}", _LIKES, "articles:read"),
        )
        for each in (
            Read(name, "GET", route, "get", key, reads),
            Read(name, "POST", f"{route}/add", "add", key, f"{name}:write"),
            Read(name, "POST", f"{route}/take", "take", key, f"{name}:write"),
        )
    ),
)


@dataclass(frozen=True)
class RecordRoute:
    """A way to read the records of asynchronous writes, which needs no scope.

    Attributes:
        method: of the route.
        route: the path.
        operation: the same by direct invocation.
        members: those of the request, with the id of a record in place of `ID`.
        refusal: the code of the answer to another subject than the one who sent the write; None if it shows nothing.
        whole: whether even the sender is refused, because the answer would go round the policy.
    """

    method: str
    route: str
    operation: str
    members: Mapping[str, Any]
    refusal: str | None = None
    whole: bool = False


ID: Final = "the id of a record"
RECORDS: Final = (
    RecordRoute("GET", "/v1/operations", "list", {}),
    RecordRoute("GET", "/v1/operations/{id}", "get", {"key": {"id": ID}}, "not_found"),
    RecordRoute("GET", "/v1/operations/count", "count", {}, "forbidden", whole=True),
    RecordRoute(
        "POST", "/v1/operations/batch", "batch", {"requests": [{"operation": "get", "key": {"id": ID}}]}, "not_found"
    ),
)
RECORDS_INVOKED: Final = (
    *RECORDS,
    RecordRoute("", "", "batch_get", {"keys": [{"id": ID}]}, "not_found"),
)
"""Direct invocation has one more."""
PUBLIC: Final = frozenset({"/v1/health", "/v1/openapi.json", "/v1/docs"})
"""Roots that the gateway alone decides about: they answer no data."""
