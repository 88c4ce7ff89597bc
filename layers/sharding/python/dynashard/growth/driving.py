"""Carry out resize requests in the process that made them, for tables that no worker looks after."""

from collections.abc import Callable
from threading import Lock, Thread, main_thread

from dynashard.resharding.driver import drive
from dynashard.resharding.resharder import Resharder
from dynashard.transport.forks import after_fork
from dynashard.waiting import in_thread


class BackgroundDriver:
    """A thread that drives resizes from a request until none is under way.

    A process that ends meanwhile leaves its resizes where they are. They go on with the next driver: another request
    of any process, `dynashard reshard`, or a backend's worker.

    Args:
        resharder: carries the resizes out.
        failed: receives what ended the thread unexpectedly.
        log: receives a line for each error after which the thread goes on.
    """

    def __init__(
        self, resharder: Resharder, *, failed: Callable[[Exception], object], log: Callable[[str], None]
    ) -> None:
        self._resharder = resharder
        self._failed = failed
        self._log = log
        self._closed = False
        self._begin()
        after_fork(self, BackgroundDriver._begin)

    def _begin(self) -> None:
        """Begin without a thread: one of the process from which this one was forked goes on there."""
        self._lock = Lock()
        self._due = False
        self._thread: Thread | None = None

    def requested(self) -> None:
        """Carry out what was requested. Returns at once."""
        with self._lock:
            self._due = True
            if self._thread is None and not self._closed:
                thread = Thread(target=self._run, name="dynashard-resharding", daemon=True)
                thread.start()
                self._thread = thread

    def close(self) -> None:
        """End the thread after the slices of work that it has begun, at most about 3 seconds."""
        self._closed = True
        thread = self._thread
        if thread is not None:
            in_thread(thread.join)

    def _run(self) -> None:
        while self._goes_on():
            try:
                drive(
                    self._resharder,
                    stop=self._ends,
                    sleep=self._resharder.runtime.sleep,
                    log=self._log,
                    until_idle=True,
                )
            except Exception as error:  # noqa: BLE001 - a thread has nobody else to tell
                # A process that ends gives this thread no more threads for its work.
                if not self._ends():
                    self._failed(error)

    def _ends(self) -> bool:
        return self._closed or not main_thread().is_alive()

    def _goes_on(self) -> bool:
        with self._lock:
            goes_on = self._due and not self._ends()
            self._due = False
            if not goes_on:
                self._thread = None
            return goes_on
