"""One pass over the systems of the domain as a caller of the API sees them, on whatever stack."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Event
from time import monotonic
from typing import Any

import httpx

from tests.waiting import HANG_SECONDS

NEWEST_FIRST = "order=ordered&direction=desc"


def created(client: httpx.Client, resource: str, /, **body: Any) -> str:
    """Create an item, and return its path."""
    answer = client.post(f"/v1/{resource}", json=body)
    assert answer.status_code == 201, answer.text
    assert client.get(answer.headers["location"]).json()["revision"] == answer.json()["revision"]
    return str(answer.headers["location"])


def listed(client: httpx.Client, path: str, field: str) -> list[Any]:
    """Read a listing page by page, and return one field of all its items."""
    found: list[Any] = []
    address: str | httpx.URL = f"/v1/{path}"
    while True:
        answer = client.get(address)
        assert answer.status_code == 200, answer.text
        found += [item[field] for item in answer.json()["items"]]
        if "next" not in answer.links:
            return found
        address = answer.links["next"]["url"]


def soon(read: Callable[[], Any], wanted: Any) -> None:
    """Read until the result is as wanted, because copies and roll-ups follow a write later."""
    deadline, pause = monotonic() + HANG_SECONDS, Event()
    while (found := read()) != wanted and monotonic() < deadline:
        pause.wait(0.1)
    assert found == wanted


def users(client: httpx.Client) -> None:
    """Items spread over shards: listed in order and by an index, changed conditionally, deleted."""
    for number in range(5):
        created(client, "users", id=f"{number}", email=f"u{number}@example.com", display_name=f"User {number}")
    changed = client.patch("/v1/users/3", json={"department": "maths"}, headers={"If-Match": '"stale"'})
    assert (changed.status_code, changed.json()["code"]) == (412, "revision_mismatch")
    tag = client.get("/v1/users/3").headers["etag"]
    assert client.patch("/v1/users/3", json={"department": "maths"}, headers={"If-Match": tag}).status_code == 200
    assert client.delete("/v1/users/4").status_code == 204

    assert listed(client, f"users?limit=2&{NEWEST_FIRST}", "id") == ["3", "2", "1", "0"]
    assert sorted(listed(client, "users?limit=3", "id")) == ["0", "1", "2", "3"]
    assert listed(client, "users?index=by_department&department=maths", "id") == ["3"]


def on_call(client: httpx.Client) -> None:
    """Teams, schedules, shifts and overrides: the whole tree, and parts of it."""
    turn = {"user_id": "ada", "starts_at": "2026-11-21T08:00:00Z", "ends_at": "2026-11-21T16:00:00Z"}
    created(client, "teams", team_id="core", name="Core")
    for schedule in ("day", "day2"):
        created(client, "schedules", team_id="core", schedule_id=schedule, name=schedule)
    created(client, "shifts", team_id="core", schedule_id="day", shift_id="1", **turn)
    created(client, "overrides", team_id="core", schedule_id="day", override_id="1", **turn)

    assert len(listed(client, "on-call?limit=2", "revision")) == 5
    assert listed(client, "on-call?team_id=core&schedule_id=day", "type") == [
        "team.v1.Schedule",
        "team.v1.Override",
        "team.v1.Shift",
    ]
    assert listed(client, "shifts?index=by_user&user_id=ada", "shift_id") == ["1"]


def contacts(client: httpx.Client) -> None:
    """The contacts of a user."""
    created(client, "contact-methods", user_id="ada", method_id="m1", channel="sms", address="+49 30 1")
    created(client, "notification-rules", user_id="ada", rule_id="r1", method_id="m1", after_minutes=5)

    assert listed(client, "contacts?user_id=ada", "type") == ["contact.v1.ContactMethod", "contact.v1.NotificationRule"]
    assert client.get("/v1/contacts").status_code == 422
    sent = created(client, "notifications", user_id="ada", channel="sms", text="Down")
    assert client.patch(sent, json={"text": "Up"}).status_code == 200
    assert listed(client, "notifications?index=by_user&user_id=ada", "text") == ["Up"]


def articles(client: httpx.Client) -> None:
    """An author's years listed as one, and the same title of two authors."""
    for author, year in (("ada", 2016), ("ada", 2017), ("bob", 2017)):
        created(client, "articles", author=author, title="On engines", published_at=f"{year}-05-01T00:00:00Z")

    query = f"articles?author=ada&year=2016&year=2017&index=by_date&limit=1&{NEWEST_FIRST}"
    assert listed(client, query, "year") == [2017, 2016]


def follows(client: httpx.Client) -> None:
    """Edges, listed and counted from both ends."""
    for fan in ("User.1", "User.2"):
        created(client, "follows", node=fan, other="Actor.5")
    assert client.post("/v1/follows", json={"node": "User.1", "other": "Actor.5"}).status_code == 200
    assert client.delete("/v1/follows/User.2/Actor.5").status_code == 204

    assert listed(client, "follows?of=User.1&type=Actor", "other") == ["Actor.5"]
    assert listed(client, "follows?of=Actor.5&way=backward", "other") == ["User.1"]
    assert client.get("/v1/follows/counts?of=Actor.5").json() == {"following": 0, "followers": 1}


