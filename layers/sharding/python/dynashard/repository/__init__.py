"""Create, get, replace, update, delete and batches of one entity's items."""

from dynashard.repository.batch import Patience
from dynashard.repository.repository import KeyLike, Repository, Written
from dynashard.repository.store import Store

__all__ = ["KeyLike", "Patience", "Repository", "Store", "Written"]
