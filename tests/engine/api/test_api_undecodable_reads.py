"""Stored items that do not fit their declaration, and reads besides plain listings: over HTTP and directly.

A list leaves them out and says how many. A read whose answer would be wrong without them is refused.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import pytest

from domain.samples.articles import Article
from domain.samples.contacts import Channel, ContactMethod
from domain.samples.follows import FOLLOWS, Follow, FollowCount
from domain.samples.incidents import Incident, IncidentState
from domain.samples.notifications import Notification
from domain.samples.participations import Participation
from domain.samples.plays import PLAYS, EpisodePlays, SeriesPlays
from domain.samples.revenue import Licence
from domain.samples.teams import Member, Override, Shift
from dynashard import Dynashard, Entity, Shards
from dynashard.entity import Key, Registry
from dynashard.errors import UndecodableItemError
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_patterns import EdgeStore, Level
from dynashard_serving.declare import Exposed
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import KEYS, caller_exposing, caller_on
from tests.engine.commands.commands_on_engine import TENANT, Service, commands_on
from tests.engine.unfit_rows import UNFIT, UnfitRows

pytestmark = pytest.mark.engine

SIZE: Final = 300
NOON: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)
NOVEMBER: Final = datetime(2026, 11, 1, tzinfo=UTC)
OF: Final = {"tenant_id": TENANT}


class World(NamedTuple):
    """An empty table, its API, its service, its entities, and what makes its rows unfit."""

    caller: Caller
    service: Service
    db: Dynashard
    unfit: UnfitRows

    def put(self, *items: Entity) -> None:
        """Store items of one entity."""
        self.db.collection(type(items[0])).batch_write(put=items)


@pytest.fixture
def world(transport: Transport, table: str) -> World:
    db = Dynashard(transport, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)
    service = Service(commands_on(transport, table))
    return World(caller_on(transport, table), service, db, UnfitRows(transport, table))


def pages(caller: Caller, path: str, **query: Any) -> tuple[list[Any], int]:
    """The items of all pages, and the sum of the numbers that their headers have."""
    items, left_out = [], 0
    while True:
        answer = caller.get(path, query=query)
        assert answer.status == 200, answer.content
        number = answer.headers.get("undecodable-items")
        assert number != "0"
        items += answer.json["items"]
        left_out += int(number or 0)
        if answer.json.get("cursor") is None:
            return items, left_out
        query["cursor"] = answer.json["cursor"]


# Lists


def test_5_of_300_followers_are_left_out_and_counted(world: World) -> None:
    edges = EdgeStore.on(world.db, FOLLOWS)
    for number in range(SIZE):
        edges.add(TENANT, f"User.u{number:03}", "Actor.5")
    halves = sorted(edges.scan(TENANT, "Actor.5", "backward"), key=lambda edge: edge.other)
    odd = world.unfit.spoil(halves, "since")

    for query in ({}, {"type": "User", "order": "newest"}, {"order": "any", "limit": 40}):
        asked = {"limit": 1000, "of": "Actor.5", "way": "backward"} | query
        items, left_out = pages(world.caller, "/v1/follows", **asked)

        assert (len({item["other"] for item in items}), len(items), left_out) == (SIZE - 5, SIZE - 5, 5), query

    direct = world.service.ask("list", entity="follows", of="Actor.5", way="backward", limit=1000)
    scan = edges.scan(TENANT, "Actor.5", "backward")

    assert len(direct["result"]["items"]) == len(list(scan)) == SIZE - 5
    assert sorted(key["sort_key"] for key in direct["undecodable"]["keys"]) == sorted(odd)
    assert sorted(each.sort_key for each in scan.undecodable) == sorted(odd)
    counted = world.caller.get("/v1/follows/counts", query="of=Actor.5")
    assert (counted.json["followers"], "undecodable-items" in counted.headers) == (SIZE, False)


def minutes(world: World) -> list[str]:
    """Store 300 minutes of an episode in two parts each, of which 5 do not fit; return the sort keys of these parts."""
    rows = [
        EpisodePlays(
            **OF,
            series="s",
            episode="e",
            level=Level.MINUTE,
            start=NOON + timedelta(minutes=minute),
            slot=slot,
            pings=pings,
        )
        for slot, pings in ((0, 1), (7, 2))
        for minute in range(SIZE)
    ]
    world.put(*rows)
    return world.unfit.spoil(rows[:SIZE], "pings")


SPAN: Final = {"series": "s", "episode": "e", "level": "minute"}


def test_5_of_300_roll_ups_with_parts_that_do_not_fit_are_left_out_and_counted(world: World) -> None:
    odd = minutes(world)
    span = {**SPAN, "from": NOON.isoformat(), "to": (NOON + timedelta(minutes=SIZE)).isoformat()}

    answer = world.caller.get("/v1/roll-ups", query=span)
    direct = world.service.ask("list", entity="roll-ups", **span)

    # A sum without the part that does not fit would be 2.
    assert [item["pings"] for item in answer.json["items"]] == [3] * (SIZE - 5)
    assert (answer.status, answer.headers["undecodable-items"]) == (200, "5")
    assert direct["result"]["items"] == answer.json["items"]
    assert sorted(key["sort_key"] for key in direct["undecodable"]["keys"]) == sorted(odd)


def test_roll_ups_are_read_strictly_unless_the_caller_says_otherwise(world: World) -> None:
    odd, by = minutes(world), {**OF, "series": "s", "episode": "e"}
    whole: dict[str, Any] = {"level": "minute", "start": NOON, "end": NOON + timedelta(minutes=SIZE)}

    with pytest.raises(UndecodableItemError, match=r"plays\.v1\.Episode at "):
        PLAYS.read(world.db, by, **whole)
    rows = PLAYS.read(world.db, by, **whole, strict=False)
    # The first of the spans does not fit, and the next one does.
    other = PLAYS.read(
        world.db, by, **{**whole, "start": NOON + timedelta(minutes=1), "end": NOON + timedelta(minutes=3)}
    )

    assert [row.pings for row in rows] == [3] * (SIZE - 5)
    assert sorted(each.sort_key for each in rows.undecodable) == sorted(odd)
    assert ([row.pings for row in other], list(other.undecodable)) == ([3, 3], [])


def test_a_part_of_another_group_refuses_no_roll_up(world: World) -> None:
    months = [
        SeriesPlays(**OF, series=name, level=Level.MONTH, start=NOVEMBER, slot=slot, pings=1)
        for name in ("s1", "s10", "s2")
        for slot in (0, 1)
    ]
    world.put(*months)
    world.unfit.spoil_one(months[2], "pings")
    whole: dict[str, Any] = {"level": "month", "start": NOVEMBER, "end": Level.MONTH.end(NOVEMBER)}

    found = PLAYS.read(world.db, {**OF, "series": "s1"}, **whole)
    every = PLAYS.read(world.db, OF, **whole, strict=False)

    assert ([row.pings for row in found], list(found.undecodable)) == ([2], [])
    assert [(row.series, row.pings) for row in every] == [("s1", 2), ("s2", 2)]
    with pytest.raises(UndecodableItemError):
        PLAYS.read(world.db, {**OF, "series": "s10"}, **whole)


def test_5_of_300_articles_of_a_feed_are_left_out_and_counted(world: World) -> None:
    EdgeStore.on(world.db, FOLLOWS).add(TENANT, "User.9", "Author.ada")
    articles = [
        Article(**OF, author="ada", title=f"a{n:03}", published_at=NOON + timedelta(minutes=n)) for n in range(SIZE)
    ]
    world.put(*articles)
    odd = world.unfit.spoil(articles, "title")

    items, left_out = pages(world.caller, "/v1/feed", of="User.9", limit=100)
    direct = world.service.ask("get", entity="feed", of="User.9", limit=100)

    assert (len({item["slug"] for item in items}), len(items), left_out) == (SIZE - 5, SIZE - 5, 5)
    assert {key["sort_key"] for key in direct["undecodable"]["keys"]} < set(odd)
    assert direct["undecodable"]["number"] == 100 - len(direct["result"]["items"]) > 0


def test_5_of_300_of_my_incidents_are_left_out_and_counted(world: World) -> None:
    copies = [
        Participation(
            **OF,
            incident_id=f"i{n:03}",
            participant="user_ada",
            state=IncidentState.OPEN,
            since=NOON + timedelta(minutes=n),
            number=n,
            title="Fire",
            status="TRIGGERED",
            created_at=NOON,
        )
        for n in range(SIZE)
    ]
    world.put(*copies)
    world.unfit.spoil(copies, "title")

    items, left_out = pages(world.caller, "/v1/my-incidents", user_id="ada", limit=100)

    assert (len({item["incident_id"] for item in items}), left_out) == (SIZE - 5, 5)


def test_a_team_that_my_incidents_lack_is_counted(world: World) -> None:
    member = Member(**OF, team_id="red", user_id="ada")
    world.put(member)
    world.unfit.spoil_one(member, "team_id")

    assert pages(world.caller, "/v1/my-incidents", user_id="ada") == ([], 1)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_count_and_an_answer_without_a_body_have_the_header(world: World, method: str) -> None:
    licences = [Licence(**OF, series=f"s{n}", licensor_id="a") for n in range(10)]
    world.put(*licences)
    world.unfit.spoil(licences, "parts")

    counted = world.caller.send(method, "/v1/licences/count")
    listed = world.caller.send(method, "/v1/licences")

    assert [answer.headers["undecodable-items"] for answer in (counted, listed)] == ["5", "5"]


def test_a_caller_who_may_read_only_some_items_gets_the_number_without_keys(world: World) -> None:
    sent = [Notification(**OF, user_id=user, channel=Channel.EMAIL, text="x") for user in ["ada"] * 5 + ["bob"] * 5]
    world.put(*sent)
    world.unfit.spoil(sent, "text")
    scopes = ["notifications:read"]

    answer = world.caller.who("ada", *scopes).get("/v1/notifications")
    direct = world.service.ask(
        "list", entity="notifications", partition={}, caller={"subject": "ada", "scopes": scopes}
    )

    assert answer.headers["undecodable-items"] == "5"
    assert {item["user_id"] for item in answer.json["items"]} == {"ada"}
    assert direct["undecodable"] == {"number": 5, "keys": []}


def test_a_batch_of_reads_has_an_outcome_in_place_of_the_header(world: World) -> None:
    licence = Licence(**OF, series="s", licensor_id="a")
    world.put(licence)
    world.unfit.spoil_one(licence, "parts")
    read = {"operation": "get", "key": {"series": "s", "licensor_id": "a"}}

    answer = world.caller.post("/v1/licences/batch", {"requests": [read]})

    assert answer.status == 200, answer.content
    assert "undecodable-items" not in answer.headers
    assert b"undecodable_item" in answer.content


class Paper(Entity, name="unfit.v1.Paper", key=Key("{tenant_id}", "{id}"), shards=Shards(16), registry=Registry()):
    tenant_id: str
    id: str
    text: str


def test_a_page_that_is_read_again_because_it_is_too_large_counts_once(transport: Transport, table: str) -> None:
    exposed = Exposed(Paper, path="papers")
    db = Dynashard(transport, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)
    papers = [Paper(**OF, id=f"p{n:02}", text='"' * 100_000) for n in range(20)]
    db.collection(Paper).batch_write(put=papers, whole=True)
    unfit = UnfitRows(transport, table)
    # One is on the page that is returned, the other only on the one that is too large.
    odd = [unfit.spoil_one(papers[at], "text") for at in (1, 18)]
    service = Service(commands_on(transport, table, exposed=(exposed,)), entity="papers")

    found = [
        (each.headers.get("undecodable-items"), len(each.json["items"]))
        for each in [caller_exposing(transport, table, exposed).get("/v1/papers", query="order=ordered&limit=19")]
    ]
    direct = service.ask("list", partition={}, order="ordered", limit=19)

    assert found == [("1", len(direct["result"]["items"]))]
    # A quotation mark takes four bytes of an answer.
    assert len(direct["result"]["items"]) < 16
    assert direct["undecodable"]["number"] == 1
    assert [key["sort_key"] for key in direct["undecodable"]["keys"]] == odd[:1]


# Answers that would be wrong


def refused(world: World, capsys: pytest.CaptureFixture[str], path: str, sort_key: str, query: str = "") -> None:
    """Check that a read is refused, with the key in the log alone."""
    capsys.readouterr()
    answer = world.caller.get(path, query=query)
    log = capsys.readouterr().out

    assert (answer.status, answer.json["code"]) == (500, "undecodable_item")
    assert "undecodable-items" not in answer.headers
    assert sort_key in log
    assert sort_key.encode() not in answer.content


WAYS: Final = pytest.mark.parametrize("way", range(UNFIT), ids=["map", "list", "tenant", "other tenant", "bare"])


@WAYS
def test_revenue_is_not_divided_without_a_licence(world: World, capsys: pytest.CaptureFixture[str], way: int) -> None:
    licences = [Licence(**OF, series="s1", licensor_id=f"l{n:03}") for n in range(SIZE)]
    world.put(*licences)
    world.put(SeriesPlays(**OF, series="s1", level=Level.MONTH, start=NOVEMBER, pings=1, seconds=900))
    assert world.caller.get("/v1/revenue", query="month=2026-11&amount=300").json["licensors"][7]["amount"] == 1

    key = world.unfit.spoil_one(licences[7], "parts", way)

    refused(world, capsys, "/v1/revenue", key, "month=2026-11&amount=300")
    direct = world.service.ask("get", entity="revenue", month="2026-11", amount=300)
    assert (direct["ok"], direct["error"]["code"]) == (False, "undecodable_item")


def test_revenue_is_not_divided_without_a_roll_up(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    months = [SeriesPlays(**OF, series=s, level=Level.MONTH, start=NOVEMBER, seconds=900) for s in ("s1", "s2")]
    world.put(*months)
    key = world.unfit.spoil_one(months[0], "seconds")

    refused(world, capsys, "/v1/revenue", key, "month=2026-11")


def schedule(world: World) -> str:
    layer = {"users": ["ada"], "starts_at": "2026-01-01T00:00:00Z"}
    body = {"team_id": "red", "schedule_id": "day", "name": "Day", "layers": [layer]}
    return str(world.caller.post("/v1/schedules", body).headers["location"])


@pytest.mark.sampled(2)
@WAYS
@pytest.mark.parametrize("kind", [Override, Shift])
def test_nobody_is_said_to_be_on_call_without_a_turn(
    world: World, capsys: pytest.CaptureFixture[str], kind: Callable[..., Any], way: int
) -> None:
    path, name = schedule(world), "override_id" if kind is Override else "shift_id"
    turn = {**OF, "team_id": "red", "schedule_id": "day", "user_id": "bob"}
    turns = [kind(**turn, **{name: f"t{n}"}, starts_at=NOON, ends_at=NOON + timedelta(hours=1)) for n in range(3)]
    world.put(*turns)
    at, span = "at=2026-11-20T12:30:00Z", "from=2026-11-20T12:30:00Z&to=2026-11-20T13:00:00Z"
    assert world.caller.get(f"{path}/on-call", query=at).json["user_id"] == "bob"

    key = world.unfit.spoil_one(turns[2], "user_id", way)

    refused(world, capsys, f"{path}/on-call", key, at)
    refused(world, capsys, f"{path}/rota", key, span)


@WAYS
def test_an_escalation_is_refused_without_a_contact_method(
    world: World, capsys: pytest.CaptureFixture[str], way: int
) -> None:
    caller = world.caller
    caller.post("/v1/escalation-policies", {"team_id": "red", "steps": [{"targets": ["user_ada"]}]})
    methods = [ContactMethod(**OF, user_id="ada", method_id=m, channel=Channel.SMS, address=m) for m in ("m", "n")]
    world.put(*methods)
    caller.post("/v1/notification-rules", {"user_id": "ada", "rule_id": "1", "method_id": "m"})
    assert caller.post("/v1/incidents", {"id": "i1", "title": "Errors", "team": "team_red"}).status == 201
    assert [n["address"] for n in caller.get("/v1/incidents/i1/escalation").json["items"]] == ["m"]

    key = world.unfit.spoil_one(methods[0], "address", way)

    refused(world, capsys, "/v1/incidents/i1/escalation", key)


def test_followers_are_not_counted_without_a_slot_that_does_not_fit(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    EdgeStore.on(world.db, FOLLOWS).add(TENANT, "User.9", "Actor.5")
    slot = FollowCount(**OF, node="User.9", way="FAN_OF", slot=0)
    world.unfit.spoil_one(slot, "count")

    refused(world, capsys, "/v1/follows/counts", "follow.v1.Count", "of=User.9")


@pytest.mark.parametrize("lost", [False, True], ids=["other half", "no other half"])
def test_an_edge_with_a_half_that_does_not_fit_is_neither_new_nor_gone(world: World, *, lost: bool) -> None:
    edges = EdgeStore.on(world.db, FOLLOWS)
    edges.add(TENANT, "User.9", "Actor.5")
    [half] = edges.scan(TENANT, "Actor.5", "backward")
    world.unfit.spoil_one(half, "since")
    if lost:
        world.db.collection(Follow).delete(tenant_id=TENANT, node="User.9", way="FAN_OF", other="Actor.5")

    added = world.caller.post("/v1/follows", {"node": "User.9", "other": "Actor.5"})

    assert (added.status, added.json["code"]) == (500, "undecodable_item")
    if lost:
        removed = world.caller.delete("/v1/follows/User.9/Actor.5")
        assert (removed.status, removed.json["code"]) == (500, "undecodable_item")
    assert world.unfit.unharmed


def test_a_team_is_not_deleted_while_a_dependant_that_does_not_fit_is_stored(world: World) -> None:
    world.caller.post("/v1/teams", {"team_id": "red", "name": "Red"})
    member = Member(**OF, team_id="red", user_id="ada")
    world.put(member)
    world.unfit.spoil_one(member, "user_id")

    kept = world.caller.delete("/v1/teams/red")

    assert (kept.status, kept.json["details"]["dependants"]) == (409, [{"kind": "members", "count": 1}])


def test_no_first_number_is_allocated_while_an_item_with_a_number_does_not_fit(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = Incident(**OF, id="i1", number=7, title="Errors")
    world.put(stored)
    key = world.unfit.spoil_one(stored, "title")
    capsys.readouterr()

    made = world.caller.post("/v1/incidents", {"id": "i2", "title": "Errors"})

    assert (made.status, made.json["code"]) == (500, "undecodable_item")
    assert key in capsys.readouterr().out
    assert world.caller.get("/v1/incidents/i2").status == 404
