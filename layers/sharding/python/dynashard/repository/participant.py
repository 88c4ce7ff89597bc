"""One step of a transaction on its way through the phases of a changing shard count.

Where a step goes is what `phase_table` says of single writes. A `Check` goes where a change goes: as long as old bears
neither a marker nor a live item, nothing can have come to life at new, since whoever creates there marks old in the
same transaction; so that one place always tells. In SETTLE an item may live at old unnoticed (`late`): a step that is
content with no item demands the same of old.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Final

from dynashard.entity import Entity, EntityDefinition
from dynashard.errors import (
    AlreadyExistsError,
    CancellationReason,
    ConditionFailedError,
    NotFoundError,
    RevisionMismatchError,
    TransactionRefusedError,
)
from dynashard.repository.conditions import Condition, is_live, refusal
from dynashard.repository.evidence import wrote
from dynashard.repository.late import Late, confirm, next_after
from dynashard.repository.marked_create import create_with_marker, none_alive, put
from dynashard.repository.phase_table import How, Met, Next, Target, plan, settling
from dynashard.repository.store import Store
from dynashard.repository.transaction import Step
from dynashard.repository.transaction_steps import CHECK, Prepared, Steps
from dynashard.repository.writes import Write
from dynashard.transport.interface import Wire

_ACTIONS: Final = {"PutItem": "Put", "UpdateItem": "Update", "DeleteItem": "Delete", CHECK: CHECK}


class Verdict(IntEnum):
    """What a cancelled transaction has taught; the highest of all steps decides."""

    NOTHING = 0
    """The step was not in the way."""
    NEXT = 1
    """The step goes elsewhere next time."""
    LATER = 2
    """Things are not what they were, or not what the view says: try again after a pause."""
    DONE = 3
    """The step's own work is stored: an earlier attempt of the whole transaction has succeeded."""


class Participant:
    """One step: where it goes next, by what it has met. For one transaction, in one thread.

    Args:
        number: of the step, from 0.
        step: the step.
        steps: prepares it.
        store: the store.

    Raises:
        InvalidKeyError, InvalidQueryError: the step has no key.
    """

    def __init__(self, number: int, step: Step, steps: Steps, store: Store) -> None:
        self._number = number
        self.step = step
        self.steps = steps
        self._store = store
        self.key = steps.key_of(step)
        self._prepared: Prepared | None = None
        self._revisions: set[str] = set()
        self._places = store.router.places(self.entity, self.key)
        self._moved = False
        self._empty = False
        self._target = Target("", How.ALONE)

    @property
    def entity(self) -> EntityDefinition[Any]:
        """The compiled declaration of the step's entity."""
        return self.steps.entity

    @property
    def name(self) -> str:
        """The step's item, as messages name it."""
        return self.steps.name(self.step)

    def stored(self) -> Entity | None:
        """What the step has stored, if it was a whole item."""
        return self.steps.stored(self.prepared)

    @property
    def prepared(self) -> Prepared:
        """What the step does, prepared when first asked for, and again when that is out of date.

        Raises:
            TransactionRefusedError: it was read first, and is not what the step asks for.
        """
        if self._prepared is None:
            try:
                self._prepared = self.steps.prepare(self.step)
            except (NotFoundError, RevisionMismatchError) as error:
                raise self._refused(error) from error
            self._revisions.add(self._prepared.write.revision)
            self._empty = self._prepared.creates
        return self._prepared

    def actions(self) -> list[Wire]:
        """What of the transaction is this step's now; two actions if its item comes to life at a new home.

        Raises: as `prepared`.
        """
        prepared = self.prepared
        before, places = self._places, self._store.router.places(self.entity, self.key)
        if before.view.guard != places.view.guard:
            self._start_again()
        self._places = places
        table, write = self._store.table, prepared.write
        born = prepared.born() if self._empty and prepared.born else None
        self._target = plan(places, creates=born is not None, followed=self._moved)
        if born is not None:
            if self._target.how is How.WITH_MARKER:
                return create_with_marker(table, born, places)
            return [put(table, born, self._target.place)]
        over_live = self._target.how is How.OVER_LIVE
        action = _action(table, write, self._target.place, prepared.over if over_live else prepared.alone)
        if over_live and settling(places) and prepared.accepts_absent:
            return [none_alive(table, write, places), action]
        return [action]

    @property
    def shards(self) -> int:
        """The shard count that the place follows from to which the step was sent last."""
        view = self._places.view
        return view.count if self._target.place == self._places.old else view.new_count

    def did(self, reasons: Sequence[CancellationReason]) -> bool:
        """Whether the step's own work was met: an earlier attempt of the whole transaction has succeeded."""
        return any(
            wrote(revision, reason.conflicting_item) for reason in reasons for revision in self._revisions if revision
        )

    def stands(self) -> bool:
        """Whether the step, which was done, certainly took effect where readers look; see `late.confirm`.

        Cost: none as long as the view lasts under which it was sent.
        """
        write, place = self.prepared.write, self._target.place
        return confirm(self._store, self.entity, write, place, self._places, undo=False) is Late.STANDS

    def learn(self, reasons: Sequence[CancellationReason]) -> Verdict:
        """Take note of why the transaction was cancelled.

        Args:
            reasons: those of the actions last given, in order.

        Raises:
            TransactionRefusedError: the step asks for what is not so.
        """
        if not any(reason.condition_failed for reason in reasons):
            return Verdict.LATER if any(reason.refused for reason in reasons) else Verdict.NOTHING
        places = self._places
        asked = (self._target.place,) if len(reasons) == 1 else (places.old, places.new)
        met = Met(places, dict(zip(asked, (reason.conflicting_item for reason in reasons), strict=True)))
        found = next_after(self._store, self.entity, self.prepared.write, met)
        if found is Next.DECIDE:
            return self._not_so(met.rival)
        self._start_again(moved=found is Next.FOLLOW)
        return Verdict.NEXT if self._moved else Verdict.LATER

    def _start_again(self, *, moved: bool = False) -> None:
        self._moved, self._empty = moved, self.prepared.creates

    def _not_so(self, met: Mapping[str, Any] | None) -> Verdict:
        """What stands there, or that nothing does, is not what the step asks for."""
        prepared = self.prepared
        if prepared.fresh:
            self._prepared = None
            return Verdict.LATER
        if self._empty and not prepared.creates:
            self._empty = False
            return Verdict.LATER
        if prepared.born and not prepared.creates and not is_live(met, prepared.write.now):
            self._empty = True
            return Verdict.NEXT
        write = prepared.write
        failed = ConditionFailedError("", operation=write.operation, item=met)
        raise self._refused(refusal(failed, name=self.name, now=write.now, if_match=write.if_match))

    def _refused(self, error: NotFoundError | AlreadyExistsError | RevisionMismatchError) -> TransactionRefusedError:
        return TransactionRefusedError(
            f"step {self._number} of the transaction is refused, and nothing was done: {error}",
            step=self._number,
            reason=error.code,
            cause=error,
        )


def _action(table: str, write: Write, place: str, condition: Condition) -> Wire:
    request = write.request(table, place)
    request.pop("ReturnValues", None)
    return {_ACTIONS[write.operation]: condition.on(request)}
