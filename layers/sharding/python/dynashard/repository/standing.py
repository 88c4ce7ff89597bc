"""What must hold still while an operation is under way, and the error if it never does."""

from typing import Any

from dynashard.entity import EntityDefinition
from dynashard.errors import TransactionConflictError
from dynashard.routing import Places
from dynashard.topology import Phase

Stand = tuple[Phase, int, int | None]
"""What must not change while an operation is under way: phase, count and target of a view."""


def stand(places: Places) -> Stand:
    """Under what a key's places were told."""
    view = places.view
    return view.phase, view.count, view.target


def unsettled(entity: EntityDefinition[Any], operation: str) -> TransactionConflictError:
    """An item did not come to rest in time."""
    return TransactionConflictError(
        f"{operation}: an item of {entity.name} was being moved or written by others all the time. Try again.",
        operation=operation,
    )
