"""Calls of botocore, which nothing can interrupt, for callers that have a deadline.

Botocore bounds a wait for bytes, but not their sum: an answer may drip. Nor does it bound the look-up of credentials,
for which it runs programs and asks services. So each call is done in another thread, and its caller waits for that
thread until the deadline. A call that is given up before its request was sent is not sent any more.
"""

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from math import inf
from queue import SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import Any, Final, TypeVar, cast
from weakref import ReferenceType, finalize, ref

from dynashard.errors import DynashardError
from dynashard.transport.classification import unanswered, unreached
from dynashard.transport.deadline import remaining

T = TypeVar("T")

GRACE: Final = 0.05
"""Seconds after the deadline for which a caller waits: most calls end by it themselves, and say more about the end."""


class GivenUpError(Exception):
    """The caller no longer waits, so the request must not be sent."""


class _Job:
    """One call: what it does, how it ended, and whether its request may have been sent."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.context = copy_context()
        self.result: Any = None
        self.error: BaseException | None = None
        self.ended = Lock()
        self.ended.acquire()
        self._lock = Lock()
        self._sending = self._given_up = False

    def do(self) -> None:
        _CURRENT.set(self)
        try:
            self.result = self.work()
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            self.error = error

    def send(self) -> None:
        with self._lock:
            if self._given_up:
                raise GivenUpError
            self._sending = True

    def give_up(self) -> bool:
        """Keep the request from being sent; return whether it may have been sent already."""
        with self._lock:
            self._given_up = True
            return self._sending


_CURRENT: ContextVar[_Job | None] = ContextVar("dynashard_bounded_call", default=None)
_Jobs = SimpleQueue["_Job | None"]


def before_send(**_: Any) -> None:
    """Handle botocore's event of that name: from here on the request of the call under way may be executed."""
    job = _CURRENT.get()
    if job is not None:
        job.send()


class BoundedCalls:
    """At most so many threads, each of which does one call at a time. Safe to share between threads.

    A thread is used again once its call has ended, however long after its caller that is.
    """

    def __init__(self, most: int) -> None:
        self._free = Semaphore(most)
        self._idle: list[_Jobs] = []
        self._lock = Lock()
        finalize(self, _dismiss, self._idle)

    def run(self, operation: str, work: Callable[[], T]) -> T:
        """Return the result of the work, which is done in this thread's context; raises what the work raises.

        Raises:
            EngineUnavailableError: the deadline has passed before a request was sent, or the answer to one that may be
                sent again is not complete.
            OutcomeUnknownError: the deadline has passed, and the request is a write that may have been sent.
        """
        left = remaining()
        if not self._free.acquire(timeout=None if left == inf else max(0.0, left)):
            raise unreached(operation, "ConnectionsInUseError", "all threads wait for answers to earlier requests")
        job = _Job(work)
        try:
            self._hand_over(job)
        except RuntimeError as error:
            self._free.release()
            raise unreached(operation, "ThreadNotStartedError", str(error)) from error
        try:
            ended = job.ended.acquire(timeout=-1 if left == inf else max(0.0, remaining()) + GRACE)
        except BaseException:
            job.give_up()
            raise
        if not ended:
            raise _late(operation, sent=job.give_up())
        if job.error is not None:
            try:
                raise job.error
            finally:
                # Its traceback leads here: only a search for cycles would free it.
                job.error = None
        return cast("T", job.result)

    def close(self) -> None:
        """End the threads that are idle now. Others end when their process does."""
        with self._lock:
            _dismiss(self._idle)

    def _hand_over(self, job: _Job) -> None:
        with self._lock:
            jobs = self._idle.pop() if self._idle else None
        if jobs is None:
            jobs = _Jobs()
            Thread(target=_work, args=(ref(self), jobs), name="dynashard-call", daemon=True).start()
        jobs.put(job)

    def release(self, jobs: _Jobs) -> None:
        """Take back a thread whose call has ended, by its queue."""
        with self._lock:
            self._idle.append(jobs)
        self._free.release()


def _work(pool: "ReferenceType[BoundedCalls]", jobs: _Jobs) -> None:
    """Do the calls of one thread, as long as anybody can give it some."""
    while (job := jobs.get()) is not None:
        job.context.run(job.do)
        if (owner := pool()) is not None:
            # Before the caller goes on, which may have another call at once.
            owner.release(jobs)
        job.ended.release()
        if owner is None:
            return
        del job, owner


def _dismiss(idle: list[_Jobs]) -> None:
    while idle:
        idle.pop().put(None)


def _late(operation: str, *, sent: bool) -> DynashardError:
    if sent:
        return unanswered(operation, "ReadTimeoutError", "the answer was not complete at the operation's deadline")
    return unreached(operation, "LookupTimeout", "there were no credentials by the operation's deadline")
