"""What must hold still while an operation is under way, and the error if it never does."""

from typing import Any

from dynashard.entity import EntityDefinition
from dynashard.errors import OutcomeUnknownError, TransactionCanceledError, TransactionConflictError
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


def unproved(cancelled: TransactionCanceledError) -> OutcomeUnknownError:
    """A transaction was refused after an attempt that may have been executed, or may still be.

    A failed attempt does not use its token up, so the refusal of a later one says nothing of an earlier one.
    """
    return OutcomeUnknownError(
        f"{cancelled.operation}: an earlier attempt may have been applied, or may still be; then it was refused.",
        operation=cancelled.operation,
        aws_code=cancelled.aws_code,
    )
