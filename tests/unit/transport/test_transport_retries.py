"""Retries over real sockets: throttles, ambiguous attempts, the retry quota, and deadlines."""

import gc
import weakref

import pytest

from dynashard.errors import (
    ConditionFailedError,
    EngineError,
    EngineUnavailableError,
    KeyRangeThrottledError,
    OutcomeUnknownError,
    ThrottledError,
    TransactionConflictError,
)
from dynashard.runtime import Runtime
from dynashard.transport import Call, Resend, metered
from dynashard.transport.attempts import Attempts
from dynashard.transport.deadline import within
from dynashard.transport.interface import Consumed, Settings, Wire
from dynashard_lab.bench.canned import Asked, Reply, canned_server
from tests.unit.transport.scripted_server import FOUND, GET, HTTP_OK_BUT_CUT, Opened, Script, stored
from tests.waiting import until

pytestmark = pytest.mark.unit


def test_a_throttled_request_is_sent_again_and_each_throttle_is_counted(
    scripted: Script, asked: list[Asked], waits: list[float]
) -> None:
    transport = scripted(stored("key_range_throttled"), stored("index_key_range_throttled_on_demand"), FOUND)

    with metered() as meter:
        answer = transport.call("GetItem", GET)

    assert answer["Item"]["PK"] == {"S": "a"}
    assert len(asked) == 3
    assert len(waits) == 2
    assert meter.throttles == {
        "TableWriteKeyRangeThroughputExceeded": 1,
        "IndexWriteKeyRangeThroughputExceeded": 1,
    }
    assert meter.consumed == Consumed(0.5, 0.0, 1)


def test_waits_between_attempts_are_random_up_to_a_doubling_bound(scripted: Script, waits: list[float]) -> None:
    transport = scripted(stored("throttled_without_reasons"), attempts=4)

    for _ in range(10):
        with pytest.raises(ThrottledError):
            transport.call("GetItem", GET)
    first_to_third = [waits[at::3] for at in range(3)]

    assert all(0 <= wait <= 0.5 * 2**at for at in range(3) for wait in first_to_third[at])
    assert len(set(waits)) == len(waits)


def test_a_throttle_after_the_last_retry_is_raised_by_its_reason(scripted: Script, asked: list[Asked]) -> None:
    transport = scripted(stored("key_range_throttled"), attempts=3)

    with metered() as meter, pytest.raises(KeyRangeThrottledError, match="3 attempts"):
        transport.call("PutItem", {"TableName": "users", "Item": {"PK": {"S": "a"}}})

    assert len(asked) == 3
    assert meter.throttles == {"TableWriteKeyRangeThroughputExceeded": 3}


def test_throttles_in_parallel_calls_are_counted_in_the_callers_meter(scripted: Script) -> None:
    transport = scripted(stored("account_limit"), attempts=1)

    with metered() as meter, pytest.raises(ThrottledError):
        transport.call_all([Call("GetItem", GET)] * 12, concurrency=4)

    assert meter.throttles == {"TableReadAccountLimitExceeded": 12}


def test_a_failed_condition_is_not_retried(scripted: Script, asked: list[Asked]) -> None:
    transport = scripted(stored("condition_failed"))

    with pytest.raises(ConditionFailedError) as caught:
        transport.call("PutItem", GET)

    assert len(asked) == 1
    assert not caught.value.ambiguous
    assert caught.value.item is not None
    assert caught.value.item["photo"] == {"B": "AAEC"}


AMBIGUOUS = pytest.mark.parametrize(
    "first",
    [
        stored("internal_error"),
        stored("unavailable"),
        Reply(b"<html>Bad Gateway</html>", status=502),
        Reply(hang_up=True),
        Reply(FOUND.body, checksum=1),
        Reply(HTTP_OK_BUT_CUT.body, checksum=1),
    ],
    ids=["internal error", "unavailable", "proxy's page", "hung up", "wrong checksum", "cut off"],
)


