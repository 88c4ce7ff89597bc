"""The engine's stream as the local stack reads it: Lambda's own events, on tables of older checkouts too."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from dynashard.changes import Letter, Outcome
from functions.changes.handler import metrics
from functions.changes.letters import MOST_BYTES, message
from local.errors import LocalStackError
from local.stream import Stream, stream_of, streams_client
from local.tables import TablePlan, engine_client, ensure_tables
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine

SHOWN = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


@pytest.fixture
def bare(dynamodb: RawDynamoDB) -> Iterator[dict[str, Any]]:
    """The request for a table that was made without a stream."""
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
    with pytest.raises(LocalStackError, match="its stream shows"):
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

    told = first[0]["dynamodb"]
    assert told["NewImage"] == {**item, "PK": {"S": "0"}}
    assert isinstance(told["ApproximateCreationDateTime"], int)
    assert len(told["SequenceNumber"]) == 21
    assert (first[0]["eventName"], first[0]["eventSource"]) == ("INSERT", "aws:dynamodb")
    assert f":table/{table}/stream/" in first[0]["eventSourceARN"]
    assert [each["dynamodb"]["Keys"]["PK"]["S"] for each in (*first, *rest)] == list("01234")
    assert again == rest[:1]


def test_a_dead_letter_fits_a_message_and_says_whose_change_it_was() -> None:
    told = {"SequenceNumber": "7", "Keys": {"PK": {"S": "a"}}, "NewImage": {"PK": {"S": "a"}}}
    small = message(Letter("copies", "bad", {"dynamodb": told}))
    huge = message(
        Letter("copies", "bad" * 200_000, {"dynamodb": {**told, "NewImage": {"x": {"S": "x" * MOST_BYTES}}}})
    )

    assert '"NewImage"' in small
    assert len(huge.encode()) <= MOST_BYTES
    assert '"PK":{"S":"a"}' in huge


def test_a_batch_is_counted() -> None:
    line = metrics("dev", Outcome("7", 5, 1, "busy"), 1.0)

    assert '"ChangesHandled": 5, "ChangesDead": 1, "ChangeBatchesAgain": 1' in line
