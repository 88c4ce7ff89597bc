"""Work that may take any time, such as asking a provider for credentials, for callers that have a deadline."""

from collections.abc import Callable
from math import inf
from threading import Thread
from typing import TYPE_CHECKING, Generic, TypeVar

from dynashard.transport.classification import unreached
from dynashard.transport.deadline import remaining
from dynashard.transport.forks import own_lock
from dynashard.waiting import is_done

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")


class Lookup(Generic[T]):
    """Does its work in a thread of its own, once at a time for all callers. Safe to share between threads."""

    def __init__(self, work: Callable[[], T], what: str) -> None:
        self._work = work
        self._what = what
        self._running: Future[T] | None = None
        self._lock = own_lock(self)

    def result(self, operation: str) -> T:
        """Return the result of the work that is under way, or that begins now; raises what the work raises.

        Raises `EngineUnavailableError` at the caller's deadline. The work goes on, for the callers after it.
        """
        from concurrent.futures import Future  # noqa: PLC0415 - most processes look nothing up

        with self._lock:
            running = self._running
            if running is None or running.done():
                self._running = running = Future()
                Thread(target=self._do, args=(running,), name="dynashard-lookup", daemon=True).start()
        left = remaining()
        if not is_done(running, None if left == inf else max(0.0, left)):
            raise unreached(operation, "LookupTimeout", f"{self._what} did not arrive by the operation's deadline")
        return running.result()

    def _do(self, running: "Future[T]") -> None:
        try:
            running.set_result(self._work())
        except BaseException as error:  # noqa: BLE001 - raised in the threads that wait
            running.set_exception(error)
