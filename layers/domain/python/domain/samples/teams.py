"""Teams of an account, their schedules, and the turns of users on call."""

from datetime import datetime
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from domain.samples.fields import Moment, ShortText
from dynashard import Entity, Index, Key, created_at, new_id, updated_at
from dynashard_serving.declare import Access, FamilyListing, serve

PREFIX = "team.v1"
"""All four entities share one logical partition for each account. It is seldom written, so it is not sharded."""
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


@serve(path="schedules", tag="on-call", access=ACCESS)
class Schedule(
    Entity, name="team.v1.Schedule", key=Key("{tenant_id}", "team_{team_id}#schedule_{schedule_id}", prefix=PREFIX)
):
    """A schedule of a team. Its shifts and overrides define who is on call."""

    tenant_id: str
    team_id: str
    schedule_id: str = new_id()
    name: ShortText
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


ON_CALL: Final = FamilyListing((Team, Schedule, Shift, Override), path="on-call")
"""All of an account, listed as one."""
