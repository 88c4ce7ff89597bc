"""Processes of tests have default signal handlers, even if the test run ignores the signals."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.processes import STOPS, signals_as_by_default

pytestmark = pytest.mark.unit

CHILD = """
import signal
print(*[signal.getsignal(number) == signal.SIG_IGN for number in (signal.SIGINT, signal.SIGTERM)])
"""


def ignored() -> list[str]:
    """Return whether a new process ignores SIGINT and SIGTERM."""
    done = subprocess.run([sys.executable, "-c", CHILD], check=True, capture_output=True, text=True)  # noqa: S603
    return done.stdout.split()


@pytest.fixture
def _background_job() -> Iterator[None]:
    before = [signal.signal(number, signal.SIG_IGN) for number in STOPS]
    yield
    for number, handler in zip(STOPS, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("_background_job")
def test_signals_that_the_tests_ignore_reach_the_processes_they_start() -> None:
    assert ignored() == ["True", "True"]

    with signals_as_by_default():
        assert ignored() == ["False", "False"]

    assert ignored() == ["True", "True"]


@pytest.mark.parametrize("number", STOPS)
def test_a_process_may_be_started_with_a_signal_ignored(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in STOPS]

    with signals_as_by_default(but_ignoring=[number]):
        assert ignored() == [str(each == number) for each in STOPS]

    assert [signal.getsignal(each) for each in STOPS] == before
