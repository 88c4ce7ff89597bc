"""Denormalised copies of items, kept in step with their sources through the table's stream."""

from dynashard.copies.declaration import Copies
from dynashard.copies.drift import Drift, Progress
from dynashard.copies.keeper import Keeper

__all__ = ["Copies", "Drift", "Keeper", "Progress"]
