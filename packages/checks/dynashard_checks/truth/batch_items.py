"""Items of every entity of the domain, each with a version that shows which write stored it."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple

from ksuid import Ksuid

from dynashard import Entity
from dynashard_patterns import Counter
from dynashard_serving.domain import declared
from dynashard_serving.operations.served import Served

TENANT: Final = "truth"
_AT: Final = datetime.now(UTC).replace(microsecond=0)
_NOW: Final = _AT.isoformat()
_LATER: Final = _AT.replace(year=_AT.year + 1, day=1).isoformat()
_TURN: Final = {"team_id": "t", "schedule_id": "s", "starts_at": _NOW, "ends_at": _LATER}

Document = dict[str, Any]


class Subject(NamedTuple):
    """An entity, and its documents by the name of an item and a version of it, both of which are unique.

    `invoked` says whether direct invocation writes batches of it; if not, only Python does. `mixed` says whether one of
    its batches may create, put, update and delete.
    """

    model: type[Entity]
    document: Callable[[str, str], Document]
    invoked: bool = True
    mixed: bool = True


def _timed_id(name: str) -> str:
    """Return the id of an item with this name: of the time at which this process began, and otherwise of the name."""
    return str(Ksuid(_AT, sha256(name.encode()).digest()[: Ksuid.PAYLOAD_LENGTH_IN_BYTES]))


def _summary(name: str, version: str) -> Document:
    return {"participant": f"user_{name}", "title": version, "incident_id": "i", "state": "OPEN", "number": 1}


_ROLES: Final = ("member", "lead")
_PLAYED: Final = {"level": "minute", "start": _NOW}
_DOCUMENTS: Final[Mapping[str, Callable[[str, str], Document]]] = {
    "users": lambda name, version: {"id": name, "email": "a@example.com", "display_name": version},
    "teams": lambda name, version: {"team_id": name, "name": version},
    "schedules": lambda name, version: {"team_id": "t", "schedule_id": name, "name": version},
    "shifts": lambda name, version: {**_TURN, "shift_id": name, "user_id": version},
    "overrides": lambda name, version: {**_TURN, "override_id": name, "user_id": version},
    "contact-methods": lambda name, version: {
        "user_id": "u", "method_id": name, "channel": "email", "address": version
    },
    "notification-rules": lambda name, version: {"user_id": "u", "rule_id": name, "method_id": version},
    "articles": lambda name, version: {"author": "a", "title": name, "published_at": _NOW, "text": version},
    "accesses": lambda name, version: {
        "path": "/f", "accessed_at": _NOW, "id": name, "action": "read", "user_id": version
    },
    "ordered-accesses": lambda name, version: {
        "path": "/f", "accessed_at": _NOW, "id": name, "action": "read", "user_id": version
    },
    "notifications": lambda name, version: {
        "id": _timed_id(name), "user_id": "u", "channel": "sms", "text": version
    },
    "timed-accesses": lambda name, version: {
        "path": f"/{name}", "accessed_at": _NOW, "action": "read", "user_id": version
    },
    "pings": lambda name, version: {"series": "s", "episode": "e", "at": _NOW, "id": name, "session_id": version},
    "incidents": lambda name, version: {
        "id": name, "title": version, "details": {"version": version, "more": "x" * 1000}
    },
    "participations": lambda name, version: {
        **_summary(name, version), "since": _NOW, "status": "TRIGGERED", "created_at": _NOW
    },
    "members": lambda name, version: {
        "team_id": "t", "user_id": name, "role": _ROLES[int(version.rpartition("-")[2])]
    },
    "escalation-policies": lambda name, version: {
        "team_id": "t", "policy_id": name, "steps": [{"targets": [f"user_{version}"]}]
    },
    "licensors": lambda name, version: {"id": name, "name": version},
    "licences": lambda name, version: {
        "series": name, "licensor_id": "l", "parts": int(version.rpartition("-")[2]) + 1
    },
    "operations": lambda name, version: {"id": name, "method": "PUT", "target": version},
    "follow-counts": lambda name, version: {
        "node": f"Actor.{name}", "way": "FANNED_BY", "slot": 0, "count": int(version.rpartition("-")[2])
    },
    "episode-plays": lambda name, version: {
        **_PLAYED, "series": "s", "episode": name, "pings": int(version.rpartition("-")[2])
    },
    "series-plays": lambda name, version: {
        "level": "month", "start": _NOW, "series": name, "pings": int(version.rpartition("-")[2])
    },
}  # fmt: skip


def subjects() -> dict[str, Subject]:
    """Return every entity of the samples by its path, except edges and counters, which no batch writes."""
    served = {each.path: Served(each) for each in declared().entities}
    samples = {
        path
        for path, each in served.items()
        if each.entity.__module__.startswith("domain.samples.") and not issubclass(each.entity, Counter)
    }
    if missing := samples - _DOCUMENTS.keys() - {"follows"}:
        raise LookupError(
            f"there are no items of {', '.join(sorted(missing))}: add them to dynashard_checks.truth.batch_items"
        )
    return {
        path: Subject(
            each.entity,
            _DOCUMENTS[path],
            {"put", "delete"} <= {*each.exposed.operations},
            {"create", "put", "update", "delete"} <= {*each.exposed.operations},
        )
        for path, each in served.items()
        if path in _DOCUMENTS
    }
