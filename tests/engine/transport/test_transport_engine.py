"""The transport against the engine, with the engine's own answers and errors."""

from collections.abc import Iterator
from typing import Any

import pytest

from dynashard.codec import item_size
from dynashard.errors import (
    ConditionFailedError,
    EngineError,
    EngineUnavailableError,
    ItemTooLargeError,
    KeyRangeThrottledError,
    TransactionCanceledError,
    TransactionConflictError,
)
from dynashard.testing.faults import (
    FaultyTransport,
    conflict,
    lost_answer,
    lost_request,
    meanwhile,
    repeated,
    throttled,
    unprocessed,
)
from dynashard.transport import Call, Resend, Transport, connect, metered
from dynashard.transport.interface import Consumed
from tests.billing import read_units, write_units

pytestmark = pytest.mark.engine

IF_ABSENT = {
    "ConditionExpression": "attribute_not_exists(PK)",
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}


@pytest.fixture(scope="module")
def transport(engine_url: str) -> Iterator[Transport]:
    connected = connect(engine_url, "eu-west-1", transport="botocore", access_key="local", secret_key="local")  # noqa: S106
    yield connected
    connected.close()


def item(sort: str, **attributes: Any) -> dict[str, Any]:
    return {"PK": {"S": "user.v1.User:abc:3"}, "SK": {"S": sort}, **attributes}


def key(sort: str) -> dict[str, Any]:
    return item(sort)


EVERYTHING = item(
    "everything",
    text={"S": 'ä "quoted" \u2028 \U0001f600'},
    number={"N": "-12345678901234567890123456789012345678"},
    binary={"B": "AAECAwQF/w=="},
    truth={"BOOL": False},
    nothing={"NULL": True},
    deep={"L": [{"M": {"inner": {"B": "AA=="}}}, {"S": ""}]},
    names={"SS": ["a", "b"]},
    numbers={"NS": ["1", "2.5"]},
    binaries={"BS": ["AA==", "AQ=="]},
)


def test_an_item_of_every_type_comes_back_as_it_was_put(transport: Transport, table: str) -> None:
    transport.call("PutItem", {"TableName": table, "Item": EVERYTHING})

    found = transport.call("GetItem", {"TableName": table, "Key": key("everything"), "ConsistentRead": True})["Item"]

    for name in ("names", "numbers", "binaries"):
        [(_, expected)], [(_, values)] = EVERYTHING[name].items(), found[name].items()
        assert sorted(values) == expected
    assert {name: value for name, value in found.items() if name not in ("names", "numbers", "binaries")} == {
        name: value for name, value in EVERYTHING.items() if name not in ("names", "numbers", "binaries")
    }


def test_meters_agree_with_the_codec(transport: Transport, table: str) -> None:
    large = item("large", text={"S": "x" * 5000})

    with metered() as writing:
        transport.call("PutItem", {"TableName": table, "Item": large})
    with metered() as reading:
        transport.call("GetItem", {"TableName": table, "Key": key("large")})

    assert writing.consumed == Consumed(0.0, write_units(item_size(large)), 1)
    assert reading.consumed == Consumed(read_units(item_size(large), consistent=False), 0.0, 1)


def test_a_failed_condition_carries_the_stored_item(transport: Transport, table: str) -> None:
    stored = item("taken", photo={"B": "AAEC"})
    transport.call("PutItem", {"TableName": table, "Item": stored})

    with pytest.raises(ConditionFailedError) as caught:
        transport.call("PutItem", {"TableName": table, "Item": item("taken"), **IF_ABSENT})

    assert caught.value.item == stored
    assert not caught.value.ambiguous


def test_a_cancelled_transaction_names_the_failed_action_and_its_item(transport: Transport, table: str) -> None:
    stored = item("taken")
    transport.call("PutItem", {"TableName": table, "Item": stored})
    actions = [
        {"Put": {"TableName": table, "Item": item(sort), **IF_ABSENT}} for sort in ("free", "taken", "also free")
    ]

    with pytest.raises(TransactionCanceledError) as caught:
        transport.call("TransactWriteItems", {"TransactItems": actions})

    assert [reason.code for reason in caught.value.reasons] == ["None", "ConditionalCheckFailed", "None"]
    assert caught.value.reasons[1].item == stored


