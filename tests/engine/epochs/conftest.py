"""What tests of epochs start from."""

from collections.abc import Iterator

import pytest

from dynashard.transport import Transport
from tests.engine.epochs.epochs_world import Epochs, epochs_world


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Epochs]:
    """An empty table with entities placed by epochs, and time in the test's hands."""
    with epochs_world(wire, table) as made:
        yield made