def incidents(client: httpx.Client) -> None:
    """Summaries, details that are read only on request, and a copy for each participant."""
    people = {"participants": ["user_ada", "team_core", "team_web"]}
    one = created(
        client, "incidents", id="inc1", number=1, title="Errors", details={"log": ["x" * 1000] * 600}, **people
    )
    two = created(client, "incidents", id="inc2", number=2, title="Latency", **people)
    assert "details" not in client.get(one).json()
    assert client.get(f"{one}?include=details").json()["details"] == {"log": ["x" * 1000] * 600}

    mine = "participations?participant=user_ada&state=OPEN&" + NEWEST_FIRST
    soon(lambda: sorted(listed(client, mine, "incident_id")), ["inc1", "inc2"])
    for path in (one, two):
        closed = {"state": "CLOSED", "closed_at": datetime.now(UTC).isoformat()}
        assert client.patch(path, json=closed).status_code == 200
    teams = "participations?participant=team_core&participant=team_web&state=CLOSED&distinct=incident_id&limit=1&"
    soon(lambda: listed(client, teams + NEWEST_FIRST, "incident_id"), ["inc2", "inc1"])
    assert client.delete(one).status_code == 204
    soon(lambda: listed(client, teams + NEWEST_FIRST, "incident_id"), ["inc2"])
    assert client.delete("/v1/participations/inc2/user_ada").status_code == 405


def pings(client: httpx.Client) -> None:
    """The firehose of pings, their roll-ups, and the revenue that follows from them."""
    at = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)
    sent = [
        {"series": "s1", "episode": "e1", "at": at.isoformat(), "id": f"p{number}", "session_id": "x", "seconds": 30}
        for number in range(20)
    ]
    first = client.post("/v1/pings", json=sent[0])
    assert first.status_code == 202, first.text
    answer = client.post("/v1/pings", json=[*sent, sent[3]])
    assert (answer.status_code, answer.json()) == (202, {"accepted": 21})
    wrong = client.post("/v1/pings", json=[sent[0], {**sent[1], "seconds": -1}])
    assert [error["field"] for error in wrong.json()["errors"]] == ["1.seconds"]
    created(client, "licences", series="s1", licensor_id="north")

    day = f"{at:%Y-%m-%d}"
    soon(lambda: len(listed(client, f"pings?series=s1&episode=e1&at={day}", "id")), 20)
    hours = f"roll-ups?series=s1&episode=e1&level=hour&from={day}&to={at + timedelta(days=1):%Y-%m-%d}"
    soon(lambda: (sum(listed(client, hours, "pings")), sum(listed(client, hours, "seconds"))), (20, 600))
    shares = client.get(f"/v1/revenue?month={at:%Y-%m}&amount=1000").json()
    assert shares["licensors"] == [{"licensor_id": "north", "seconds": 600, "share": 1_000_000, "amount": 1000}]


def audit(client: httpx.Client) -> None:
    """The audit log of files: accesses to a popular file, one access by path and time, and one that is too early."""
    touched = {"path": "/shared/a b.txt", "action": "read", "user_id": "ada"}
    times = [f"2026-11-21T12:00:0{second}Z" for second in range(3)]
    for at in times:
        created(client, "accesses", accessed_at=at, **touched)
        one = created(client, "timed-accesses", accessed_at=at, **touched)

    query = "path=%2Fshared%2Fa+b.txt&" + NEWEST_FIRST
    assert listed(client, f"accesses?limit=2&{query}", "accessed_at") == times[::-1]
    assert listed(client, f"accesses?accessed_at={times[1]}&{query}", "accessed_at") == [times[1]]
    assert listed(client, f"timed-accesses?{query}", "accessed_at") == times[::-1]
    assert client.get(one).json()["path"] == "/shared/a b.txt"
    assert client.delete(one).status_code == 405

    now = datetime.now(UTC).replace(microsecond=0)
    latest = [f"{now - timedelta(seconds=3 - second):%Y-%m-%dT%H:%M:%SZ}" for second in range(3)]
    addresses = [created(client, "ordered-accesses", accessed_at=at, **touched) for at in latest]
    early = client.post("/v1/ordered-accesses", json={**touched, "accessed_at": f"{now + timedelta(hours=1):%FT%TZ}"})
    assert listed(client, f"ordered-accesses?{query}", "accessed_at") == latest[::-1]
    assert [client.get(address).json()["accessed_at"] for address in addresses] == latest
    assert (early.status_code, early.json()["code"]) == (422, "key_too_far_ahead")
    assert early.json()["details"]["ahead"] == 5
    assert abs(client.get("/v1/health").json()["clock_off_seconds"]) <= 5


def asynchronous(client: httpx.Client) -> None:
    """An accepted write and its outcome."""
    body = {"email": "ada@example.com", "display_name": "Ada"}
    answer = client.put("/v1/users/ada", json=body, headers={"Prefer": "respond-async"})
    assert answer.status_code == 202, answer.text
    assert answer.headers["preference-applied"] == "respond-async"

    soon(lambda: client.get(answer.headers["location"]).json()["state"], "done")
    assert client.get("/v1/users/ada").json()["display_name"] == "Ada"


SYSTEMS = (users, on_call, contacts, articles, follows, incidents, pings, audit, asynchronous)
"""Each takes a client with its own tenant."""
