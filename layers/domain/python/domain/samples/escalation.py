"""Escalation: whom to notify of an incident, by what, and when. A program that reads it sends."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from pydantic import BaseModel, Field

from domain.samples.contacts import Channel, ContactMethod, NotificationRule, Severity
from domain.samples.incidents import Incident, IncidentState
from domain.samples.on_call import turns
from domain.samples.rota import Turn  # noqa: TC001 - a local annotation
from domain.samples.teams import EscalationPolicy, Schedule
from dynashard import Dynashard, InputError
from dynashard_serving.declare import Access, endpoint

WAITING: Final = "TRIGGERED"
"""The status of an incident that nobody has acknowledged."""
MOST_USERS: Final = 100
"""Users whose contacts one listing reads."""


class EscalationWanted(BaseModel):
    """The parameters of a request for an escalation."""

    policy_id: str | None = Field(None, description="The policy; that of the incident if it is left out.")


class Notice(BaseModel):
    """Somebody to notify at a time, unless the incident was acknowledged by then."""

    at: datetime
    step: int
    """The step of the policy, from 1 on."""
    target: str
    user_id: str | None
    """Who; null if nobody is on call."""
    channel: Channel | None
    """By what; null if no rule of the user applies."""
    address: str | None
    method_id: str | None


class Step(NamedTuple):
    """A target of a step, at the time at which it is reached."""

    at: datetime
    number: int
    target: str


@endpoint(
    path="escalation",
    of=Incident,
    summary="List whom to notify of an incident",
    access=Access(read="contacts:all"),
)
def escalation(db: Dynashard, incident: Incident, wanted: EscalationWanted) -> list[Notice]:
    """Lists whom to notify of an incident, in order of time; nobody once it is acknowledged or closed."""
    if incident.team is None or incident.state is IncidentState.CLOSED or incident.status != WAITING:
        return []
    team = {"tenant_id": incident.tenant_id, "team_id": incident.team.removeprefix("team_")}
    policy = _policy(db, team, incident, wanted.policy_id)
    if policy is None:
        return []
    # It begins anew if the incident is triggered or opened again. Incidents of earlier releases have neither time.
    begins = max(filter(None, (incident.created_at, incident.triggered_at, incident.opened_at)))
    steps = list(_steps(policy, begins))
    users = _users(db, team, steps)
    contacts = _contacts(db, incident.tenant_id, sorted({user for user in users.values() if user}))
    notices = [notice for step in steps for notice in _notices(step, users[step], contacts, critical=incident.critical)]
    return sorted(notices, key=lambda notice: (notice.at, notice.step))


def _policy(db: Dynashard, team: Mapping[str, str], incident: Incident, wanted: str | None) -> EscalationPolicy | None:
    policies = db.collection(EscalationPolicy)
    if wanted:
        return policies.get({**team, "policy_id": wanted})
    try:
        return policies.find({**team, "policy_id": incident.policy_id or "default"})
    except InputError:
        # The incident names what no policy can be called. The caller has sent nothing wrong.
        return None


def _steps(policy: EscalationPolicy, begins: datetime) -> Iterator[Step]:
    at = begins.astimezone(UTC)
    for _ in range(policy.repeats + 1):
        for number, step in enumerate(policy.steps, 1):
            yield from (Step(at, number, target) for target in dict.fromkeys(step.targets))
            at += timedelta(minutes=step.wait_minutes)


def _users(db: Dynashard, team: Mapping[str, str], steps: Sequence[Step]) -> dict[Step, str | None]:
    """Return who is meant by each target. Cost: 1 read and 1 Query for each schedule."""
    last = steps[-1].at + timedelta(seconds=1)
    planned: dict[str, list[Turn]] = {}
    for target in {step.target for step in steps if step.target.startswith("schedule_")}:
        schedule = _schedule(db, team, target.removeprefix("schedule_"))
        planned[target] = [] if schedule is None else turns(db, schedule, steps[0].at, last)
    found: dict[Step, str | None] = {}
    for step in steps:
        on_call = (turn.user for turn in planned.get(step.target, ()) if turn.start <= step.at < turn.end)
        found[step] = step.target.removeprefix("user_") if step.target not in planned else next(on_call, None)
    return found


def _schedule(db: Dynashard, team: Mapping[str, str], schedule_id: str) -> Schedule | None:
    try:
        return db.collection(Schedule).find({**team, "schedule_id": schedule_id})
    except InputError:
        # No schedule can have this id, so nobody is on call, and the other targets are notified.
        return None


class Contacts(NamedTuple):
    """How a user is reached."""

    methods: dict[str, ContactMethod]
    rules: list[NotificationRule]


def _contacts(db: Dynashard, tenant_id: str, users: Sequence[str]) -> Mapping[str, Contacts]:
    """Return how users are reached. Cost: 1 Query each, in one round for 100 of them.

    Raises `UndecodableItemError` if a contact method or a rule does not fit: without it, nobody may be notified.
    """
    found: dict[str, Contacts] = defaultdict(lambda: Contacts({}, []))
    # No contact can be of a user whose id has a colon, which separates fields of keys.
    partitions = [{"tenant_id": tenant_id, "user_id": user} for user in users if ":" not in user]
    known = db.collection(ContactMethod, NotificationRule)
    for at in range(0, len(partitions), MOST_USERS):
        for item in known.items(partitions[at : at + MOST_USERS], strict=True):
            if isinstance(item, ContactMethod):
                found[item.user_id].methods[item.method_id] = item
            else:
                found[item.user_id].rules.append(item)
    return found


def _notices(step: Step, user: str | None, contacts: Mapping[str, Contacts], *, critical: bool) -> Iterator[Notice]:
    reached = contacts.get(user or "", Contacts({}, []))
    rules = [rule for rule in reached.rules if critical or rule.severity is Severity.ANY]
    known = [(rule, reached.methods[rule.method_id]) for rule in rules if rule.method_id in reached.methods]
    for rule, method in known:
        yield Notice(
            at=step.at + timedelta(minutes=rule.after_minutes),
            step=step.number,
            target=step.target,
            user_id=user,
            channel=method.channel,
            address=method.address,
            method_id=method.method_id,
        )
    if not known:
        yield Notice(
            at=step.at,
            step=step.number,
            target=step.target,
            user_id=user,
            channel=None,
            address=None,
            method_id=None,
        )
