"""The example with tables of its own runs as printed, and again on the tables that it left."""

import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests.engine.examples.conftest import EXAMPLES

pytestmark = pytest.mark.engine


def lines_of_a_run() -> list[str]:
    command = [sys.executable, str(EXAMPLES / "own_tables.py")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()  # noqa: S603


def test_it_creates_its_tables_once_and_lists_what_it_stored(engine_variables: Mapping[str, str]) -> None:
    assert engine_variables

    first, again = lines_of_a_run(), lines_of_a_run()

    assert first[:2] == ["created readings", "created readings-topology"]
    assert first[2].startswith("newest first: ")
    assert len(first[2].split(", ")) == 3
    assert first[3:] == ["of sensor s1: 20"]
    assert again[1:] == ["of sensor s1: 40"]
