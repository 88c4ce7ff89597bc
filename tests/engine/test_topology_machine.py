"""Clients of one topology, each with its lease and its clocks, against a model that knows what was published when.

Every publication has a count of its own, so that a view tells which publication it is of.
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
    precondition,
    rule,
    run_state_machine_as_test,
)

from dynashard import EntityDefinition, LeasedTopology, Shards
from dynashard.errors import TopologyChangedError
from dynashard.schema import TOPOLOGY_HISTORY_LENGTH
from dynashard.topology import Record, TopologyTable, View
from dynashard.topology.records import founded
from dynashard.transport import Transport
from tests.engine.topology_world import FAMILY, INDEX, ONE, OTHER, by_rank, thing, topology_table_on
from tests.faults import FaultyTransport, repeated

pytestmark = pytest.mark.engine

LEASES = (5.0, 12.0, 30.0)
SKEW = 0.5
WAIT = max(LEASES) + SKEW
"""What the controller waits between two publications, for operations of no length."""
PARTITIONS = (ONE, OTHER)
DECLARED = (thing(Shards(8), Shards(4)), thing(Shards(16), Shards(2)))
"""The entity, and the same as a later deployment declares it."""

which = st.integers(0, len(LEASES) - 1)
declarations = st.sampled_from([0, 1])
keys = st.sampled_from([FAMILY, INDEX, *PARTITIONS])
writers = st.sampled_from(["ann", "bob"])


class Process:
    """A client with its own clocks: the wall clock is `ahead` of the true time, the steady one stood while frozen."""

    def __init__(self, machine: "TopologyMachine", wire: Transport, table: str, lease: float) -> None:
        self.machine = machine
        self.lease = lease
        self.ahead = self.frozen = self.set_at = self.wrong_at = 0.0
        self.topology = LeasedTopology(wire, table, lease=lease, clock=self.clock, steady=self.steady)

    def clock(self) -> float:
        return self.machine.now + self.ahead

    def steady(self) -> float:
        return self.machine.now - self.frozen

    def view(self, key: str, entity: EntityDefinition[Any]) -> View:
        if key == INDEX:
            return self.topology.index_view(entity, by_rank(entity))
        return self.topology.view(entity, f"{FAMILY}:third" if key == FAMILY else key)


@dataclass(frozen=True)
class Publication:
    """A count, when it was published, and the lease that its record gave."""

    at: float
    count: int
    lease: float


class TopologyMachine(RuleBasedStateMachine):
    """`published` has the publications of each record in order; a partition's begin with its family's of then."""

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
        self.differ_since: float | None = None
        self.ask(founder, FAMILY, declared)
        lease = LEASES[founder]
        for key, count in zip((FAMILY, INDEX), ((8, 4), (16, 2))[declared], strict=True):
            self.records[key] = founded(key, count, now=self.processes[founder].clock(), lease=lease)
            self.published[key] = [Publication(self.now, count, lease)]

    def teardown(self) -> None:
        self.open.close()

    @rule(seconds=st.sampled_from([0.1, 1.0, 4.0, 4.9, 5.0, 11.0, 25.0, 29.9, 30.0, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(at=which, seconds=st.sampled_from([3.0, 29.0, 1000.0]))
    def a_process_is_frozen(self, at: int, seconds: float) -> None:
        process = self.processes[at]
        # One whose clock was just set back has no way to know how long it was frozen.
        if process.wrong_at + WAIT <= self.now:
            self.now, process.frozen = self.now + seconds, process.frozen + seconds

    @rule(at=which, seconds=st.sampled_from([-SKEW, SKEW]))
    def a_clock_is_adjusted(self, at: int, seconds: float) -> None:
        process = self.processes[at]
        if process.set_at + 2 * WAIT <= self.now:
            process.ahead, process.set_at = process.ahead + seconds, self.now

    @rule(at=which, seconds=st.sampled_from([-100_000.0, -20.0, 20.0]))
    def a_clock_is_set_wrong(self, at: int, seconds: float) -> None:
        process = self.processes[at]
        if not process.frozen:
            process.ahead, process.wrong_at = process.ahead + seconds, self.now

    @rule(at=which, key=keys, declared=declarations)
    def ask(self, at: int, key: str, declared: int) -> None:
        """A view is of a publication that was the newest at most a lease ago."""
        process = self.processes[at]
        view = process.view(key, DECLARED[declared])
        if not self.published:
            return
        publications = self.publications(key)
        place = next(place for place, each in enumerate(publications) if each.count == view.count)
        lease = min(process.lease, publications[place].lease) + (SKEW if process.frozen else 0)
        newer = publications[place + 1 :]
        assert not newer or self.now - newer[0].at < lease
        # Publications that were one wait apart leave nobody more than one behind.
        assert len(newer) <= 1 or newer[-1].at - newer[-2].at < WAIT

    @rule(at=which, key=keys)
    def refresh(self, at: int, key: str) -> None:
        """What is refreshed is the newest."""
        process, partition = self.processes[at], f"{FAMILY}:third" if key in (FAMILY, INDEX) else key
        process.topology.refresh(DECLARED[0], partition)

        assert process.view(key, DECLARED[0]).count == self.publications(key)[-1].count

    @rule(declared=declarations)
    def after_one_wait_everybody_sees_the_newest(self, declared: int) -> None:
        self.now += WAIT
        for key in (FAMILY, INDEX, *PARTITIONS):
            counts = {process.view(key, DECLARED[declared]).count for process in self.processes}
            assert counts == {self.publications(key)[-1].count}

    @rule(writer=writers, key=keys)
    def read(self, writer: str, key: str) -> None:
        found = self.table.find(key)
        assert found == self.records.get(key)
        if found is not None:
            self.seen[writer, key] = found

    @rule(
        writer=writers,
        key=keys,
        at=which,
        lease=st.sampled_from(LEASES),
        happens=st.sets(st.sampled_from(["the answer is lost", "one wait before"])),
    )
    def publish(self, writer: str, key: str, at: int, lease: float, happens: set[str]) -> None:
        """Whoever has seen the newest publishes, at whatever time its clock shows; nobody else does."""
        was = self.seen.get((writer, key))
        if was is None or not self.acts(key):
            return
        if "one wait before" in happens:
            self.now = max(self.now, self.published[key][-1].at + WAIT)
        new = was.changed(self.processes[at].clock(), count=next(self.counts), lease=lease)
        assert new.updated > was.updated
        if was != self.records[key]:
            with pytest.raises(TopologyChangedError):
                self.table.save((was, new))
            return
        self.table_of("PutItem" if "the answer is lost" in happens else None).save((was, new))
        self.records[key] = new
        self.published[key].append(Publication(self.now, new.count, new.lease))

    @precondition(lambda self: any(key not in self.records for key in PARTITIONS))
    @rule(writer=writers, lost=st.booleans(), partition=st.sampled_from(PARTITIONS))
    def separate(self, writer: str, lost: bool, partition: str) -> None:  # noqa: FBT001
        """A partition gets a record of its own, together with the flag of its family."""
        was = self.seen.get((writer, FAMILY))
        if was is None or partition in self.records:
            return
        since = self.now if was.differ_since is None else was.differ_since
        family = was.changed(self.now, differ_since=since)
        own = founded(partition, was.count, now=self.now, lease=was.lease)
        if was != self.records[FAMILY]:
            with pytest.raises(TopologyChangedError):
                self.table.save((was, family), (None, own))
            return
        self.table_of("TransactWriteItems" if lost else None).save((was, family), (None, own))
        self.records |= {FAMILY: family, partition: own}
        self.published[partition] = list(self.published[FAMILY])
        self.differ_since = self.now if self.differ_since is None else self.differ_since

    @invariant()
    def histories_are_bounded_and_right(self) -> None:
        for key, record in getattr(self, "records", {}).items():
            dated = sorted((int(epoch), int(count)) for epoch, count in (each.split(":") for each in record.history))
            counts = [each.count for each in self.published[key]]
            own = counts[counts.index(dated[0][1]) :]
            assert [count for _, count in dated] == own
            assert len(own) <= TOPOLOGY_HISTORY_LENGTH

    def acts(self, key: str) -> bool:
        """A partition's own record changes one wait after everybody was told that partitions differ."""
        return key not in PARTITIONS or (self.differ_since is not None and self.differ_since + WAIT <= self.now)

    def table_of(self, lost: str | None) -> TopologyTable:
        """The table; with an operation, its first answer is lost."""
        return TopologyTable(FaultyTransport(self.wire, [repeated(lost)] if lost else []), self.name)

    def publications(self, key: str) -> list[Publication]:
        return self.published.get(key) or self.published[FAMILY]


def test_clients_keep_to_their_leases_and_writers_to_the_newest(wire: Transport) -> None:
    bound = type("Bound", (TopologyMachine,), {"wire": wire})

    run_state_machine_as_test(bound, settings=settings(max_examples=60, stateful_step_count=40))
