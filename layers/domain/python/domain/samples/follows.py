"""Follows: users are fans of actors and series, and follow each other."""

from typing import Final

from dynashard import Shards
from dynashard_patterns import COUNT_KEY, EDGE_KEY, Edge, EdgeCount, Edges, newest
from dynashard_serving.declare import Access, ServedEdges


class Follow(
    Edge,
    name="follow.v1.Follow",
    key=EDGE_KEY,
    shards=Shards(start=1, max=256),
    indexes=[newest("GSI1", shards=Shards(start=4, max=256))],
):
    """One of the two items of an edge, `FAN_OF` or `FANNED_BY`. The shard count of a popular node grows by itself."""


class FollowCount(EdgeCount, name="follow.v1.Count", key=COUNT_KEY):
    """The number of nodes that a node follows, or that follow it."""


FOLLOWS: Final = Edges(Follow, forward="FAN_OF", backward="FANNED_BY", counts=FollowCount)
FOLLOWS_SERVED: Final = ServedEdges(
    FOLLOWS,
    path="follows",
    verb="follow",
    access=Access(
        read="follows:read",
        write="follows:write",
        owner="{node}",
        identity="User.{sub}",
        owned=("write",),
        any_owner="follows:all",
    ),
)
"""Everybody sees who follows whom; a user follows by the own name only."""
