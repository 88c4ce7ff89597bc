"""What a verification is asked to do, and the checks that do it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dynashard.entity import Entity, EntityDefinition, definition
from dynashard.entity.declaration import DEFAULT_SEPARATOR
from dynashard.resharding.scope import Scope
from dynashard.schema import PK, TYPE
from dynashard.service import Dynashard
from dynashard.topology import family_of
from dynashard.transport.interface import Wire
from dynashard_patterns.attachments.pieces import field_of
from dynashard_patterns.attachments.versions import GRACE_SECONDS
from dynashard_patterns.copies import MaterializedCopies
from dynashard_patterns.counters import Counter
from dynashard_patterns.edges import Edges
from dynashard_patterns.rollups import RollUps
from dynashard_patterns.rollups.declaration import Counted
from dynashard_tools.verify.attachments import AttachmentsCheck, LeftoversCheck
from dynashard_tools.verify.copies import CopiesCheck
from dynashard_tools.verify.counters import CountersCheck
from dynashard_tools.verify.edges import EdgesCheck
from dynashard_tools.verify.homes import HomesCheck
from dynashard_tools.verify.index_keys import IndexKeysCheck
from dynashard_tools.verify.parts import Check, Part
from dynashard_tools.verify.roll_ups import Comparison, Period, PeriodCheck, RollUpsCheck, group_fields
from dynashard_tools.verify.topology import TopologyCheck
from dynashard_tools.verify.topology_records import TopologyRecords
from dynashard_tools.verify.unique import UniqueCheck, reservation_kinds


@dataclass(frozen=True)
class Declared:
    """The entities of a backend, and what is derived from their items."""

    entities: Sequence[type[Entity]]
    copies: Sequence[MaterializedCopies[Any, Any]] = ()
    edges: Sequence[Edges[Any]] = ()
    roll_ups: Sequence[RollUps[Any]] = ()

    def without(self, left_out: Callable[[EntityDefinition[Any]], bool]) -> "Declared":
        """Return these but for some entities, and what is derived from them or into them."""

        def stays(*models: type[Entity] | None) -> bool:
            return not any(left_out(definition(each)) for each in models if each is not None)

        return Declared(
            [each for each in self.entities if stays(each)],
            [each for each in self.copies if stays(each.of, each.copy)],
            [each for each in self.edges if stays(each.model, each.counts)],
            [each for each in self.roll_ups if stays(each.of, *each.into)],
        )

    def supports(self, row: Wire) -> bool:
        """Whether a row is the layer's own but of no entity: of an attachment, a reservation or a counted mark.

        That is also so for an attachment whose field is not declared any more.
        """
        kind: str = row.get(TYPE, {}).get("S", "")
        if kind in self._supporting and row[PK]["S"].startswith(f"{kind}{DEFAULT_SEPARATOR}"):
            return True
        return any(field_of(definition(each), row) is not None for each in self.entities)

    @cached_property
    def _supporting(self) -> frozenset[str]:
        entities = [definition(each) for each in self.entities]
        reserved = set(reservation_kinds(entities))
        return frozenset(reserved | ({definition(Counted).name} if self.roll_ups else set()))


@dataclass(frozen=True, slots=True)
class Task:
    """What is verified, and what is done about faults.

    Attributes:
        entity: the only entity; None for all.
        partition: its only logical partition, by its fields; None for all. Roll-ups and left-over attachments are
            not stored by partition, so they are not verified then.
        parts: the parts that are verified.
        period: the only period of which roll-ups of the entity are compared; None for all hours with items.
        grace: how old a version of an attachment without an item must be, in seconds, before it is left over.
        mend: repair what can be repaired.
        strict: also report rows of no entity, and rows of roll-ups that count more than their items.
        lower: also report such rows of roll-ups, and lower them if `mend`. It is wrong if items were deleted.
    """

    entity: type[Entity] | None = None
    partition: Mapping[str, Any] | None = None
    parts: Collection[Part] = tuple(Part)
    period: Period | None = None
    grace: float = GRACE_SECONDS
    mend: bool = False
    strict: bool = False
    lower: bool = False

    @property
    def scope(self) -> Scope | None:
        """The entity and its partition; None for the whole table."""
        if self.entity is None:
            return None
        entity = definition(self.entity)
        return Scope(entity, None if self.partition is None else entity.logical_partition(self.partition))


def checks_of(
    task: Task, db: Dynashard, records: TopologyRecords, declared: Declared, clock: Callable[[], float]
) -> list[Check]:
    """Return the checks of a task; none for a part that its entity does not have. Costs nothing."""
    return [check for check in _checks(task, db, records, declared, clock) if check.part in task.parts]


def _checks(
    task: Task, db: Dynashard, records: TopologyRecords, declared: Declared, clock: Callable[[], float]
) -> Iterator[Check]:
    mend, scope, chosen = task.mend, task.scope, _chosen(declared, task)
    # The entities of a family share their partitions, so all of them are read.
    entities = [definition(each) for each in declared.entities]
    family = [each for each in entities if scope is None or family_of(each) == scope.family]
    yield TopologyCheck(records.damage, None if scope is None else scope.family)
    yield HomesCheck(db.store, records, mend)
    if any(each.indexes for each in family):
        yield IndexKeysCheck(db.store, records, mend)
    for copies in chosen.copies:
        yield CopiesCheck(db, copies, task.partition, mend)
    for edges in chosen.edges:
        yield EdgesCheck(db, edges, mend)
    if any(each.attachments for each in family):
        yield AttachmentsCheck(db)
    for entity in map(definition, chosen.entities):
        if entity.unique:
            yield UniqueCheck(db, entity, mend)
        if issubclass(entity.model, Counter):
            yield CountersCheck(db, entity.model)
    if task.partition is None:
        yield from _not_by_partition(task, db, chosen, clock)


def _not_by_partition(task: Task, db: Dynashard, chosen: Declared, clock: Callable[[], float]) -> Iterator[Check]:
    for roll_ups in chosen.roll_ups:
        comparison = Comparison(db, roll_ups, clock, task.mend, task.strict, task.lower)
        if task.period is not None and task.period.group.keys() == set(group_fields(roll_ups)):
            yield PeriodCheck(comparison, task.period)
        elif task.period is None and roll_ups.by_time is not None:
            yield RollUpsCheck(comparison)
    # Only what reads the table finds the rows of fields that are not declared any more.
    reads = task.entity is None and {*task.parts} != {Part.LEFTOVERS}
    for entity in map(definition, chosen.entities):
        if entity.attachments or reads:
            yield LeftoversCheck(db, entity, task.grace, task.mend)


def _chosen(declared: Declared, task: Task) -> Declared:
    """Return the data that is derived from the chosen entity, or derived into it."""
    model, whole = task.entity, task.partition is None
    if model is None:
        return declared
    return Declared(
        [each for each in declared.entities if each is model],
        [each for each in declared.copies if model is each.of or (model is each.copy and whole)],
        [each for each in declared.edges if model in (each.model, each.counts)],
        [each for each in declared.roll_ups if model is each.of],
    )
