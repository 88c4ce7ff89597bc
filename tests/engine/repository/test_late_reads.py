"""Reads that the database executes long after the end of the view they were sent under."""

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from dynashard import Collection
from dynashard.testing.faults import meanwhile
from dynashard.transport import Transport
from tests.engine.repository.late_world import client, moving_ids, reach, things
from tests.engine.resharding.resharding_world import ABC, Moving, Thing, moving_world

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

RESIZES: Final = {"growing": 8, "shrinking": 2}
STAGES: Final = ("move", "settle", "sweep", "stable")
TENANT: Final = {"tenant": "abc"}

Read = Callable[[Collection[Thing], list[str]], int]
READS: Final[dict[str, tuple[str, Read]]] = {
    "find": ("GetItem", lambda found, ids: len(ids) * int(found.find({**TENANT, "id": ids[0]}) is not None)),
    "batch": ("BatchGetItem", lambda found, ids: len(found.batch_get([{**TENANT, "id": each} for each in ids]))),
    "list": ("Query", lambda found, _: sum(len(page.items) for page in found.pages(TENANT, limit=100))),
    "scan": ("Query", lambda found, _: len(list(found.scan(TENANT, workers=1)))),
    "count": ("Query", lambda found, _: found.count(TENANT)),
}
"""The late request, and how many of some items the read finds."""


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table, segments=1) as made:
        yield made


@pytest.mark.sampled(4)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("resize", RESIZES)
@pytest.mark.parametrize("name", READS)
def test_a_late_read_finds_items_that_moved_meanwhile(world: Moving, name: str, resize: str, stage: str) -> None:
    operation, read = READS[name]
    ids = moving_ids(4, RESIZES[resize], 6)
    for each in ids:
        things(client(world)).create(Thing(tenant="abc", id=each))
    world.resharder.start(ABC, RESIZES[resize], survey=False)
    world.until(ABC, "prepare")
    late = meanwhile(operation, lambda: reach(world, stage))

    assert read(things(client(world, [late])), ids) == len(ids)


@pytest.mark.parametrize("name", READS)
def test_a_read_that_is_late_without_a_resize_is_not_sent_again(world: Moving, name: str) -> None:
    operation, read = READS[name]
    things(client(world)).create(Thing(tenant="abc", id="a"))

    def later() -> None:
        world.clock.now += 60.0

    db = client(world, [meanwhile(operation, later)])

    assert read(things(db), ["a"]) == 1
    assert db.store.transport.sent(operation) == (4 if operation == "Query" else 1)  # type: ignore[attr-defined]
