"""Requests that are built to cost much: each route has a bound on Queries and bytes."""

import json
from datetime import date, timedelta
from typing import Any

import pytest

from domain.samples.users import User
from dynashard import Dynashard
from dynashard.errors import QueryTooWideError
from dynashard.reads import allowing
from dynashard.service import Collection
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard.transport.interface import Meter, metered
from dynashard_checks.hostile import MAX_ANSWER_BYTES, MAX_QUERIES, answered
from dynashard_checks.hostile_requests import API, REQUESTS, TENANT, Hostile, direct, rest
from dynashard_serving.api.app import App
from dynashard_serving.commands.answers import Commands
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import KEYS, caller_on
from tests.engine.commands.commands_on_engine import commands_on

pytestmark = pytest.mark.engine

DAYS = [f"{date(2026, 1, 1) + timedelta(days=number)}T00:00:00Z" for number in range(95)]
UNITS_OF_AN_EMPTY_QUERY = 0.5


@pytest.fixture(scope="module")
def table(create_table: Any) -> str:
    name: str = create_table()
    return name


@pytest.fixture(scope="module")
def caller(transport: Transport, table: str) -> Caller:
    return caller_on(transport, table).of(TENANT)


@pytest.fixture(scope="module")
def app(caller: Caller) -> App:
    return caller.app


@pytest.fixture(scope="module")
def commands(transport: Transport, table: str) -> Commands:
    return commands_on(transport, table)


@pytest.mark.parametrize("hostile", REQUESTS, ids=lambda hostile: hostile.name)
def test_a_hostile_request_gets_a_short_answer_and_few_queries(app: App, commands: Commands, hostile: Hostile) -> None:
    event = hostile.build()

    with metered() as meter:
        answer = app.handle(event) if hostile.function == API else commands.answer(event)

    refused, _ = answered(answer)
    assert refused == hostile.refused, str(answer)[:500]
    assert meter.queries == 0 if refused else meter.queries <= MAX_QUERIES
    if refused:
        assert len(json.dumps(answer)) < MAX_ANSWER_BYTES


@pytest.mark.parametrize(
    "event",
    [
        rest("GET", "/v1/pings", "index=by_time&" + "&".join(f"at={day}" for day in DAYS)),
        direct("list", "pings", index="by_time", partition={"at": DAYS}),
    ],
    ids=["rest", "direct"],
)
def test_a_listing_that_is_too_wide_is_refused_with_its_width_and_the_limit(
    app: App, commands: Commands, event: dict[str, Any]
) -> None:
    answer = app.handle(event) if "rawPath" in event else commands.answer(event)

    [error] = json.loads(answer["body"])["errors"] if "body" in answer else answer["error"]["errors"]
    assert (error["field"], error["code"]) == ("partition", "query_too_wide")
    assert "this takes 1520 Queries, and one request may send 300" in error["message"]
    assert "name at most 18 at a time" in error["message"]


def test_the_widest_listing_that_fits_is_answered(app: App) -> None:
    for order in ("ordered", "round_robin"):
        with metered() as meter:
            answer = app.handle(
                rest("GET", "/v1/pings", f"index=by_time&order={order}&" + "&".join(f"at={day}" for day in DAYS[:18]))
            )

        assert answer["statusCode"] == 200, answer
        assert meter.queries == 18 * 16


WORST = {
    "list, ordered": (rest("GET", "/v1/users", "order=ordered&limit=1000"), 32),
    "list, round_robin": (rest("GET", "/v1/users", "limit=1000"), 32),
    "list, shard": (rest("GET", "/v1/users", "order=shard&limit=1000"), 32),
    "list, filtered": (rest("GET", "/v1/users", "department=none&limit=1000"), 300),
    "list, filtered and ordered": (rest("GET", "/v1/users", "department=none&order=ordered&limit=1000"), 300),
    "list of an index": (rest("GET", "/v1/users", "index=by_email&order=ordered&limit=1000"), 2),
    "list of a family": (rest("GET", "/v1/on-call", "order=ordered&limit=1000"), 2),
    "list with distinct": (
        rest("GET", "/v1/participations", "participant=user_1&participant=team_1&distinct=incident_id&order=ordered"),
        16,
    ),
    "one item": (rest("GET", "/v1/users/1", "consistent=true"), 0),
    "one item with details": (rest("GET", "/v1/incidents/1", "include=details"), 0),
    "follows, by key": (rest("GET", "/v1/follows", "of=User.9&limit=1000"), 2),
    "follows, newest": (rest("GET", "/v1/follows", "of=User.9&type=Actor&order=newest&limit=1000"), 8),
    "follows, any": (rest("GET", "/v1/follows", "of=User.9&order=any&limit=1000"), 2),
    "counts of follows": (rest("GET", "/v1/follows/counts", "of=User.9"), 0),
    "roll-ups": (
        rest(
            "GET",
            "/v1/roll-ups",
            "level=minute&series=s&episode=e&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z",
        ),
        2,
    ),
    "roll-ups of months": (
        rest("GET", "/v1/roll-ups", "level=month&from=2026-01-01T00:00:00Z&to=2030-01-01T00:00:00Z"),
        8,
    ),
    "revenue": (rest("GET", "/v1/revenue", "month=2026-01&amount=1000000"), 10),
    "count": (direct("count"), 32),
    "count of a range": (direct("count", **{"from": "1", "to": "5"}), 64),
    "batch_get": (direct("batch_get", keys=[{"id": f"{n}"} for n in range(1000)]), 0),
}
"""The worst request of each route without its own bound: at most 2 N Queries for N shards."""


