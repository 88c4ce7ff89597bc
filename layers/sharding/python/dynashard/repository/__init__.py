"""Create, get, replace, update, delete and batches of one entity's items."""

from dynashard.repository.left_out import Found
from dynashard.repository.repository import Repository
from dynashard.repository.retry_policy import RetryPolicy
from dynashard.repository.store import Companion, KeyLike, Store, Written

__all__ = [
    "Companion",
    "Found",
    "KeyLike",
    "Repository",
    "RetryPolicy",
    "Store",
    "Written",
]
