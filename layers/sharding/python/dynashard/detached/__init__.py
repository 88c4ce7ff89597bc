"""Fields that are kept beside their items: large, compressed, in pieces, and never seen by halves."""

from dynashard.detached.repository import DetachedRepository

__all__ = ["DetachedRepository"]
