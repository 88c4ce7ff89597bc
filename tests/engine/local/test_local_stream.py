"""The engine's stream as the local stack reads it: events as Lambda gets them, also on tables of older checkouts."""

import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from dynashard_local.engine.process import DATABASE, engine_program, running_engine
from dynashard_local.engine.tables import TablePlan, engine_client, ensure_tables
from dynashard_local.errors import LocalStackError
from dynashard_local.settings import Settings
from dynashard_local.workers.stream import Positions, Stream, stream_of, streams_client
from dynashard_patterns.changes import DeadLetter, Outcome
from dynashard_serving.changes.dead_letters import MOST_BYTES, message
from dynashard_serving.changes.handler import write_metrics
from dynashard_tools.queue.stream import behind
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine

ENGINE_ASKS = (
    "SELECT COALESCE(MAX(CAST(sequence_number AS INTEGER)), 0) + 1 FROM _stream_records WHERE table_name = ?1",
    ("SELECT MIN(sequence_number), MAX(sequence_number) FROM _stream_records WHERE table_name = ?1 AND shard_id = ?2"),
    """FROM _stream_records
             WHERE table_name = ?1 AND shard_id = ?2 AND CAST(sequence_number AS INTEGER) > ?3
             ORDER BY CAST(sequence_number AS INTEGER) ASC
             LIMIT ?4""",
)
"""Statements of the engine's program, or parts of them after the columns."""
SHOWN = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


