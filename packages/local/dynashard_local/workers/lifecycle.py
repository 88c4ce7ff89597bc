"""The lifecycle of the local stack's worker processes: they end with their standard input, and log with the time."""

import os
import sys
from datetime import UTC, datetime
from threading import Thread


def end_with_input() -> None:
    """End this process at once when its standard input ends, which means that its parent is gone."""
    Thread(target=_wait, daemon=True).start()


def log(line: str) -> None:
    """Write a line to the worker's log."""
    sys.stdout.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {line}\n")
    sys.stdout.flush()


def _wait() -> None:
    # A reader that holds the lock of `sys.stdin` would make the interpreter abort when the worker ends with an error.
    while os.read(0, 4096):
        pass
    os._exit(0)
