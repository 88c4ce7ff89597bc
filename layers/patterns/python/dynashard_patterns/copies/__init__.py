"""Denormalised copies of items, kept in step with their sources through the table's stream."""

from dynashard_patterns.copies.declaration import Copies
from dynashard_patterns.copies.drift import Drift, Progress
from dynashard_patterns.copies.keeper import Keeper

__all__ = ["Copies", "Drift", "Keeper", "Progress"]