@pytest.fixture
def bare(dynamodb: RawDynamoDB) -> Iterator[dict[str, Any]]:
    """The request that creates a table without a stream."""
    create = {
        "TableName": f"dynashard-test-{uuid4().hex}",
        "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    dynamodb.call("CreateTable", **create)
    yield create
    dynamodb.call("DeleteTable", TableName=create["TableName"])


def test_a_table_of_an_older_checkout_gets_its_stream_and_keeps_it(bare: dict[str, Any], engine_url: str) -> None:
    client, table = engine_client(engine_url), bare["TableName"]
    with pytest.raises(LookupError):
        stream_of(engine_url, table)

    assert ensure_tables(client, [TablePlan({**bare, "StreamSpecification": SHOWN})], data="here") == []
    arn = stream_of(engine_url, table)
    ensure_tables(client, [TablePlan({**bare, "StreamSpecification": SHOWN})], data="here")

    assert stream_of(engine_url, table) == arn
    other = {**SHOWN, "StreamViewType": "KEYS_ONLY"}
    with pytest.raises(LocalStackError, match="its stream has"):
        ensure_tables(client, [TablePlan({**bare, "StreamSpecification": other})], data="here")


def test_records_have_the_shape_of_lambdas_events(bare: dict[str, Any], engine_url: str, dynamodb: RawDynamoDB) -> None:
    table = bare["TableName"]
    dynamodb.call("UpdateTable", TableName=table, StreamSpecification=SHOWN)
    item = {"PK": {"S": "a"}, "raw": {"B": "AAE="}, "list": {"L": [{"B": "AAE="}, {"N": "1.5"}]}}
    for number in range(5):
        dynamodb.call("PutItem", TableName=table, Item={**item, "PK": {"S": str(number)}})
    stream = Stream(streams_client(engine_url), stream_of(engine_url, table), table)
    (shard,) = stream.shards()

    first = stream.after(shard, None, 2)
    rest = stream.after(shard, first[-1]["dynamodb"]["SequenceNumber"], 100)
    again = stream.after(shard, first[-1]["dynamodb"]["SequenceNumber"], 1)

    record = first[0]["dynamodb"]
    assert record["NewImage"] == {**item, "PK": {"S": "0"}}
    assert isinstance(record["ApproximateCreationDateTime"], int)
    assert len(record["SequenceNumber"]) == 21
    assert (first[0]["eventName"], first[0]["eventSource"]) == ("INSERT", "aws:dynamodb")
    assert f":table/{table}/stream/" in first[0]["eventSourceARN"]
    assert [each["dynamodb"]["Keys"]["PK"]["S"] for each in (*first, *rest)] == list("01234")
    assert again == rest[:1]


def test_stream_queries_of_the_engine_use_an_index(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, dynamodb_port=0)
    program = engine_program(settings).read_bytes()

    with running_engine(settings), closing(sqlite3.connect(tmp_path / DATABASE)) as file:
        for asked in ENGINE_ASKS:
            statement = asked if asked.startswith("SELECT") else f"SELECT * {asked}"
            values = ["1"] * len(set(re.findall(r"\?\d", asked)))
            plan = file.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()

            assert asked.encode() in program, "the engine asks otherwise now: index what it asks"
            assert [row[-1].startswith("SEARCH") and "INDEX dynashard_stream" in row[-1] for row in plan] == [True]


def test_a_stream_continues_when_an_older_file_gets_its_indexes(bare: dict[str, Any], tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, dynamodb_port=0)
    seen: list[str] = []
    for number in range(3):
        with running_engine(settings) as engine:
            client = engine_client(engine.endpoint)
            ensure_tables(client, [TablePlan({**bare, "StreamSpecification": SHOWN})], data="here")
            client.put_item(TableName=bare["TableName"], Item={"PK": {"S": str(number)}})
            stream = Stream(streams_client(engine.endpoint), stream_of(engine.endpoint, bare["TableName"]), "t")
            seen = [record["dynamodb"]["Keys"]["PK"]["S"] for record in stream.after(stream.shards()[0], None, 10)]
        if number == 0:
            with closing(sqlite3.connect(tmp_path / DATABASE)) as file:
                file.executescript("DROP INDEX dynashard_stream_last; DROP INDEX dynashard_stream_after;")

    assert seen == ["0", "1", "2"]


def test_a_dead_letter_fits_a_message_and_names_its_item() -> None:
    change = {"SequenceNumber": "7", "Keys": {"PK": {"S": "a"}}, "NewImage": {"PK": {"S": "a"}}}
    small = message(DeadLetter("copies", "bad", {"dynamodb": change}))
    huge = message(
        DeadLetter("copies", "bad" * 200_000, {"dynamodb": {**change, "NewImage": {"x": {"S": "x" * MOST_BYTES}}}})
    )

    assert '"NewImage"' in small
    assert len(huge.encode()) <= MOST_BYTES
    assert '"PK":{"S":"a"}' in huge


def test_a_batch_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    records = [{"dynamodb": {"ApproximateCreationDateTime": at}} for at in (97, 95, 99)]

    write_metrics("dev", Outcome("7", 5, 1, "busy"), records, 100.5)

    line = json.loads(capsys.readouterr().out)
    wanted = {"ChangesHandled": [5], "ChangesDead": [1], "ChangeBatchesAgain": [1], "ChangesLagSeconds": [5.5]}
    assert wanted.items() <= line.items()
    assert line["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["environment"]]


def test_the_lag_is_the_age_of_the_oldest_record_that_was_not_handled(
    bare: dict[str, Any], engine_url: str, dynamodb: RawDynamoDB, tmp_path: Path
) -> None:
    table = bare["TableName"]
    ensure_tables(engine_client(engine_url), [TablePlan({**bare, "StreamSpecification": SHOWN})], data="here")
    stream = Stream(streams_client(engine_url), stream_of(engine_url, table), table)
    places, now = Positions(tmp_path / "places", stream.arn), time.time()
    empty = behind(stream, places, now)
    for number in "12":
        dynamodb.call("PutItem", TableName=table, Item={"PK": {"S": number}})
    [shard] = stream.shards()
    first, second = stream.after(shard, None, 10)

    waiting = behind(stream, places, now + 600)
    places[shard] = first["dynamodb"]["SequenceNumber"]
    one_left = behind(stream, places, now + 600)
    places[shard] = second["dynamodb"]["SequenceNumber"]

    assert empty == behind(stream, places, now + 600) == 0
    assert 590 < one_left <= waiting <= 601
