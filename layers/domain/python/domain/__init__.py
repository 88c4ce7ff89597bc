"""The entities of this backend: declare one in a module of its own, and name it here.

A name such as `domain.User` loads all declarations at its first use.
"""

from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from dynashard_serving.operations.exposed import OPERATIONS, READS, Exposed, FamilyListing, Window

if TYPE_CHECKING:
    from domain.declared import (
        COPIES,
        FOLLOWS,
        PARTICIPATIONS,
        PLAYS,
        ROLL_UPS,
        Access,
        AccessAction,
        Article,
        Channel,
        ContactMethod,
        EpisodePlays,
        Follow,
        FollowCount,
        Incident,
        IncidentState,
        Licence,
        Licensor,
        NotificationRule,
        Operation,
        OperationState,
        Override,
        Participation,
        Ping,
        Revenue,
        RevenueShare,
        Schedule,
        SeriesPlays,
        Severity,
        Shift,
        Team,
        TimedAccess,
        User,
        UserStatus,
    )

ENTITIES: Final = (
    Exposed("domain.users:User", path="users", filters=("department", "manager_id", "status")),
    Exposed("domain.teams:Team", path="teams", tag="on-call"),
    Exposed("domain.teams:Schedule", path="schedules", tag="on-call"),
    Exposed("domain.teams:Shift", path="shifts", filters=("user_id",), tag="on-call"),
    Exposed("domain.teams:Override", path="overrides", filters=("user_id",), tag="on-call"),
    Exposed("domain.contacts:ContactMethod", path="contact-methods", filters=("channel",), tag="contacts"),
    Exposed("domain.contacts:NotificationRule", path="notification-rules", filters=("severity",), tag="contacts"),
    Exposed("domain.articles:Article", path="articles"),
    Exposed(
        "domain.audit:Access",
        path="accesses",
        filters=("action", "user_id"),
        operations=("list", "create", "get"),
        address=("accessed_at", "id", "path"),
        tag="audit",
    ),
    Exposed(
        "domain.audit:TimedAccess",
        path="timed-accesses",
        filters=("action", "user_id"),
        operations=("list", "create", "get"),
        address=("accessed_at", "path"),
        tag="audit",
    ),
    Exposed(
        "domain.plays:Ping",
        path="pings",
        filters=("session_id", "viewer_id"),
        queued=True,
        window=Window("at", past=timedelta(days=7), ahead=timedelta(minutes=5)),
    ),
    Exposed("domain.participations:Incident", path="incidents", filters=("status", "team"), tag="incidents"),
    Exposed(
        "domain.participations:Participation",
        path="participations",
        distinct=("incident_id",),
        operations=READS,
        tag="incidents",
    ),
    Exposed("domain.revenue:Licensor", path="licensors", tag="revenue"),
    Exposed("domain.revenue:Licence", path="licences", filters=("licensor_id",), tag="revenue"),
    Exposed("domain.operations:Operation", path="operations", filters=("state",), operations=READS),
    Exposed("domain.follows:Follow", path="follows", operations=(), route="/v1/follows"),
    Exposed("domain.follows:FollowCount", path="follow-counts", operations=(), route="/v1/follows/counts"),
    Exposed("domain.plays:EpisodePlays", path="episode-plays", operations=(), route="/v1/roll-ups"),
    Exposed("domain.plays:SeriesPlays", path="series-plays", operations=(), route="/v1/roll-ups"),
)
"""The entities that callers may use, and their public names.

Each is named by its module, so that a function which serves users first does not build the models of all others. The
module of an entity is the one that says all that holds for its writes: copies and roll-ups check the keys of their
source.
"""

FAMILY_LISTINGS: Final = (
    FamilyListing(
        ("domain.teams:Team", "domain.teams:Schedule", "domain.teams:Shift", "domain.teams:Override"), path="on-call"
    ),
    FamilyListing(("domain.contacts:ContactMethod", "domain.contacts:NotificationRule"), path="contacts"),
)
"""Entities that share logical partitions and are also listed as one."""

_DECLARED: Final = "domain.declared"
"""The module with all declarations."""

__all__ = [
    "COPIES",
    "ENTITIES",
    "FAMILY_LISTINGS",
    "FOLLOWS",
    "OPERATIONS",
    "PARTICIPATIONS",
    "PLAYS",
    "READS",
    "ROLL_UPS",
    "Access",
    "AccessAction",
    "Article",
    "Channel",
    "ContactMethod",
    "EpisodePlays",
    "Exposed",
    "FamilyListing",
    "Follow",
    "FollowCount",
    "Incident",
    "IncidentState",
    "Licence",
    "Licensor",
    "NotificationRule",
    "Operation",
    "OperationState",
    "Override",
    "Participation",
    "Ping",
    "Revenue",
    "RevenueShare",
    "Schedule",
    "SeriesPlays",
    "Severity",
    "Shift",
    "Team",
    "TimedAccess",
    "User",
    "UserStatus",
    "Window",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(_DECLARED), name))
