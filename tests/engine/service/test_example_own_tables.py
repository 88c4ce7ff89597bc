"""The example with tables of its own runs as printed, and again on the tables that it left."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dynashard_checks.schedules.wire import port_of_engine_in_memory

pytestmark = pytest.mark.engine

PROGRAM = Path(__file__).parents[3] / "examples/own_tables.py"


def lines_of_a_run(port: int) -> list[str]:
    engine = {
        "AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{port}",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, PROGRAM], env={**os.environ, **engine}, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_it_creates_its_tables_once_and_lists_what_it_stored() -> None:
    with port_of_engine_in_memory() as port:
        first, again = lines_of_a_run(port), lines_of_a_run(port)

    assert first[:2] == ["created readings", "created readings-topology"]
    assert first[2].startswith("newest first: ")
    assert len(first[2].split(", ")) == 3
    assert first[3:] == ["of sensor s1: 20"]
    assert again[1:] == ["of sensor s1: 40"]
