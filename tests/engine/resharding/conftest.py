"""What most tests of resharding start from."""

from collections.abc import Iterator

import pytest

from dynashard.transport import Transport
from tests.engine.resharding.resharding_world import Moving, moving_world


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    """An empty table whose shard counts change, with time in the test's hands."""
    with moving_world(wire, table) as made:
        yield made
