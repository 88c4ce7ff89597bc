"""One step of a transaction, on its way through the phases of a changing shard count.

`phase_table` decides where a step goes, as for single writes. A `Check` goes where an update goes: as long as the old
place has neither a relocation marker nor a live item, the new one cannot have an item, because a create there leaves a
marker at the old place in the same transaction. So one place always decides. In SETTLE the old place may have a live
item that was stored late (see `late`), so a step that accepts an absent item demands its absence there, too.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from dynashard.entity import Entity
from dynashard.entity.uniqueness import UniqueDefinition
from dynashard.errors import (
    AlreadyExistsError,
    CancellationReason,
    ExhaustedError,
    NotFoundError,
    NotUniqueError,
    RevisionMismatchError,
    TransactionRefusedError,
)
from dynashard.repository.conditions import is_live, later_version, refusal
from dynashard.repository.evidence import wrote
from dynashard.repository.late import Late, confirm, next_after
from dynashard.repository.markers import create_with_marker, none_alive
from dynashard.repository.phase_table import Encountered, How, Next, Target, plan
from dynashard.repository.store import Store
from dynashard.repository.write import CHECK, Kind
from dynashard.routing import settling
from dynashard.transactions.bounds import refusal_of
from dynashard.transactions.prepared import Prepared, StepWrites
from dynashard.transactions.steps import CheckStored, Step
from dynashard.transport.interface import Wire


class Verdict(IntEnum):
    """What a cancelled transaction means for a step; the highest verdict of all steps decides."""

    UNAFFECTED = 0
    """The step did not cancel it."""
    REROUTED = 1
    """The step is sent to another place next time."""
    RETRY = 2
    """An item or the view has changed: try again after a pause."""
    DONE = 3
    """The step's write is stored: an earlier attempt of the whole transaction has succeeded."""


