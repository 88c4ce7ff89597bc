"""All declarations of this backend. `domain` gets its names from here."""

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

COPIES: Final = (PARTICIPATIONS,)
"""Materialized copies of items, which the function `changes` keeps current."""

ROLL_UPS: Final = (PLAYS,)
"""Sums over items, which the function `changes` keeps current."""

__all__ = [
    "COPIES",
    "FOLLOWS",
    "PARTICIPATIONS",
    "PLAYS",
    "ROLL_UPS",
    "Access",
    "AccessAction",
    "Article",
    "Channel",
    "ContactMethod",
    "EpisodePlays",
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
]
