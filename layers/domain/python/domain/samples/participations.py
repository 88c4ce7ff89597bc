"""Participations: a materialized copy of the incident's summary for each participant."""

from collections.abc import Iterator
from typing import Final

from pydantic import AwareDatetime

from domain.samples.fields import Moment, ShortText
from domain.samples.incidents import Incident, IncidentId, IncidentState, Participant
from dynashard import Entity, Index, Key, Shards
from dynashard_patterns import MaterializedCopies, copy_of
from dynashard_serving.declare import READS, Access, serve


@serve(
    path="participations",
    distinct=("incident_id",),
    operations=READS,
    tag="incidents",
    access=Access(read="incidents:read"),
)
class Participation(
    Entity,
    name="participation.v1.Participation",
    key=Key(partition="{tenant_id}:{incident_id}", sort="{participant}"),
    indexes=[
        Index(
            "GSI1",
            "by_participant",
            partition="{tenant_id}:{participant}",
            sort="{state}#{since}#{incident_id}",
            shards=Shards(4),
        )
    ],
):
    """The summary of an incident for one of its participants, ordered by the time since which it is open or closed."""

    tenant_id: str
    incident_id: IncidentId
    participant: Participant
    state: IncidentState
    since: Moment
    number: int
    title: ShortText
    status: ShortText
    team: str | None = None
    created_at: AwareDatetime
    closed_at: AwareDatetime | None = None


def participations(incident: Incident) -> Iterator[Participation]:
    """Return a copy for each participant, and one for the team to which the incident is assigned."""
    closed = incident.closed_at if incident.state is IncidentState.CLOSED else None
    everybody = [*incident.participants, *([incident.team] if incident.team else [])]
    for participant in dict.fromkeys(everybody):
        yield copy_of(
            Participation,
            incident,
            incident_id=incident.id,
            participant=participant,
            since=closed or incident.created_at,
        )


PARTICIPATIONS: Final = MaterializedCopies(
    of=Incident, copy=Participation, make=participations, partition={"incident_id": "id"}
)
