"""`Prefer: wait=5`: a request is answered when its copies are current or the time is over."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from domain.samples.incidents import Incident
from domain.samples.participations import PARTICIPATIONS
from dynashard import Dynashard
from dynashard.errors import NotFoundError
from dynashard.reads import allowing
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_serving.access import Caller
from dynashard_serving.api.copy_wait import MOST_SECONDS, CopyWait
from dynashard_serving.api.request import ApiRequest
from tests.engine.api.api_on_engine import KEYS, caller_on

pytestmark = pytest.mark.engine

INCIDENT = {"tenant_id": "abc", "id": "i1", "number": 1, "title": "Disk", "participants": ["user_ada", "team_red"]}
KEY = {"tenant_id": "abc", "id": "i1"}


class Context:
    """Lambda's context, with so many seconds left."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self._seconds * 1000)


class World:
    """A database, and a clock that advances only while a request waits."""

    def __init__(self, db: Dynashard) -> None:
        self.db = db
        self.materializer = PARTICIPATIONS.materializer(db)
        self.now = 0.0
        self.on_sleep: Callable[[], object] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.on_sleep()

    def get(self, prefer: str, *, copied: bool = True, left: float = 29) -> Mapping[str, str]:
        """Return the headers of the answer that follow from the preference."""
        materializers = [self.materializer] if copied else []
        waiting = CopyWait(lambda: materializers, clock=lambda: self.now, sleep=self.sleep)
        return waiting.wait(replace(incoming(prefer), context=Context(left)), KEY)


def incoming(prefer: str) -> ApiRequest:
    return ApiRequest("GET", "/v1/things/i1", (), {"prefer": prefer}, b"", "abc", Caller("abc"))


@pytest.fixture
def world(transport: Transport, table: str) -> World:
    return World(Dynashard(transport, table=table, topology=DeclaredTopology(), cursor_keys=list(KEYS)))


def test_a_waiting_request_is_answered_as_soon_as_the_copies_are_made(world: World) -> None:
    world.db.collection(Incident).create(Incident(**INCIDENT))
    looks: list[float] = []

    def follow_at_the_third_look() -> None:
        looks.append(world.now)
        if len(looks) == 3:
            world.materializer.carry(KEY)

    world.on_sleep = follow_at_the_third_look

    assert world.get("wait=5") == {"Preference-Applied": "wait=5"}
    assert len(looks) == 3
    assert world.now < 1


@pytest.mark.parametrize(
    "change",
    [
        lambda items: items.update(KEY, set={"title": "Another"}),
        lambda items: items.delete(KEY),
    ],
    ids=["changed", "deleted"],
)
def test_copies_of_an_earlier_state_are_waited_for(world: World, change: Callable[[Any], object]) -> None:
    items = world.db.collection(Incident)
    items.create(Incident(**INCIDENT))
    world.materializer.carry(KEY)
    assert world.get("wait=5") == {"Preference-Applied": "wait=5"}

    change(items)

    assert world.get("wait=5") == {}
    world.materializer.carry(KEY)
    assert world.get("wait=5") == {"Preference-Applied": "wait=5"}


@pytest.mark.parametrize(
    ("prefer", "left", "waited"),
    [("wait=2", 29, 2), ("wait=600", 29, MOST_SECONDS), ("wait=9", 6, 3), ("wait=0", 29, 0)],
)
def test_a_waiting_request_is_answered_with_present_copies_when_its_time_is_over(
    world: World, prefer: str, left: float, waited: float
) -> None:
    world.db.collection(Incident).create(Incident(**INCIDENT))

    assert world.get(prefer, left=left) == {}
    assert world.now == pytest.approx(waited)


def test_a_request_without_copies_to_wait_for_is_answered_at_once(world: World) -> None:
    assert world.get("wait=5", copied=False) == {"Preference-Applied": "wait=5"}
    assert world.now == 0


def test_a_request_without_the_preference_does_not_wait(world: World) -> None:
    world.db.collection(Incident).create(Incident(**INCIDENT))

    assert world.get("respond-async") == {}
    assert world.now == 0


@pytest.mark.parametrize(
    ("header", "applied"),
    [
        ("wait=5", "wait=5"),
        ("respond-async, wait=10", "wait=10"),
        ("Wait=7; foo=bar", "wait=7"),
        ('wait="3"', "wait=3"),
        ("wait", None),
        ("wait=-1", None),
        ("wait=soon", None),
        ("waiting=5", None),
        ("wait=" + "9" * 5000, None),
        ("", None),
    ],
)
def test_the_preference_is_read_and_an_invalid_one_is_ignored(world: World, header: str, applied: str | None) -> None:
    assert world.get(header, copied=False).get("Preference-Applied") == applied


def test_rest_says_whether_the_copies_are_current(transport: Transport, table: str, world: World) -> None:
    api = caller_on(transport, table)
    api.post("/v1/incidents", {name: value for name, value in INCIDENT.items() if name != "tenant_id"})

    before = api.get("/v1/incidents/i1", headers={"Prefer": "wait=0"})
    with suppress(NotFoundError):
        world.materializer.carry(KEY)
    after = api.get("/v1/incidents/i1", headers={"Prefer": "wait=0"})

    assert (before.status, after.status) == (200, 200)
    assert "preference-applied" not in before.headers
    assert after.headers["preference-applied"] == "wait=0"


def test_the_answer_lacks_the_header_when_the_queries_of_the_request_are_used_up(world: World) -> None:
    world.db.collection(Incident).create(Incident(**INCIDENT))

    with allowing(3) as allowance:
        assert world.get("wait=10") == {}

    assert allowance.left == 0
