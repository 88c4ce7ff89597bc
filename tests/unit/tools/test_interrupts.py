"""Ctrl-C also ends a command if it comes while a finaliser runs, where Python drops exceptions."""

import subprocess
import sys

import pytest

from tests.processes import signals_as_by_default

pytestmark = pytest.mark.unit

PROGRAM = """
import os
import signal
import weakref

from dynashard_tools.failure import CommandInterruptedError, on_interrupt
from dynashard_tools.interrupts import not_lost

class Connection: ...

class Slow:
    def __del__(self):
        read_for_ever()

def interrupted(_reference):
    signal.raise_signal(signal.SIGINT)

def read_for_ever():
    never, _writer = os.pipe()
    os.read(never, 1)
"""
DROPPED = """
with not_lost():
    try:
        with on_interrupt(lambda: "2 of 5 are done"):
            connection, slow = Connection(), Slow() if {twice} else None
            reference = weakref.ref(connection, interrupted)
            del connection
            del slow
            read_for_ever()
    except CommandInterruptedError as error:
        print(error)
"""
ANOTHER_ERROR = """
class Broken:
    def __del__(self):
        raise LookupError("of the finaliser")

with not_lost():
    broken = Broken()
    del broken
    print("went on")
"""


def run(body: str) -> subprocess.CompletedProcess[str]:
    with signals_as_by_default():
        return subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-c", PROGRAM + body], capture_output=True, text=True, check=False, timeout=60
        )


@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
def test_an_interrupt_that_a_finaliser_drops_ends_the_command(*, twice: bool) -> None:
    ended = run(DROPPED.format(twice=twice))

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "interrupted; 2 of 5 are done\n", "")


def test_other_errors_of_finalisers_are_printed_as_before() -> None:
    ended = run(ANOTHER_ERROR)

    assert (ended.returncode, ended.stdout) == (0, "went on\n")
    assert "LookupError: of the finaliser" in ended.stderr
