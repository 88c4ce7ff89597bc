"""Clients of one topology, each with its lease and its clocks, against a model that knows what was published when.

Every publication has a count of its own, so that a view identifies its publication.
"""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from dynashard import EntityDefinition, LeasedTopology, Shards
from dynashard.errors import TopologyChangedError
from dynashard.runtime import Runtime
from dynashard.schema import TOPOLOGY_HISTORY_LENGTH
from dynashard.testing.faults import FaultyTransport, repeated
from dynashard.topology import Record, TopologyTable, View
from dynashard.topology.records import first_record
from dynashard.transport import Transport
from tests.depth import examples
from tests.engine.topology.topology_world import FAMILY, INDEX, ONE, by_rank, thing, topology_table_on

pytestmark = pytest.mark.engine

LEASES = (5.0, 30.0, 12.0)
BUSY = (0, 1)
"""The leases of processes that work all the time."""
SKEW = 0.5
TICK = 0.001
WAIT = max(LEASES) + 2 * SKEW
"""The controller's wait between two publications, without time for operations."""
DECLARED = (thing(Shards(8), Shards(4)), thing(Shards(16), Shards(2)))
"""The entity, and its declaration in a later deployment."""

which = st.integers(0, len(LEASES) - 1)
declarations = st.sampled_from([0, 1])
KEYS = (FAMILY, INDEX, ONE)
keys = st.sampled_from(KEYS)
writers = st.sampled_from(["ann", "bob"])
SET = {"set ahead": 20.0, "set back": -20.0, "set far back": -100_000.0}
clock_events = st.sampled_from(["nothing", "frozen", "adjusted", *SET])
happenings = st.sampled_from(
    [
        frozenset[str](),
        frozenset({"waits first"}),
        frozenset({"loses the answer"}),
        frozenset({"has not looked"}),
        frozenset({"waits first", "loses the answer"}),
        frozenset({"has not looked", "loses the answer"}),
    ]
)


class Process:
    """A client with its own clocks. The wall clock is `ahead` of the true time, and the other stops while frozen."""

    def __init__(self, machine: "TopologyMachine", wire: Transport, table: str, lease: float) -> None:
        self.machine = machine
        self.lease = lease
        self.ahead = self.frozen = self.adjusted_at = self.wrong_at = 0.0
        self.topology = LeasedTopology(wire, table, lease=lease, runtime=Runtime(self.clock, monotonic=self.monotonic))

    def clock(self) -> float:
        return self.machine.now + self.ahead

    def monotonic(self) -> float:
        return self.machine.now - self.frozen

    def view(self, key: str, entity: EntityDefinition[Any]) -> View:
        if key == INDEX:
            return self.topology.index_view(entity, by_rank(entity))
        return self.topology.view(entity, f"{FAMILY}:third" if key == FAMILY else key)


@dataclass(frozen=True)
class Publication:
    """A count, the time of its publication, and the lease of its record, which counts only for the family."""

    at: float
    count: int
    lease: float


