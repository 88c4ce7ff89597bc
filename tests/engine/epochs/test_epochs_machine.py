"""Processes with clocks that are off, two controllers, and requests that arrive late or never: no key has two places.

`epoch_model.py` explores the protocol; this explores the code. Every process places keys around the beginnings of
epochs, writes some of them, and reads all that were acknowledged.
"""

from contextlib import suppress

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dynashard import definition
from dynashard.entity import ItemKey
from dynashard.errors import (
    DynashardError,
    OutcomeUnknownError,
    ReshardRefusedError,
    TopologyChangedError,
)
from dynashard.key_time import KSUID
from dynashard.testing.faults import FaultyTransport, Late, lost_answer
from tests.depth import examples
from tests.engine.epochs.epochs_world import CLOCKS, LEASE, Epochs, Event, ksuid, partition

pytestmark = pytest.mark.engine

ENTITY = definition(Event)
OFF = (-CLOCKS.off, 0.0, CLOCKS.off)
_PAYLOADS = 3
processes = st.integers(0, len(OFF) - 1)
controllers = st.sampled_from(["slow", "fast"])


class EpochMachine(RuleBasedStateMachine):
    """A world, and what is known about it."""

    world: Epochs

    @initialize()
    def begin(self) -> None:
        self.world.clock.now += 1_000_000.0
        self.tenant = f"t{int(self.world.clock.now)}"
        self.scope, self.partition = partition(self.tenant), f"epoch.v1.Event:{self.tenant}"
        self.late: list[Late] = []
        self.wires = {name: FaultyTransport(self.world.inner) for name in ("slow", "fast")}
        off = {"slow": -CLOCKS.off, "fast": CLOCKS.off}
        self.controllers = {name: self.world.resharder(off[name], wire=wire) for name, wire in self.wires.items()}
        self.processes = [self.world.process(each) for each in OFF]
        self.placed: dict[str, str] = {}
        self.acknowledged: set[str] = set()
        self.unknown: set[str] = set()
        self.began = self.world.clock.now
        self.processes[0].collection(Event).find(tenant=self.tenant, id=self.id(self.began))

    def id(self, at: float, payload: int = 0) -> str:
        """The same id for the same moment and number."""
        return ksuid(at, payload)

    def beginnings(self) -> list[float]:
        """The moments at which epochs begin that were published."""
        records = self.controllers["slow"].topology.read([self.partition])
        return [KSUID.moment_of(each.first) for record in records.values() for each in record.epochs[1:]]

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0, 9.0, LEASE, LEASE + 2 * CLOCKS.off]))
    def passes(self, seconds: float) -> None:
        self.world.clock.now += seconds

    @rule(before=st.floats(-3.0, CLOCKS.placed + 3.0))
    def comes_near_the_beginning_of_an_epoch(self, before: float) -> None:
        begins = [each - before for each in self.beginnings()]
        self.world.clock.now = max([self.world.clock.now, *begins[-1:]])

    @rule(who=processes, near=st.integers(-2, 2), payload=st.integers(0, _PAYLOADS), writes=st.booleans())
    def places(self, who: int, near: int, payload: int, writes: bool) -> None:  # noqa: FBT001 - drawn
        """A process places keys around each beginning, as far ahead as it may, and its own time."""
        db, now = self.processes[who], self.world.clock.now + OFF[who]
        ahead = CLOCKS.ahead if writes else CLOCKS.readable
        for at in [*(each + near for each in self.beginnings()), now + ahead - 1, now]:
            key = ItemKey(self.partition, self.id(at, payload))
            view = db.store.router.topology.view(ENTITY, self.partition)
            if writes and at <= now + ahead:
                self.write(who, key.sort)
            elif db.store.router.may_exist(ENTITY, key, view):
                place = db.store.router.places(ENTITY, key).old
                assert self.placed.setdefault(key.sort, place) == place, f"{key.sort} has two places"

    def write(self, who: int, sort: str) -> None:
        item = Event(tenant=self.tenant, id=sort)
        with suppress(DynashardError):
            self.processes[who].collection(Event).put(item)
            self.acknowledged.add(sort)

    @rule(name=controllers, to=st.sampled_from([2, 16, 64]), loses=st.booleans())
    def is_asked_to_grow(self, name: str, to: int, loses: bool) -> None:  # noqa: FBT001 - drawn
        if loses:
            self.wires[name].inject(lost_answer("TransactWriteItems"))
        with suppress(ReshardRefusedError, OutcomeUnknownError, TopologyChangedError):
            self.controllers[name].start(self.scope, to)
        self.wires[name].inject()

    @rule(name=controllers, arrives=st.sampled_from(["at once", "at once", "late"]))
    def advances(self, name: str, arrives: str) -> None:
        if arrives == "late":
            late = [Late("PutItem"), Late("TransactWriteItems")]
            self.late += late
            self.wires[name].inject(*(each.fault for each in late))
        with suppress(OutcomeUnknownError, TopologyChangedError):
            self.controllers[name].advance(self.partition)
        self.wires[name].inject()

    @precondition(lambda self: self.late)
    @rule()
    def a_late_request_arrives(self) -> None:
        self.late.pop(0).arrive()

    @rule(name=controllers)
    def is_aborted(self, name: str) -> None:
        # A fault that an earlier request did not meet strikes here.
        with suppress(ReshardRefusedError, OutcomeUnknownError, TopologyChangedError):
            self.controllers[name].abort(self.scope)

    @rule(who=processes)
    def reads_all(self, who: int) -> None:
        self.look(who)

    def look(self, who: int) -> None:
        events = self.processes[who].collection(Event)
        keys = [{"tenant": self.tenant, "id": each} for each in sorted(self.acknowledged)]
        assert None not in list(events.batch_get(keys, consistent=True)), "an acknowledged item is not found"
        found = [each.id for each in events.items(tenant=self.tenant, order="ordered", limit=7, consistent=True)]
        assert found == sorted(self.acknowledged)
        turns = [each.id for each in events.items(tenant=self.tenant, limit=5, consistent=True)]
        assert sorted(turns) == found

    def teardown(self) -> None:
        if not hasattr(self, "processes"):
            return
        for late in self.late:
            late.arrive()
        for who in range(len(OFF)):
            self.look(who)


def test_no_key_has_two_places_whatever_happens(world: Epochs) -> None:
    bound = type("Bound", (EpochMachine,), {"world": world})

    run_state_machine_as_test(bound, settings=settings(max_examples=examples(120), stateful_step_count=40))
