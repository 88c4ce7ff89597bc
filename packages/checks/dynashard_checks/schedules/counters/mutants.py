"""Mutants of the rules of counters. Each must be caught by the answers of random schedules."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from dynashard import Update
from dynashard.resharding import Timing
from dynashard.topology import LeasedTopology
from dynashard.transactions import Transaction
from dynashard_patterns import CounterStore
from dynashard_patterns.counters import store
from dynashard_patterns.counters.parts import CURRENT, PartReader
from dynashard_patterns.counters.shares import Bounds

Apply = Callable[[ExitStack], None]


def _unbounded(stack: ExitStack) -> None:
    """Let a part fall as far as it is asked to."""
    stack.enter_context(patch.object(Bounds, "least", lambda *_: -1_000_000))


def _gift(stack: ExitStack) -> None:
    """Let a part that borrows get one more than the others give."""
    step: Callable[..., Update] = CounterStore._step

    def more(*given: Any) -> Update:
        return step(*given[:5], given[5] + 1) if len(given) > 5 else step(*given)

    stack.enter_context(patch.object(CounterStore, "_step", more))


def _given_twice(stack: ExitStack) -> None:
    """Let the parts that give have no condition."""
    giving: Callable[..., Update] = CounterStore._giving

    def unconditional(*given: Any) -> Update:
        return replace(giving(*given), at_least=None)

    stack.enter_context(patch.object(CounterStore, "_giving", unconditional))


def _no_moment(stack: ExitStack) -> None:
    """Refuse by parts that were read one after the other."""
    stack.enter_context(patch.object(store, "EXACT", CURRENT))


def _one_part(stack: ExitStack) -> None:
    """Refuse by the part that was drawn, whatever the others have."""

    def alone(self: CounterStore[Any], side: Any, _key: Any, partition: str, part: int, amount: int) -> Any:
        found = self._parts.read(partition, CURRENT)
        room = self._bounds.rooms(side, found.numbers(side))[part]
        raise self._refusal(side, partition, amount, room)

    stack.enter_context(patch.object(CounterStore, "_borrowing", alone))


def _readers_last(stack: ExitStack) -> None:
    """Let readers know new parts when writers do, not before."""
    view = PartReader.view

    def narrow(self: PartReader[Any], partition: str) -> Any:
        found = view(self, partition)
        return replace(found, target=None)

    stack.enter_context(patch.object(PartReader, "view", narrow))


def _no_wait(stack: ExitStack) -> None:
    """Publish without waiting for leases to end."""
    stack.enter_context(patch.object(Timing, "wait", lambda _self, _lease: 0.0))


def _believed(stack: ExitStack) -> None:
    """Believe an answer that comes after the end of the lease."""
    view = LeasedTopology.view

    def lasting(self: LeasedTopology, *named: Any) -> Any:
        return replace(view(self, *named), expires=float("inf"))

    stack.enter_context(patch.object(LeasedTopology, "view", lasting))


def _unsettled(stack: ExitStack) -> None:
    """Take a transaction without an answer for one that was not executed."""
    stack.enter_context(patch.object(Transaction, "_was_done", lambda *_: False))


MUTANTS: Final[Mapping[str, Apply]] = {
    "a part has no bound": _unbounded,
    "a part that borrows gets more": _gift,
    "a part gives what it has not": _given_twice,
    "a refusal is of no moment": _no_moment,
    "a refusal is of one part": _one_part,
    "readers learn of parts last": _readers_last,
    "parts are published without waiting": _no_wait,
    "a late answer is believed": _believed,
    "a lost answer was not executed": _unsettled,
}
