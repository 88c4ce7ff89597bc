"""Teams of an account, their members and schedules, and the turns of users on call."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from domain.samples.fields import Moment, ShortText
from domain.samples.schedules import Layer, ZoneName
from dynashard import Entity, Index, Key, created_at, new_id, updated_at
from dynashard_serving.declare import Access, FamilyListing, serve

PREFIX = "team.v1"
"""The entities share one logical partition for each account. It is seldom written, so it is not sharded."""
Target = Annotated[str, Field(pattern=r"^(user|schedule)_.+$", max_length=220, examples=["schedule_day", "user_ada"])]
"""A user, or the one on call for a schedule of the team."""
ACCESS: Final = Access(read="on-call:read", write="on-call:write")
BY_USER = Index("GSI1", "by_user", partition="{tenant_id}:{user_id}", sort="{starts_at}")


@serve(path="teams", tag="on-call", access=ACCESS)
class Team(Entity, name="team.v1.Team", key=Key("{tenant_id}", "team_{team_id}", prefix=PREFIX)):
    """A team of users who take turns on call."""

    tenant_id: str
    team_id: str = new_id()
    name: ShortText
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()


class Role(StrEnum):
    """What a member of a team may do there."""

    MEMBER = "member"
    LEAD = "lead"


@serve(path="members", filters=("role",), tag="on-call", access=ACCESS)
class Member(
    Entity,
    name="team.v1.Member",
    key=Key("{tenant_id}", "team_{team_id}#member_{user_id}", prefix=PREFIX),
    indexes=[Index("GSI2", "teams_of_user", partition="{tenant_id}:{user_id}", sort="{team_id}")],
):
    """A member of a team. Members are listed by team, and the teams of a user by an index."""

    tenant_id: str
    team_id: str
    user_id: ShortText
    role: Role = Role.MEMBER
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()


@serve(path="schedules", tag="on-call", access=ACCESS)
class Schedule(
    Entity, name="team.v1.Schedule", key=Key("{tenant_id}", "team_{team_id}#schedule_{schedule_id}", prefix=PREFIX)
):
    """A schedule of a team. Its layers, shifts and overrides define who is on call, on the clock of its zone."""

    tenant_id: str
    team_id: str
    schedule_id: str = new_id()
    name: ShortText
    time_zone: ZoneName = "UTC"
    layers: list[Layer] = Field(default_factory=list, max_length=10)
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()


class Turn(Entity):
    """A time in which a user is on call."""

    tenant_id: str
    team_id: str
    schedule_id: str
    user_id: ShortText
    starts_at: Annotated[Moment, Field(examples=["2026-11-21T08:00:00Z"])]
    ends_at: Annotated[Moment, Field(examples=["2026-11-21T16:00:00Z"])]

    @model_validator(mode="after")
    def _ends_after_start(self) -> Self:
        if self.ends_at <= self.starts_at:
            raise ValueError("ends_at must be after starts_at")
        return self


@serve(path="shifts", filters=("user_id",), tag="on-call", access=ACCESS)
class Shift(
    Turn,
    name="team.v1.Shift",
    key=Key("{tenant_id}", "team_{team_id}#schedule_{schedule_id}#shift_{shift_id}", prefix=PREFIX),
    indexes=[BY_USER],
):
    """A planned turn on call."""

    shift_id: str = new_id()


@serve(path="overrides", filters=("user_id",), tag="on-call", access=ACCESS)
class Override(
    Turn,
    name="team.v1.Override",
    key=Key("{tenant_id}", "team_{team_id}#schedule_{schedule_id}#override_{override_id}", prefix=PREFIX),
    indexes=[BY_USER],
):
    """A turn that replaces the planned ones, when another user stands in."""

    override_id: str = new_id()


class EscalationStep(BaseModel):
    """A step of an escalation: who is notified, and how long to wait for them before the next step."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    targets: Annotated[list[Target], Field(min_length=1, max_length=10)]
    wait_minutes: Annotated[int, Field(ge=1, le=1440)] = 15


@serve(path="escalation-policies", tag="on-call", access=ACCESS)
class EscalationPolicy(
    Entity, name="team.v1.EscalationPolicy", key=Key("{tenant_id}", "team_{team_id}#policy_{policy_id}", prefix=PREFIX)
):
    """Whom to notify of an incident of a team, step by step until somebody acknowledges it.

    An incident of the team follows the policy that it names, or else the one called `default`.
    """

    tenant_id: str
    team_id: str
    policy_id: str = "default"
    steps: list[EscalationStep] = Field(min_length=1, max_length=10, examples=[[{"targets": ["schedule_day"]}]])
    repeats: Annotated[int, Field(ge=0, le=9)] = 0
    created_at: datetime = created_at()
    updated_at: datetime = updated_at()


ON_CALL: Final = FamilyListing((Team, Member, Schedule, Shift, Override, EscalationPolicy), path="on-call")
"""All of an account, listed as one."""
