"""Many calls on one thread: bounded, in order, each by its own rules, and none held up by another."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import orjson
import pytest

from dynashard.errors import (
    ConditionFailedError,
    EngineUnavailableError,
    InvalidValueError,
    KeyRangeThrottledError,
    OutcomeUnknownError,
)
from dynashard.runtime import Runtime
from dynashard.transport import Call, metered
from dynashard.transport.attempts import Attempts
from dynashard.transport.deadline import within
from dynashard.transport.direct import fallback
from dynashard.transport.direct.choice import transport_for
from dynashard.transport.direct.transport import DirectTransport
from dynashard.transport.interface import Settings
from dynashard_lab.bench.canned import Asked, Reply, canned_server
from tests.unit.transport.scripted_server import FOUND, stored

pytestmark = pytest.mark.unit

Start = Callable[..., DirectTransport]


class Server:
    """Answers each item by its key, from a script; the last reply of a key is repeated, `FOUND` is the default."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.script: dict[str, list[Reply]] = {}

    def __call__(self, asked: Asked) -> Reply:
        key = orjson.loads(asked.body)["Key"]["PK"]["S"]
        self.asked.append(key)
        replies = self.script.get(key, [FOUND])
        return replies.pop(0) if len(replies) > 1 else replies[0]


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def start(server: Server) -> Iterator[Start]:
    """Return a function that starts the server and connects to it."""
    with ExitStack() as stack:

        def started(*, delay: float = 0.0, runtime: Runtime | None = None, **options: Any) -> DirectTransport:
            url = stack.enter_context(canned_server(server, delay=delay))
            attempts = Attempts(options.pop("attempts", 4), runtime=runtime or Runtime(random=lambda: 0.0))
            transport = transport_for(Settings(url, "eu-west-1", "a", "b", **options), {}, attempts)
            assert isinstance(transport, DirectTransport)
            stack.callback(transport.close)
            return transport

        yield started


def get(key: str) -> Call:
    return Call("GetItem", {"TableName": "users", "Key": {"PK": {"S": key}}})


def update(key: str) -> Call:
    return Call("UpdateItem", {"TableName": "users", "Key": {"PK": {"S": key}}})


def open_connections(transport: DirectTransport) -> int:
    return transport._channel.pool._open


def test_answers_are_in_the_order_of_the_calls_and_no_thread_is_started(start: Start, server: Server) -> None:
    server.script = {str(n): [Reply(orjson.dumps({"Item": {"N": str(n)}}))] for n in range(40)}
    transport = start()
    threads = threading.active_count()

    answers = transport.call_all([get(str(n)) for n in range(40)], concurrency=8)

    assert [answer["Item"]["N"] for answer in answers] == [str(n) for n in range(40)]
    assert open_connections(transport) == 8
    assert threading.active_count() == threads


def test_all_requests_are_written_before_the_first_answer_comes(start: Start, server: Server) -> None:
    transport = start(delay=0.05)

    with metered() as meter:
        transport.call_all([get(str(n)) for n in range(16)])

    assert meter.consumed.requests == len(server.asked) == open_connections(transport) == 16


def test_no_more_connections_than_allowed_are_opened(start: Start, server: Server) -> None:
    transport = start(max_connections=3)

    assert len(transport.call_all([get(str(n)) for n in range(20)], concurrency=16)) == 20
    assert open_connections(transport) == 3
    assert len(server.asked) == 20


def test_a_retry_holds_up_no_other_call(start: Start, server: Server) -> None:
    server.script["hot"] = [stored("key_range_throttled"), FOUND]
    waits: list[float] = []
    # The clock stands still, so that only a call which has nothing else to wait for ends the pause.
    transport = start(runtime=Runtime(sleep=waits.append, random=lambda: 0.9, monotonic=lambda: 0.0))

    answers = transport.try_all([get("hot"), *(get(str(n)) for n in range(6))], concurrency=1)

    assert answers == [orjson.loads(FOUND.body)] * 7
    assert server.asked == ["hot", *(str(n) for n in range(6)), "hot"]
    assert waits == [0.45]


def test_each_call_has_its_own_outcome(start: Start, server: Server) -> None:
    server.script = {
        "throttled": [stored("key_range_throttled")],
        "refused": [stored("condition_failed")],
        "lost": [Reply(hang_up=True)],
        "damaged": [Reply(FOUND.body, checksum=1)],
        "late": [stored("internal_error"), FOUND],
    }
    transport = start(attempts=2)
    keys = ["throttled", "refused", "lost", "damaged", "fine"]

    with metered() as meter:
        found = transport.try_all([*(update(key) for key in keys), get("late"), get("lost")])

    assert [type(each) for each in found] == [
        KeyRangeThrottledError,
        ConditionFailedError,
        OutcomeUnknownError,
        OutcomeUnknownError,
        dict,
        dict,
        EngineUnavailableError,
    ]
    assert meter.throttles == {"TableWriteKeyRangeThroughputExceeded": 2}
    assert meter.consumed.requests == 2
    # A write whose outcome is unknown is not sent again; reads are.
    assert server.asked.count("damaged") == 1
    assert server.asked.count("late") == 2