class TopologyMachine(RuleBasedStateMachine):
    """`published` has the publications of each record in order. A partition's begin with its family's at that time."""

    wire: ClassVar[Transport]

    @initialize(declared=declarations, founder=which)
    def start(self, declared: int, founder: int) -> None:
        self.open = ExitStack()
        self.name = self.open.enter_context(topology_table_on(self.wire))
        self.table = TopologyTable(self.wire, self.name)
        self.now = 1_780_000_000.0
        self.counts = iter(range(100, 1024))
        self.processes = [Process(self, self.wire, self.name, lease) for lease in LEASES]
        self.published: dict[str, list[Publication]] = {}
        self.records: dict[str, Record] = {}
        self.seen: dict[tuple[str, str], Record] = {}
        self.differ_since = 0.0
        self.ask(founder, FAMILY, declared)
        lease = LEASES[founder]
        for key, count in zip((FAMILY, INDEX), ((8, 4), (16, 2))[declared], strict=True):
            self.records[key] = first_record(key, count, now=self.processes[founder].clock(), lease=lease)
            self.published[key] = [Publication(self.now, count, lease)]

    def teardown(self) -> None:
        self.open.close()

    @rule(at=which, seconds=st.sampled_from([0.1, 4.9, 5.0, 11.0, 25.0, 30.0, 100.0]), happens=clock_events)
    def time_passes(self, at: int, seconds: float, happens: str) -> None:
        """Let time pass. A process may be frozen meanwhile, or its wall clock may be set afterwards."""
        process = self.processes[at]
        # A process whose clock was just set back cannot know how long it was frozen.
        if happens == "frozen" and process.wrong_at + WAIT <= self.now:
            process.frozen += seconds
        self.now += seconds
        if happens == "adjusted" and process.adjusted_at + 2 * WAIT <= self.now:
            process.ahead, process.adjusted_at = process.ahead + SKEW * (-1) ** len(self.published[FAMILY]), self.now
        if happens in SET and not process.frozen:
            process.ahead, process.wrong_at = process.ahead + SET[happens], self.now

    @rule(at=which, key=keys, declared=declarations)
    def ask(self, at: int, key: str, declared: int) -> None:
        """A view shows a publication that was the newest at most a lease ago."""
        process = self.processes[at]
        view = process.view(key, DECLARED[declared])
        if not self.published:
            return
        publications = self.publications(key)
        place = next(place for place, each in enumerate(publications) if each.count == view.count)
        lease = min(process.lease, self.longest_lease())
        assert view.expires < process.clock() + lease + TICK
        newer = publications[place + 1 :]
        assert not newer or self.now - newer[0].at < lease + (2 * SKEW if process.frozen else 0)
        # If publications are one wait apart, no client is more than one behind.
        assert len(newer) <= 1 or newer[-1].at - newer[-2].at < WAIT

    @rule(at=which, key=keys)
    def refresh(self, at: int, key: str) -> None:
        """A refreshed view shows the newest publication."""
        process, partition = self.processes[at], f"{FAMILY}:third" if key in (FAMILY, INDEX) else key
        process.topology.refresh(DECLARED[0], partition)

        assert process.view(key, DECLARED[0]).count == self.publications(key)[-1].count

    @rule(declared=declarations)
    def after_one_wait_everybody_sees_the_newest(self, declared: int) -> None:
        self.now += WAIT
        for key in KEYS:
            counts = {process.view(key, DECLARED[declared]).count for process in self.processes}
            assert counts == {self.publications(key)[-1].count}

    @rule(writer=writers, key=keys, at=which, lease=st.sampled_from(LEASES), happens=happenings)
    def publish(self, writer: str, key: str, at: int, lease: float, happens: frozenset[str]) -> None:
        """A writer publishes at any time of its clock if it has seen the newest record, and not otherwise."""
        if "waits first" in happens:
            self.now = max(self.now, self.publications(key)[-1].at + WAIT, self.differ_since + WAIT)
        if key not in self.records:
            self.separate(writer, happens)
            return
        was = self.last_seen(writer, key, look="has not looked" not in happens)
        # A partition's own record changes one wait after the family's record announced that partitions differ.
        if was is None or (key == ONE and self.now < self.differ_since + WAIT):
            return
        # Only the family's record sets the lease.
        given = lease if key == FAMILY else was.lease
        new = was.revised(self.processes[at].clock(), count=next(self.counts), lease=given)
        assert new.updated > was.updated
        if self.saved("PutItem", happens, (was, new), stale=was != self.records[key]):
            self.records[key] = new
            self.published[key].append(Publication(self.now, new.count, new.lease))

    def separate(self, writer: str, happens: frozenset[str]) -> None:
        """Store a partition's own record, together with the flag in that of its family."""
        was = self.last_seen(writer, FAMILY, look="has not looked" not in happens)
        if was is None:
            return
        family = was.revised(self.now, differ_since=self.now)
        own = first_record(ONE, was.count, now=self.now, lease=was.lease)
        stale = was != self.records[FAMILY]
        if self.saved("TransactWriteItems", happens, (was, family), (None, own), stale=stale):
            self.records |= {FAMILY: family, ONE: own}
            self.published[ONE] = list(self.published[FAMILY])
            self.differ_since = self.now

    def saved(
        self, operation: str, happens: frozenset[str], *updates: tuple[Record | None, Record], stale: bool
    ) -> bool:
        """Save changes, and return whether they were made: all are, unless the writer had an outdated record."""
        faults = [repeated(operation)] if "loses the answer" in happens else []
        table = TopologyTable(FaultyTransport(self.wire, faults), self.name)
        if not stale:
            table.save(*updates)
            return True
        with pytest.raises(TopologyChangedError):
            table.save(*updates)
        return False

    @invariant()
    def all_but_one_work_all_the_time(self) -> None:
        for at in BUSY if hasattr(self, "published") else ():
            for key in KEYS:
                self.ask(at, key, at)

    @invariant()
    def histories_are_bounded_and_right(self) -> None:
        for key, record in getattr(self, "records", {}).items():
            dated = sorted((int(epoch), int(count)) for epoch, count in (each.split(":") for each in record.history))
            counts = [each.count for each in self.published[key]]
            own = counts[counts.index(dated[0][1]) :]
            assert [count for _, count in dated] == own
            assert len(own) <= TOPOLOGY_HISTORY_LENGTH

    def last_seen(self, writer: str, key: str, *, look: bool) -> Record | None:
        """Return a record as the writer read it last."""
        if look:
            found = self.table.find(key)
            assert found == self.records.get(key)
            if found is not None:
                self.seen[writer, key] = found
        return self.seen.get((writer, key))

    def longest_lease(self) -> float:
        """Return the longest lease that the family's record had within the last wait."""
        given = self.published[FAMILY]
        ended = [following.at for following in given[1:]] + [self.now]
        return max(each.lease for each, end in zip(given, ended, strict=True) if end >= self.now - WAIT)

    def publications(self, key: str) -> list[Publication]:
        return self.published.get(key) or self.published[FAMILY]


def test_clients_respect_their_leases_and_writers_the_newest_record(wire: Transport) -> None:
    bound = type("Bound", (TopologyMachine,), {"wire": wire})

    run_state_machine_as_test(bound, settings=settings(max_examples=examples(50), stateful_step_count=30))
