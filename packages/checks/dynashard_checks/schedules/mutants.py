"""Mutation tests of the schedules: the code under test without one rule of the protocol. Each must be caught."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

from dynashard.repository.follow_markers import StoredItems
from dynashard.repository.home_writer import HomeWriter
from dynashard.repository.write import Write
from dynashard.resharding import Timing, controller
from dynashard.resharding.context import Context
from dynashard.routing import Places
from dynashard.topology import Phase
from dynashard_checks.schedules.epochs.mutants import EPOCH_MUTANTS, EPOCH_SHAPES
from dynashard_checks.schedules.epochs.plan import EPOCHS
from dynashard_checks.schedules.outcome_mutants import LEVELS, OUTCOMES
from dynashard_checks.schedules.unique import UNIQUE
from dynashard_checks.schedules.unique_mutants import LATE_UNIQUE_MUTANTS, UNIQUE_MUTANTS
from tests.engine.repository.late_world import RULES


def _no_lease(stack: ExitStack) -> None:
    """Let the controller publish without waiting for leases to end."""
    stack.enter_context(patch.object(Timing, "wait", lambda _self, _lease: 0.0))


def _no_prepare(stack: ExitStack) -> None:
    """Publish MOVE without PREPARE."""
    publish = controller._Controller._publish

    def skip(self: Any, *resize: Any, **fields: Any) -> Any:
        if fields.get("phase") is Phase.PREPARE:
            fields["phase"] = Phase.MOVE
        return publish(self, *resize, **fields)

    stack.enter_context(patch.object(controller._Controller, "_publish", skip))


def _eager_mover(stack: ExitStack) -> None:
    """Start the mover with MOVE, while clients are still in PREPARE."""
    left, left_of_mover, read = controller._Controller._left, Context.left, Context.read
    phases: dict[int, Phase] = {}

    def reads(self: Context, *scope: Any) -> Any:
        records = read(self, *scope)
        if records[0] is not None:
            phases[id(self)] = records[0].phase
        return records

    def hurry(self: Any, resize: Any) -> float:
        return 0.0 if self._record.phase is Phase.MOVE else left(self, resize)

    def hurry_mover(self: Context, *times: Any) -> float:
        return 0.0 if phases.get(id(self)) is Phase.MOVE else left_of_mover(self, *times)

    stack.enter_context(patch.object(Context, "read", reads))
    stack.enter_context(patch.object(Context, "left", hurry_mover))
    stack.enter_context(patch.object(controller._Controller, "_left", hurry))


def _no_mark_in_settle(stack: ExitStack) -> None:
    """Let a create in SETTLE put the item at its new home without a marker at the old one."""
    create = HomeWriter._create

    def bare(self: HomeWriter, write: Write, places: Places) -> Any:
        if places.view.phase is Phase.SETTLE:
            return self._at(places.new, write, places, write.direct_condition())
        return create(self, write, places)

    stack.enter_context(patch.object(HomeWriter, "_create", bare))


def _no_confirmation(stack: ExitStack) -> None:
    """Treat a relocation marker without an item at its address as an absent item."""
    stack.enter_context(patch.object(StoredItems, "pairs", lambda *_args: {}))


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault in the code under test, and the schedules that show it.

    Attributes:
        apply: applies it until the stack is closed.
        stages: the stage of a resize at which it is most likely to show; None if no count changes.
        kind: the kind of schedules.
        late: whether their requests may be executed at any later time.
        shape: what is late in schedules of epochs; drawn if None.
    """

    apply: Callable[[ExitStack], None]
    stages: int | None = None
    kind: str = "race"
    late: bool = False
    shape: str | None = None


MUTANTS: Final[Mapping[str, Mutant]] = {
    "no lease": Mutant(_no_lease, stages=5),
    "no PREPARE": Mutant(_no_prepare, stages=2),
    "eager mover": Mutant(_eager_mover, stages=3),
    "no mark in SETTLE": Mutant(_no_mark_in_settle, stages=6),
    "no transactional confirmation": Mutant(_no_confirmation, stages=4),
    **{name: Mutant(apply, kind="calm", late=True) for name, apply in OUTCOMES.items()},
    **{name: Mutant(apply, kind=kind, late=True) for name, (kind, apply) in LEVELS.items()},
    **{
        name: Mutant(apply, kind=EPOCHS, late=True, shape=EPOCH_SHAPES.get(name))
        for name, apply in EPOCH_MUTANTS.items()
    },
    **{name: Mutant(apply, kind=UNIQUE) for name, apply in UNIQUE_MUTANTS.items()},
    **{name: Mutant(apply, kind=UNIQUE, late=True) for name, apply in LATE_UNIQUE_MUTANTS.items()},
    **{f"without rule {rule}": Mutant(apply, kind="strays", late=True) for rule, apply in RULES.items()},
}


@contextmanager
def broken(name: str) -> Iterator[None]:
    """Apply a mutant until the end of the block."""
    with ExitStack() as stack:
        MUTANTS[name].apply(stack)
        yield
