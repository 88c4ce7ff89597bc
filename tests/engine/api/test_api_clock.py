"""What callers and operators see of functions whose clock is wrong: refusals, `/v1/health`, and a line in the log."""

import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from dynashard.runtime import SYSTEM, Runtime
from dynashard.transport import Transport
from dynashard.transport.attempts import Attempts
from dynashard.transport.direct.choice import transport_for
from dynashard.transport.interface import Settings
from dynashard_serving.commands.handler import build_commands
from tests.api_caller import Caller, a_user
from tests.engine.api.api_on_engine import TOPOLOGY, caller_on, settings_of
from tests.engine.commands.commands_on_engine import Service
from tests.engine.writer.queue_world import OPERATIONS, QueueWorld
from tests.roles import as_function

pytestmark = pytest.mark.engine

LOG = "dynashard.clock"


class WrongClock:
    """A process whose clock is off, and its connection to the engine."""

    def __init__(self, engine_url: str, off: float) -> None:
        self.off = off
        self.runtime = Runtime(lambda: SYSTEM.clock() + self.off)
        settings = Settings(engine_url, "us-east-1", "local", "local")
        self.wire = transport_for(settings, {}, Attempts(runtime=self.runtime))

    def access(self) -> dict[str, Any]:
        """Return the body of an access now, by its clock."""
        at = datetime.fromtimestamp(self.runtime.clock(), UTC).isoformat()
        return {"path": "/a.txt", "accessed_at": at, "action": "read", "user_id": "ada"}


@pytest.fixture(params=[-60.0, 60.0], ids=["behind", "ahead"])
def wrong(transport: Transport, engine_url: str, request: pytest.FixtureRequest) -> Iterator[WrongClock]:  # noqa: ARG001 - has written the topology
    made = WrongClock(engine_url, request.param)
    yield made
    made.wire.close()


@pytest.fixture
def caller(wrong: WrongClock, table: str) -> Caller:
    return caller_on(wrong.wire, table, runtime=wrong.runtime)


def health(caller: Caller) -> Mapping[str, Any]:
    answer = caller.get("/v1/health")
    assert answer.status == 200
    found: Mapping[str, Any] = answer.json
    return found


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return the levels and texts of what was logged about the clock."""
    return [(each.levelname, each.getMessage()) for each in caplog.records if each.name == LOG]


def test_health_shows_a_wrong_clock_and_that_the_function_answers(wrong: WrongClock, caller: Caller) -> None:
    assert "clock_off_seconds" not in health(caller)
    assert caller.post("/v1/users", a_user(id="1")).status == 201

    refused = caller.post("/v1/ordered-accesses", wrong.access())

    assert (refused.status, refused.code, refused.headers["retry-after"]) == (503, "clock_off", "1")
    assert refused.json["details"]["off"] == pytest.approx(wrong.off, abs=2)
    assert health(caller)["status"] == "ok"
    assert health(caller)["clock_off_seconds"] == pytest.approx(wrong.off, abs=2)
    assert caller.get("/v1/users/1").status == 200


def test_health_says_nothing_of_a_clock_that_was_set_until_the_next_answer(wrong: WrongClock, caller: Caller) -> None:
    caller.post("/v1/users", a_user(id="1"))

    wrong.off = 0.0

    assert "clock_off_seconds" not in health(caller)
    caller.get("/v1/users/1")
    assert abs(health(caller)["clock_off_seconds"]) <= 2
    assert caller.post("/v1/ordered-accesses", wrong.access()).status == 201


def test_the_log_of_the_api_says_once_that_its_clock_is_wrong(
    wrong: WrongClock, caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, LOG)

    for _ in range(3):
        assert caller.post("/v1/ordered-accesses", wrong.access()).code == "clock_off"

    [(level, text)] = lines(caplog)
    assert level == "WARNING"
    assert f"s {'ahead' if wrong.off > 0 else 'behind'}, and at most 5 s are allowed: audit.v1.OrderedAccess" in text


def test_the_log_of_direct_invocation_says_once_that_its_clock_is_wrong(
    wrong: WrongClock, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, LOG)
    allowed = as_function("commands", wrong.wire, table, TOPOLOGY, "unused")
    service = Service(
        build_commands(settings_of(table), allowed, runtime=wrong.runtime), entity="audit.v1.OrderedAccess"
    )

    for _ in range(3):
        assert service.error("create", item=wrong.access())["code"] == "clock_off"

    assert [level for level, _ in lines(caplog)] == ["WARNING"]


def test_the_writer_leaves_what_its_clock_cannot_judge_and_says_so_in_its_log(
    wrong: WrongClock, world: QueueWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, LOG)
    at = datetime.fromtimestamp(world.clock(), UTC).isoformat()
    access = {"path": "/a.txt", "accessed_at": at, "action": "read", "user_id": "ada"}
    accepted = world.caller.post("/v1/ordered-accesses", access, headers={"prefer": "respond-async"})
    world.writer_wire = wrong.wire

    world.poll(OPERATIONS)

    assert world.tallies[-1].left == 1
    assert [level for level, _ in lines(caplog)] == ["WARNING"]
    world.writer_wire = None
    world.later()
    world.drain(OPERATIONS)
    assert world.caller.get(accepted.headers["location"], query="consistent=true").json["state"] == "done"