def test_the_first_error_in_the_order_of_the_calls_is_raised_after_all_have_ended(start: Start, server: Server) -> None:
    server.script = {"1": [stored("missing_table")], "4": [stored("condition_failed")]}
    transport = start()

    with pytest.raises(Exception, match="ResourceNotFoundException"):
        transport.call_all([get(str(n)) for n in range(9)], concurrency=2)

    assert len(server.asked) == 9


def test_a_call_that_cannot_be_sent_does_not_stop_the_others(start: Start) -> None:
    unsent, unknown, fine = start().try_all([Call("PutItem", {"Item": {"B": b"raw"}}), Call("Getitem", {}), get("a")])

    assert isinstance(unsent, InvalidValueError)
    assert "no operation Getitem" in str(unknown)
    assert fine == orjson.loads(FOUND.body)


def test_botocore_sends_operations_with_other_endpoints_which_is_logged_once(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    fallback._log.cache_clear()
    transport = start(attempts=1)

    for _ in range(2):
        transport.try_all([Call("SearchVectors", {"Key": {"PK": {"S": "a"}}}), get("a")])

    assert [record.message for record in caplog.records if record.name.startswith("dynashard.transport.direct")] == [
        "Requests of SearchVectors are sent by botocore: the direct transport does not know their endpoint."
    ]


def test_silence_ends_with_the_read_timeout_of_each_call(start: Start, server: Server) -> None:
    server.script = {"silent": [Reply(silent=True)]}
    transport = start(attempts=1, read_timeout=0.05)

    found = transport.try_all([update("silent"), get("silent")])

    assert [type(each) for each in found] == [OutcomeUnknownError, EngineUnavailableError]
    assert open_connections(transport) == 0


def test_nothing_waits_beyond_the_deadline(start: Start, server: Server) -> None:
    server.script = {"silent": [Reply(silent=True)]}
    transport = start(read_timeout=600.0)

    transport.call_all([get("b")] * 2)

    # This is long enough to send the requests on a busy machine.
    with within(1.0):
        found = transport.try_all([update("silent"), get("silent")] * 2, concurrency=2)
    with within(0):
        late = transport.try_all([update("a")] * 3)

    assert [type(each) for each in found] == [OutcomeUnknownError, EngineUnavailableError] + [
        EngineUnavailableError
    ] * 2
    assert [type(each) for each in late] == [EngineUnavailableError] * 3
    assert "a" not in server.asked


def test_an_unreachable_endpoint_fails_every_call_as_not_sent() -> None:
    with canned_server(lambda _: FOUND) as url:
        pass
    transport = transport_for(Settings(url, "eu-west-1", "a", "b"), {}, Attempts(1))

    found = transport.try_all([update(str(n)) for n in range(4)])

    assert [type(each) for each in found] == [EngineUnavailableError] * 4
    assert {str(getattr(each, "aws_code", "")) for each in found} == {"EndpointConnectionError"}


def test_the_second_address_of_a_name_is_tried(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = start()
    [(family, address)] = transport._channel.dialer.addresses()
    closed = ("127.0.0.1", 1)
    monkeypatch.setattr(transport._channel.dialer, "addresses", lambda: [(family, closed), (family, address)])

    assert transport.call_all([get("a"), get("b")]) == [orjson.loads(FOUND.body)] * 2


def test_large_requests_and_answers_pass_in_parts(start: Start, server: Server) -> None:
    text = "x" * 900_000
    server.script = {"large": [Reply(orjson.dumps({"Item": {"text": {"S": text}}}))]}
    transport = start()
    large = Call("UpdateItem", {"Key": {"PK": {"S": "large"}}, "text": text})

    answers = transport.call_all([large] * 5)

    assert [len(answer["Item"]["text"]["S"]) for answer in answers] == [900_000] * 5


def test_an_interruption_leaves_no_connection_behind(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = start()
    transport.call_all([get("a"), get("b")])

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("dynashard.transport.direct.fan_out.read_answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            transport.call_all([get("a"), get("b")])
    with monkeypatch.context() as patched:
        patched.setattr("dynashard.transport.direct.nonblocking.PendingAttempt.advance", interrupted)
        with pytest.raises(KeyboardInterrupt):
            transport.call_all([get("a"), get("b")])

    assert open_connections(transport) == len(transport._channel.pool._idle)
    assert transport.call_all([get("a")] * 60) == [orjson.loads(FOUND.body)] * 60


def test_threads_share_a_transport(start: Start, server: Server) -> None:
    transport = start(max_connections=4)
    done: list[int] = []

    def work() -> None:
        done.append(len(transport.call_all([get(str(n)) for n in range(20)])))

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert done == [20] * 5
    assert len(server.asked) == 100
    assert open_connections(transport) <= 4