@pytest.mark.parametrize("worst", WORST.values(), ids=WORST.keys())
def test_the_worst_request_of_a_route_costs_what_its_documentation_says(
    app: App, commands: Commands, worst: tuple[dict[str, Any], int]
) -> None:
    event, queries = worst

    with metered() as meter:
        answer = app.handle(event) if "rawPath" in event else commands.answer(event)

    assert answer.get("statusCode", 200) in {200, 404}, answer
    assert answer.get("ok", True), answer
    assert meter.queries <= queries
    assert meter.consumed.read_units <= _most_units(meter)


def _most_units(meter: Meter) -> float:
    # Nothing is stored of this tenant: a Query costs half a unit, and so does each key that is read, or a whole one.
    return meter.queries * UNITS_OF_AN_EMPTY_QUERY + max(1000, meter.consumed.requests)


@pytest.mark.parametrize("most", [1, 15, 16, 17, 40])
def test_no_request_sends_more_queries_than_its_settings_allow(transport: Transport, table: str, most: int) -> None:
    bounded = caller_on(transport, table, max_queries=most).of(TENANT).app

    for event, _ in WORST.values():
        if "rawPath" in event:
            with metered() as meter:
                answer = bounded.handle(event)

            assert meter.queries <= most
            if answer["statusCode"] == 422:
                assert "query_too_wide" in answer["body"]


def test_a_count_of_more_shards_than_queries_is_refused(transport: Transport, table: str) -> None:
    bounded = commands_on(transport, table, max_queries=15)

    answer = bounded.answer(direct("count", **{"from": "1", "to": "5"}))

    assert answer["ok"] is False
    assert "page through it" in answer["error"]["message"] + str(answer["error"].get("errors"))


def test_a_page_ends_short_when_its_time_is_over(transport: Transport, table: str) -> None:
    users = Dynashard(transport, table=table, cursor_keys=list(KEYS), topology=DeclaredTopology()).collection(User)
    whole = users.list({"tenant_id": TENANT}, limit=1000)

    with allowing(MAX_QUERIES, seconds=0):
        short = users.list({"tenant_id": TENANT}, limit=1000)

    assert (whole.rounds, whole.cursor) == (2, None)
    assert short.rounds == 1
    rest_of_it = users.list({"tenant_id": TENANT}, limit=1000, cursor=short.cursor)
    assert rest_of_it.consumed.requests == whole.consumed.requests - short.consumed.requests


def test_a_count_and_a_scan_are_refused_when_their_time_is_over(transport: Transport, table: str) -> None:
    users = Dynashard(transport, table=table, cursor_keys=list(KEYS), topology=DeclaredTopology()).collection(User)

    for read in (users.count, lambda partition: list(users.scan(partition))):
        with (
            metered() as meter,
            allowing(MAX_QUERIES, seconds=0),
            pytest.raises(QueryTooWideError, match="longer than one request may"),
        ):
            read({"tenant_id": TENANT})

        assert meter.queries == 0


@pytest.mark.parametrize("name", ["count", "scan"])
def test_several_partitions_of_a_count_or_a_scan_share_one_allowance(
    transport: Transport, table: str, name: str
) -> None:
    users = Dynashard(transport, table=table, cursor_keys=list(KEYS), topology=DeclaredTopology()).collection(User)
    partitions = [{"tenant_id": f"hostile{number}"} for number in range(3)]

    with metered() as meter, allowing(47), pytest.raises(QueryTooWideError, match="this takes 48 Queries"):
        list(users.scan(partitions)) if name == "scan" else users.count(partitions)
    assert meter.queries == 0

    with metered() as meter, allowing(48):
        assert list(users.scan(partitions)) == [] if name == "scan" else users.count(partitions) == 0
    assert meter.queries == 48


@pytest.mark.parametrize("most", [1, 3, 16])
@pytest.mark.parametrize("order", ["round_robin", "shard"])
def test_pages_of_one_partition_go_on_however_few_queries_a_request_may_send(
    transport: Transport, table: str, order: str, most: int
) -> None:
    users = Dynashard(transport, table=table, cursor_keys=list(KEYS), topology=DeclaredTopology()).collection(User)
    tenant = f"{order}{most}"
    users.batch_write(put=[_user(tenant, number) for number in range(20)])

    assert sorted(_listed(users, tenant, most, order=order)) == [f"{number:03d}" for number in range(20)]


@pytest.mark.parametrize("most", [16, 17, 20, 31])
def test_ordered_pages_are_short_if_a_second_round_would_take_too_many_queries(
    transport: Transport, table: str, most: int
) -> None:
    users = Dynashard(transport, table=table, cursor_keys=list(KEYS), topology=DeclaredTopology()).collection(User)
    tenant = f"ordered{most}"
    users.batch_write(put=[_user(tenant, number) for number in range(600)])

    assert _listed(users, tenant, most, order="ordered", limit=100) == [f"{number:03d}" for number in range(600)]


def _user(tenant: str, number: int) -> User:
    return User(tenant_id=tenant, id=f"{number:03d}", email="ada@example.com", display_name="Ada " + "x" * 190)


def _listed(users: Collection[User], tenant: str, most: int, **asked: Any) -> list[str]:
    """Read each page in a request of its own, and return the ids."""
    ids: list[str] = []
    cursor = None
    while True:
        with metered() as meter, allowing(most):
            page = users.list({"tenant_id": tenant}, cursor=cursor, **asked)
        assert meter.queries <= most
        ids += [user.id for user in page.items]
        cursor = page.cursor
        if cursor is None:
            return ids