@AMBIGUOUS
def test_a_failed_condition_after_an_ambiguous_attempt_is_marked(scripted: Script, first: Reply) -> None:
    transport = scripted(first, stored("condition_failed"))

    with pytest.raises(ConditionFailedError) as caught:
        transport.call("PutItem", GET, resend=Resend.ALWAYS)

    assert caught.value.ambiguous


@pytest.mark.sampled(3)
@AMBIGUOUS
@pytest.mark.parametrize("operation", ["PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"])
def test_a_write_is_not_sent_again_after_an_ambiguous_attempt(
    scripted: Script, asked: list[Asked], operation: str, first: Reply
) -> None:
    transport = scripted(first, Reply())

    with pytest.raises(OutcomeUnknownError) as caught:
        transport.call(operation, GET)

    assert len(asked) == 1
    assert caught.value.operation == operation
    assert not caught.value.retryable


@AMBIGUOUS
def test_a_transaction_with_a_token_is_sent_again_after_an_ambiguous_attempt(
    scripted: Script, asked: list[Asked], first: Reply
) -> None:
    transport = scripted(first, Reply())

    transport.call("TransactWriteItems", {"TransactItems": [], "ClientRequestToken": "mine"})

    assert len({each.body for each in asked}) == 1
    assert len(asked) == 2


def test_a_throttled_transaction_is_left_to_its_caller(scripted: Script, asked: list[Asked]) -> None:
    with pytest.raises(ThrottledError):
        scripted(stored("transaction_throttled")).call("TransactWriteItems", {"ClientRequestToken": "mine"})

    assert len(asked) == 1


def test_a_throttled_transaction_is_sent_again_after_an_ambiguous_attempt(scripted: Script, asked: list[Asked]) -> None:
    transport = scripted(stored("internal_error"), stored("transaction_throttled"), Reply())

    transport.call("TransactWriteItems", {"ClientRequestToken": "mine"})

    assert len(asked) == 3


def test_a_transaction_in_conflict_is_sent_again_after_an_ambiguous_attempt(
    scripted: Script, asked: list[Asked]
) -> None:
    transport = scripted(stored("internal_error"), stored("transaction_conflict"), Reply())

    transport.call("TransactWriteItems", {"ClientRequestToken": "mine"})

    assert len(asked) == 3


@pytest.mark.parametrize(
    "later", ["key_range_throttled", "write_meets_transaction", "missing_table", "invalid_request"]
)
def test_no_refusal_is_raised_for_a_write_after_an_ambiguous_attempt(scripted: Script, later: str) -> None:
    transport = scripted(stored("internal_error"), stored(later))

    with pytest.raises(OutcomeUnknownError, match="InternalServerError"):
        transport.call("PutItem", GET, resend=Resend.ALWAYS)


def test_a_throttled_write_that_was_lost_before_is_not_called_throttled(scripted: Script, asked: list[Asked]) -> None:
    transport = scripted(stored("key_range_throttled"), Reply(hang_up=True), stored("key_range_throttled"))

    with pytest.raises(OutcomeUnknownError, match="ConnectionClosedError"):
        transport.call("PutItem", GET)

    assert len(asked) == 2


def test_a_read_is_sent_again_after_any_failure(scripted: Script, asked: list[Asked]) -> None:
    transport = scripted(Reply(hang_up=True), stored("internal_error"), stored("key_range_throttled"), FOUND)

    transport.call("GetItem", GET)

    assert len(asked) == 4


def test_an_empty_quota_ends_retries_and_successes_fill_it_again(scripted: Script, asked: list[Asked]) -> None:
    transport = scripted(stored("key_range_throttled"), attempts=1000)

    with pytest.raises(ThrottledError):
        transport.call("GetItem", GET)
    exhausted = len(asked)
    with pytest.raises(ThrottledError):
        transport.call("GetItem", GET)

    assert exhausted == 101
    assert len(asked) == exhausted + 1


