"""The on-call backend as a product: numbers, states, members, what depends on a team, escalation, feeds."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

from domain.samples.incidents import Incident
from dynashard import Dynashard
from dynashard.testing.faults import FaultyTransport, lost_answer, lost_request
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import KEYS, caller_on, idempotency_table
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine

TURN = {"user_id": "ada", "starts_at": "2026-11-21T08:00:00Z", "ends_at": "2026-11-21T16:00:00Z"}


def incident(caller: Caller, name: str, **fields: Any) -> dict[str, Any]:
    made = caller.post("/v1/incidents", {"id": name, "title": "Errors", **fields})
    assert made.status == 201, made.json
    return dict(made.json)


# Numbers


def test_numbers_are_allocated_one_after_another_for_each_tenant(caller: Caller) -> None:
    assert [incident(caller, f"i{n}")["number"] for n in range(3)] == [1, 2, 3]
    assert incident(caller.of("other"), "i1")["number"] == 1
    assert caller.put("/v1/incidents/put", {"title": "Errors"}).json["number"] == 4


def test_concurrent_creates_have_different_numbers(caller: Caller) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: caller.post("/v1/incidents", {"id": f"i{n}", "title": "x"}), range(64)))

    made = [answer.json["number"] for answer in answers if answer.status == 201]
    assert len(set(made)) == len(made) > 32
    assert {answer.status for answer in answers} <= {201, 409, 429, 503}


def test_a_number_whose_answer_is_lost_is_a_gap_and_never_given_twice(transport: Transport, table: str) -> None:
    caller = caller_on(transport, table)
    incident(caller, "i0")
    faults = [lost_answer("UpdateItem"), lost_request("UpdateItem", nth=3), lost_answer("PutItem", nth=2)]
    faulty = caller_on(FaultyTransport(transport, faults), table)

    answers = [faulty.post("/v1/incidents", {"id": f"i{n}", "title": "x"}) for n in range(1, 8)]

    numbers = [item["number"] for item in caller.get("/v1/incidents").json["items"]]
    assert len(set(numbers)) == len(numbers) >= 1 + sum(answer.status == 201 for answer in answers)


def test_the_first_number_follows_those_that_are_stored(caller: Caller, transport: Transport, table: str) -> None:
    db = Dynashard(transport, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)
    db.collection(Incident).create(Incident(tenant_id="abc", id="old", number=859, title="of the release before"))

    assert incident(caller, "i1")["number"] == 860


def test_a_number_that_is_brought_must_be_above_those_that_were_allocated(caller: Caller) -> None:
    assert [incident(caller, f"i{n}", number=7)["number"] for n in range(2)] == [7, 7]
    assert incident(caller, "allocated")["number"] == 8

    refused = caller.post("/v1/incidents", {"id": "late", "title": "x", "number": 8})
    assert (refused.status, refused.code, refused.json["details"]) == (409, "number_taken", {"last": 8})
    assert incident(caller, "brought", number=20)["number"] == 20
    assert incident(caller, "next")["number"] == 21


def test_a_number_does_not_change(caller: Caller) -> None:
    incident(caller, "i1")

    assert caller.patch("/v1/incidents/i1", {"number": 5}).fields == {"number": "immutable"}
    assert caller.put("/v1/incidents/i1", {"title": "x", "number": 5}).fields == {"number": "immutable"}
    assert caller.put("/v1/incidents/i1", {"title": "x", "number": 1}).json["number"] == 1
    assert caller.put("/v1/incidents/i1", {"title": "y"}).json["number"] == 1
    assert caller.patch("/v1/incidents/i1", {"number": None}).json["number"] == 1


def test_a_repeated_create_has_the_number_of_the_first(transport: Transport, table: str, dynamodb: RawDynamoDB) -> None:
    with idempotency_table(dynamodb) as records:
        caller = caller_on(transport, table, records)
        first, again = (
            caller.post("/v1/incidents", {"title": "x"}, headers={"idempotency-key": "k"}) for _ in range(2)
        )

    assert (first.status, again.json) == (201, first.json)
    assert incident(caller, "i2")["number"] == 2


# States


def test_a_state_that_cannot_follow_is_refused_and_the_answer_names_those_that_can(caller: Caller) -> None:
    incident(caller, "i1", status="RESOLVED")

    refused = caller.patch("/v1/incidents/i1", {"status": "ACKNOWLEDGED"})

    assert (refused.status, refused.code) == (409, "transition_refused")
    assert refused.json["details"] == {
        "field": "status",
        "state": "RESOLVED",
        "requested": "ACKNOWLEDGED",
        "allowed": ["TRIGGERED"],
    }
    assert caller.put("/v1/incidents/i1", {"title": "x", "status": "ACKNOWLEDGED"}).code == "transition_refused"
    assert caller.get("/v1/incidents/i1").json["status"] == "RESOLVED"
    for status in ("RESOLVED", "TRIGGERED", "ACKNOWLEDGED", "RESOLVED"):
        assert caller.patch("/v1/incidents/i1", {"status": status}).json["status"] == status


def test_the_server_sets_when_an_incident_was_closed(caller: Caller) -> None:
    made = incident(caller, "i1", closed_at="2020-01-01T00:00:00Z")
    closed = caller.patch("/v1/incidents/i1", {"state": "CLOSED", "closed_at": "2020-01-01T00:00:00Z"}).json
    kept = caller.put("/v1/incidents/i1", {"title": "x", "state": "CLOSED"}).json
    opened = caller.patch("/v1/incidents/i1", {"state": "OPEN"}).json

    assert (made["closed_at"], opened["closed_at"]) == (None, None)
    assert datetime.fromisoformat(closed["closed_at"]) >= datetime.fromisoformat(closed["created_at"])
    assert kept["closed_at"] == closed["closed_at"]
    assert incident(caller, "i2", state="CLOSED")["closed_at"] is not None


# Members, and what depends on a team


def test_members_are_listed_by_team_and_by_user(caller: Caller) -> None:
    for team, user in (("red", "ada"), ("red", "bob"), ("blue", "ada")):
        assert caller.post("/v1/members", {"team_id": team, "user_id": user}).status == 201

    assert [m["user_id"] for m in caller.get("/v1/members", query="team_id=red&order=ordered").json["items"]] == [
        "ada",
        "bob",
    ]
    of_ada = caller.get("/v1/members", query="user_id=ada&order=ordered").json["items"]
    assert [m["team_id"] for m in of_ada] == ["blue", "red"]
    assert caller.post("/v1/members", {"team_id": "red", "user_id": "ada"}).code == "already_exists"


def test_deleting_a_team_says_what_depends_on_it_and_deletes_nothing(caller: Caller) -> None:
    caller.post("/v1/teams", {"team_id": "red", "name": "Red"})
    caller.post("/v1/teams", {"team_id": "red2", "name": "Another"})
    caller.post("/v1/members", {"team_id": "red2", "user_id": "ada"})
    caller.post("/v1/members", {"team_id": "red", "user_id": "ada"})
    caller.post("/v1/schedules", {"team_id": "red", "schedule_id": "day", "name": "Day"})
    for number in range(2):
        caller.post("/v1/shifts", {"team_id": "red", "schedule_id": "day", "shift_id": str(number), **TURN})

    refused = caller.delete("/v1/teams/red")

    assert (refused.status, refused.code) == (409, "has_dependants")
    assert refused.json["details"]["dependants"] == [
        {"kind": "members", "count": 1},
        {"kind": "schedules", "count": 1},
        {"kind": "shifts", "count": 2},
    ]
    assert "1 members, 1 schedules, 2 shifts" in refused.json["detail"]
    assert len(caller.get("/v1/on-call", query="team_id=red").json["items"]) == 5
    for path in ("members/red/ada", "shifts/red/day/0", "shifts/red/day/1", "schedules/red/day", "teams/red"):
        assert caller.delete(f"/v1/{path}").status == 204, path
    assert caller.delete("/v1/teams/red").status == 404


def test_more_dependants_than_are_counted_are_said(caller: Caller) -> None:
    caller.post("/v1/teams", {"team_id": "red", "name": "Red"})
    for number in range(101):
        caller.post("/v1/members", {"team_id": "red", "user_id": f"u{number}"})

    details = caller.delete("/v1/teams/red").json["details"]
    assert details["dependants"] == [{"kind": "members", "count": 100, "more": True}]


# Escalation


def test_an_escalation_says_whom_to_notify_by_what_and_when(caller: Caller) -> None:
    steps = [{"targets": ["schedule_day"], "wait_minutes": 10}, {"targets": ["user_eve", "schedule_none"]}]
    caller.post("/v1/escalation-policies", {"team_id": "red", "steps": steps})
    layer = {"users": ["ada"], "starts_at": "2026-01-01T00:00:00Z"}
    caller.post("/v1/schedules", {"team_id": "red", "schedule_id": "day", "name": "Day", "layers": [layer]})
    caller.post("/v1/contact-methods", {"user_id": "ada", "method_id": "m", "channel": "email", "address": "a@b.c"})
    caller.post("/v1/contact-methods", {"user_id": "ada", "method_id": "p", "channel": "phone", "address": "+49"})
    for rule in (
        {"rule_id": "1", "method_id": "m"},
        {"rule_id": "2", "method_id": "p", "after_minutes": 5},
        {"rule_id": "3", "method_id": "p", "severity": "critical"},
    ):
        caller.post("/v1/notification-rules", {"user_id": "ada", **rule})
    begins = datetime.fromisoformat(incident(caller, "i1", team="team_red")["created_at"])

    notices = caller.get("/v1/incidents/i1/escalation").json["items"]

    assert [
        (round((datetime.fromisoformat(n["at"]) - begins).total_seconds() / 60), n["user_id"], n["address"])
        for n in notices
    ] == [(0, "ada", "a@b.c"), (5, "ada", "+49"), (10, "eve", None), (10, None, None)]
    incident(caller, "i2", team="team_red", critical=True)
    assert [n["address"] for n in caller.get("/v1/incidents/i2/escalation").json["items"]][:3] == [
        "a@b.c",
        "+49",
        "+49",
    ]
    caller.patch("/v1/incidents/i1", {"status": "ACKNOWLEDGED"})
    assert caller.get("/v1/incidents/i1/escalation").json["items"] == []


# Feeds


def test_a_feed_has_the_newest_articles_of_those_whom_a_user_follows(caller: Caller) -> None:
    for author, year in (("ada", 2015), ("bob", 2016), ("ada", 2017), ("eve", 2018)):
        body = {"author": author, "title": f"of {year}", "published_at": f"{year}-01-01T00:00:00Z", "text": "long"}
        assert caller.post("/v1/articles", body).status == 201
    assert caller.get("/v1/feed", query="of=User.9").json == {"items": [], "cursor": None}
    for author in ("ada", "bob"):
        caller.post("/v1/follows", {"node": "User.9", "other": f"Author.{author}"})

    first = caller.get("/v1/feed", query="of=User.9&limit=2").json
    rest = caller.get("/v1/feed", query=f"of=User.9&limit=2&cursor={first['cursor']}").json

    assert [item["year"] for item in (*first["items"], *rest["items"])] == [2017, 2016, 2015]
