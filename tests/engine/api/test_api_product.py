"""The on-call backend as a product: states, members, what depends on a team, escalation, feeds."""

from datetime import datetime

import pytest

from domain.samples.participations import PARTICIPATIONS
from dynashard import Dynashard
from dynashard.runtime import Runtime
from dynashard.transport import Transport
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import caller_on
from tests.engine.api.incident_calls import incident
from tests.engine.topology.topology_world import Clock

pytestmark = pytest.mark.engine

TURN = {"user_id": "ada", "starts_at": "2026-11-21T08:00:00Z", "ends_at": "2026-11-21T16:00:00Z"}


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


def test_a_team_with_an_open_incident_is_not_deleted(caller: Caller, database: Dynashard) -> None:
    for team in ("red", "re"):
        caller.post("/v1/teams", {"team_id": team, "name": team})
    incident(caller, "i1", team="team_red")
    incident(caller, "i2", participants=["team_red", "user_ada"])
    incident(caller, "i3", team="team_red", state="CLOSED")
    materializer = PARTICIPATIONS.materializer(database)
    for name in ("i1", "i2", "i3"):
        materializer.carry({"tenant_id": "abc", "id": name})

    refused = caller.delete("/v1/teams/red")

    assert (refused.status, refused.code) == (409, "has_dependants")
    assert refused.json["details"] == {"dependants": [{"kind": "open incidents", "count": 2}]}
    assert caller.get("/v1/teams/red").status == 200
    assert caller.delete("/v1/teams/re").status == 204
    for name in ("i1", "i2"):
        caller.patch(f"/v1/incidents/{name}", {"state": "CLOSED"})
        materializer.carry({"tenant_id": "abc", "id": name})
    assert caller.delete("/v1/teams/red").status == 204


def test_more_dependants_than_are_counted_are_said(caller: Caller) -> None:
    caller.post("/v1/teams", {"team_id": "red", "name": "Red"})
    for number in range(101):
        caller.post("/v1/members", {"team_id": "red", "user_id": f"u{number}"})

    details = caller.delete("/v1/teams/red").json["details"]
    assert details["dependants"] == [{"kind": "members", "count": 100, "more": True}]


def test_a_team_of_which_no_incident_can_be_is_deleted(caller: Caller) -> None:
    assert caller.post("/v1/teams", {"team_id": "a:b", "name": "Odd"}).status == 201
    caller.post("/v1/members", {"team_id": "a:b", "user_id": "ada"})

    refused = caller.delete("/v1/teams/a:b")
    caller.delete("/v1/members/a:b/ada")
    gone = caller.delete("/v1/teams/a:b")

    assert (refused.status, refused.code) == (409, "has_dependants")
    assert (gone.status, caller.get("/v1/teams/a:b").status) == (204, 404)


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


def escalated(caller: Caller, name: str, query: str = "") -> list[tuple[int, int, str]]:
    """Return the notices of an incident: the minute, the step and the target of each."""
    begins = datetime.fromisoformat(caller.get(f"/v1/incidents/{name}").json["created_at"])
    notices = caller.get(f"/v1/incidents/{name}/escalation", query=query).json["items"]
    return [
        (round((datetime.fromisoformat(n["at"]) - begins).total_seconds() / 60), n["step"], n["target"])
        for n in notices
    ]


@pytest.fixture
def policies(caller: Caller) -> Caller:
    """A caller with two policies of a team."""
    steps = [{"targets": ["user_ada"], "wait_minutes": 10}, {"targets": ["user_bob", "user_eve"], "wait_minutes": 5}]
    for policy in (
        {"steps": steps, "repeats": 2},
        {"policy_id": "calm", "steps": [{"targets": ["user_zoe"], "wait_minutes": 1}]},
    ):
        assert caller.post("/v1/escalation-policies", {"team_id": "red", **policy}).status == 201
    return caller


def test_an_escalation_repeats_its_steps(policies: Caller) -> None:
    incident(policies, "i1", team="team_red")

    once = [(0, 1, "user_ada"), (10, 2, "user_bob"), (10, 2, "user_eve")]
    assert escalated(policies, "i1") == [(at + 15 * time, *rest) for time in range(3) for at, *rest in once]


def test_an_escalation_follows_the_policy_that_is_named(policies: Caller) -> None:
    incident(policies, "i1", team="team_red", policy_id="calm")
    incident(policies, "i2", team="team_red", policy_id="none")
    incident(policies, "i3", team="team_blue")
    incident(policies, "i4")
    incident(policies, "i5", team="team_red", policy_id="a#b")

    assert escalated(policies, "i1") == [(0, 1, "user_zoe")]
    assert escalated(policies, "i1", "policy_id=default")[0] == (0, 1, "user_ada")
    assert escalated(policies, "i2", "policy_id=calm") == [(0, 1, "user_zoe")]
    assert [escalated(policies, name) for name in ("i2", "i3", "i4", "i5")] == [[]] * 4
    assert policies.get("/v1/incidents/i5/escalation", query="policy_id=a%23b").fields == {"policy_id": "invalid_key"}


def test_an_escalation_is_empty_once_the_incident_is_closed(policies: Caller) -> None:
    incident(policies, "i1", team="team_red")

    assert policies.patch("/v1/incidents/i1", {"state": "CLOSED"}).json["status"] == "TRIGGERED"
    assert escalated(policies, "i1") == []
    policies.patch("/v1/incidents/i1", {"state": "OPEN"})
    assert len(escalated(policies, "i1")) == 9


