"""What callers see of entities that are placed by the time of their keys, while shard counts grow."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from ksuid import Ksuid

from domain.samples.audit import OrderedAccess
from dynashard import definition
from dynashard.resharding import Resharder, Scope, Timing
from dynashard.runtime import Runtime
from dynashard.transport import Transport
from dynashard_serving.api.app import build_app
from dynashard_serving.commands.handler import build_commands
from tests.api_caller import TENANT, Caller
from tests.domain_served import ENTITIES
from tests.engine.api.api_on_engine import settings_of
from tests.engine.commands.commands_on_engine import Service
from tests.engine.topology.topology_world import Clock, topology_table_on
from tests.recording import RecordingTransport
from tests.roles import as_function

pytestmark = pytest.mark.engine

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()
FILE = "/shared/firetvGen2.txt"


class Api:
    """The API and direct invocation on tables of their own, and the time."""

    def __init__(self, transport: Transport, table: str, topology: str) -> None:
        self.clock = Clock(NOON)
        self.recording = RecordingTransport(transport)
        self._table, self._topology = table, topology
        settings, runtime = settings_of(table, topology_table=topology), Runtime(self.clock, monotonic=self.clock)
        rest, direct = (as_function(name, self.recording, table, topology, "unused") for name in ("api", "commands"))
        self.caller = Caller(build_app(settings, rest, runtime=runtime))
        self.service = Service(build_commands(settings, direct, runtime=runtime), entity="audit.v1.OrderedAccess")

    def grow(self, to: int) -> None:
        """Resize the file, from the request until the epoch has begun."""
        resharder = Resharder(
            self.recording,
            table=self._table,
            topology_table=self._topology,
            entities=[each.entity for each in ENTITIES],
            runtime=Runtime(self.clock, self._sleep, monotonic=self.clock),
            timing=Timing(lease=30.0, operation=5.0, skew=0.0, lag=0.0),
        )
        scope = Scope(definition(OrderedAccess), f"audit.v1.OrderedAccess:{TENANT}:{FILE}")
        resharder.start(scope, to)
        while (step := resharder.advance(scope.key)).kind != "done":
            self._sleep(step.seconds)

    def _sleep(self, seconds: float) -> None:
        self.clock.now += seconds

    def at(self, seconds: float = 0.0) -> str:
        """Return a time so many seconds from now."""
        return datetime.fromtimestamp(self.clock.now + seconds, UTC).isoformat().replace("+00:00", "Z")

    def access(self, seconds: float = 0.0, **fields: Any) -> dict[str, Any]:
        """Return the body of an access at a time so many seconds from now."""
        return {"path": FILE, "accessed_at": self.at(seconds), "action": "read", "user_id": "ada", **fields}


@pytest.fixture
def api(transport: Transport, table: str) -> Iterator[Api]:
    with topology_table_on(transport) as topology:
        yield Api(transport, table, topology)


def test_a_log_that_grows_twice_is_listed_in_order_and_read_by_one_request(api: Api) -> None:
    locations = []
    for count in (1, 4, 16):
        if count > 1:
            api.grow(count)
        for _ in range(20):
            api.clock.now += 1
            locations.append(api.caller.post("/v1/ordered-accesses", api.access()).headers["location"])

    api.recording.clear()
    assert all(api.caller.get(location).status == 200 for location in locations)
    assert len(api.recording.requests) == len(locations)
    newest = api.caller.get("/v1/ordered-accesses", query={"path": FILE, "order": "ordered", "direction": "desc"})
    times = [item["accessed_at"] for item in newest.json["items"]]
    assert len(times) == 50
    assert times == sorted(times, reverse=True)
    listed = api.service.result("list", partition={"path": FILE}, order="ordered", limit=100)["items"]
    assert [each["id"] for each in listed] == [location.split("/")[4] for location in locations]


def test_the_oldest_page_reads_only_the_shards_of_its_epoch(api: Api) -> None:
    for _ in range(30):
        api.clock.now += 1
        api.caller.post("/v1/ordered-accesses", api.access())
    api.grow(16)
    api.caller.post("/v1/ordered-accesses", api.access())
    query = {"path": FILE, "order": "ordered", "limit": "20"}

    api.recording.clear()
    oldest = api.caller.get("/v1/ordered-accesses", query=query)

    assert len(oldest.json["items"]) == 20
    assert len(api.recording.requests) == 1


@pytest.mark.parametrize("way", ["rest", "direct"])
def test_a_key_too_far_ahead_is_refused_with_the_bound_and_the_time(api: Api, way: str) -> None:
    ahead = api.access(5.1)

    if way == "rest":
        answer = api.caller.post("/v1/ordered-accesses", ahead)
        assert (answer.status, answer.code, answer.fields) == (
            422,
            "key_too_far_ahead",
            {"accessed_at": "key_too_far_ahead"},
        )
        error, message = answer.json, answer.json["detail"]
    else:
        error = api.service.error("create", item=ahead)
        assert error["code"] == "key_too_far_ahead"
        message = error["message"]

    assert error["details"] == {"ahead": 5.0, "now": "2026-11-21T12:00:00.000+00:00"}
    assert "more than 5 seconds ahead of 2026-11-21T12:00:00.000+00:00" in message
    api.clock.now += 0.2
    assert api.caller.post("/v1/ordered-accesses", ahead).status == 201


def test_a_key_of_the_future_has_no_item(api: Api) -> None:
    future = f"/v1/ordered-accesses/{api.at(3600)}/x/{quote(FILE, safe='')}"

    assert api.caller.get(future).code == "not_found"


@pytest.mark.parametrize("id_", ["ada", "z" * 27])
def test_an_id_without_a_time_is_refused_by_its_field(api: Api, id_: str) -> None:
    note = {"id": id_, "user_id": "ada", "channel": "sms", "text": "Down"}

    created = api.caller.post("/v1/notifications", note)

    assert (created.code, created.fields) == ("invalid_key", {"id": "invalid_key"})
    assert api.caller.get(f"/v1/notifications/{id_}").code == "not_found"


def test_a_notification_is_made_with_an_id_of_its_time_and_changed_under_it(api: Api) -> None:
    api.clock.now = datetime.now(UTC).timestamp()
    note = {"user_id": "ada", "channel": "sms", "text": "Down"}
    location = api.caller.post("/v1/notifications", note).headers["location"]
    given = str(Ksuid(datetime.fromtimestamp(api.clock.now, UTC)))

    assert api.caller.post("/v1/notifications", {**note, "id": given}).headers["location"].endswith(given)
    assert api.caller.patch(location, {"read_at": api.at()}).status == 200
    assert api.caller.put(location, {**note, "text": "Up"}).status == 200
    of_ada = api.caller.get("/v1/notifications", query={"index": "by_user", "user_id": "ada", "order": "ordered"})
    assert sorted(each["text"] for each in of_ada.json["items"]) == ["Down", "Up"]
    assert api.caller.delete(location).status == 204
    assert api.caller.get(location).status == 404
