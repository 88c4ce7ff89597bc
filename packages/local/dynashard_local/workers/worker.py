"""Runs worker processes: restarts them, and ends them with the local stack, also if that is killed."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Final

from dynashard_local.root import backend_root, environment_for

FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 8.0
STEADY: Final = 5.0
"""How long a worker must have run for the pause to start again; all in seconds."""
STOP_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """A module that is run with `python -m`, and ends when its standard input does.

    Attributes:
        environment: all of its environment variables.
        function: the package of the function that it runs, such as `functions.writer`; empty if it runs none.
    """

    module: str
    environment: Mapping[str, str]
    log: Path
    function: str = ""


class Worker:
    """Keeps a worker process running until it is closed, and reports each end in one line.

    A worker that ends is restarted after a pause, which doubles while the worker does not run long.
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
        """End it, if it runs, so that it is restarted at once with the current code."""
        with self._lock:
            process = self._process
            if process is None or process.poll() is not None:
                return
            self._restarting = True
            # It ends with its standard input, which may be closed twice.
            if process.stdin is not None:
                process.stdin.close()

    def close(self) -> None:
        """End it at once, and wait for its end. Workers may be interrupted anywhere."""
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
            self._report(f"{self._spec.module} ended (status {status}), and is restarted: see {self._spec.log}")

    def _run(self) -> subprocess.Popen[bytes]:
        root = backend_root()
        with self._spec.log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", self._spec.module],
                cwd=root,
                env={**environment_for(root), **self._spec.environment},
                # The kernel closes our end when we are killed.
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                # The local stack handles Ctrl-C, and ends its processes in order.
                start_new_session=True,
            )


def pause_after(pause: float, lived: float) -> float:
    """Return the pause before a restart, after the last pause (0 at first) and a run, all in seconds."""
    return FIRST_PAUSE if lived >= STEADY or not pause else min(2 * pause, LONGEST_PAUSE)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
