"""Transitions, numbers and dependants hold by every way in: REST, direct invocation, batches and queues."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from dynashard import Entity, Key, Shards
from dynashard.testing.faults import FaultyTransport, meanwhile
from dynashard.transport import Transport
from dynashard_serving.declare import Exposed, Transitions
from dynashard_serving.domain import domain_of
from dynashard_serving.operation_records import Operation, OperationState
from tests.api_caller import TENANT, Answer, Caller
from tests.engine.api.api_on_engine import caller_on
from tests.engine.commands.commands_on_engine import Service, commands_on
from tests.engine.serving.operations_ways import _sent
from tests.engine.writer.queue_world import OPERATIONS, QueueWorld

pytestmark = pytest.mark.engine

LATER: Final = "respond-async"
SINGLE: Final = ("rest", "rest, asynchronously", "rest batch", "invoked", "invoked batch")
ALL: Final = (*SINGLE, "batch_write")
BATCHED: Final = ("put", "delete")
"""What `batch_write` does."""

Error = Mapping[str, Any]


@dataclass(frozen=True)
class Ways:
    """The ways in to one table."""

    world: QueueWorld
    service: Service

    def ask(self, way: str, path: str, operation: str, **members: Any) -> Error | None:
        """Send a request one way, and return its error; None if it was done."""
        request = {"operation": operation, **members}
        match way:
            case "rest":
                return _problem(_sent(self.world.caller, path, operation, members))
            case "rest, asynchronously":
                return _problem(_sent(self.world.caller, path, operation, members, LATER), accepted=False)
            case "rest batch":
                answer = self.world.caller.post(f"/v1/{path}/batch", {"requests": [request]})
                return _error(answer.json["outcomes"][0])
            case "invoked":
                return _error(self._invoked(path, **request))
            case "invoked batch":
                return _error(self._invoked(path, "batch", requests=[request])["result"][0])
        part = members["item"] if operation == "put" else members["key"]
        return _error(self._invoked(path, "batch_write", **{operation: [part]})["result"][operation][0])

    def _invoked(self, path: str, operation: str, **members: Any) -> dict[str, Any]:
        return Service(self.service.commands, entity=path).ask(operation, **members)


def _problem(answer: Answer, *, accepted: bool = True) -> Error | None:
    assert accepted or answer.status != 202, "an entity whose writes are done at once"
    if answer.status < 400:
        return None
    document = answer.json
    return {"code": document["code"], "details": document.get("details")}


def _error(outcome: Mapping[str, Any]) -> Error | None:
    return None if outcome["ok"] else {name: outcome["error"][name] for name in ("code", "details")}


@pytest.fixture
def ways(transport: Transport, table: str, tmp_path: Path) -> Ways:
    world = QueueWorld(transport, table, tmp_path)
    return Ways(world, Service(commands_on(transport, table)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", ALL)
@pytest.mark.parametrize("operation", ["put", "update"])
def test_a_transition_that_is_not_allowed_is_refused(ways: Ways, way: str, operation: str) -> None:
    if way == "batch_write" and operation not in BATCHED:
        return
    rest = ways.world.caller
    made = rest.post("/v1/incidents", {"id": "i1", "title": "x", "status": "RESOLVED"}).json
    members: dict[str, Any] = {"item": {"id": "i1", "title": "new", "status": "ACKNOWLEDGED"}}
    if operation == "update":
        members = {"key": {"id": "i1"}, "patch": {"title": "new", "status": "ACKNOWLEDGED"}}

    refused = ways.ask(way, "incidents", operation, **members)

    assert refused == {
        "code": "transition_refused",
        "details": {"field": "status", "state": "RESOLVED", "requested": "ACKNOWLEDGED", "allowed": ["TRIGGERED"]},
    }
    assert rest.get("/v1/incidents/i1", query="consistent=true").json == made
    allowed = members["item"] | {"status": "TRIGGERED"} if operation == "put" else {"status": "TRIGGERED"}
    members = {"item": allowed} if operation == "put" else {"key": {"id": "i1"}, "patch": allowed}
    assert ways.ask(way, "incidents", operation, **members) is None
    assert rest.get("/v1/incidents/i1", query="consistent=true").json["status"] == "TRIGGERED"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", ALL)
@pytest.mark.parametrize("operation", ["create", "put"])
def test_a_number_that_is_taken_is_refused(ways: Ways, way: str, operation: str) -> None:
    if way == "batch_write" and operation not in BATCHED:
        return

    def sent(name: str, number: int) -> Error | None:
        return ways.ask(way, "incidents", operation, item={"id": name, "title": "x", "number": number})

    assert sent("first", 7) is None
    assert sent("second", 7) == {"code": "number_taken", "details": {"last": 7}}
    assert sent("third", 8) is None
    assert ways.ask(way, "incidents", operation, item={"id": "fourth", "title": "x"}) is None
    found = {item["id"]: item["number"] for item in ways.world.caller.get("/v1/incidents").json["items"]}
    assert found == {"first": 7, "third": 8, "fourth": 9}


@pytest.mark.parametrize("way", ALL)
def test_what_has_dependants_is_not_deleted(ways: Ways, way: str) -> None:
    rest = ways.world.caller
    rest.post("/v1/teams", {"team_id": "red", "name": "Red"})
    rest.post("/v1/members", {"team_id": "red", "user_id": "ada"})

    refused = ways.ask(way, "teams", "delete", key={"team_id": "red"})

    assert refused == {"code": "has_dependants", "details": {"dependants": [{"kind": "members", "count": 1}]}}
    assert rest.get("/v1/teams/red", query="consistent=true").status == 200
    rest.delete("/v1/members/red/ada")
    assert ways.ask(way, "teams", "delete", key={"team_id": "red"}) is None
    assert rest.get("/v1/teams/red", query="consistent=true").status == 404


# Writers at the same time


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
def test_of_two_transitions_at_once_the_second_is_judged_by_the_first(
    transport: Transport, table: str, method: str
) -> None:
    other = caller_on(transport, table)
    other.post("/v1/incidents", {"id": "i1", "title": "x"})
    resolves = meanwhile("UpdateItem", lambda: other.patch("/v1/incidents/i1", {"status": "RESOLVED"}))
    faulty = FaultyTransport(transport, [resolves])

    answer = caller_on(faulty, table).send(method, "/v1/incidents/i1", {"title": "x", "status": "ACKNOWLEDGED"})

    assert not faulty.waiting
    assert (answer.code, answer.json["details"]["state"]) == ("transition_refused", "RESOLVED")
    assert other.get("/v1/incidents/i1").json["status"] == "RESOLVED"


def test_of_two_that_close_an_incident_at_once_the_first_sets_the_time(transport: Transport, table: str) -> None:
    other = caller_on(transport, table)
    other.post("/v1/incidents", {"id": "i1", "title": "x"})
    closed: list[str] = []
    closes = meanwhile(
        "UpdateItem", lambda: closed.append(other.patch("/v1/incidents/i1", {"state": "CLOSED"}).json["closed_at"])
    )
    faulty = FaultyTransport(transport, [closes])

    answer = caller_on(faulty, table).patch("/v1/incidents/i1", {"state": "CLOSED", "title": "new"})

    assert not faulty.waiting
    assert (answer.json["closed_at"], answer.json["title"]) == (closed[0], "new")


def test_a_team_that_gets_a_member_before_it_is_deleted_is_judged_again(transport: Transport, table: str) -> None:
    other = caller_on(transport, table)
    other.post("/v1/teams", {"team_id": "red", "name": "Red"})

    def joins() -> None:
        other.post("/v1/members", {"team_id": "red", "user_id": "ada"})
        other.patch("/v1/teams/red", {"name": "Redder"})

    faulty = FaultyTransport(transport, [meanwhile("DeleteItem", joins)])

    assert caller_on(faulty, table).delete("/v1/teams/red").code == "has_dependants"
    assert not faulty.waiting
    assert other.get("/v1/teams/red").json["name"] == "Redder"


# Queues


class Task(Entity, name="task.v1.LifecycleTask", key=Key("{tenant_id}", "{id}"), shards=Shards(4)):
    tenant_id: str
    id: str
    state: str = "open"
    text: str = ""


TASKS: Final = Exposed(
    Task,
    path="tasks",
    transitions=(Transitions("state", {"open": ("active",), "active": ("done",), "done": ()}, initial=("open",)),),
)
Write = Callable[[Caller, str], Answer]
_PUT: Write = lambda caller, state: caller.put(  # noqa: E731 - beside its neighbour
    "/v1/tasks/t1", {"state": state, "text": state}, headers={"prefer": LATER}
)
_PATCH: Write = lambda caller, state: caller.patch(  # noqa: E731
    "/v1/tasks/t1", {"state": state}, headers={"prefer": LATER}
)


@pytest.fixture
def tasks(transport: Transport, table: str, tmp_path: Path) -> QueueWorld:
    return QueueWorld(transport, table, tmp_path, domain=domain_of(TASKS))


def ended(world: QueueWorld, accepted: Answer) -> Operation:
    """Return the record of an accepted write after the queue is empty."""
    assert accepted.status == 202, accepted.content
    world.drain(OPERATIONS)
    key = {"tenant_id": TENANT, "id": accepted.headers["location"].rpartition("/")[2]}
    return world.operations.get(key, consistent=True)


def problem_of(world: QueueWorld, accepted: Answer) -> dict[str, Any]:
    """Return why an accepted write failed."""
    problem: dict[str, Any] | None = ended(world, accepted).problem
    assert problem is not None
    return problem


@pytest.mark.parametrize("write", [_PUT, _PATCH], ids=["put", "patch"])
def test_a_queued_write_is_judged_by_what_is_stored_when_it_is_done(tasks: QueueWorld, write: Write) -> None:
    caller = tasks.caller
    caller.post("/v1/tasks", {"id": "t1"})

    early = write(caller, "done")
    late = write(caller, "active")

    problem = problem_of(tasks, early)
    assert (problem["status"], problem["code"]) == (409, "transition_refused")
    assert problem["details"] == {"field": "state", "state": "open", "requested": "done", "allowed": ["active"]}
    assert ended(tasks, late).state is OperationState.DONE
    assert caller.get("/v1/tasks/t1", query="consistent=true").json["state"] == "active"
    assert ended(tasks, write(caller, "done")).state is OperationState.DONE
    assert "no other state can" in problem_of(tasks, write(caller, "open"))["detail"]


def test_a_queued_item_begins_in_an_initial_state(tasks: QueueWorld) -> None:
    created = tasks.caller.post("/v1/tasks", {"id": "t2", "state": "done"}, headers={"prefer": LATER})

    put = _PUT(tasks.caller, "active")

    for each in (problem_of(tasks, created), problem_of(tasks, put)):
        assert each["status"] == 422
        assert [(error["field"], error["code"]) for error in each["errors"]] == [("state", "initial_state")]
    assert tasks.caller.get("/v1/tasks", query="consistent=true").json["items"] == []


def test_of_a_queued_transition_and_one_meanwhile_the_second_is_refused(tasks: QueueWorld) -> None:
    caller = tasks.caller
    caller.post("/v1/tasks", {"id": "t1", "state": "open"})
    caller.patch("/v1/tasks/t1", {"state": "active"})
    accepted = _PATCH(caller, "active")
    finishes = meanwhile("TransactWriteItems", lambda: caller.patch("/v1/tasks/t1", {"state": "done"}))

    tasks.poll(OPERATIONS, [finishes])

    assert problem_of(tasks, accepted)["code"] == "transition_refused"
    assert caller.get("/v1/tasks/t1", query="consistent=true").json["state"] == "done"
