"""Roll-ups of writes in the table's real stream, with every kind of write that a stream contains."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain.samples.pings import Ping
from domain.samples.plays import PLAYS
from dynashard import Dynashard
from dynashard.errors import AlreadyExistsError
from dynashard.runtime import Runtime
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_local.workers.stream import Stream
from dynashard_patterns.changes import DeadLetter, Dispatcher
from tests.engine.command_line import CURSOR_KEYS
from tests.engine.patterns.stream_world import Streamed, records_of
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine

DAY = datetime(2026, 11, 20, tzinfo=UTC)
TENANT = "abc"


def ping(number: int) -> Ping:
    at = DAY + timedelta(minutes=7 * number % 600)
    return Ping(
        tenant_id=TENANT,
        series="dark",
        episode=f"e{number % 2}",
        at=at,
        id=f"p{number}",
        session_id="s",
        seconds=number,
    )


@pytest.fixture
def db(wire: Transport, table: str) -> Dynashard:
    later = Runtime((DAY + timedelta(days=1)).timestamp)
    return Dynashard(wire, table=table, topology=DeclaredTopology(), cursor_keys=CURSOR_KEYS, runtime=later)


@pytest.fixture
def stream(table: str, engine_url: str, dynamodb: RawDynamoDB) -> Stream:
    return Streamed(engine_url, dynamodb).on(table)


def hours(db: Dynashard, *episodes: str) -> dict[Any, tuple[int, int]]:
    found = {}
    for episode in episodes or ("e0", "e1"):
        by = {"tenant_id": TENANT, "series": "dark", "episode": episode}
        for row in PLAYS.read(db, by, level="hour", start=DAY, end=DAY + timedelta(days=1), consistent=True):
            found[episode, row.start] = (row.pings, row.seconds)
    return found


def test_each_change_of_the_stream_is_counted_once(db: Dynashard, stream: Stream) -> None:
    stored, letters = [ping(number) for number in range(60)], list[DeadLetter]()
    pings = db.collection(Ping)

    for each in stored[:40]:
        pings.create(each)
    with pytest.raises(AlreadyExistsError):
        pings.create(stored[0])
    pings.batch_write(put=stored[40:])
    pings.batch_write(put=stored[50:55])
    pings.delete(stored[3])
    pings.update(stored[4], set={"viewer_id": "v"})
    records = records_of(stream)
    for start in (0, 25, 10, 50):
        outcome = Dispatcher([PLAYS.consumer(db)], keep=letters.append).dispatch(records[start : start + 40])
        assert outcome.again is None
    for record in reversed(records_of(stream)):
        Dispatcher([PLAYS.consumer(db)], keep=letters.append).dispatch([record])

    pings_in, seconds_in = Counter[Any](), Counter[Any]()
    for each in stored:
        hour = (each.episode, each.at.replace(minute=0))
        pings_in[hour] += 1
        seconds_in[hour] += each.seconds
    assert hours(db) == {hour: (pings_in[hour], seconds_in[hour]) for hour in pings_in}
    assert letters == []


def test_a_damaged_part_of_a_roll_up_does_not_stop_the_stream(
    db: Dynashard, stream: Stream, table: str, dynamodb: RawDynamoDB
) -> None:
    letters, pings = list[DeadLetter](), db.collection(Ping)
    dispatcher = Dispatcher([PLAYS.consumer(db)], keep=letters.append)
    for number in range(20):
        pings.create(ping(number))
    dispatcher.dispatch(records_of(stream))
    for row in dynamodb.call("Scan", TableName=table)["Items"]:
        if row["PK"]["S"].startswith(f"plays.v1.Episode:{TENANT}:dark.e0:"):
            dynamodb.call("PutItem", TableName=table, Item={**row, "pings": {"S": "many"}})
    for number in range(20, 40):
        pings.create(ping(number))
    written = [each for each in records_of(stream) if each["dynamodb"].get("NewImage", {}).get("id")]

    outcome = dispatcher.dispatch(written[20:])

    assert (outcome.again, outcome.dead_letters) == (None, 10)
    assert all("plays.v1.Episode" in letter.reason and "pings" in letter.reason for letter in letters)
    assert sum(pings for pings, _ in hours(db, "e1").values()) == 20
