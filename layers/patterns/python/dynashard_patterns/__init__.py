"""Patterns on top of the sharding layer: data that follows from items, and data that is stored out of line.

Change data capture, materialized copies, roll-ups, edges, counters and attachments.
"""

from dynashard_patterns.attachments import Attachment
from dynashard_patterns.changes import Change, Consumer
from dynashard_patterns.copies import MaterializedCopies, copy_of
from dynashard_patterns.counters import Counter, CounterStore
from dynashard_patterns.edges import COUNT_KEY, EDGE_KEY, Added, Edge, EdgeCount, EdgeRepair, Edges, EdgeStore, newest
from dynashard_patterns.rollups import Level, RollUps, divide

__all__ = [
    "COUNT_KEY",
    "EDGE_KEY",
    "Added",
    "Attachment",
    "Change",
    "Consumer",
    "Counter",
    "CounterStore",
    "Edge",
    "EdgeCount",
    "EdgeRepair",
    "EdgeStore",
    "Edges",
    "Level",
    "MaterializedCopies",
    "RollUps",
    "copy_of",
    "divide",
    "newest",
]
