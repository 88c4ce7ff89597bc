"""Denormalised copies of items, kept in step with their sources through the table's stream."""

from dynashard_patterns.copies.declaration import MaterializedCopies
from dynashard_patterns.copies.drift import Difference, Drift, Progress
from dynashard_patterns.copies.making import copy_of
from dynashard_patterns.copies.materializer import Materializer

__all__ = [
    "Difference",
    "Drift",
    "MaterializedCopies",
    "Materializer",
    "Progress",
    "copy_of",
]
