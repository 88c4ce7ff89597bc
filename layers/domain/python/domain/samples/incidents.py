"""Incidents of an account: small summaries, with details of up to several MB stored out of line."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, JsonValue

from domain.samples.fields import Moment, ShortText
from dynashard import Entity, Index, Key, Shards, created_at, new_id, updated_at
from dynashard_patterns import Attachment
from dynashard_serving.declare import Access, Claim, Transitions, serve

IncidentId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
"""It is also part of the keys of the copies, between other fields."""
Participant = Annotated[str, Field(pattern=r"^(user|team)_[A-Za-z0-9_-]{1,64}$")]


ADMINS: Final = Claim("cognito:groups", "admins")


class IncidentState(StrEnum):
    """Whether the incident still needs action."""

    OPEN = "OPEN"
    CLOSED = "CLOSED"


@serve(
    path="incidents",
    filters=("status", "team"),
    numbered="number",
    transitions=(
        Transitions(
            "status",
            {
                "TRIGGERED": ("ACKNOWLEDGED", "RESOLVED"),
                "ACKNOWLEDGED": ("TRIGGERED", "RESOLVED"),
                "RESOLVED": ("TRIGGERED",),
            },
            others=True,
            stamps={"triggered_at": ("TRIGGERED",)},
        ),
        Transitions(
            "state",
            {"OPEN": ("CLOSED",), "CLOSED": ("OPEN",)},
            stamps={"opened_at": ("OPEN",), "closed_at": ("CLOSED",)},
        ),
    ),
    tag="incidents",
    access=Access(read="incidents:read", write="incidents:write", operations={"delete": ("incidents:delete", ADMINS)}),
)
class Incident(
    Entity,
    name="incident.v1.Incident",
    key=Key(partition="{tenant_id}", sort="{id}"),
    shards=Shards(4),
    indexes=[Index("GSI1", "by_state", partition="{tenant_id}:{state}", sort="{id}", shards=Shards(4))],
):
    """An incident and its participants.

    The server allocates its number, unless its creator brings one, and sets since when the incident is triggered, open
    or closed. Listings return summaries. `details`, which is any JSON of the caller, is returned only on request.
    """

    tenant_id: str
    id: IncidentId = new_id()
    number: Annotated[int, Field(ge=0, description="Never changes; 0 in a new incident has it allocated.")] = 0
    title: ShortText
    status: ShortText = "TRIGGERED"
    state: IncidentState = IncidentState.OPEN
    critical: bool = False
    team: Annotated[str, Field(pattern=r"^team_[A-Za-z0-9_-]{1,64}$")] | None = None
    policy_id: ShortText | None = None
    participants: list[Participant] = Field(default_factory=list, max_length=100)
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()
    triggered_at: Moment | None = None
    opened_at: Moment | None = None
    closed_at: Moment | None = None
    details: Annotated[JsonValue | None, Attachment()] = None
