"""What most tests of listings start from. They run under both faces of the layer."""

from collections.abc import Callable, Iterator

import pytest

from tests.engine.faces import face
from tests.engine.reads.listing_world import World, world_on

__all__ = ["face", "world"]


@pytest.fixture(scope="module")
def world(engine_url: str, create_table: Callable[[], str]) -> Iterator[World]:
    """An empty table for the module, with shard counts that a test sets."""
    with world_on(engine_url, create_table()) as made:
        yield made
