"""Several writes and checks at one moment, or none of them; also single writes whose outcome must be settled."""

from dynashard.transactions.steps import Check, Create, Delete, Put, Step, Update
from dynashard.transactions.transaction import Transaction

__all__ = [
    "Check",
    "Create",
    "Delete",
    "Put",
    "Step",
    "Transaction",
    "Update",
]
