"""An `AsyncDynashard` on tables of the test's own, which a test uses on event loops of its own."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from dynashard import AsyncDynashard, Entity, Key, Registry, Shards
from dynashard.testing.sandbox import Sandbox, open_sandbox


class Fact(Entity, name="awaiting.v1.Fact", key=Key("{tenant}", "{id}"), shards=Shards(start=64), registry=Registry()):
    """Something in 64 shards."""

    tenant: str
    id: str
    number: int = 0


@pytest.fixture
def sandbox(engine_url: str) -> Iterator[Sandbox]:
    """Empty tables of the test's own."""
    with open_sandbox(engine_url) as opened:
        yield opened


@pytest.fixture
def db(sandbox: Sandbox) -> Iterator[AsyncDynashard]:
    """The tables, for tasks of event loops."""
    with closing(sandbox.open(growth="off")) as opened:
        yield AsyncDynashard.over(opened)
