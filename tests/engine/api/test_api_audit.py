"""The audit log of a file system over REST: one file's accesses, spread at random, by time, or in epochs."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest

from domain.samples.audit import TimedAccess
from dynashard import definition
from dynashard.routing import home
from dynashard.runtime import Runtime
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import caller_on
from tests.recording import RecordingTransport

pytestmark = pytest.mark.engine

FILE = "/shared/firetvGen2.txt"
RESOURCES = ["accesses", "ordered-accesses", "timed-accesses"]
AFTER = datetime(2026, 11, 21, 13, tzinfo=UTC).timestamp()


@pytest.fixture
def caller(recording: RecordingTransport, table: str) -> Caller:
    return caller_on(recording, table, runtime=Runtime(lambda: AFTER))


def an_access(second: int = 0, **fields: Any) -> dict[str, Any]:
    at = f"2026-11-21T12:{second // 60:02d}:{second % 60:02d}Z"
    return {"path": FILE, "accessed_at": at, "action": "read", "user_id": "ada", **fields}


@pytest.mark.parametrize("resource", RESOURCES)
def test_accesses_to_one_file_are_listed_newest_first(caller: Caller, resource: str) -> None:
    for second in range(12):
        assert caller.post(f"/v1/{resource}", an_access(second)).status == 201
    caller.post(f"/v1/{resource}", an_access(3, path="/shared/other.txt"))
    seen: list[str] = []
    query = {"path": FILE, "order": "ordered", "direction": "desc", "limit": "5"}

    while True:
        answer = caller.get(f"/v1/{resource}", query=query)
        seen += [item["accessed_at"] for item in answer.json["items"]]
        if answer.json["cursor"] is None:
            break
        query["cursor"] = answer.json["cursor"]

    assert len(seen) == 12
    assert seen == sorted(seen, reverse=True)


@pytest.mark.parametrize("resource", RESOURCES)
def test_an_access_has_an_address_though_its_path_holds_slashes(caller: Caller, resource: str) -> None:
    location = caller.post(f"/v1/{resource}", an_access()).headers["location"]

    assert location.endswith(quote(FILE, safe=""))
    assert caller.get(location).json["path"] == FILE


def test_an_access_is_looked_up_by_path_and_time_in_one_request(caller: Caller, recording: RecordingTransport) -> None:
    for second in range(20):
        caller.post("/v1/timed-accesses", an_access(second))
    recording.clear()

    found = caller.get(f"/v1/timed-accesses/2026-11-21T12:00:07Z/{quote(FILE, safe='')}")

    assert found.json["accessed_at"] == "2026-11-21T12:00:07Z"
    [request] = [each for each in recording.requests if "audit" in str(each) or FILE in str(each)]
    assert request["Key"]["PK"]["S"].startswith(f"abc#{FILE}_")


def test_the_calculated_shards_are_those_published() -> None:
    entity = definition(TimedAccess)
    accesses = [TimedAccess.model_validate({"tenant_id": "abc", **an_access(n)}) for n in range(200)]

    places = {home(entity, entity.key_of(access), 10) for access in accesses}

    assert {int(place.rpartition("_")[2]) for place in places} == set(range(1, 11))


def test_two_accesses_at_one_moment_are_distinguished_by_their_ids(caller: Caller) -> None:
    assert [caller.post("/v1/accesses", an_access()).status for _ in range(2)] == [201, 201]
    assert [caller.post("/v1/ordered-accesses", an_access()).status for _ in range(2)] == [201, 201]
    assert [caller.post("/v1/timed-accesses", an_access()).status for _ in range(2)] == [201, 409]
    assert len(caller.get("/v1/accesses", query={"path": FILE}).json["items"]) == 2
    assert len(caller.get("/v1/ordered-accesses", query={"path": FILE}).json["items"]) == 2


@pytest.mark.parametrize("resource", RESOURCES)
def test_a_log_accepts_only_new_entries(caller: Caller, resource: str) -> None:
    location = caller.post(f"/v1/{resource}", an_access()).headers["location"]

    assert caller.delete(location).status == 405
    assert caller.put(location, an_access(action="delete")).status == 405


@pytest.mark.parametrize("resource", RESOURCES)
@pytest.mark.parametrize(
    ("fields", "at_fault"),
    [
        ({"path": "C:/windows"}, "path"),
        ({"path": "/a:b"}, "path"),
        ({"path": ""}, "path"),
        ({"accessed_at": "2026-11-21T12:00:00"}, "accessed_at"),
        ({"action": "admire"}, "action"),
        ({"user_id": ""}, "user_id"),
    ],
)
def test_an_invalid_access_is_refused_by_field(
    caller: Caller, resource: str, fields: dict[str, Any], at_fault: str
) -> None:
    answer = caller.post(f"/v1/{resource}", an_access(**fields))

    assert set(answer.fields) == {at_fault}


@pytest.mark.parametrize("resource", RESOURCES)
def test_another_tenant_sees_no_accesses(caller: Caller, resource: str) -> None:
    location = caller.post(f"/v1/{resource}", an_access()).headers["location"]

    assert caller.of("other").get(location).status == 404
    assert caller.of("other").get(f"/v1/{resource}", query={"path": FILE}).json["items"] == []


def test_a_time_of_a_missing_item_is_named_as_a_path_has_it(caller: Caller) -> None:
    missing = caller.get("/v1/timed-accesses/2026-11-21T12:00:07Z/none")

    assert missing.json["detail"].endswith("path='none', accessed_at='2026-11-21T12:00:07Z' does not exist")
