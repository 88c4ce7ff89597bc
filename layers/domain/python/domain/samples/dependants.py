"""What depends on a team: it is deleted only if nothing does."""

from typing import Final

from domain.samples.participations import Participation
from domain.samples.teams import EscalationPolicy, Member, Override, Schedule, Shift, Team
from dynashard_serving.declare import Dependant, Dependants

_OF_THE_TEAM: Final = {"team_id": "{team_id}"}

TEAM_DEPENDANTS: Final = Dependants(
    Team,
    (
        Dependant("members", Member, _OF_THE_TEAM),
        Dependant("schedules", Schedule, _OF_THE_TEAM),
        Dependant("shifts", Shift, _OF_THE_TEAM),
        Dependant("overrides", Override, _OF_THE_TEAM),
        Dependant("escalation policies", EscalationPolicy, _OF_THE_TEAM),
        Dependant("open incidents", Participation, {"participant": "team_{team_id}", "state": "OPEN"}),
    ),
)
