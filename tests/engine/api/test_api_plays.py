"""Roll-ups of pings and the revenue that follows from them, over REST."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.samples.plays import EpisodePlays, SeriesPlays
from dynashard import Dynashard
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_patterns import Level
from tests.api_caller import TENANT, Caller
from tests.engine.api.api_on_engine import KEYS, caller_on

pytestmark = pytest.mark.engine

NINE = datetime(2026, 11, 21, 9, tzinfo=UTC)
NOVEMBER = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def caller(transport: Transport, table: str) -> Caller:
    """An API with roll-ups: two hours of an episode in two slots each, and November of two series."""
    db = Dynashard(transport, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)
    episodes, series = db.collection(EpisodePlays), db.collection(SeriesPlays)
    for hour in (9, 10):
        for slot in (0, 1):
            start = NINE.replace(hour=hour)
            row = {"series": "s1", "episode": "e1", "level": Level.HOUR, "start": start, "slot": slot}
            episodes.create(EpisodePlays(tenant_id=TENANT, **row, pings=hour, seconds=60 * hour))
    for name, seconds in (("s1", 900), ("s2", 100)):
        row = {"series": name, "level": Level.MONTH, "start": NOVEMBER, "pings": 2, "seconds": seconds}
        series.create(SeriesPlays(tenant_id=TENANT, **row))
    return caller_on(transport, table)


def hours(**more: str) -> dict[str, str]:
    return {"series": "s1", "episode": "e1", "level": "hour", "from": "2026-11-21", "to": "2026-11-22", **more}


def test_an_hour_is_the_sum_of_its_parts(caller: Caller) -> None:
    assert caller.get("/v1/roll-ups", query=hours()).json == {
        "items": [
            {
                "series": "s1",
                "episode": "e1",
                "level": "hour",
                "start": f"2026-11-21T{hour:02d}:00:00Z",
                "pings": 2 * hour,
                "seconds": 120 * hour,
            }
            for hour in (9, 10)
        ]
    }


def test_a_range_leaves_out_its_end(caller: Caller) -> None:
    answer = caller.get("/v1/roll-ups", query=hours(**{"from": "2026-11-21T09:00:00Z", "to": "2026-11-21T10:00:00Z"}))

    assert [item["pings"] for item in answer.json["items"]] == [18]


def test_the_last_hours_of_all_have_no_rows(caller: Caller) -> None:
    assert caller.get("/v1/roll-ups", query=hours(**{"from": "9999-12-31", "to": "9999-12-31T23:59:00Z"})).json == {
        "items": []
    }


def test_a_month_covers_one_series_or_all(caller: Caller) -> None:
    month = {"level": "month", "from": "2026-11-01", "to": "2026-12-01"}

    assert [item["series"] for item in caller.get("/v1/roll-ups", query=month).json["items"]] == ["s1", "s2"]
    one = caller.get("/v1/roll-ups", query={**month, "series": "s2"}).json["items"]
    assert [(item["series"], item["seconds"]) for item in one] == [("s2", 100)]


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ({}, {"level": "missing", "from": "missing", "to": "missing"}),
        (hours(level="year"), {"level": "literal_error"}),
        (hours(**{"from": "soon"}), {"from": "datetime_from_date_parsing"}),
        (hours(to="2026-11-20"), {"to": "invalid_query"}),
        (hours(to="2027-11-20"), {"to": "invalid_query"}),
        (hours(**{"from": "9999-12-31T00:00:00Z", "to": "9999-12-31T23:00:00-05:00"}), {"to": "invalid_query"}),
        (hours(series=""), {"series": "invalid_key"}),
        (hours(series="a:b"), {"series": "invalid_key"}),
        (hours(level="month"), {"episode": "invalid_query"}),
        (hours(shard="1"), {"shard": "unknown_parameter"}),
        ({k: v for k, v in hours().items() if k != "episode"}, {"episode": "invalid_key"}),
    ],
)
def test_a_bad_query_is_refused_by_field(caller: Caller, query: Mapping[str, str], fields: dict[str, str]) -> None:
    assert caller.get("/v1/roll-ups", query=query).fields == fields


def test_roll_ups_are_read_only(caller: Caller) -> None:
    for path in ("/v1/roll-ups", "/v1/revenue"):
        answer = caller.post(path, {})
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert caller.get("/v1/episode-plays").status == 404


def licence(caller: Caller, series: str, licensor: str, **more: Any) -> None:
    body = {"series": series, "licensor_id": licensor, **more}
    assert caller.post("/v1/licences", body).status == 201


def test_revenue_is_divided_by_the_seconds_watched_of_each_licensor(caller: Caller) -> None:
    assert caller.post("/v1/licensors", {"id": "north", "name": "North"}).status == 201
    licence(caller, "s1", "north")
    licence(caller, "s1", "south", parts=2)

    answer = caller.get("/v1/revenue", query={"month": "2026-11", "amount": "1000"})

    assert answer.json == {
        "month": "2026-11",
        "pings": 4,
        "seconds": 1000,
        "amount": 1000,
        "licensors": [
            {"licensor_id": "north", "seconds": 300, "share": 300_000, "amount": 300},
            {"licensor_id": "south", "seconds": 600, "share": 600_000, "amount": 600},
            {"licensor_id": None, "seconds": 100, "share": 100_000, "amount": 100},
        ],
    }


@pytest.mark.parametrize("month", ["2026-13", "2026-1", "soon", "", "0000-01", "9999-12", "\uff12026-11"])
def test_an_invalid_month_is_refused(caller: Caller, month: str) -> None:
    assert list(caller.get("/v1/revenue", query={"month": month}).fields) == ["month"]


@pytest.mark.parametrize("amount", ["-1", "1.5", "much", "1" * 400])
def test_an_invalid_amount_is_refused(caller: Caller, amount: str) -> None:
    assert list(caller.get("/v1/revenue", query={"month": "2026-11", "amount": amount}).fields) == ["amount"]


def test_another_tenant_sees_nothing(caller: Caller) -> None:
    other = caller.of("other")

    assert other.get("/v1/roll-ups", query=hours()).json["items"] == []
    assert other.get("/v1/revenue", query={"month": "2026-11"}).json["seconds"] == 0
