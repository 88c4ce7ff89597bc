"""What others learn of incidents: dashboards, chat and paging follow these events, and read nothing from the table."""

from domain.samples.incidents import Incident
from dynashard_serving.declare import Events

INCIDENT_EVENTS = Events(
    of=Incident, before=True, fields=("number", "title", "status", "state", "critical", "team", "closed_at")
)