@pytest.mark.parametrize(
    "changes",
    [({"state": "CLOSED"}, {"state": "OPEN"}), ({"status": "RESOLVED"}, {"status": "TRIGGERED"})],
    ids=["closed", "resolved"],
)
def test_an_incident_that_is_opened_again_escalates_from_then_on(
    transport: Transport, table: str, changes: tuple[dict[str, str], ...]
) -> None:
    clock = Clock()
    caller = caller_on(transport, table, runtime=Runtime(clock))
    caller.post("/v1/escalation-policies", {"team_id": "red", "steps": [{"targets": ["schedule_day"]}]})
    layer = {"users": ["ada", "bob"], "starts_at": "2026-01-01T00:00:00Z", "every": 7, "unit": "days"}
    caller.post("/v1/schedules", {"team_id": "red", "schedule_id": "day", "name": "Day", "layers": [layer]})
    incident(caller, "i1", team="team_red")
    [first] = caller.get("/v1/incidents/i1/escalation").json["items"]

    clock.now += 7 * 86_400
    for change in changes:
        caller.patch("/v1/incidents/i1", change)
    caller.patch("/v1/incidents/i1", {"title": "Again"})
    [again] = caller.get("/v1/incidents/i1/escalation").json["items"]

    assert {first["user_id"], again["user_id"]} == {"ada", "bob"}
    assert datetime.fromisoformat(again["at"]).timestamp() == clock.now


def test_a_policy_that_the_caller_names_must_exist(policies: Caller) -> None:
    incident(policies, "i1", team="team_red")

    assert policies.get("/v1/incidents/i1/escalation", query="policy_id=none").code == "not_found"


@pytest.mark.parametrize("target", ["user_a:b", "schedule_a#b", "schedule_a:b", "schedule_a#shift_b"])
def test_a_target_that_can_be_nobody_does_not_keep_the_others_from_being_notified(caller: Caller, target: str) -> None:
    steps = [{"targets": [target, "user_ada"]}]
    assert caller.post("/v1/escalation-policies", {"team_id": "red", "steps": steps}).status == 201
    incident(caller, "i1", team="team_red")

    assert escalated(caller, "i1") == [(0, 1, target), (0, 1, "user_ada")]


def test_an_escalation_may_reach_more_users_than_one_listing_reads(caller: Caller) -> None:
    names = [f"{number:03d}" for number in range(120)]
    for name in ("000", "119"):
        contact = {"user_id": name, "method_id": "m", "channel": "email", "address": f"{name}@b.c"}
        assert caller.post("/v1/contact-methods", contact).status == 201
        caller.post("/v1/notification-rules", {"user_id": name, "rule_id": "1", "method_id": "m"})
    # Each step reaches the users of whose turn it is.
    layers = [
        {"users": names[at : at + 12], "starts_at": "2026-01-01T00:00:00Z", "unit": "hours"} for at in range(0, 120, 12)
    ]
    for number, layer in enumerate(layers):
        body = {"team_id": "red", "schedule_id": str(number), "name": "Day", "layers": [layer]}
        assert caller.post("/v1/schedules", body).status == 201
    targets = [f"schedule_{number}" for number in range(10)]
    steps = [{"targets": targets, "wait_minutes": 60}, {"targets": targets, "wait_minutes": 60}]
    caller.post("/v1/escalation-policies", {"team_id": "red", "steps": steps, "repeats": 9})
    incident(caller, "i1", team="team_red")

    notices = caller.get("/v1/incidents/i1/escalation").json["items"]

    assert len({notice["user_id"] for notice in notices}) > 100
    assert {notice["user_id"] for notice in notices if notice["address"]} <= {"000", "119"}


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


def article(caller: Caller, author: str, year: int) -> None:
    body = {"author": author, "title": f"of {year}", "published_at": f"{year}-01-01T00:00:00Z", "text": "long"}
    assert caller.post("/v1/articles", body).status == 201


def test_a_feed_has_the_hundred_authors_who_were_followed_last(transport: Transport, table: str) -> None:
    clock = Clock()
    caller = caller_on(transport, table, runtime=Runtime(clock))
    for number in range(101):
        clock.now += 1
        follow = {"node": "User.9", "other": f"Author.a{number}"}
        assert caller.post("/v1/follows", follow).status == 201
    for number, year in ((0, 2018), (1, 2017), (100, 2016)):
        article(caller, f"a{number}", year)

    feed = caller.get("/v1/feed", query="of=User.9").json

    assert [(item["author"], item["year"]) for item in feed["items"]] == [("a1", 2017), ("a100", 2016)]
    assert feed["cursor"] is None


def test_the_cursor_of_a_feed_is_refused_once_other_authors_are_followed(caller: Caller) -> None:
    for author, year in (("ada", 2015), ("ada", 2016), ("bob", 2017)):
        article(caller, author, year)
    caller.post("/v1/follows", {"node": "User.9", "other": "Author.ada"})
    cursor = caller.get("/v1/feed", query="of=User.9&limit=1").json["cursor"]
    next_page = f"of=User.9&limit=1&cursor={cursor}"

    caller.post("/v1/follows", {"node": "User.8", "other": "Author.bob"})
    assert [item["year"] for item in caller.get("/v1/feed", query=next_page).json["items"]] == [2015]
    caller.post("/v1/follows", {"node": "User.9", "other": "Author.bob"})

    refused = caller.get("/v1/feed", query=next_page)
    assert (refused.status, refused.code) == (400, "invalid_cursor")
