"""Calls over real sockets, with a server that plays scripted answers: the same for both transports."""

import orjson
import pytest

from dynashard.errors import (
    EngineError,
    EngineUnavailableError,
    InvalidValueError,
)
from dynashard.transport import Call, metered
from dynashard.transport.interface import Consumed, Settings
from dynashard_lab.bench.canned import Asked, Reply, canned_server
from tests.unit.transport.scripted_server import FOUND, GET, HTTP_OK_BUT_CUT, Opened, Script, stored
from tests.waiting import until

pytestmark = pytest.mark.unit


def test_a_request_is_sent_unchanged_except_for_its_capacity_option(scripted: Script, asked: list[Asked]) -> None:
    request = {"TableName": "users", "Item": {"PK": {"S": "ä"}, "photo": {"B": "AAEC"}, "n": {"N": "1.50"}}}
    before = orjson.dumps(request)
    transport = scripted(Reply())

    transport.call("PutItem", request)

    assert orjson.loads(asked[0].body) == {**request, "ReturnConsumedCapacity": "TOTAL"}
    assert asked[0].operation == "PutItem"
    assert asked[0].headers["content-type"] == "application/x-amz-json-1.0"
    assert asked[0].headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=local/")
    assert orjson.dumps(request) == before


def test_a_transaction_has_the_token_that_its_caller_gave_or_none(scripted: Script, asked: list[Asked]) -> None:
    for token in ({}, {"ClientRequestToken": "mine"}):
        scripted(Reply(b"{}")).call("TransactWriteItems", {"TransactItems": [], **token})

    assert [orjson.loads(each.body).get("ClientRequestToken") for each in asked] == [None, "mine"]


def test_the_capacity_option_of_a_caller_is_kept(scripted: Script, asked: list[Asked]) -> None:
    scripted(Reply()).call("Query", {"TableName": "users", "ReturnConsumedCapacity": "INDEXES"})

    assert orjson.loads(asked[0].body)["ReturnConsumedCapacity"] == "INDEXES"


def test_operations_without_a_capacity_option_get_none(scripted: Script, asked: list[Asked]) -> None:
    scripted(Reply()).call("DescribeTable", {"TableName": "users"})

    assert orjson.loads(asked[0].body) == {"TableName": "users"}


def test_an_answer_is_returned_unchanged(scripted: Script) -> None:
    answer = scripted(FOUND).call("GetItem", GET)

    assert answer == orjson.loads(FOUND.body)


def test_answers_are_recorded_in_every_active_meter(scripted: Script) -> None:
    transport = scripted(FOUND)

    with metered() as outer:
        transport.call("GetItem", GET)
        with metered() as inner:
            transport.call_all([Call("GetItem", GET)] * 9, concurrency=3)

    assert inner.consumed == Consumed(4.5, 0.0, 9)
    assert outer.consumed == Consumed(5.0, 0.0, 10)


def test_a_failed_call_does_not_hide_the_answers_of_others(scripted: Script) -> None:
    transport = scripted(FOUND, stored("missing_table"), FOUND)

    first, second, third = transport.try_all([Call("GetItem", GET)] * 3, concurrency=1)

    assert isinstance(second, EngineError)
    assert first == third == orjson.loads(FOUND.body)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (stored("internal_error"), "InternalServerError"),
        (Reply(b"<html>Bad Gateway</html>", status=502), "502"),
        (Reply(hang_up=True), "ConnectionClosedError"),
        (Reply(FOUND.body, checksum=1), "DamagedAnswer"),
        (Reply(stored("condition_failed").body, status=400, checksum=1), "DamagedAnswer"),
        (Reply(HTTP_OK_BUT_CUT.body, checksum=1), "DamagedAnswer"),
    ],
    ids=["internal error", "proxy's page", "hung up", "wrong checksum", "damaged refusal", "cut off"],
)
def test_failures_after_the_last_retry_are_unavailability(
    scripted: Script, asked: list[Asked], reply: Reply, code: str
) -> None:
    transport = scripted(reply, attempts=3)

    with pytest.raises(EngineUnavailableError) as caught:
        transport.call("GetItem", GET)

    assert caught.value.aws_code == code
    assert caught.value.operation == "GetItem"
    assert len(asked) == 3


