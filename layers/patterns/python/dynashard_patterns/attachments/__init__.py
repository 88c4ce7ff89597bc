"""Fields that are kept beside their items: large, compressed, in pieces, and never seen by halves."""

from dynashard.detached.repository import DetachedRepository
from dynashard.detached.sweep import Swept, missing_pieces, sweep, versions_of

__all__ = ["DetachedRepository", "Swept", "missing_pieces", "sweep", "versions_of"]
