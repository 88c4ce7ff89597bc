"""The entities of this backend: declare one in a module of its own, and name it here."""

from datetime import timedelta
from typing import Final

from domain.articles import Article
from domain.contacts import Channel, ContactMethod, NotificationRule, Severity
from domain.exposed import OPERATIONS, READS, Exposed, Together, Window
from domain.pings import Ping
from domain.teams import Override, Schedule, Shift, Team
from domain.users import User, UserStatus

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
        Ping,
        path="pings",
        filters=("session_id", "viewer_id"),
        queued=True,
        window=Window("at", past=timedelta(days=7), ahead=timedelta(minutes=5)),
    ),
)
"""What callers may ask for, and how it is called outside."""

TOGETHER: Final = (
    Together((Team, Schedule, Shift, Override), path="on-call"),
    Together((ContactMethod, NotificationRule), path="contacts"),
)
"""Entities that are also listed as one, because they share their logical partitions."""

__all__ = [
    "ENTITIES",
    "OPERATIONS",
    "READS",
    "TOGETHER",
    "Article",
    "Channel",
    "ContactMethod",
    "Exposed",
    "NotificationRule",
    "Override",
    "Ping",
    "Schedule",
    "Severity",
    "Shift",
    "Team",
    "Together",
    "User",
    "UserStatus",
    "Window",
]
