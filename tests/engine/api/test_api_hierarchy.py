"""An account's teams over REST: one logical partition, each part of it read by one Query."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.api_caller import Caller
from tests.engine.api.api_on_engine import caller_on
from tests.recording import RecordingTransport

pytestmark = pytest.mark.engine

TURN = {"user_id": "ada", "starts_at": "2026-11-21T08:00:00Z", "ends_at": "2026-11-21T16:00:00Z"}


@pytest.fixture
def caller(recording: RecordingTransport, table: str) -> Caller:
    return caller_on(recording, table)


@pytest.fixture
def account(caller: Caller) -> Caller:
    """Two teams. The first has a schedule with two shifts and an override, and a schedule with a similar name."""
    for team in ("a", "b"):
        assert caller.post("/v1/teams", {"team_id": team, "name": f"Team {team}"}).status == 201
    for team, schedule in (("a", "day"), ("a", "day2"), ("b", "day")):
        body = {"team_id": team, "schedule_id": schedule, "name": schedule}
        assert caller.post("/v1/schedules", body).status == 201
        assert (
            caller.post("/v1/shifts", {"team_id": team, "schedule_id": schedule, "shift_id": "1", **TURN}).status == 201
        )
    shift = {"team_id": "a", "schedule_id": "day", "shift_id": "2", **TURN, "user_id": "bob"}
    assert caller.post("/v1/shifts", shift).status == 201
    override = {"team_id": "a", "schedule_id": "day", "override_id": "1", **TURN, "user_id": "eve"}
    assert caller.post("/v1/overrides", override).status == 201
    return caller


def names(items: Sequence[Mapping[str, Any]]) -> list[str]:
    parts = ("team_id", "schedule_id", "shift_id", "override_id")
    return [f"{item['type'].rpartition('.')[2]} " + "/".join(item[p] for p in parts if p in item) for item in items]


def test_a_whole_account_is_one_query_and_each_item_has_its_type(
    account: Caller, recording: RecordingTransport
) -> None:
    recording.clear()

    answer = account.get("/v1/on-call")

    assert [operation for operation in recording.operations if operation != "GetItem"] == ["Query"]
    assert answer.json["cursor"] is None
    assert names(answer.json["items"]) == [
        "Team a",
        "Schedule a/day",
        "Override a/day/1",
        "Shift a/day/1",
        "Shift a/day/2",
        "Schedule a/day2",
        "Shift a/day2/1",
        "Team b",
        "Schedule b/day",
        "Shift b/day/1",
    ]
    assert all(item["revision"] for item in answer.json["items"])


def test_a_schedule_with_its_children_is_one_query_without_similar_names(
    account: Caller, recording: RecordingTransport
) -> None:
    recording.clear()

    answer = account.get("/v1/on-call", query={"team_id": "a", "schedule_id": "day"})

    assert recording.operations == ["Query"]
    assert names(answer.json["items"]) == ["Schedule a/day", "Override a/day/1", "Shift a/day/1", "Shift a/day/2"]


def test_a_team_is_listed_with_its_children(account: Caller) -> None:
    answer = account.get("/v1/on-call", query={"team_id": "b"})

    assert names(answer.json["items"]) == ["Team b", "Schedule b/day", "Shift b/day/1"]


def test_pages_of_the_tree_continue_at_their_cursor(account: Caller) -> None:
    seen: list[str] = []
    query = {"limit": "3", "order": "ordered", "direction": "desc"}
    while True:
        answer = account.get("/v1/on-call", query=query)
        seen += names(answer.json["items"])
        if answer.json["cursor"] is None:
            break
        assert 'rel="next"' in answer.headers["link"]
        query = {**query, "cursor": answer.json["cursor"]}

    assert len(seen) == len(set(seen)) == 10
    assert (seen[0], seen[-1]) == ("Shift b/day/1", "Team a")


def test_the_shifts_of_one_schedule_are_listed_by_its_key(account: Caller, recording: RecordingTransport) -> None:
    recording.clear()

    answer = account.get("/v1/shifts", query={"team_id": "a", "schedule_id": "day"})

    assert [item["shift_id"] for item in answer.json["items"]] == ["1", "2"]
    [request] = recording.requests
    assert {"S": "team_a#schedule_day#shift_"} in request["ExpressionAttributeValues"].values()


def test_the_shifts_of_a_user_are_listed_over_all_teams(account: Caller) -> None:
    answer = account.get("/v1/shifts", query={"index": "by_user", "user_id": "ada", "order": "ordered"})

    assert len(answer.json["items"]) == 3


def test_items_of_the_tree_have_paths_of_their_own(account: Caller) -> None:
    path = "/v1/shifts/a/day/1"

    assert account.get(path).json["user_id"] == "ada"
    assert account.patch(path, {"user_id": "cyd"}).json["user_id"] == "cyd"
    assert account.delete(path).status == 204
    assert account.get(path).status == 404
    assert account.get("/v1/shifts/a/day").status == 404


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ({"schedule_id": "day"}, {"team_id": "missing"}),
        ({"team_id": "a", "prefix": "x"}, {"prefix": "contradiction"}),
        ({"team_id": ""}, {"team_id": "string_too_short"}),
        ({"team_id": "a#b"}, {"team_id": "invalid_key"}),
        ({"shift_id": "1"}, {"shift_id": "unknown_parameter"}),
        ({"limit": "0"}, {"limit": "out_of_range"}),
        ({"order": "random"}, {"order": "enum"}),
        ("team_id=a&team_id=b", {"team_id": "repeated_parameter"}),
    ],
)
def test_a_wrong_listing_of_the_tree_is_refused_by_field(caller: Caller, query: Any, fields: dict[str, str]) -> None:
    assert caller.get("/v1/on-call", query=query).fields == fields


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"ends_at": "2026-11-21T08:00:00Z"}, {"": "value_error"}),
        ({"starts_at": "2026-11-21T08:00:00"}, {"starts_at": "timezone_aware"}),
        ({"team_id": "a#b"}, {"team_id": "invalid_key"}),
        ({"user_id": ""}, {"user_id": "string_too_short"}),
        ({"user_id": "a:b"}, {"user_id": "invalid_key"}),
    ],
)
def test_a_bad_shift_is_refused_by_field(caller: Caller, body: dict[str, Any], fields: dict[str, str]) -> None:
    assert caller.post("/v1/shifts", {"team_id": "a", "schedule_id": "day", **TURN, **body}).fields == fields


def test_the_listing_is_read_only(caller: Caller) -> None:
    answer = caller.post("/v1/on-call", {})

    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_another_tenant_sees_nothing(account: Caller) -> None:
    other = account.of("other")

    assert other.get("/v1/on-call").json["items"] == []
    assert other.get("/v1/on-call", query={"team_id": "a"}).json["items"] == []
    assert other.get("/v1/shifts", query={"index": "by_user", "user_id": "ada"}).json["items"] == []
    cursor = account.get("/v1/on-call", query={"limit": "3"}).json["cursor"]
    assert other.get("/v1/on-call", query={"limit": "3", "cursor": cursor}).status == 400
