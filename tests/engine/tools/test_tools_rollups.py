"""`dynashard rollups`, and the revenue of a month from repaired rows."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.samples.pings import Ping
from domain.samples.plays import PLAYS
from domain.samples.revenue import Licence, RevenueWanted, revenue
from dynashard import Dynashard
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_patterns.rollups import Counter
from tests.engine.command_line import CURSOR_KEYS, CommandLine

pytestmark = pytest.mark.engine

DAY = datetime(2026, 11, 20, tzinfo=UTC)
SERIES = {"dark": 600, "fargo": 300, "lost": 60}


@pytest.fixture
def db(wire: Transport, local_table: str) -> Dynashard:
    return Dynashard(wire, table=local_table, topology=DeclaredTopology(), cursor_keys=CURSOR_KEYS)


@pytest.fixture
def pings(db: Dynashard, tenant: str) -> list[Ping]:
    """Stored but uncounted pings: ten minutes of one series, five of another, one of a third."""
    found = [
        Ping(
            tenant_id=tenant,
            series=series,
            episode="e1",
            at=DAY + timedelta(seconds=at),
            id=f"p{at}",
            session_id="s",
        )
        for series, seconds in SERIES.items()
        for at in range(0, seconds, 60)
    ]
    db.collection(Ping).batch_write(put=found)
    return found


def test_differing_rows_are_reported_and_repaired(
    command_line: CommandLine, db: Dynashard, pings: list[Ping], tenant: str
) -> None:
    Counter(db, PLAYS).count(pings[1:])
    day = ("plays", "--tenant", tenant, "--day", "2026-11-20")

    before = command_line.run("rollups", "check", *day)
    printed = command_line.run("rollups", "check", *day, "--json")
    mended = command_line.run("rollups", "repair", *day, "--json")
    after = command_line.run("rollups", "check", *day)
    again = command_line.run("rollups", "repair", *day)

    assert (before.status, printed.status) == (3, 3)
    assert "3 rows of plays differ from the items" in before.out
    assert "level day, series dark" in before.out
    assert "pings 9 instead of 10, seconds 540 instead of 600" in before.out
    assert printed.summary["differing"] == len(printed.summary["first"]) == 3
    assert (mended.status, mended.summary) == (0, {"roll_ups": "plays", "mended": 3, "kept": 0, "left": 0})
    assert (after.status, after.out) == (0, "0 rows of plays differ from the items\n")
    assert "0 rows of plays mended" in again.out


def test_a_month_is_made_of_pings_alone(
    command_line: CommandLine, db: Dynashard, pings: list[Ping], tenant: str
) -> None:
    outcome = command_line.run("rollups", "repair", "plays", "--tenant", tenant, "--month", "2026-11")

    assert outcome.status == 0, outcome.err
    months = PLAYS.read(db, {"tenant_id": tenant}, level="month", start=DAY.replace(day=1), end=DAY, consistent=True)
    assert {row.series: row.seconds for row in months} == SERIES
    assert sum(row.pings for row in months) == len(pings)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "pauses", "--tenant", "abc", "--day", "2026-11-20"], "no roll-ups are called 'pauses'"),
        (["check", "plays", "--tenant", "abc"], "give --day or --month"),
        (["repair", "plays", "--tenant", "abc", "--day", "yesterday"], "write it like 2026-11-20"),
        (["repair", "plays", "--tenant", "a:b", "--day", "2026-11-20"], "invalid_key"),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line(command_line: CommandLine, arguments: list[str], said: str) -> None:
    outcome = command_line.run("rollups", *arguments)

    assert outcome.status == 1
    assert said in outcome.err


def test_revenue_is_divided_by_watched_time_and_adds_up(db: Dynashard, pings: list[Ping], tenant: str) -> None:
    Counter(db, PLAYS).count(pings)
    licences = [("dark", "north", 1), ("dark", "south", 2), ("fargo", "north", 1), ("silent", "west", 1)]
    db.collection(Licence).batch_write(
        put=[Licence(tenant_id=tenant, series=s, licensor_id=who, parts=parts) for s, who, parts in licences]
    )

    found = revenue(db, tenant, RevenueWanted(month="2026-11", amount=1000))

    assert (found.pings, found.seconds, found.amount) == (16, 960, 1000)
    assert [(each.licensor_id, each.seconds, each.amount) for each in found.licensors] == [
        ("north", 500, 521),
        ("south", 400, 417),
        (None, 60, 62),
    ]
    assert sum(each.share for each in found.licensors) == 1_000_000
    assert revenue(db, tenant, RevenueWanted(month="2026-10")).licensors == []
