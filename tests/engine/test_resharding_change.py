"""Whole changes of a shard count, from the wish to the sweep."""

from collections.abc import Iterator

import pytest

from dynashard.transport import Transport
from tests.engine.resharding_world import Moving, Thing, moving_world, partition

pytestmark = pytest.mark.engine


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table) as made:
        yield made


@pytest.mark.parametrize(("old", "new"), [(4, 8), (4, 32), (4, 2), (4, 1)])
def test_items_stand_once_at_their_new_homes_and_no_marks_are_left(world: Moving, old: int, new: int) -> None:
    world.fill(Thing, 60, rank=lambda n: n, text=lambda n: f"text {n}")
    before = {item.id: item for page in world.of(Thing).pages({"tenant": "abc"}) for item in page.items}
    moving = sum(1 for _ in world.misplaced(Thing, new))

    status = world.change(partition(Thing), new)

    assert (status.phase, status.stage, status.count, status.target, status.swept) == (
        "stable",
        "stable",
        new,
        None,
        True,
    )
    assert (status.moved, status.total, status.swept_marks) == (moving, moving, moving)
    assert world.misplaced(Thing, new) == []
    assert world.marks() == []
    after = {item.id: item for page in world.of(Thing).pages({"tenant": "abc"}) for item in page.items}
    assert after == before
    assert {key: item.revision for key, item in after.items()} == {key: item.revision for key, item in before.items()}
    assert old == 4
