"""Runs the checks of a verification over what is stored."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dynashard.entity import EntityDefinition, definition
from dynashard.errors import UndecodableItemError
from dynashard.repository.conditions import is_marker
from dynashard.resharding.scope import Scope
from dynashard.routing import logical_partition_of
from dynashard.schema import PK, TYPE
from dynashard.service import Dynashard
from dynashard.topology import TopologyTable, family_of
from dynashard.transport.interface import Wire
from dynashard_tools.verify.findings import Finding, Kind, Report
from dynashard_tools.verify.homes import HomesCheck
from dynashard_tools.verify.judging import judge
from dynashard_tools.verify.parts import Check, Part, Sum
from dynashard_tools.verify.stored import ReadPace, key_text, places, whole_table
from dynashard_tools.verify.task import Declared, Task, checks_of
from dynashard_tools.verify.topology_records import TopologyRecords


@dataclass(frozen=True, slots=True)
class Verifier:
    """Finds data that does not agree in a table, and repairs what can be repaired safely.

    It can run during normal traffic, and can be stopped at any time and run again. What looks wrong is read twice.

    Attributes:
        clock: wall clock, in epoch seconds.
        advance: called with the growing report, again and again.
    """

    db: Dynashard
    topology_table: str
    declared: Declared
    clock: Callable[[], float] = time.time
    pace: ReadPace = field(default_factory=ReadPace)
    advance: Callable[[Report], None] = lambda _: None

    def run(self, task: Task | None = None) -> Report:
        """Verify the whole table, an entity, or one logical partition of it.

        Returns:
            The findings; with `mend`, those that remain are not mended.

        Raises:
            InvalidKeyError: there can be no such partition.
            EngineError: retries did not outlast what was in the way; run it again.

        Cost: a Scan of the topology table; if a part needs to see the items, a consistent read of the table, or of the
        places of the partition; and what the checks of the parts cost.
        """
        task, records, report = task or Task(), self._records(), Report()
        # What nobody knows the shard count of is compared with nothing, and moved nowhere.
        checks = checks_of(task, self.db, records, self.declared.without(records.damaged), self.clock)
        if Part.TOPOLOGY not in task.parts:
            for finding in records.damage().findings(None if task.scope is None else task.scope.family):
                report.add(finding)
        if any(check.reads_items for check in checks):
            _Reading(self, task, task.scope, records, report, checks).run()
        sums: dict[Part, Sum] = {}
        for check in checks:
            report.stage = check.part.value
            counted = sums.setdefault(check.part, Sum(partial(self._count, report, check.part)))
            for finding in check.finish(counted.from_here()):
                report.add(finding)
                self.advance(report)
        return report

    def checks(self, task: Task) -> list[Check]:
        """Return the checks of a task; none for a part that its entity does not have. Costs nothing."""
        return checks_of(task, self.db, self._records(), self.declared, self.clock)

    def _records(self) -> TopologyRecords:
        table = TopologyTable(self.db.store.transport, self.topology_table)
        entities = [definition(each) for each in self.declared.entities]
        return TopologyRecords(table, entities, self.db.store.retry_policy.pauses)

    def _count(self, report: Report, part: Part, number: int) -> None:
        report.compared[part.value] = number
        self.advance(report)


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads the stored items, and shows each one to the checks if it may be compared."""

    verifier: Verifier
    task: Task
    scope: Scope | None
    records: TopologyRecords
    report: Report
    checks: Sequence[Check]

    def run(self) -> None:
        homes, others = self._homes(), [check for check in self.checks if check.part is not Part.ITEMS]
        for page in self._pages():
            for item in page:
                entity = self._judged(item)
                if entity is None:
                    continue
                # An item that readers cannot see is compared with nothing else, and never brought into an index.
                wrong = [*homes.look(entity, item)]
                if Part.ITEMS in self.task.parts:
                    self._add(wrong)
                for check in others:
                    self._note(check, entity, item)
                    self._add(() if wrong else check.look(entity, item))
            self.verifier.advance(self.report)

    def _note(self, check: Check, entity: EntityDefinition[Any], item: Wire) -> None:
        # A marker has all fields of its item, or, if the item was created at its new home, the key alone.
        if is_marker(item) and TYPE not in item:
            return
        # A live item was decoded before. What has expired or moved was not, and what does not fit is not compared.
        with suppress(UndecodableItemError):
            check.note(entity, item)

    def _homes(self) -> HomesCheck:
        mend = self.task.mend and Part.ITEMS in self.task.parts
        return HomesCheck(self.verifier.db.store, self.records, mend)

    def _judged(self, item: Wire) -> EntityDefinition[Any] | None:
        """Return the entity of a stored item that may be compared. All others are counted or reported."""
        family = self.records.family_of(item)
        if family is None:
            if self.verifier.declared.supports(item):
                for check in self.checks:
                    check.support(item)
            else:
                self._other(item)
            return None
        if self.scope is not None and family_of(family.members[0]) != self.scope.family:
            return None
        if self.records.damaged(family.members[0]):
            self.report.uncounted += 1
            return None
        self.report.items += 1
        entity, findings = judge(family, item, self.verifier.db.store.now())
        self._add(findings)
        if entity is not None:
            moving = self.records.changing(entity, logical_partition_of(entity, item[PK]["S"]))
            if moving is not None:
                self.report.changing.add(moving)
        return entity

    def _other(self, item: Wire) -> None:
        self.report.others += 1
        if self.task.strict:
            self.report.add(Finding(Kind.OTHER, key_text(item), "its key belongs to no entity, so it was not judged"))

    def _pages(self) -> Iterable[list[Wire]]:
        store, pace, scope = self.verifier.db.store, self.verifier.pace, self.scope
        if scope is None or scope.partition is None:
            return whole_table(store, pace)
        return places(store, pace, self.records.places(scope.entity, scope.partition))

    def _add(self, findings: Iterable[Finding]) -> None:
        for each in findings:
            self.report.add(each)
