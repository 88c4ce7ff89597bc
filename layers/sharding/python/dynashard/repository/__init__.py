"""Create, get, replace, update, delete and batches of one entity's items."""

from dynashard.repository.items import KeyLike
from dynashard.repository.patience import Patience
from dynashard.repository.repository import Repository, Written
from dynashard.repository.store import Store

__all__ = ["KeyLike", "Patience", "Repository", "Store", "Written"]
