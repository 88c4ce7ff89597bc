"""Lease settings that change while counts change: no client is ever more than one phase behind.

Two clients and two controllers take turns, each with a lease setting of its own that changes at any time, as in the
course of a deployment. A client may act on a view until the view's lease has ended, and an operation that it began
then goes on for as long as operations may.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import log2
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from msgspec import structs

from dynashard import LeasedTopology, definition
from dynashard.resharding import Resharder, Timing
from dynashard.runtime import Runtime
from dynashard.schema import MOVED_TO
from dynashard.topology import Phase, Record
from dynashard.topology.records import first_record
from dynashard.transport import Transport
from tests.depth import examples
from tests.engine.resharding.resharding_world import ABC, TIMING, Moving, Thing, moving_world
from tests.engine.topology.topology_world import one_clock, put_by_hand

pytestmark = pytest.mark.engine

FAMILY = "move.v1.Thing"
LEASES = (1.0, 5.0, 30.0, 90.0)
FIRST = 4
"""The declared count."""
PHASES = list(Phase)
EPSILON = 1e-3


def place(count: int, phase: Phase) -> int:
    """Return the number of publications before a phase, from the declared count on."""
    return len(PHASES) * int(log2(count // FIRST)) + PHASES.index(phase)


def timing(lease: float) -> Timing:
    return replace(TIMING, lease=lease)


@dataclass(frozen=True)
class StoredItem:
    """A view that a client may still act on, and until when."""

    place: int
    until: float


class LeaseMachine(RuleBasedStateMachine):
    """`held` has the views that clients may still act on."""

    wire: ClassVar[Transport]
    create_table: ClassVar[Callable[[], str]]

    @initialize(leases=st.tuples(*[st.sampled_from(LEASES)] * 4))
    def begin(self, leases: tuple[float, ...]) -> None:
        self.open = ExitStack()
        self.world = self.open.enter_context(moving_world(self.wire, type(self).create_table()))
        self.world.fill(Thing, 6)
        self.held: list[StoredItem] = []
        self.clients = [self.client(lease) for lease in leases[:2]]
        self.controllers = [self.controller(at, lease) for at, lease in enumerate(leases[2:])]

    def teardown(self) -> None:
        if hasattr(self, "open"):
            self.open.close()

    @property
    def now(self) -> float:
        return self.world.clock.now

    def client(self, lease: float) -> LeasedTopology:
        clock = self.world.clock
        return LeasedTopology(self.wire, self.world.topology, lease=lease, runtime=one_clock(clock))

    def controller(self, at: int, lease: float) -> Resharder:
        """The clocks of two controllers differ by the largest allowed skew."""
        ahead = TIMING.skew * (at - 0.5)
        return Resharder(
            self.wire,
            table=self.world.table,
            topology_table=self.world.topology,
            entities=[Thing],
            timing=timing(lease),
            runtime=Runtime(lambda: self.now + ahead),
        )

    @rule(at=st.integers(0, 1), lease=st.sampled_from(LEASES))
    def a_client_is_deployed_anew(self, at: int, lease: float) -> None:
        self.clients[at] = self.client(lease)

    @rule(at=st.integers(0, 1), lease=st.sampled_from(LEASES))
    def a_controller_is_deployed_anew(self, at: int, lease: float) -> None:
        self.controllers[at] = self.controller(at, lease)

    @rule(at=st.integers(0, 1))
    def a_controller_looks(self, at: int) -> None:
        self.controllers[at].poll()

    @rule(seconds=st.sampled_from([0.5, 4.0, 13.0, 31.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.clock.now += seconds

    @rule(at=st.integers(0, 1))
    def somebody_asks_for_more_shards(self, at: int) -> None:
        status = self.controllers[at].status(ABC)
        if not status.busy and status.count < 32:
            self.controllers[at].start(ABC, status.count * 2)

    @rule(at=st.integers(0, 1), eager=st.booleans())
    def a_controller_takes_a_step(self, at: int, eager: bool) -> None:  # noqa: FBT001 - drawn
        """Advance a resize, and wait as long as the step says or not at all."""
        step = self.controllers[at].advance(ABC.key)
        for task in step.tasks:
            while not self.controllers[at].work(ABC.key, task, seconds=1e9):
                pass
        if not eager and step.kind == "wait":
            self.world.clock.now += step.seconds

    @rule(at=st.integers(0, 1), task=st.integers(0, 3))
    def a_worker_that_was_left_over_works(self, at: int, task: int) -> None:
        self.controllers[at].work(ABC.key, task, seconds=1e9)

    @invariant()
    def clients_work_all_the_time(self) -> None:
        for topology in getattr(self, "clients", ()):
            view = topology.view(definition(Thing), "move.v1.Thing:abc")
            self.held.append(StoredItem(place(view.count, view.phase), view.expires + TIMING.operation))

    @invariant()
    def nobody_is_more_than_one_phase_behind(self) -> None:
        if hasattr(self, "held"):
            self.held = [each for each in self.held if each.until > self.now + EPSILON]
            assert self.published() - min(each.place for each in self.held) <= 1

    @invariant()
    def items_move_when_everybody_knows_and_marks_go_when_nobody_needs_them(self) -> None:
        if not hasattr(self, "held"):
            return
        oldest = min(each.place for each in self.held)
        for item in self.world.marks():
            assert oldest >= place(int(item[MOVED_TO]["N"]) // 2, Phase.MOVE)
        status = self.world.resharder.status(ABC)
        if status.swept_marks:
            assert oldest >= place(status.count, Phase.STABLE)

    def published(self) -> int:
        status = self.world.resharder.status(ABC)
        return place(status.count, Phase(status.phase))


def test_no_client_is_more_than_one_phase_behind_under_any_lease(
    wire: Transport, create_table: Callable[[], str]
) -> None:
    bound = type("Bound", (LeaseMachine,), {"wire": wire, "create_table": staticmethod(create_table)})

    run_state_machine_as_test(bound, settings=settings(max_examples=examples(40), stateful_step_count=40))


@pytest.fixture
def moving(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table) as world:
        yield world


def stored(world: Moving, lease: float, **fields: Any) -> Record:
    """Store the family's record with a lease, at the world's time."""
    record = structs.replace(first_record(FAMILY, FIRST, now=world.clock.now, lease=lease), **fields)
    put_by_hand(world.inner, world.topology, record)
    return record


def test_a_lowered_setting_lowers_the_stored_lease(moving: Moving) -> None:
    stored(moving, 30.0)

    moving.new(timing=timing(1.0)).poll()

    assert moving.record(FAMILY).granted == 1.0


def test_a_lease_in_force_is_honoured_to_its_end(moving: Moving) -> None:
    """A view of 30 s may have been given out just before the lease was lowered."""
    stored(moving, 30.0)
    worker = moving.new(timing=timing(1.0))
    worker.poll()
    worker.poll()
    lowered = moving.clock.now
    moving.clock.now += 7

    worker.start(ABC, 8)
    prepared = moving.until(ABC, "prepare", worker).since
    moved = moving.until(ABC, "move", worker).since

    assert prepared == lowered + TIMING.wait(30.0)
    assert moved == prepared + TIMING.wait(1.0)


def test_a_lowered_lease_counts_from_when_it_was_seen(moving: Moving) -> None:
    stored(moving, 1.0, former_lease=30.0, lowered_at=None)
    worker = moving.new(timing=timing(1.0))
    moving.clock.now += 500
    seen = moving.clock.now

    worker.start(ABC, 8)

    assert moving.until(ABC, "prepare", worker).since == seen + TIMING.wait(30.0)


def test_lowering_again_honours_the_longest_lease_that_is_left(moving: Moving) -> None:
    stored(moving, 90.0)
    for lease in (30.0, 1.0):
        worker = moving.new(timing=timing(lease))
        worker.poll()
        worker.poll()
    lowered = moving.clock.now

    worker.start(ABC, 8)

    assert moving.until(ABC, "prepare", worker).since == lowered + TIMING.wait(90.0)


def test_a_raised_setting_is_stored_only_while_nothing_changes(moving: Moving) -> None:
    stored(moving, 1.0)
    worker = moving.new(timing=timing(30.0))
    moving.resharder.start(ABC, 8)

    worker.poll()
    assert moving.record(FAMILY).granted == 1.0
    moving.finish(ABC, worker)
    worker.poll()

    assert moving.record(FAMILY).granted == 30.0


def test_phases_wait_for_a_raised_lease_from_the_moment_it_is_stored(moving: Moving) -> None:
    stored(moving, 1.0)
    worker = moving.new(timing=timing(30.0))
    worker.poll()
    begun = moving.clock.now

    worker.start(ABC, 8)

    assert moving.until(ABC, "prepare", worker).since == begun + TIMING.wait(30.0)


def test_requesting_a_resize_does_not_alter_the_stored_lease(moving: Moving) -> None:
    stored(moving, 5.0)

    for lease in (1.0, 90.0):
        command = moving.new(timing=timing(lease))
        command.start(ABC, 8)
        command.abort(ABC)

    assert (moving.record(FAMILY).granted, moving.record(FAMILY).former_lease) == (5.0, 0.0)
    assert moving.record(ABC.key).granted == 5.0


def test_a_status_shows_the_wait_that_the_worker_keeps(moving: Moving) -> None:
    """The command has a lease of 1 s and no operation time, but the status follows the worker's stored settings."""
    stored(moving, 30.0)
    command = moving.new(timing=Timing(lease=1.0, operation=0.0, skew=0.0))

    asked = command.start(ABC, 8)
    moving.resharder.advance(ABC.key)

    assert (asked.lease, asked.wait) == (30.0, 30.0)
    assert command.status(ABC).wait == TIMING.wait(30.0)
    [busy] = command.busy()
    assert (busy.lease, busy.wait) == (30.0, TIMING.wait(30.0))
