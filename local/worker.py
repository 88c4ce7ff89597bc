"""A process that works beside the functions: kept alive, and ended with the local stack, however that ends."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Final

from local.settings import ROOT

RESHARD_LOG: Final = "reshard.log"
"""The log of the worker that carries out changes of shard counts, in `DATA_DIR`."""
CHANGES_LOG: Final = "changes.log"
"""The log of the worker that follows the table's stream."""
FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 8.0
STEADY: Final = 5.0
"""How long a worker must have lived for its end not to count with those before; all in seconds."""
STOP_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """What runs: a module that ends when its standard input does.

    Attributes:
        module: its name, run as `python -m`.
        environment: its environment variables, all of them.
        log: where its output goes.
        function: the package of the function that it runs, such as `functions.writer`; empty if it runs none.
    """

    module: str
    environment: Mapping[str, str]
    log: Path
    function: str = ""


class Worker:
    """Keeps a worker process running until it is closed.

    A worker that ends is started again, after a pause that doubles while it does not live long.

    Args:
        spec: what runs.
        report: gets one line when the worker has ended by itself.
        clock: seconds, for how long it has lived.
    """

    def __init__(
        self, spec: WorkerSpec, *, report: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._spec = spec
        self._report = report
        self._clock = clock
        self._ending = Event()
        self._restarting = False
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = Thread(target=self._keep, name="worker", daemon=True)

    def start(self) -> None:
        """Start it; returns at once."""
        self._thread.start()

    @property
    def function(self) -> str:
        """The package of the function that it runs; empty if it runs none."""
        return self._spec.function

    def restart(self) -> None:
        """End it, if it runs, so that it begins again at once with the code as it is now."""
        with self._lock:
            process = self._process
            if process is None or process.poll() is not None:
                return
            self._restarting = True
            # It ends with its standard input. Whoever waits for it closes this end once more, which does no harm.
            if process.stdin is not None:
                process.stdin.close()

    def close(self) -> None:
        """End it, whatever it is doing, and wait for that. What it works on is made to be cut off anywhere."""
        with self._lock:
            self._ending.set()
            process = self._process
        if process is not None:
            _end(process)
        if self._thread.ident is not None:
            self._thread.join()

    def _keep(self) -> None:
        pause = 0.0
        while not self._ending.wait(pause):
            with self._lock:
                if self._ending.is_set():
                    return
                self._process = process = self._run()
            begun = self._clock()
            status = process.wait()
            if self._ending.is_set():
                return
            with self._lock:
                wanted, self._restarting = self._restarting, False
                if process.stdin is not None:
                    process.stdin.close()
            if wanted:
                pause = 0.0
                continue
            pause = pause_after(pause, self._clock() - begun)
            self._report(f"{self._spec.module} ended (status {status}), and is started again: see {self._spec.log}")

    def _run(self) -> subprocess.Popen[bytes]:
        with self._spec.log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", self._spec.module],
                cwd=ROOT,
                env=dict(self._spec.environment),
                # The kernel closes our end when we are killed: nothing is left behind.
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C is for the local stack, which ends its processes in order.
                start_new_session=True,
            )


def pause_after(pause: float, lived: float) -> float:
    """How long to wait before a worker is started again, in seconds.

    Args:
        pause: the wait before it was started the last time; 0 for the first time.
        lived: how long it has lived since.
    """
    return FIRST_PAUSE if lived >= STEADY or not pause else min(2 * pause, LONGEST_PAUSE)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
