"""Collect tests twice, as two workers of a parallel run do, to compare the ids.

pytest-xdist ends the whole run if its workers collect different ids. An id with the time, the order of a set, the
address of an object or a temporary path differs only sometimes, so the two collections differ in all of these.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHIFT_VARIABLE = "COLLECT_SECONDS_LATER"
MODULE = "tests.collected"
SECONDS_APART = 100_003  # more than a day: a date in an id differs as well


def differences(tests: Path, scratch: Path) -> list[str]:
    """Collect the tests of a folder twice, and return the differences of their ids as lines of a diff.

    Raises:
        AssertionError: the tests cannot be collected, or there are none.
    """
    first = _collected(tests, scratch / "first", seed=1, seconds_later=0)
    return differences_from(first, tests, scratch)


def differences_from(first: Sequence[str], tests: Path, scratch: Path) -> list[str]:
    """As `differences`, where another process has collected the ids in `first`."""
    second = _collected(tests, scratch / "second", seed=2, seconds_later=SECONDS_APART)
    return list(unified_diff(first, second, "first", "second", lineterm="", n=0))


def pytest_configure() -> None:
    """Move the clock forward before a test module is imported. pytest calls this because the module is its plugin."""
    later = int(os.environ[SHIFT_VARIABLE])
    seconds, nanoseconds = time.time, time.time_ns
    time.time = lambda: seconds() + later
    time.time_ns = lambda: nanoseconds() + later * 10**9


def _collected(tests: Path, scratch: Path, *, seed: int, seconds_later: int) -> list[str]:
    scratch.mkdir()
    command = [sys.executable, "-m", "pytest", "-n0", "-p", "no:cacheprovider", "-p", MODULE, "-q", "--collect-only"]
    environment = {
        **os.environ,
        "PYTEST_ADDOPTS": "",
        "PYTHONHASHSEED": str(seed),
        "TMPDIR": str(scratch),
        SHIFT_VARIABLE: str(seconds_later),
    }
    done = subprocess.run(  # noqa: S603 - our own tests
        [*command, str(tests)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    ids = [line for line in done.stdout.splitlines() if "::" in line]
    assert ids, done.stdout
    return ids