def test_the_error_of_a_request_is_freed_without_a_search_for_cycles() -> None:
    attempts = Attempts(2, runtime=Runtime(sleep=lambda _: None))

    def refuse(_attempt: int) -> Wire:
        raise ThrottledError("too much", operation="GetItem")

    gc.disable()
    try:
        try:
            attempts.run(refuse, "GetItem", Resend.ALWAYS)
        except ThrottledError as error:
            raised = weakref.ref(error)
        left = raised()
    finally:
        gc.enable()

    assert left is None


def test_an_operation_whose_deadline_has_passed_sends_nothing(scripted: Script, asked: list[Asked]) -> None:
    transport = scripted(FOUND)

    with within(0), pytest.raises(EngineUnavailableError, match="deadline") as caught:
        transport.call("PutItem", GET)

    assert asked == []
    assert not isinstance(caught.value, OutcomeUnknownError)


def test_retries_end_before_the_deadline(scripted: Script, asked: list[Asked], waits: list[float]) -> None:
    pauses = {"throttled_pause": 0.5, "longest_pause": 100.0}
    transport = scripted(stored("key_range_throttled"), attempts=50, pauses=pauses, random=lambda: 1.0)

    with within(15), pytest.raises(KeyRangeThrottledError):
        transport.call("GetItem", GET)

    # Pauses are recorded instead of waited for. The next one alone would exceed the remaining time.
    assert waits == [0.5, 1, 2, 4, 8]
    assert len(asked) == 6


@pytest.mark.parametrize(
    ("operation", "first", "raised"),
    [
        ("GetItem", "key_range_throttled", KeyRangeThrottledError),
        ("PutItem", "key_range_throttled", KeyRangeThrottledError),
        ("TransactWriteItems", "transaction_in_progress", TransactionConflictError),
        ("PutItem", "internal_error", OutcomeUnknownError),
    ],
)
def test_a_request_whose_pause_outlasts_the_deadline_fails_as_its_last_attempt(
    opened: Opened, asked: list[Asked], operation: str, first: str, raised: type[EngineError]
) -> None:
    now = [1_000.0]

    def oversleep(_seconds: float) -> None:
        now[0] += 60

    def answer(request: Asked) -> Reply:
        asked.append(request)
        return stored(first)

    runtime = Runtime(sleep=oversleep, random=lambda: 0.0, clock=lambda: now[0])
    with canned_server(answer) as url:
        transport = opened(Settings(url, "eu-west-1", "a", "b"), Attempts(runtime=runtime))
        with within(10, runtime.clock), pytest.raises(EngineError) as alone:
            transport.call(operation, GET, resend=Resend.ALWAYS)
        with within(10, runtime.clock):
            [among_others] = transport.try_all([Call(operation, GET, Resend.ALWAYS)])
        transport.close()

    assert (type(alone.value), type(among_others), len(asked)) == (raised, raised, 2)


def test_an_attempt_does_not_wait_beyond_the_deadline(scripted: Script, asked: list[Asked]) -> None:
    transport = scripted(Reply(silent=True), attempts=1, read_timeout=600.0)
    transport.warm()

    # This is long enough to send the request on a busy machine.
    with within(1.0), pytest.raises(OutcomeUnknownError):
        transport.call("PutItem", GET)

    until(lambda: len(asked) == 1)


@pytest.mark.parametrize("operation", ["GetItem", "PutItem"])
def test_a_refused_connection_is_tried_again_because_nothing_was_executed(opened: Opened, operation: str) -> None:
    with canned_server(lambda _: FOUND) as url:
        pass
    waits: list[float] = []
    transport = opened(Settings(url, "eu-west-1", "a", "b"), Attempts(2, runtime=Runtime(sleep=waits.append)))

    with pytest.raises(EngineUnavailableError) as caught:
        transport.call(operation, GET)

    assert caught.value.aws_code == "EndpointConnectionError"
    assert not isinstance(caught.value, OutcomeUnknownError)
    assert len(waits) == 1
