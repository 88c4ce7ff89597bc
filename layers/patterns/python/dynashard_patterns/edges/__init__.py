"""Edges between nodes of a graph: who follows whom, listed and counted from both ends.

An edge is two items, one at each of its nodes, which come and go in one transaction with its counters.

Source: "Falling In And Out Of Love with DynamoDB, Part II" of 0x74696d, whose keys these are.
"""

from dynashard_patterns.edges.declaration import COUNT_KEY, EDGE_KEY, NODE, Edge, EdgeCount, Edges, newest
from dynashard_patterns.edges.repair import Drift, EdgeRepair, Miscount
from dynashard_patterns.edges.store import Added, EdgeStore

__all__ = [
    "COUNT_KEY",
    "EDGE_KEY",
    "NODE",
    "Added",
    "Drift",
    "Edge",
    "EdgeCount",
    "EdgeRepair",
    "EdgeStore",
    "Edges",
    "Miscount",
    "newest",
]
