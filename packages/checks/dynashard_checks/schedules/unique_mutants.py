"""Faults in what keeps fields unique, one for each of its rules."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Final
from unittest.mock import patch

from dynashard import definition
from dynashard.repository import unique_reads
from dynashard.repository.reservations import NOTHING, reserving_of, take
from dynashard.transactions import prepared, reservations
from dynashard.transactions.reservations import Reservations
from dynashard_checks.schedules.entities import UniqueNote


def _not_reserved(stack: ExitStack) -> None:
    """Write items without their reservations."""
    stack.enter_context(patch.object(prepared, "reserving_of", lambda *_: NOTHING))


def _not_left(stack: ExitStack) -> None:
    """Keep the reservations of values that an item no longer has."""

    def kept(*about: Any) -> Any:
        return reserving_of(*about)._replace(leaves={})

    stack.enter_context(patch.object(prepared, "reserving_of", kept))


def _taken_from_anybody(stack: ExitStack) -> None:
    """Take reservations without a condition."""

    def bare(*about: Any) -> Any:
        put = take(*about)["Put"]
        return {"Put": {"TableName": put["TableName"], "Item": put["Item"]}}

    stack.enter_context(patch.object(reservations, "take", bare))


def _owners_not_read(stack: ExitStack) -> None:
    """Take every reservation of another owner for one that is left over."""
    stack.enter_context(patch.object(reservations, "has", lambda *_: False))


def _no_guard(stack: ExitStack) -> None:
    """Take over what is left over although its owner may have changed since it was read."""
    stack.enter_context(patch.object(Reservations, "guards", []))


def _plain_updates(stack: ExitStack) -> None:
    """Treat unique fields as any other field in updates."""
    stack.enter_context(patch.object(definition(UniqueNote), "reserving", frozenset()))


def _look_ups_not_compared(stack: ExitStack) -> None:
    """Answer a look-up with the owner of the reservation, whatever value it has."""
    stack.enter_context(patch.object(unique_reads, "has", lambda *_: True))


UNIQUE_MUTANTS: Final[Mapping[str, Callable[[ExitStack], None]]] = {
    "unique values are not reserved": _not_reserved,
    "reservations are not left": _not_left,
    "reservations are taken from anybody": _taken_from_anybody,
    "owners of reservations are not read": _owners_not_read,
    "owners of reservations are not guarded": _no_guard,
    "updates of unique fields are plain": _plain_updates,
    "look-ups are not compared": _look_ups_not_compared,
}
