"""`GET /v1/my-incidents`: the incidents of a user and of the user's teams, as one list."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain.samples.incidents import IncidentState
from domain.samples.my_incidents import MOST_TEAMS
from domain.samples.participations import PARTICIPATIONS, Participation
from domain.samples.teams import Member
from dynashard import Dynashard
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import KEYS

pytestmark = pytest.mark.engine

PATH = "/v1/my-incidents"
BEGAN = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def db(transport: Transport, table: str) -> Dynashard:
    return Dynashard(transport, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)


@pytest.fixture
def ada(caller: Caller) -> Caller:
    return caller.who("ada", "incidents:read")


def joins(db: Dynashard, user: str, *teams: str) -> None:
    db.collection(Member).batch_write([Member(tenant_id="abc", team_id=team, user_id=user) for team in teams])


def takes_part(
    db: Dynashard, number: int, *participants: str, state: IncidentState = IncidentState.OPEN, minute: int | None = None
) -> None:
    """Store the participations of the incident of this number, which began at this minute."""
    since = BEGAN + timedelta(minutes=number if minute is None else minute)
    about = {"tenant_id": "abc", "incident_id": f"i{number}", "number": number, "title": "x", "status": "TRIGGERED"}
    db.collection(Participation).batch_write(
        [Participation(**about, participant=p, state=state, since=since, created_at=BEGAN) for p in participants]
    )


def listed(caller: Caller, query: str = "") -> list[str]:
    """Return the ids of the incidents of all pages, in their order."""
    return [item["incident_id"] for page in pages(caller, query) for item in page["items"]]


def pages(caller: Caller, query: str) -> Iterable[dict[str, Any]]:
    cursor: str | None = ""
    while cursor is not None:
        answer = caller.get(PATH, query=f"{query}&cursor={cursor}" if cursor else query)
        assert answer.status == 200, answer.content
        yield answer.json
        cursor = answer.json["cursor"]


def test_the_incidents_of_a_user_and_of_all_teams_are_one_list_the_newest_first(ada: Caller, db: Dynashard) -> None:
    joins(db, "ada", "red", "blue")
    joins(db, "bob", "green")
    for number, participant in enumerate(["user_ada", "team_red", "team_green", "user_bob", "team_blue"] * 2):
        takes_part(db, number, participant)

    newest_first = ["i9", "i6", "i5", "i4", "i1", "i0"]
    assert listed(ada) == newest_first
    assert [listed(ada, f"limit={limit}") for limit in (1, 2, 4)] == [newest_first] * 3
    assert next(len(page["items"]) for page in pages(ada, "limit=4")) == 4


def test_the_order_is_that_of_the_time_and_not_of_the_ids(ada: Caller, db: Dynashard) -> None:
    for number, minute in ((1, 30), (2, 10), (3, 20)):
        takes_part(db, number, "user_ada", minute=minute)

    assert listed(ada) == ["i1", "i3", "i2"]


@pytest.mark.parametrize("limit", [1, 2, 50])
def test_an_incident_that_is_mine_in_several_ways_is_listed_once(ada: Caller, db: Dynashard, limit: int) -> None:
    joins(db, "ada", "red", "blue")
    for number in range(5):
        takes_part(db, number, "user_ada", "team_red", "team_blue", "team_green")

    assert listed(ada, f"limit={limit}") == ["i4", "i3", "i2", "i1", "i0"]


def test_open_incidents_are_listed_unless_the_closed_ones_are_requested(ada: Caller, db: Dynashard) -> None:
    joins(db, "ada", "red")
    takes_part(db, 1, "user_ada")
    takes_part(db, 2, "team_red", state=IncidentState.CLOSED, minute=50)
    takes_part(db, 3, "user_ada", state=IncidentState.CLOSED, minute=40)

    assert listed(ada) == listed(ada, "state=OPEN") == ["i1"]
    assert listed(ada, "state=CLOSED") == ["i2", "i3"]
    assert ada.get(PATH, query="state=closed").fields == {"state": "enum"}


def test_an_item_says_which_incident_it_is_and_since_when(caller: Caller, db: Dynashard) -> None:
    joins(db, "ada", "red")
    made = caller.post("/v1/incidents", {"id": "i1", "title": "Errors", "team": "team_red", "critical": True}).json
    PARTICIPATIONS.materializer(db).carry({"tenant_id": "abc", "id": "i1"})
    ada = caller.who("ada", "incidents:read")

    assert ada.get(PATH).json["items"] == [
        {
            "incident_id": "i1",
            "participant": "team_red",
            "number": 1,
            "title": "Errors",
            "status": "TRIGGERED",
            "state": "OPEN",
            "team": "team_red",
            "since": made["created_at"],
        }
    ]
    closed = caller.patch("/v1/incidents/i1", {"state": "CLOSED"}).json
    PARTICIPATIONS.materializer(db).carry({"tenant_id": "abc", "id": "i1"})
    assert listed(ada) == []
    assert [item["since"] for item in ada.get(PATH, query="state=CLOSED").json["items"]] == [closed["closed_at"]]


def test_the_incidents_of_another_user_are_those_of_the_other_users_teams(ada: Caller, db: Dynashard) -> None:
    joins(db, "ada", "red")
    joins(db, "bob", "blue")
    for number, participant in enumerate(["user_ada", "user_bob", "team_red", "team_blue"]):
        takes_part(db, number, participant)

    assert listed(ada) == listed(ada, "user_id=ada") == ["i2", "i0"]
    assert listed(ada, "user_id=bob") == ["i3", "i1"]
    assert listed(ada, "user_id=nobody") == []
    assert listed(ada.of("other"), "user_id=ada") == []


@pytest.mark.parametrize("claims", [{}, {"sub": ""}, {"sub": "auth0|ada"}])
def test_a_caller_whose_subject_is_no_user_has_to_name_one(ada: Caller, db: Dynashard, claims: dict[str, str]) -> None:
    takes_part(db, 1, "user_bob")
    nameless = Caller(ada.app, {"tenant_id": "abc", "scope": "incidents:read", **claims})

    refused = nameless.get(PATH)

    assert (refused.status, [each["field"] for each in refused.json.get("errors", ())]) == (422, ["user_id"])
    assert listed(nameless, "user_id=bob") == ["i1"]


def test_a_user_id_that_cannot_be_one_is_refused(ada: Caller) -> None:
    assert ada.get(PATH, query="user_id=a%23b").fields == {"user_id": "string_pattern_mismatch"}


def test_the_first_teams_of_a_user_are_read_and_not_more_than_one_request_can(ada: Caller, db: Dynashard) -> None:
    names = [f"t{number:03}" for number in range(MOST_TEAMS + 1)]
    joins(db, "ada", *names)
    takes_part(db, 0, "user_ada")
    takes_part(db, 1, f"team_{names[0]}")
    takes_part(db, 2, f"team_{names[MOST_TEAMS - 1]}")
    takes_part(db, 3, f"team_{names[MOST_TEAMS]}")

    assert listed(ada) == listed(ada, "limit=1") == ["i2", "i1", "i0"]


def test_a_cursor_is_refused_once_the_user_is_in_other_teams(ada: Caller, db: Dynashard) -> None:
    joins(db, "ada", "red")
    for number in range(3):
        takes_part(db, number, "team_red")
    cursor = ada.get(PATH, query="limit=1").json["cursor"]
    following = f"limit=1&cursor={cursor}"

    joins(db, "bob", "blue")
    assert [item["incident_id"] for item in ada.get(PATH, query=following).json["items"]] == ["i1"]
    joins(db, "ada", "blue")

    refused = ada.get(PATH, query=following)
    assert (refused.status, refused.code) == (400, "invalid_cursor")
    for other in ("state=CLOSED", "user_id=bob"):
        assert ada.get(PATH, query=f"{following}&{other}").code == "invalid_cursor"
    assert listed(ada, "limit=1") == ["i2", "i1", "i0"]