@pytest.mark.parametrize("operation", ["PutItem", "UpdateItem"])
def test_an_item_too_large_for_the_engine_raises_its_own_error(
    transport: Transport, table: str, operation: str
) -> None:
    text = {"S": "x" * 410_000}
    request: dict[str, Any] = {"TableName": table, "Item": item("large", text=text)}
    if operation == "UpdateItem":
        request = {
            "TableName": table,
            "Key": key("large"),
            "UpdateExpression": "SET #t = :t",
            "ExpressionAttributeNames": {"#t": "text"},
            "ExpressionAttributeValues": {":t": text},
        }

    with pytest.raises(ItemTooLargeError) as caught:
        transport.call(operation, request)

    assert caught.value.details == {"limit": 409_600}


def test_a_missing_table_is_reported_with_the_remedy(transport: Transport) -> None:
    with pytest.raises(EngineError, match="Create the table") as caught:
        transport.call("GetItem", {"TableName": "no-such-table", "Key": key("a")})

    assert caught.value.aws_code == "ResourceNotFoundException"


def test_a_hundred_parallel_calls_answer_in_order_and_are_metered(transport: Transport, table: str) -> None:
    puts = [Call("PutItem", {"TableName": table, "Item": item(f"{n:03d}")}) for n in range(100)]
    gets = [Call("GetItem", {"TableName": table, "Key": key(f"{n:03d}"), "ConsistentRead": True}) for n in range(100)]

    with metered() as meter:
        transport.call_all(puts)
        answers = transport.call_all(gets, concurrency=50)

    assert [answer["Item"]["SK"]["S"] for answer in answers] == [f"{n:03d}" for n in range(100)]
    assert meter.consumed == Consumed(100.0, 100.0, 200)


def test_scripted_faults_have_their_documented_effects(transport: Transport, table: str) -> None:
    put = {"TableName": table, "Item": item("a"), **IF_ABSENT}
    faulty = FaultyTransport(
        transport,
        [
            lost_request("PutItem", nth=1),
            lost_answer("PutItem", nth=2),
            throttled("Query"),
            conflict("TransactWriteItems"),
        ],
    )

    with pytest.raises(EngineUnavailableError):
        faulty.call("PutItem", put)
    after_lost_request = transport.call("GetItem", {"TableName": table, "Key": key("a"), "ConsistentRead": True})
    with pytest.raises(EngineUnavailableError):
        faulty.call("PutItem", put)
    after_lost_answer = transport.call("GetItem", {"TableName": table, "Key": key("a"), "ConsistentRead": True})
    with metered() as meter, pytest.raises(KeyRangeThrottledError):
        faulty.call("Query", {"TableName": table})
    with pytest.raises(TransactionConflictError):
        faulty.call("TransactWriteItems", {"TransactItems": []})

    assert "Item" not in after_lost_request
    assert after_lost_answer["Item"] == item("a")
    assert meter.throttles == {"TableWriteKeyRangeThroughputExceeded": 1}
    assert faulty.waiting == []


def test_a_repeated_write_meets_itself_on_its_second_attempt(transport: Transport, table: str) -> None:
    faulty = FaultyTransport(transport, [repeated("PutItem")])

    request = {"TableName": table, "Item": item("a", Rev={"S": "mine"}), **IF_ABSENT}
    with pytest.raises(ConditionFailedError) as caught:
        faulty.call("PutItem", request, resend=Resend.ALWAYS)

    assert caught.value.ambiguous
    assert caught.value.item == item("a", Rev={"S": "mine"})


def test_another_writer_can_write_in_between(transport: Transport, table: str) -> None:
    theirs = {"TableName": table, "Item": item("a", Rev={"S": "theirs"})}
    faulty = FaultyTransport(transport, [meanwhile("PutItem", lambda: transport.call("PutItem", theirs))])

    with pytest.raises(ConditionFailedError) as caught:
        faulty.call("PutItem", {"TableName": table, "Item": item("a", Rev={"S": "mine"}), **IF_ABSENT})

    assert not caught.value.ambiguous
    assert caught.value.item == item("a", Rev={"S": "theirs"})


def test_a_batch_can_be_left_partly_unprocessed(transport: Transport, table: str) -> None:
    puts = [{"PutRequest": {"Item": item(str(number))}} for number in range(5)]
    keys = [key(str(number)) for number in range(3)]
    faulty = FaultyTransport(transport, [unprocessed("BatchWriteItem", keep=2), unprocessed("BatchGetItem", keep=1)])

    written = faulty.call("BatchWriteItem", {"RequestItems": {table: puts}})
    read = faulty.call("BatchGetItem", {"RequestItems": {table: {"Keys": keys, "ConsistentRead": True}}})

    assert written["UnprocessedItems"] == {table: puts[3:]}
    assert len(read["Responses"][table]) == 2
    assert read["UnprocessedKeys"] == {table: {"Keys": keys[2:], "ConsistentRead": True}}
