"""Create, get, replace, update, delete and batches of one entity's items."""

from dynashard.repository.items import KeyLike
from dynashard.repository.repository import Repository, Written
from dynashard.repository.retry_policy import RetryPolicy
from dynashard.repository.store import Store
from dynashard.repository.transaction import Check, Companion, Create, Delete, Put, Step, Update

__all__ = [
    "Check",
    "Companion",
    "Create",
    "Delete",
    "KeyLike",
    "Put",
    "Repository",
    "RetryPolicy",
    "Step",
    "Store",
    "Update",
    "Written",
]
