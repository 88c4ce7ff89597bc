"""A plug-in for pytest: a local stack for the tests of a backend.

[tool.pytest.ini_options]
addopts = "-p dynashard_local.testing"

def test_a_note_is_kept(api):
made = api.post("/v1/notes", json={"text": "milk"})
assert api.get(made.headers["Location"]).json()["text"] == "milk"
"""

from collections.abc import Iterator
from uuid import uuid4

import httpx
import pytest

from dynashard_local.stack import Stack, running_stack

LEASE_SECONDS = 3
"""The lease of the topology: a resize takes seconds, not a minute."""


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Return a local stack of this backend on free ports, with data of its own. It takes seconds to start, once."""
    with running_stack(tmp_path_factory.mktemp("dynashard"), lease=LEASE_SECONDS) as running:
        yield running


@pytest.fixture
def api(stack: Stack) -> Iterator[httpx.Client]:
    """Return a client of the API that acts for a tenant of this test alone."""
    with stack.client(f"tenant-{uuid4().hex}") as client:
        yield client
