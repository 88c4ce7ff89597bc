"""Edges between users and actors, and the check that both directions agree."""

from itertools import cycle
from typing import Any

from dynashard import Registry, Shards
from dynashard.reads import CursorCodec
from dynashard_patterns import COUNT_KEY, EDGE_KEY, Edge, EdgeCount, Edges, EdgeStore, newest
from tests.engine.stored_things import World

REGISTRY = Registry()


class Fan(
    Edge,
    name="test.v1.Fan",
    key=EDGE_KEY,
    shards=Shards(2),
    indexes=[newest("GSI1", shards=Shards(2))],
    registry=REGISTRY,
):
    note: str | None = None


class FanCount(EdgeCount, name="test.v1.FanCount", key=COUNT_KEY, registry=REGISTRY):
    pass


FANS = Edges(Fan, forward="FAN_OF", backward="FANNED_BY", counts=FanCount, slots=(2, 4))
TENANT = "abc"
USER, ACTOR = "User.9", "Actor.5"


def edges_of(world: World, declared: Edges[Any] = FANS) -> EdgeStore[Any]:
    """Return the edges on the current transport."""
    turns = cycle([0.0, 0.3, 0.6, 0.99])
    world.drawn = lambda: next(turns)
    return EdgeStore(world.store, CursorCodec(["secret of the cursors"]), declared)


def agree(world: World) -> None:
    """Check that each edge is stored and counted at both of its nodes."""
    items = [item for item in world.raw() if item["Type"]["S"] == "test.v1.Fan" and "MovedTo" not in item]
    both = {(item["node"]["S"], item["way"]["S"], item["other"]["S"]) for item in items}
    assert len(both) == len(items)
    for node, way, other in both:
        assert (other, "FANNED_BY" if way == "FAN_OF" else "FAN_OF", node) in both
    counted: dict[tuple[str, str], int] = {}
    for item in world.raw():
        if item["Type"]["S"] == "test.v1.FanCount":
            end = item["node"]["S"], item["way"]["S"]
            counted[end] = counted.get(end, 0) + int(item["count"]["N"])
    ends = [(node, way) for node, way, _ in both]
    assert {end: n for end, n in counted.items() if n} == {end: ends.count(end) for end in ends}
