"""My incidents: those of a user and of all teams of which the user is a member, as one list."""

import re
from datetime import datetime
from typing import Annotated, Final

from pydantic import BaseModel, Field

from domain.samples.incidents import IncidentState
from domain.samples.participations import Participation
from domain.samples.teams import Member
from dynashard import Dynashard, InputError
from dynashard_serving.declare import Access, Caller, endpoint

MOST_TEAMS: Final = 49
"""Teams of a user whose incidents are listed: with the user's own partition, 50 partitions of 4 shards take 200 of the
300 Queries that one request may send."""
_ID: Final = r"^[A-Za-z0-9_-]{1,64}$"


class MyIncidentsWanted(BaseModel):
    """The parameters of a request for my incidents."""

    user_id: Annotated[str | None, Field(pattern=_ID)] = Field(
        None, description="Whose incidents; the caller's own, by the subject of the token, if it is left out."
    )
    state: IncidentState = Field(IncidentState.OPEN, description="The state of the incidents.")
    limit: Annotated[int, Field(ge=1, le=100)] = Field(50, description="The most incidents on a page.")
    cursor: str | None = Field(None, description="The cursor of the previous page.")


class MyIncident(BaseModel):
    """An incident, by one of the participations through which it is mine."""

    incident_id: str
    participant: str
    number: int
    title: str
    status: str
    state: IncidentState
    team: str | None
    since: datetime


class MyIncidents(BaseModel):
    """A page of incidents, the newest first. It may be short; only a null cursor ends the listing."""

    items: list[MyIncident]
    cursor: str | None


@endpoint(path="my-incidents", summary="List my incidents", tag="incidents", access=Access(read="incidents:read"))
def my_incidents(db: Dynashard, caller: Caller, wanted: MyIncidentsWanted) -> MyIncidents:
    """Lists the incidents of a user and of the user's teams, the newest first, each once."""
    tenant_id, user = caller.tenant, wanted.user_id or caller.subject
    if user is None or not re.fullmatch(_ID, user):
        raise InputError("Name the user: the token has no subject that is the id of one.", field="user_id")
    of_the_user = {"tenant_id": tenant_id, "user_id": user}
    teams = db.collection(Member).list(of_the_user, index="teams_of_user", limit=MOST_TEAMS)
    names = [f"user_{user}", *(f"team_{each.team_id}" for each in teams.items if re.fullmatch(_ID, each.team_id))]
    page = db.collection(Participation).list(
        [{"tenant_id": tenant_id, "participant": name} for name in names],
        index="by_participant",
        prefix=f"{wanted.state.value}#",
        order="ordered",
        direction="desc",
        distinct="incident_id",
        limit=wanted.limit,
        cursor=wanted.cursor,
    )
    items = [MyIncident.model_validate(each, from_attributes=True) for each in page.items]
    return MyIncidents(items=items, cursor=page.cursor)
