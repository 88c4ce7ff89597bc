"""The model of partitions before the local engine: 429s as in an account, and answers as of the engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dynashard.errors import KeyRangeThrottledError
from dynashard.transport import Transport, connect
from dynashard_checks.schedules.wire import TABLE, LeanWire, create_tables
from dynashard_local.engine.guard import guarded_engine
from dynashard_local.errors import LocalStackError
from dynashard_local.settings import Settings
from dynashard_tools.hot.simulated import simulated

pytestmark = pytest.mark.engine


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    """The URL of an engine behind the limits of a scenario, at a 500th."""
    with guarded_engine(Settings(data_dir=tmp_path, dynamodb_port=0, simulate="hot-tenant")) as engine:
        wire = LeanWire(int(engine.endpoint.rpartition(":")[2]))
        create_tables(wire)
        wire.close()
        yield engine.endpoint


@pytest.fixture
def limited(endpoint: str) -> Iterator[Transport]:
    opened = connect(endpoint, "us-east-1", access_key="a", secret_key="b", attempts=1)  # noqa: S106
    yield opened
    opened.close()


def test_hot_key_is_throttled_and_others_are_not(limited: Transport) -> None:
    def put(place: str, number: int) -> None:
        item = {"PK": {"S": place}, "SK": {"S": str(number)}}
        limited.call("PutItem", {"TableName": TABLE, "Item": item})

    def put_many() -> None:
        for number in range(200):
            put("user.v1.User:hot", number)

    with pytest.raises(KeyRangeThrottledError) as caught:
        put_many()
    put("user.v1.User:cold", 1)
    found = limited.call("GetItem", {"TableName": TABLE, "Key": {"PK": {"S": "user.v1.User:cold"}, "SK": {"S": "1"}}})

    assert caught.value.reasons[0].reason == "TableWriteKeyRangeThroughputExceeded"
    assert found["Item"]["SK"] == {"S": "1"}


def test_batch_returns_what_is_throttled(limited: Transport) -> None:
    puts = [{"PutRequest": {"Item": {"PK": {"S": "a"}, "SK": {"S": str(number)}}}} for number in range(25)]

    answer = limited.call("BatchWriteItem", {"RequestItems": {TABLE: puts}})
    query = {"KeyConditionExpression": "PK = :pk", "ExpressionAttributeValues": {":pk": {"S": "a"}}}
    stored = limited.call("Query", {"TableName": TABLE, **query})

    left = answer["UnprocessedItems"][TABLE]
    assert 12 <= len(left) <= 15
    assert stored["Count"] == 25 - len(left)


def test_throttles_can_be_asked_for(limited: Transport, endpoint: str) -> None:
    puts = [{"PutRequest": {"Item": {"PK": {"S": "a"}, "SK": {"S": str(number)}}}} for number in range(25)]
    limited.call("BatchWriteItem", {"RequestItems": {TABLE: puts}})
    source = simulated(endpoint)

    assert source is not None
    assert [(each.way, each.cause) for each in source.counts(1)] == [("Write", "KeyRangeThroughput")]
    assert source.keys(None, 1)[0].partition == "a"
    assert source.keys("GSI1", 1) == []


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"simulate": "cold"}, "SIMULATE=cold cannot be used on port"),
        ({"simulate": "hot-tenant", "dynamodb_endpoint": "http://127.0.0.1:1"}, "unset DYNAMODB_ENDPOINT"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path: Path, values: dict[str, str], said: str) -> None:
    with pytest.raises(LocalStackError, match=said), guarded_engine(Settings(data_dir=tmp_path, **values)):
        pass