class Participant:
    """One step: where it is sent next, by what it has encountered. For one transaction, in one thread.

    A precondition of the step that does not hold raises `TransactionRefusedError`.

    Attributes:
        writes: prepares what the step writes.
    """

    def __init__(self, store: Store, number: int, step: Step | CheckStored) -> None:
        self.writes = StepWrites(store, step)
        self._store = store
        self._number = number
        self._prepared: Prepared | None = None
        self._reads = False
        self._revisions: set[str] = set()
        self._places = store.router.places_to_write(self.writes.entity, self.writes.key)
        self._followed = False
        self._creating = False
        self._target = Target("", How.DIRECT)

    @property
    def shards(self) -> int:
        """The shard count that decided the place to which the step was sent last."""
        places = self._places
        return places.shards if self._target.place == places.old else places.view.new_count

    @property
    def prepared(self) -> Prepared:
        """What the step does, prepared at the first use, and again when an item that it depends on has changed."""
        if self._prepared is None:
            try:
                self._prepared = self.writes.prepare(reads=self._reads)
            except (NotFoundError, RevisionMismatchError, ExhaustedError) as error:
                raise self._refused(error) from error
            self._revisions.add(self._prepared.write.revision)
            self._creating = self._prepared.creates
        return self._prepared

    def prepare_again(self) -> None:
        """Prepare the step anew before it is sent again; for steps whose last attempt was certainly not executed."""
        self._prepared = None

    def not_unique(self, unique: UniqueDefinition) -> TransactionRefusedError:
        """Return the error of a step that stores values that another live item has."""
        within = f" within one {', '.join(unique.scope_fields)}" if unique.scope_fields else ""
        return self._refused(
            NotUniqueError(
                f"{self.writes.entity.name}: another item has this {' and '.join(unique.fields)}, which must be unique"
                f"{within}; choose another",
                fields=unique.fields,
            )
        )

    def stored(self) -> Entity | None:
        """Return the item that a put has stored, or an update that returns it."""
        prepared = self.prepared
        return prepared.item if prepared.write.item is None else self.writes.stored(prepared.write)

    def actions(self) -> list[Wire]:
        """Return the step's actions under the view in force: two if it creates an item at a new home."""
        prepared = self.prepared
        before, places = self._places, self._store.router.places_to_write(self.writes.entity, self.writes.key)
        if before.view.guard != places.view.guard:
            self._start_again()
        self._places = places
        table, write = self._store.table, prepared.write
        self._target = plan(places, creates=self._creating, followed=self._followed)
        if self._creating:
            write = prepared.creation()
            if self._target.how is How.WITH_MARKER:
                return create_with_marker(table, write, places)
            return [write.action(table, self._target.place, write.absent_condition())]
        over_live = self._target.how is How.OVER_LIVE
        demands_live = over_live and not prepared.accepts_absent
        condition = write.live_condition() if demands_live else write.direct_condition()
        action = write.action(table, self._target.place, condition)
        if over_live and settling(places) and prepared.accepts_absent:
            return [none_alive(table, write, places), action]
        return [action]

    def did(self, reasons: Sequence[CancellationReason]) -> bool:
        """Whether a stored item proves that an earlier attempt of the whole transaction has succeeded."""
        return any(wrote(revision, reason.conflicting_item) for reason in reasons for revision in self._revisions)

    def visible(self) -> bool:
        """Whether readers certainly find what the step, which was executed, has written; see `late.confirm`."""
        write, place = self.prepared.write, self._target.place
        return confirm(self._store, self.writes.entity, write, place, self._places, undo=False) is Late.VISIBLE

    def learn(self, reasons: Sequence[CancellationReason]) -> Verdict:
        """Decide what follows a cancelled transaction, by the reasons of the actions last returned."""
        if not any(reason.condition_failed for reason in reasons):
            return Verdict.RETRY if any(reason.refused for reason in reasons) else Verdict.UNAFFECTED
        places = self._places
        asked = (self._target.place,) if len(reasons) == 1 else (places.old, places.new)
        encountered = Encountered(
            places, dict(zip(asked, (reason.conflicting_item for reason in reasons), strict=True))
        )
        found = next_after(self._store, self.writes.entity, self.prepared.write, encountered)
        if found is Next.DECIDE:
            return self._precondition_failed(encountered.rival)
        self._start_again(followed=found is Next.FOLLOW)
        return Verdict.REROUTED if self._followed else Verdict.RETRY

    def _start_again(self, *, followed: bool = False) -> None:
        self._followed, self._creating = followed, self.prepared.creates

    def _precondition_failed(self, rival: Mapping[str, Any] | None) -> Verdict:
        """Decide what follows if the stored item, or its absence, made the condition fail."""
        prepared, write = self.prepared, self.prepared.write
        if prepared.from_read:
            self._prepared = None
            return Verdict.RETRY
        if write.refused_unread(rival):
            self._prepared, self._reads = None, True
            return Verdict.RETRY
        if write.refused_for_bounds(rival) and (exhausted := self._exhausted(rival or {})):
            raise self._refused(exhausted)
        if write.kind is Kind.UPSERT and self._creating:
            self._creating = False
            return Verdict.RETRY
        if write.kind is Kind.UPSERT and not is_live(rival, write.now):
            if exhausted := refusal_of(self.writes.name, prepared.bounds, {}):
                raise self._refused(exhausted)
            self._creating = True
            return Verdict.REROUTED
        creates = write.kind is Kind.CREATE and write.operation != CHECK
        if creates and (later := later_version(self.writes.entity, rival)) is not None:
            raise later
        raise self._refused(refusal(rival, name=self.writes.name, now=write.now, if_match=write.if_match))

    def _exhausted(self, rival: Mapping[str, Any]) -> ExhaustedError | None:
        bounds = self.prepared.bounds
        values = self.writes.entity.decode_fields(rival, [each.field for each in bounds])
        return refusal_of(self.writes.name, bounds, values)

    def _refused(
        self, error: NotFoundError | AlreadyExistsError | NotUniqueError | RevisionMismatchError | ExhaustedError
    ) -> TransactionRefusedError:
        return TransactionRefusedError(
            f"step {self._number} of the transaction is refused, and nothing was done: {error}",
            step=self._number,
            reason=error.code,
            cause=error,
        )
