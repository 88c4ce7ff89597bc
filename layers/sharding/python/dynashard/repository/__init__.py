"""Create, get, replace, update, delete and batches of one entity's items."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dynashard.repository.items import KeyLike
from dynashard.repository.left_out import Found
from dynashard.repository.repository import Repository, Written
from dynashard.repository.retry_policy import RetryPolicy
from dynashard.repository.store import Store

if TYPE_CHECKING:
    from dynashard.repository.transaction import Check, Companion, Create, Delete, Put, Step, Update

__all__ = [
    "Check",
    "Companion",
    "Create",
    "Delete",
    "Found",
    "KeyLike",
    "Put",
    "Repository",
    "RetryPolicy",
    "Step",
    "Store",
    "Update",
    "Written",
]


def __getattr__(name: str) -> Any:
    # Single items need no transactions.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(f"{__name__}.transaction"), name))
