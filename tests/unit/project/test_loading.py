"""What a program loads: nothing of a room that it does not use."""

import subprocess
import sys

import pytest

from tests.unit.project.rooms import ROOT

pytestmark = pytest.mark.unit

OPENED = """
import sys
from dynashard import Dynashard, Entity, Key, declared_counts, connect

class Note(Entity, name="loading.v1.Note", key=Key("{id}")):
    id: str

transport = connect("http://127.0.0.1:1", "local", access_key="local", secret_key="local")
Dynashard(transport, table="items", cursor_keys=["0123456789abcdef"], MORE).collection(Note)
print(*(name for name in sys.modules if name.startswith("dynashard.")))
"""
OTHERS_CHANGE = "topology=declared_counts(topology_table=None)"
THEY_GROW = 'topology_table="topology"'


def modules(more: str) -> set[str]:
    code = OPENED.replace("MORE", more)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 - our own text
    return set(done.stdout.split())


def loaded(more: str) -> set[str]:
    """Return the rooms of the library that a program loads."""
    return {name.split(".")[1] for name in modules(more)}


def test_a_program_whose_shard_counts_do_not_grow_loads_nothing_that_makes_them_grow() -> None:
    assert loaded(THEY_GROW) - loaded(OTHERS_CHANGE) == {"growth"}


def test_a_collection_that_is_opened_loads_no_generated_code_and_no_resizes() -> None:
    assert loaded(THEY_GROW).isdisjoint({"compiled", "resharding", "transactions", "testing"})


def test_a_program_with_tables_of_its_own_loads_nothing_that_finds_a_backend() -> None:
    assert loaded(THEY_GROW).isdisjoint({"locations"})
    assert "dynashard.transport.aws" not in modules(THEY_GROW)
