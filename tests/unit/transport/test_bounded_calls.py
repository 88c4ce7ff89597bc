"""Calls of botocore end at their callers' deadline, whatever botocore waits for."""

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread, current_thread

import pytest

from dynashard.errors import EngineUnavailableError, OutcomeUnknownError
from dynashard.transport.bounded_calls import BoundedCalls, before_send
from dynashard.transport.deadline import remaining, within
from dynashard.transport.interface import Call, Settings
from dynashard.transport.sdk import SdkTransport
from dynashard_lab.bench.canned import Asked, Reply, canned_server
from tests.no_threads import no_more_threads

pytestmark = pytest.mark.unit

KEYS = '{"Version": 1, "AccessKeyId": "AKIA", "SecretAccessKey": "secret"}'


@pytest.fixture
def credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipe: the program that the profile `slow` runs for its credentials ends when somebody has written to it."""
    pipe = tmp_path / "credentials"
    os.mkfifo(pipe)
    (tmp_path / "config").write_text(f"[profile slow]\ncredential_process = cat {pipe}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    return pipe


def test_a_request_ends_at_its_deadline_while_its_credentials_are_looked_up(credentials: Path) -> None:
    """It is not sent when they arrive; the next request is, with them."""
    asked: list[Asked] = []

    def answer(request: Asked) -> Reply:
        asked.append(request)
        return Reply()

    with canned_server(answer) as url:
        # One connection: the second request waits until the first one has ended.
        transport = SdkTransport(Settings(url, "eu-west-1", profile="slow", max_connections=1, attempts=1))
        with within(0.3), pytest.raises(EngineUnavailableError, match="no credentials by the") as caught:
            transport.call("PutItem", {})
        with within(0.2), pytest.raises(EngineUnavailableError, match="all threads wait"):
            transport.call("GetItem", {})
        with within(0.2), pytest.raises(EngineUnavailableError, match="all threads wait"):
            transport.try_all([Call("GetItem", {})] * 2)
        credentials.write_text(KEYS)

        assert transport.call("GetItem", {}) == {}
        transport.close()

    assert not isinstance(caught.value, OutcomeUnknownError)
    assert [each.headers["x-amz-target"].rpartition(".")[2] for each in asked] == ["GetItem"]


@pytest.fixture
def late() -> Iterator[Event]:
    """Work of a test waits for it, at most until the test has ended."""
    event = Event()
    yield event
    event.set()


@pytest.mark.parametrize("operation", ["PutItem", "GetItem"])
@pytest.mark.parametrize("sent", [True, False])
def test_a_write_is_in_doubt_only_once_it_may_have_been_sent(late: Event, operation: str, *, sent: bool) -> None:
    def work() -> None:
        if sent:
            before_send()
        late.wait()

    with within(0.05), pytest.raises(EngineUnavailableError) as caught:
        BoundedCalls(1).run(operation, work)

    assert isinstance(caught.value, OutcomeUnknownError) is (sent and operation == "PutItem")


def test_a_call_that_was_given_up_sends_nothing(late: Event) -> None:
    sent: list[str] = []
    calls = BoundedCalls(1)

    def work() -> None:
        late.wait()
        before_send()
        sent.append("request")

    with within(0.05), pytest.raises(EngineUnavailableError):
        calls.run("PutItem", work)
    late.set()
    calls.run("GetItem", lambda: None)

    assert sent == []


def test_a_thread_that_cannot_be_started_fails_one_call_which_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = BoundedCalls(1)

    with monkeypatch.context() as full:
        full.setattr(Thread, "start", no_more_threads)
        with within(60), pytest.raises(EngineUnavailableError, match="can't start new thread") as caught:
            calls.run("PutItem", lambda: 1)

    assert not isinstance(caught.value, OutcomeUnknownError)
    with within(60):
        assert calls.run("PutItem", lambda: 2) == 2


def test_work_has_the_deadline_of_its_caller_and_raises_its_errors() -> None:
    calls = BoundedCalls(1)

    with within(60):
        assert 0 < calls.run("GetItem", remaining) <= 60
        with pytest.raises(ZeroDivisionError):
            calls.run("GetItem", lambda: 1 // 0)


@pytest.mark.parametrize("end", ["close", "drop"])
def test_one_thread_does_calls_one_after_another_and_ends_with_its_pool(end: str) -> None:
    calls = BoundedCalls(4)
    threads = {calls.run("GetItem", current_thread) for _ in range(20)}
    kept = calls if end == "close" else None
    if kept is not None:
        kept.close()
    del calls

    [thread] = threads
    thread.join(60)
    assert not thread.is_alive()
