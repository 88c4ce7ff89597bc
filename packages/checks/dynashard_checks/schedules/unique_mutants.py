"""Faults in what keeps fields unique, one for each of its rules."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from dynashard import definition
from dynashard.repository import late, unique_reads
from dynashard.repository import reservations as repository
from dynashard.repository.reservations import NOTHING, reserving_of, take
from dynashard.resharding import mover
from dynashard.schema import OWNER_PARTITION, OWNER_SORT
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


def _refused_by_reservations(stack: ExitStack) -> None:
    """Take every reservation for one whose owner is live and has the value."""
    stack.enter_context(patch.object(reservations, "HomeReader", lambda *_: SimpleNamespace(read=lambda *_: {})))
    stack.enter_context(patch.object(reservations, "has", lambda *_: True))


def _no_guard(stack: ExitStack) -> None:
    """Take over what is left over although its owner may have changed since it was read."""
    stack.enter_context(patch.object(Reservations, "guards", []))


def _plain_updates(stack: ExitStack) -> None:
    """Treat unique fields as any other field in updates."""
    stack.enter_context(patch.object(definition(UniqueNote), "reserving", frozenset()))


def _look_ups_not_compared(stack: ExitStack) -> None:
    """Answer a look-up with the owner of the reservation, whatever value it has."""
    stack.enter_context(patch.object(unique_reads, "has", lambda *_: True))


def _strays_not_checked(stack: ExitStack) -> None:
    """Move an item that was stored late home, whether or not its value is still reserved for it."""
    for module in (late, mover):
        stack.enter_context(patch.object(module, "held", lambda *_: []))


def _taken_however_changed(stack: ExitStack) -> None:
    """Take over a reservation that is left over although its owner may have taken it again."""

    def of_owner(found: Mapping[str, Any]) -> Any:
        names = {OWNER_PARTITION: ":read0", OWNER_SORT: ":read1"}
        terms = " AND ".join(f"{name} = {value}" for name, value in names.items())
        return f"({terms})", {value: found[name] for name, value in names.items()}

    stack.enter_context(patch.object(repository, "as_read", of_owner))


UNIQUE_MUTANTS: Final[Mapping[str, Callable[[ExitStack], None]]] = {
    "unique values are not reserved": _not_reserved,
    "reservations are not left": _not_left,
    "reservations are taken from anybody": _taken_from_anybody,
    "owners of reservations are not read": _owners_not_read,
    "reservations refuse by themselves": _refused_by_reservations,
    "updates of unique fields are plain": _plain_updates,
    "look-ups are not compared": _look_ups_not_compared,
}

LATE_UNIQUE_MUTANTS: Final[Mapping[str, Callable[[ExitStack], None]]] = {
    "owners of reservations are not guarded": _no_guard,
    "a stray moves without checking its reservation": _strays_not_checked,
    "a reservation that was taken again is taken over": _taken_however_changed,
}
"""Faults that show only if requests are executed late."""
