"""Every request ends within the remaining time of its function, also if the database is slow or never answers."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from dynashard.errors import EngineError
from dynashard.runtime import Runtime
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport import Transport
from dynashard.transport.attempts import Attempts, resend_of
from dynashard.transport.classification import unanswered
from dynashard.transport.deadline import remaining, within
from dynashard.transport.interface import WRITING, Resend, Wire
from tests.api_caller import Caller, a_user
from tests.engine.api.api_on_engine import TOPOLOGY, caller_on

pytestmark = pytest.mark.engine

READ_TIMEOUT = 10.0


class Silence(OneByOne):
    """Executes requests on the engine and never answers: each attempt takes as long as its sender waits.

    Time passes only here and in pauses. Reads of the topology are answered, and with `reads_answered` all reads.
    """

    def __init__(self, inner: Transport, *, reads_answered: bool, takes: float = READ_TIMEOUT) -> None:
        self.now = 1_780_000_000.0
        self.writes = 0
        self.reads = 0
        self._inner = inner
        self._reads_answered = reads_answered
        self._takes = takes
        self._attempts = Attempts(most=10, runtime=Runtime(sleep=self._sleep, random=lambda: 0.5))

    def clock(self) -> float:
        return self.now

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        if TOPOLOGY in str(request):
            return self._inner.call(operation, request, resend=resend)
        resend = resend or resend_of(operation, request)

        def once(_: int) -> Wire:
            left = remaining()
            if left <= 0:
                raise unanswered(operation, "Deadline", "Sent after the deadline")
            self.writes += operation in WRITING
            self.reads += operation not in WRITING
            if operation not in WRITING and self._reads_answered:
                return self._inner.call(operation, request, resend=resend)
            with suppress(EngineError):
                self._inner.call(operation, request, resend=resend)
            self.now += min(self._takes, left)
            raise unanswered(operation, "ReadTimeoutError", "The answer was lost")

        return self._attempts.run(once, operation, resend)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


class Context:
    """Lambda's context at the start of an invocation."""

    aws_request_id = "request-1"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self._seconds * 1000)


WRITES: dict[str, tuple[str, dict[str, Any] | None, dict[str, str]]] = {
    "create": ("POST", a_user(), {}),
    "create with a key": ("POST", a_user(), {"idempotency-key": "once"}),
    "create exactly once": ("POST", a_user(), {"prefer": "handling=exactly-once"}),
    "put": ("PUT", a_user(), {}),
    "put exactly once": ("PUT", a_user(), {"prefer": "handling=exactly-once"}),
    "put on a revision": ("PUT", a_user(), {"if-match": '"another"'}),
    "patch": ("PATCH", {"display_name": "Countess"}, {}),
    "delete": ("DELETE", None, {}),
    "guarded delete": ("DELETE", None, {"prefer": "handling=guarded"}),
}


def _sent(caller: Caller, silence: Silence, write: str, seconds: float, path: str) -> tuple[dict[str, Any], float]:
    """Send a write to a function with `seconds` left; return its answer and the seconds it took."""
    method, document, headers = WRITES[write]
    headers = {"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json", **headers}
    body = b"" if document is None else json.dumps(document).encode()
    event = caller.event(method, "/v1/users" if method == "POST" else path, body=body, headers=headers)
    began = silence.now
    with within(10_000, silence.clock):
        answer = caller.app.handle(event, Context(seconds))
    return answer, silence.now - began


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seconds", [29.0, 6.0, 0.9])
@pytest.mark.parametrize("write", WRITES)
def test_a_write_without_any_answer_is_unknown_within_the_time_of_its_function(
    transport: Transport, table: str, records: str, write: str, seconds: float
) -> None:
    silence = Silence(transport, reads_answered=False)

    answer, took = _sent(caller_on(silence, table, records), silence, write, seconds, "/v1/users/a")

    assert took < seconds
    assert answer["statusCode"] == 503
    assert json.loads(answer["body"])["code"] == ("outcome_unknown" if silence.writes else "engine_unavailable")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seconds", [29.0, 6.0, 0.9])
@pytest.mark.parametrize("write", WRITES)
def test_a_write_whose_reads_are_answered_ends_within_the_time_of_its_function(
    transport: Transport, table: str, records: str, write: str, seconds: float
) -> None:
    at_peace = caller_on(transport, table, records)
    path = at_peace.post("/v1/users", a_user()).headers["location"]
    silence = Silence(transport, reads_answered=True)

    answer, took = _sent(caller_on(silence, table, records), silence, write, seconds, path)

    assert took < seconds
    unknown = answer["statusCode"] == 503 and json.loads(answer["body"])["code"] == "outcome_unknown"
    assert unknown or answer["statusCode"] in ((412,) if write == "put on a revision" else (200, 201, 204))


@pytest.mark.parametrize("seconds", [29.0, 6.0, 2.0])
def test_time_is_left_to_look_for_evidence(transport: Transport, table: str, seconds: float) -> None:
    """An attempt could take all of the time, but enough is kept to read the stored item, which proves the write."""
    at_peace = caller_on(transport, table)
    path = at_peace.post("/v1/users", a_user()).headers["location"]
    silence = Silence(transport, reads_answered=True, takes=1_000.0)
    caller = caller_on(silence, table)

    answer, took = _sent(caller, silence, "put", seconds, path)

    assert (answer["statusCode"], silence.writes) == (200, 1)
    assert silence.reads
    assert took < seconds


@pytest.mark.parametrize("seconds", [4.0, 20.0])
def test_an_operation_ends_within_the_wait_of_changes_of_counts(
    transport: Transport, table: str, seconds: float
) -> None:
    silence = Silence(transport, reads_answered=False)
    caller = caller_on(silence, table, topology_operation_seconds=seconds)

    answer, took = _sent(caller, silence, "create", 900.0, "")

    assert json.loads(answer["body"])["code"] == "outcome_unknown"
    assert took <= seconds