def test_an_invalid_json_body_is_refused_even_with_a_right_checksum(scripted: Script) -> None:
    with pytest.raises(EngineUnavailableError, match="DamagedAnswer"):
        scripted(HTTP_OK_BUT_CUT).call("GetItem", GET)


def test_a_server_that_stays_silent_is_unavailability(scripted: Script, asked: list[Asked]) -> None:
    transport = scripted(Reply(silent=True), attempts=2, read_timeout=0.05)

    with pytest.raises(EngineUnavailableError) as caught:
        transport.call("GetItem", GET)

    assert caught.value.aws_code == "ReadTimeoutError"
    until(lambda: len(asked) == 2)


def test_a_connection_lost_between_requests_is_replaced(scripted: Script, asked: list[Asked]) -> None:
    transport = scripted(FOUND, Reply(hang_up=True), FOUND)

    answers = [transport.call("GetItem", GET) for _ in range(2)]

    assert [answer["Item"]["PK"] for answer in answers] == [{"S": "a"}, {"S": "a"}]
    assert len(asked) == 3


def test_call_all_answers_in_order_and_raises_the_first_error_in_order(opened: Opened, asked: list[Asked]) -> None:

    def answer(request: Asked) -> Reply:
        asked.append(request)
        number = orjson.loads(request.body)["Key"]["PK"]["N"]
        return stored("missing_table") if number in failing else Reply(orjson.dumps({"Item": {"N": number}}))

    failing: set[str] = set()
    calls = [Call("GetItem", {"TableName": "users", "Key": {"PK": {"N": str(n)}}}) for n in range(30)]
    with canned_server(answer) as url:
        transport = opened(Settings(url, "eu-west-1", "local", "local"))
        answers = transport.call_all(calls, concurrency=8)
        failing |= {"21", "5"}
        with pytest.raises(EngineError, match="ResourceNotFoundException"):
            transport.call_all(calls, concurrency=8)
        transport.close()

    assert [answer["Item"]["N"] for answer in answers] == [str(n) for n in range(30)]
    assert len(asked) == 60


def test_a_value_that_json_cannot_express_is_refused_before_sending(scripted: Script, asked: list[Asked]) -> None:
    transport = scripted(FOUND)

    with pytest.raises(InvalidValueError, match="codec"):
        transport.call("PutItem", {"TableName": "users", "Item": {"PK": {"B": b"raw"}}})

    assert asked == []


def test_an_operation_that_does_not_exist_is_refused(scripted: Script) -> None:
    with pytest.raises(EngineError, match="no operation Getitem"):
        scripted(FOUND).call("Getitem", GET)


def test_vectors_are_searched_beside_other_requests(scripted: Script, asked: list[Asked]) -> None:
    search = Call("SearchVectors", {"TableName": "users", "IndexName": "v", "Vector": [0.5]})
    transport = scripted(FOUND)

    single = transport.call(search.operation, search.request)
    answers = transport.try_all([search, Call("GetItem", GET), search])
    transport.close()

    assert [single, *answers] == [orjson.loads(FOUND.body)] * 4
    assert sorted(each.operation for each in asked) == ["GetItem", *["SearchVectors"] * 3]
    with pytest.raises(EngineError, match="closed"):
        transport.call(search.operation, search.request)


def test_a_closed_transport_refuses_calls(scripted: Script) -> None:
    transport = scripted(FOUND)
    transport.call("GetItem", GET)

    transport.close()

    with pytest.raises(EngineError, match="closed"):
        transport.call("GetItem", GET)
    with pytest.raises(EngineError, match="closed"):
        transport.call_all([Call("GetItem", GET)])
