"""The entities of this backend: declare one in a module of its own, and name it here."""

from datetime import timedelta
from typing import Final

from domain.articles import Article
from domain.audit import Access, AccessAction, TimedAccess
from domain.contacts import Channel, ContactMethod, NotificationRule, Severity
from domain.follows import FOLLOWS, Follow, FollowCount
from domain.incidents import Incident, IncidentState
from domain.operations import Operation, OperationState
from domain.participations import PARTICIPATIONS, Participation
from domain.pings import Ping
from domain.plays import PLAYS, EpisodePlays, SeriesPlays
from domain.revenue import Licence, Licensor, Revenue, RevenueShare
from domain.teams import Override, Schedule, Shift, Team
from domain.users import User, UserStatus
from dynashard_serving.operations.exposed import OPERATIONS, READS, Exposed, FamilyListing, Window

ENTITIES: Final = (
    Exposed(User, path="users", filters=("department", "manager_id", "status")),
    Exposed(Team, path="teams", tag="on-call"),
    Exposed(Schedule, path="schedules", tag="on-call"),
    Exposed(Shift, path="shifts", filters=("user_id",), tag="on-call"),
    Exposed(Override, path="overrides", filters=("user_id",), tag="on-call"),
    Exposed(ContactMethod, path="contact-methods", filters=("channel",), tag="contacts"),
    Exposed(NotificationRule, path="notification-rules", filters=("severity",), tag="contacts"),
    Exposed(Article, path="articles"),
    Exposed(
        Access,
        path="accesses",
        filters=("action", "user_id"),
        operations=("list", "create", "get"),
        address=("accessed_at", "id", "path"),
        tag="audit",
    ),
    Exposed(
        TimedAccess,
        path="timed-accesses",
        filters=("action", "user_id"),
        operations=("list", "create", "get"),
        address=("accessed_at", "path"),
        tag="audit",
    ),
    Exposed(
        Ping,
        path="pings",
        filters=("session_id", "viewer_id"),
        queued=True,
        window=Window("at", past=timedelta(days=7), ahead=timedelta(minutes=5)),
    ),
    Exposed(Incident, path="incidents", filters=("status", "team"), tag="incidents"),
    Exposed(Participation, path="participations", distinct=("incident_id",), operations=READS, tag="incidents"),
    Exposed(Licensor, path="licensors", tag="revenue"),
    Exposed(Licence, path="licences", filters=("licensor_id",), tag="revenue"),
    Exposed(Operation, path="operations", filters=("state",), operations=READS),
    Exposed(Follow, path="follows", operations=(), route="/v1/follows"),
    Exposed(FollowCount, path="follow-counts", operations=(), route="/v1/follows/counts"),
    Exposed(EpisodePlays, path="episode-plays", operations=(), route="/v1/roll-ups"),
    Exposed(SeriesPlays, path="series-plays", operations=(), route="/v1/roll-ups"),
)
"""The entities that callers may use, and their public names."""

FAMILY_LISTINGS: Final = (
    FamilyListing((Team, Schedule, Shift, Override), path="on-call"),
    FamilyListing((ContactMethod, NotificationRule), path="contacts"),
)
"""Entities that share logical partitions and are also listed as one."""

COPIES: Final = (PARTICIPATIONS,)
"""Materialized copies of items, which the function `changes` keeps current."""

ROLL_UPS: Final = (PLAYS,)
"""Sums over items, which the function `changes` keeps current."""

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
