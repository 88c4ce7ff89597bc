"""Attempts of one request: which may be repeated, when, and which error follows an ambiguous one.

    not executed   refused, throttled, or never written to a connection: it has no effect, now or later
    answered       DynamoDB executed it, or answered that a condition does not hold
    ambiguous      written without a usable answer: a timeout, a reset, a damaged answer, 500, 503. It may have been
                   executed, or may still be at any later time

After an ambiguous attempt a write is sent again only if its caller says that this is safe (`Resend.ALWAYS`); otherwise
`OutcomeUnknownError` is raised at once. A throttle or any other refusal that follows an ambiguous attempt proves
nothing about that attempt, so it is never raised as such for a write.

Botocore's own retries are off: they repeat every write after every failure.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct, field

from dynashard.errors import (
    ConditionFailedError,
    DynashardError,
    EngineError,
    EngineUnavailableError,
    OutcomeUnknownError,
    ThrottledError,
    TransactionCanceledError,
    TransactionConflictError,
)
from dynashard.runtime import SYSTEM, Runtime
from dynashard.transport.deadline import remaining, seeks_evidence
from dynashard.transport.forks import own_lock
from dynashard.transport.interface import WRITING, Resend, Wire

Once = Callable[[int], Wire]
"""Sends a request once and returns the answer; takes the number of the attempt, from 1."""

RETRIED_CONFLICTS: Final = frozenset({"ReplicatedWriteConflictException", "TransactionInProgressException"})
"""Conflicts that end without the caller. Others are the caller's: it waits or reads again."""
_TOKEN: Final = "ClientRequestToken"  # noqa: S105 - the name of a parameter
TOKEN_MISMATCH: Final = "IdempotentParameterMismatchException"  # noqa: S105 - the code of an error
_CANCELLED: Final = "TransactionCanceledException"
_QUOTA: Final = 500
_RETRY_COST: Final = 5
_EVIDENCE_ATTEMPTS: Final = 40


def resend_of(operation: str, request: Any) -> Resend:
    """Return when a request may be sent again if its caller does not say so; `Call` has the rule."""
    return Resend.ALWAYS if operation not in WRITING or _TOKEN in request else Resend.IF_NOT_EXECUTED


class RetryQuota:
    """A token bucket that bounds the retries of a process, so that they do not add to the load of a failing engine.

    Requests are not retried while it is empty. The figures are those of the AWS SDKs.
    """

    def __init__(self, quota: int = _QUOTA) -> None:
        self._most = quota
        self._left = quota
        self._lock = own_lock(self)

    def acquire(self) -> bool:
        """Take the tokens of one retry; False if there are too few."""
        with self._lock:
            if self._left < _RETRY_COST:
                return False
            self._left -= _RETRY_COST
            return True

    def release(self, retries: int) -> None:
        """Return tokens after a request that has succeeded after so many retries."""
        if self._left < self._most or retries:
            with self._lock:
                self._left = min(self._most, self._left + (_RETRY_COST if retries else 1))


class Attempts(Struct, frozen=True):
    """How often one request is sent: exponential backoff with full jitter, which ends before the operation's deadline.

    Attributes:
        most: attempts of one request, the first included. What finds out what became of a write is sent until its
            deadline, at most 40 times with short pauses: nobody else can answer the caller.
        first_pause, throttled_pause, longest_pause: bounds of pauses in seconds: the first after a failure, the first
            after a throttle, and the highest.
    """

    most: int = 4
    first_pause: float = 0.05
    throttled_pause: float = 0.5
    longest_pause: float = 5.0
    runtime: Runtime = SYSTEM
    quota: RetryQuota = field(default_factory=RetryQuota)

    def run(self, once: Once, operation: str, resend: Resend) -> Wire:
        """Send a request until it is answered or may not be sent again; raises as `Transport.call`."""
        state, number = None, 1
        while True:
            try:
                answer = once(number)
            except DynashardError as error:
                state = state or RetryState(self, operation, resend)
                self.runtime.sleep(state.pause_after(error))
                number = state.number
            else:
                self.quota.release(number - 1)
                return answer


class RetryState(Struct):
    """The attempts of one request, decided without sending or waiting; `number` is that of the one under way."""

    rules: Attempts
    operation: str
    resend: Resend
    number: int = 1
    _doubt: OutcomeUnknownError | None = None
    _before: DynashardError | None = None

    def pause_after(self, error: DynashardError) -> float:
        """Return the seconds to wait before the next attempt. Raises the error of the whole call if there is none."""
        if isinstance(error, OutcomeUnknownError):
            self._doubt = error
        elif self._before is not None and type(error) is EngineUnavailableError and not error.aws_code:
            error = self._before  # The deadline passed during the pause. The reason is why it was not answered before.
        self._before = error
        if (pause := self._pause(error)) is not None:
            self.number += 1
            return pause
        try:
            if self._doubt is not None and self.operation in WRITING:
                raise self._after_doubt(error, self._doubt) from error
            raise error
        finally:
            self._before = self._doubt = None
            del error  # Its traceback leads here: only a search for cycles would free it.

    def _pause(self, error: DynashardError) -> float | None:
        rules, doubtful = self.rules, self._doubt is not None
        if doubtful and self.resend is not Resend.ALWAYS:
            return None
        evidence = seeks_evidence()
        most = _EVIDENCE_ATTEMPTS if evidence else rules.most
        if self.number >= most or not _passing(error, after_doubt=doubtful) or not rules.quota.acquire():
            return None
        first = rules.throttled_pause if isinstance(error, ThrottledError) else rules.first_pause
        bound = rules.first_pause if evidence else min(first * 2.0 ** (self.number - 1), rules.longest_pause)
        pause = rules.runtime.random() * bound
        return pause if pause < remaining() else None

    def _after_doubt(self, error: DynashardError, doubt: OutcomeUnknownError) -> EngineError:
        """Return the error to raise for a write after an ambiguous attempt."""
        if isinstance(error, ConditionFailedError | TransactionCanceledError):
            error.ambiguous = True
            return error
        if isinstance(error, EngineError) and error.aws_code == TOKEN_MISMATCH:
            # Another request has used the token up. That holds whatever became of the attempts of this one.
            return error
        sent = "1 attempt" if self.number == 1 else f"{self.number} attempts"
        return OutcomeUnknownError(
            f"{self.operation}: no usable answer came ({doubt.aws_code or doubt}, {sent}). It may have been applied, "
            "or may still be. Read what it concerns before you decide.",
            operation=self.operation,
            aws_code=doubt.aws_code,
        )


def _passing(error: DynashardError, *, after_doubt: bool) -> bool:
    if isinstance(error, EngineUnavailableError):
        return True
    if isinstance(error, ThrottledError):
        # The caller may build a cancelled transaction anew, but not one that may have been executed.
        return after_doubt or error.aws_code != _CANCELLED
    # After an ambiguous attempt the other transaction may be that very attempt.
    return isinstance(error, TransactionConflictError) and (after_doubt or error.aws_code in RETRIED_CONFLICTS)
