"""What workers beside the local stack share: they end with their standard input, and log lines with the time."""

import os
import sys
from datetime import UTC, datetime
from threading import Thread


def end_with_input() -> None:
    """Have this process end when its standard input does: when whoever started it is gone.

    Not orderly on purpose: a worker that may be killed anywhere needs no second way to end.
    """
    Thread(target=_wait, daemon=True).start()


def log(line: str) -> None:
    """A line of the worker's log."""
    sys.stdout.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {line}\n")
    sys.stdout.flush()


def _wait() -> None:
    sys.stdin.buffer.read()
    os._exit(0)
