"""The logs of the local stack in `DATA_DIR`, and what bounds them: a log that has grown becomes its own predecessor.

Processes append to their logs all the time, so a log is copied and emptied, as `logrotate` does with `copytruncate`. A
line that is written between the two is lost.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Final

API_LOG: Final = "api.log"
"""The log of the functions that serve the API."""
COMMANDS_LOG: Final = "commands.log"
"""The log of the function for direct invocation."""
WRITER_LOG: Final = "writer.log"
"""The log of the worker that executes what is on the queues."""
CHANGES_LOG: Final = "changes.log"
"""The log of the worker that consumes the table's stream."""
RESHARD_LOG: Final = "reshard.log"
"""The log of the worker that carries resizes out."""
MOST_BYTES: Final = 16 * 1024 * 1024
"""The size at which a log is emptied."""
EVERY_SECONDS: Final = 5.0
BEFORE: Final = ".1"
"""What the name of a log's predecessor ends with."""


class LogRotation:
    """Bounds the logs in a folder until it is closed."""

    def __init__(self, folder: Path, report: Callable[[str], None], most: int = MOST_BYTES) -> None:
        self._folder = folder
        self._report = report
        self._most = most
        self._ending = Event()
        self._thread = Thread(target=self._keep, name="logs", daemon=True)

    def start(self) -> None:
        """Start; returns at once."""
        self._thread.start()

    def close(self) -> None:
        """End, and wait for it."""
        self._ending.set()
        if self._thread.ident is not None:
            self._thread.join()

    def rotate(self) -> None:
        """Empty the logs that are too large, once."""
        for log in self._folder.glob("*.log"):
            try:
                size = log.stat().st_size
            except FileNotFoundError:
                continue  # It was removed since.
            if size > self._most:
                draft = log.with_name(f"{log.name}.new")
                draft.touch(mode=0o600)
                shutil.copyfile(log, draft)
                with log.open("rb+") as file:
                    file.truncate(0)
                draft.replace(log.with_name(f"{log.name}{BEFORE}"))

    def _keep(self) -> None:
        reported = ""
        while not self._ending.wait(EVERY_SECONDS):
            try:
                self.rotate()
            except OSError as error:
                # It is tried again: a full disk has room later. Each reason is reported once.
                if str(error) != reported:
                    self._report(f"the logs in {self._folder} cannot be bounded: {error}")
                reported = str(error)
