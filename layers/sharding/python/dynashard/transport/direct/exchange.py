"""One attempt as a state machine: a request, what was handed out to be written, and the answer. It reads no socket.

It knows in which class of `dynashard.transport.attempts` the attempt ends: a request of which nothing was handed out is
certainly not executed; one that was handed out and not answered is ambiguous.
"""

from typing import Final

from dynashard.errors import DynashardError
from dynashard.transport.classification import DAMAGED, unanswered, unreached
from dynashard.transport.direct.http1 import Answer, AnswerParser, MalformedAnswerError

CLOSED: Final = "ConnectionClosedError"
TIMED_OUT: Final = "ReadTimeoutError"
"""Names of failures, the same as those of botocore, for callers that look at `aws_code`."""


class Exchange:
    """The request and the answer of one attempt of an operation, which `began` at this time, in epoch seconds."""

    __slots__ = ("_parser", "_unsent", "began", "operation", "started")

    def __init__(self, operation: str, request: bytes, began: float = 0.0) -> None:
        self.operation = operation
        self.began = began
        self.started = False
        self._unsent = memoryview(request)
        self._parser = AnswerParser()

    def unsent(self) -> memoryview:
        """Return the bytes to write next; empty once all are written. From now on a failure is ambiguous.

        A failed write does not say how much was written, above all under TLS, so handing out is what counts.
        """
        self.started = True
        return self._unsent

    def wrote(self, count: int) -> None:
        """Note that so many more bytes were written."""
        self._unsent = self._unsent[count:]

    def received(self, data: bytes) -> Answer | None:
        """Take bytes that arrived, none if the other side closed; return the answer once it is complete.

        Raises `EngineUnavailableError`, or `OutcomeUnknownError` for a write, if no usable answer can come any more.
        """
        if not data:
            raise self.failed(CLOSED, "the connection was closed before the answer was complete")
        try:
            return self._parser.feed(data)
        except MalformedAnswerError as error:
            raise self.failed(DAMAGED, f"it sent something else: {error}") from error

    def failed(self, code: str, why: str) -> DynashardError:
        """Return the error of this attempt; `code` names the failure and `why` describes it."""
        if self.started:
            return unanswered(self.operation, code, f"DynamoDB did not answer ({why})")
        return unreached(self.operation, code, why)

    def broken(self, error: OSError) -> DynashardError:
        """Return the error of this attempt after one of its socket."""
        if isinstance(error, TimeoutError):
            return self.failed(TIMED_OUT, "no answer came in time")
        return self.failed(CLOSED, str(error))
