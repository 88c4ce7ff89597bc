"""Runs all checks of a verification."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynashard.entity import Entity, EntityDefinition, definition
from dynashard.resharding.scope import Scope
from dynashard.routing import logical_partition_of
from dynashard.schema import PK
from dynashard.service import Dynashard
from dynashard.topology import TopologyTable, family_of
from dynashard.transport.interface import Wire
from dynashard_patterns.copies import MaterializedCopies
from dynashard_patterns.edges import Edges
from dynashard_patterns.rollups import RollUps
from dynashard_tools.verify.counts import Counts
from dynashard_tools.verify.derived import Nodes, Times, attachments, copies, leftovers
from dynashard_tools.verify.entries import Entries
from dynashard_tools.verify.findings import Finding, Report
from dynashard_tools.verify.homes import Homes
from dynashard_tools.verify.judging import judge
from dynashard_tools.verify.stored import ReadPace, places, whole_table


@dataclass(frozen=True, slots=True)
class Declared:
    """The entities of a backend, and what is derived from their items."""

    entities: Sequence[type[Entity]]
    copies: Sequence[MaterializedCopies[Any, Any]] = ()
    edges: Sequence[Edges[Any]] = ()
    roll_ups: Sequence[RollUps[Any]] = ()


@dataclass
class Verifier:
    """Finds data that does not agree in a table, and repairs what can be repaired safely.

    It can run during normal traffic, and can be stopped at any time and run again. What looks wrong is read twice.
    """

    db: Dynashard
    topology_table: str
    declared: Declared
    clock: Callable[[], float] = time.time
    pace: ReadPace = field(default_factory=ReadPace)

    def run(
        self,
        entity: type[Entity] | None = None,
        partition: Mapping[str, Any] | None = None,
        *,
        mend: bool = False,
    ) -> Iterator[Report]:
        """Verify the whole table, an entity, or one logical partition of it.

        It runs as it is iterated, and returns the same growing report repeatedly. Roll-ups and left-over attachments
        are not checked for a single partition. With `mend`, findings that remain are reported as not mended.

        Raises:
            InvalidKeyError: there can be no such partition.
            EngineError: retries did not outlast what was in the way; run it again.

        Cost: a consistent read of the table, or of the places of the partition; for derived things what their own
        checks cost: `MaterializedCopies.check`, `EdgeRepair.check` for each node, `RollUpRepair.check`, and `sweep` of
        attachments.
        """
        scope = None if entity is None else _scope(definition(entity), partition)
        report = Report()
        chosen = _chosen(self.declared, scope)
        nodes = [Nodes(self.db, each, mend) for each in chosen.edges]
        times = [Times(self.db, each, self.clock, mend) for each in chosen.roll_ups]
        yield from self._items(report, scope, [*nodes, *times], mend=mend)
        for stage, found in self._derived(chosen, scope, partition, nodes, times, mend=mend):
            report.stage = stage
            for each in found:
                if isinstance(each, Finding):
                    report.add(each)
                yield report
        yield report

    def _items(
        self, report: Report, scope: Scope | None, noting: Sequence[Nodes | Times], *, mend: bool
    ) -> Iterator[Report]:
        store = self.db.store
        counts = Counts(
            TopologyTable(self.db.store.transport, self.topology_table),
            [definition(each) for each in self.declared.entities],
        )
        homes, entries = Homes(store, counts, mend), Entries(store, counts, mend)
        for page in self._pages(scope, counts):
            for item in page:
                member = self._judged(report, scope, counts, item)
                if member is None:
                    continue
                wrong = [*homes.check(member, item)]
                if not wrong:
                    wrong = [*entries.check(member, item), *attachments(self.db, member, item)]
                for each in wrong:
                    report.add(each)
                for notes in noting:
                    notes.met(member, item)
            yield report

    def _judged(self, report: Report, scope: Scope | None, counts: Counts, item: Wire) -> EntityDefinition[Any] | None:
        """The entity of a stored item that may be compared; None for all others, which are counted or reported."""
        family = counts.family_of(item)
        if family is None:
            report.others += 1
            return None
        if not _concerned(scope, family.members[0]):
            return None
        report.items += 1
        member, findings = judge(family, item, self.db.store.now())
        for each in findings:
            report.add(each)
        if member is not None:
            moving = counts.changing(member, logical_partition_of(member, item[PK]["S"]))
            if moving is not None:
                report.changing.add(moving)
        return member

    def _pages(self, scope: Scope | None, counts: Counts) -> Iterable[list[Wire]]:
        store, pace = self.db.store, self.pace
        if scope is None or scope.partition is None:
            return whole_table(store, pace)
        return places(store, pace, counts.places(scope.entity, scope.partition))

    def _derived(
        self,
        chosen: Declared,
        scope: Scope | None,
        partition: Mapping[str, Any] | None,
        nodes: Sequence[Nodes],
        times: Sequence[Times],
        *,
        mend: bool,
    ) -> Iterator[tuple[str, Iterator[Finding | int]]]:
        for each in chosen.copies:
            yield "copies", copies(self.db, each, partition, mend=mend)
        for node in nodes:
            yield "edges", node.check()
        if scope is not None and scope.partition is not None:
            return
        for time_ in times:
            yield "roll-ups", time_.check()
        for model in chosen.entities:
            if definition(model).attachments:
                yield "attachments", leftovers(self.db, definition(model), mend=mend)


def _scope(entity: EntityDefinition[Any], partition: Mapping[str, Any] | None) -> Scope:
    return Scope(entity, None if partition is None else entity.logical_partition(partition))


def _concerned(scope: Scope | None, member: EntityDefinition[Any]) -> bool:
    """Whether items of an entity are in scope. The whole family is, because its entities share their partitions."""
    return scope is None or family_of(member) == scope.family


def _chosen(declared: Declared, scope: Scope | None) -> Declared:
    """Return the data that is derived from the chosen entity, or derived into it."""
    if scope is None:
        return declared
    model = scope.entity.model
    return Declared(
        [each for each in declared.entities if each is model],
        [each for each in declared.copies if model is each.of or (model is each.copy and scope.partition is None)],
        [each for each in declared.edges if model in (each.model, each.counts)],
        [each for each in declared.roll_ups if model is each.of],
    )
