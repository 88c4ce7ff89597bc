"""Many calls at once on one bounded pool of threads."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from dynashard.transport.forks import own_lock

Work = TypeVar("Work")
Outcome = TypeVar("Outcome")


class WorkerPool:
    """A pool of threads, created on first use and shared by all callers of a transport.

    The calling thread works too. So calls from within a worker never wait for each other, and a busy pool slows a
    caller but does not stop it.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._lock = own_lock(self)

    def run(self, send: Callable[[Work], Outcome], calls: Sequence[Work], concurrency: int) -> list[Outcome]:
        """Send every call, in the context of the calling thread with its meters and deadline.

        At most `concurrency` are under way at a time, the calling thread's included. Returns the answers in the order
        of the calls, or raises the first error in that order after all have ended. An interruption ends it at once, and
        no further call is sent.
        """
        waiting = deque(enumerate(calls))
        answers: dict[int, Outcome] = {}
        errors: dict[int, Exception] = {}

        def work() -> None:
            while True:
                try:
                    at, call = waiting.popleft()
                except IndexError:
                    return
                try:
                    answers[at] = send(call)
                except Exception as error:  # noqa: BLE001 - raised below, in the calling thread
                    errors[at] = error

        helpers = min(concurrency, len(calls), self._threads + 1) - 1
        pool = self._started() if helpers > 0 else None
        under_way = [pool.submit(copy_context().run, work) for _ in range(helpers)] if pool else []
        try:
            work()
            for future in under_way:
                if not future.cancel():
                    future.result()
        except BaseException:
            # The caller was interrupted, so nobody waits for the calls that are not under way.
            waiting.clear()
            raise
        if errors:
            raise errors[min(errors)]
        return [answers[at] for at in range(len(calls))]

    def close(self) -> None:
        """Wait for running calls and end the threads."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def _started(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="dynashard")
            return self._pool
