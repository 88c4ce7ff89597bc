"""Mutation tests of the schedules of epochs: the code under test without one rule of the protocol.

The seven rules are those of "Epochs" in the protocol, which its models name as well: wait, early, settle, cas, ahead,
lease and name. Each must be caught.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from msgspec import structs

from dynashard.entity import EntityDefinition, ItemKey
from dynashard.key_clock import KeyClock
from dynashard.key_time import TimeFormat
from dynashard.resharding import epochs as controller
from dynashard.resharding.context import Context
from dynashard.routing import Router
from dynashard.topology import Epoch, Epochs, EpochState, View, records
from dynashard.topology.leases import Leases
from dynashard.transport.clock_offset import ClockOffset

Apply = Callable[[ExitStack], None]
_ALWAYS_IN_TIME: Final = 10**20


def _no_wait(stack: ExitStack) -> None:
    """Confirm an epoch as soon as it is seen, before every view has it."""
    stack.enter_context(patch.object(Context, "known_in", lambda *_times: 0.0))


def _not_early(stack: ExitStack) -> None:
    """Confirm an epoch although keys in it may have been placed."""
    settle = controller._Controller._settle

    def late(self: Any, resize: Any, entry: Epoch, time_format: TimeFormat) -> Any:
        return settle(self, resize, entry, structs.replace(time_format, _units_of=lambda _first: _ALWAYS_IN_TIME))

    stack.enter_context(patch.object(controller._Controller, "_settle", late))


def _not_settled(stack: ExitStack) -> None:
    """Place a key by the count before a pending epoch, without settling that."""

    def by_time(_self: Router, _entity: EntityDefinition[Any], key: ItemKey, view: View, epochs: Epochs) -> Any:
        settled = epochs if epochs.unsettled(key.sort) is None else replace(epochs, entries=epochs.entries[:-1])
        return view, settled.count_of(key.sort)

    stack.enter_context(patch.object(Router, "_by_time", by_time))


def _settling(choose: Callable[[Epoch, str], bool]) -> Apply:
    """Settle the last entry that is chosen, by itself and the name of the entry that is to be settled."""

    def settled(history: tuple[Epoch, ...], first: str, state: EpochState) -> Any:
        chosen = [number for number, entry in enumerate(history) if number and choose(entry, first)]
        if not chosen or history[chosen[-1]].state is state:
            return None
        last = chosen[-1]
        return (*history[:last], structs.replace(history[last], state=state), *history[last + 1 :])

    def apply(stack: ExitStack) -> None:
        stack.enter_context(patch.object(records, "settled", settled))

    return apply


def _far_ahead(stack: ExitStack) -> None:
    """Place keys however far ahead their time is."""
    stack.enter_context(patch.object(KeyClock, "_ahead", lambda *_key: False))


def _no_lease(stack: ExitStack) -> None:
    """Use a view after the end of its lease."""
    get = Leases.get

    def kept(self: Leases[Any, Any], key: Any, read: Callable[[float], Any]) -> Any:
        held = self._held.get(key)
        return get(self, key, read) if held is None else held.value

    stack.enter_context(patch.object(Leases, "get", kept))


def _trusted_clock(stack: ExitStack) -> None:
    """Trust a clock whatever the dates of answers say."""
    stack.enter_context(patch.object(ClockOffset, "exceeds", lambda *_most: False))


def _never_set(stack: ExitStack) -> None:
    """Trust what the last answer has shown of a clock, also after that was set."""
    stack.enter_context(patch.object(ClockOffset, "_ahead_of_monotonic", lambda *_self: 0.0))


_UNSEEN: Final = "an epoch is confirmed before every view has it (wait)"
_UNNAMED: Final = "whichever epoch is pending is settled (name)"
EPOCH_SHAPES: Final = {_UNSEEN: "overtaken", _UNNAMED: "mind changed"}
"""What is late in the schedules that show a mutant, if it takes more than anything."""
EPOCH_MUTANTS: Final[Mapping[str, Apply]] = {
    _UNSEEN: _no_wait,
    "an epoch is confirmed too late (early)": _not_early,
    "a pending epoch is not settled (settle)": _not_settled,
    "a settled epoch is settled again (cas)": _settling(lambda entry, first: entry.first == first),
    "keys may be far ahead (ahead)": _far_ahead,
    "a view is used after its lease (lease)": _no_lease,
    _UNNAMED: _settling(lambda entry, _first: not entry.settled),
    "a clock that is off is trusted": _trusted_clock,
    "a clock that was set is trusted": _never_set,
}
