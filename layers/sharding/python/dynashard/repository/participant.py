"""One step of a transaction on its way through the phases of a changing shard count.

Where a step goes is what `writing` says of single writes. A `Check` goes where a change goes: as long as old bears
neither a mark nor a live item, nothing can have come to life at new, since whoever creates there marks old in the same
transaction; so that one place always tells. In SETTLE an item may live at old unnoticed (`late`): a step that is
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
    InvalidValueError,
    NotFoundError,
    RevisionMismatchError,
    TransactionRefusedError,
)
from dynashard.repository.conditions import Condition, is_live, is_marker, refusal
from dynashard.repository.evidence import wrote
from dynashard.repository.late import Late, confirm, ended, helped, settling
from dynashard.repository.marked_create import create_with_marker, leads_on, none_alive, put
from dynashard.repository.store import Store
from dynashard.repository.transaction import Step
from dynashard.repository.transaction_steps import CHECK, Prepared, Steps
from dynashard.repository.view_guard import stand
from dynashard.repository.writes import Write
from dynashard.routing import Places
from dynashard.topology import Phase
from dynashard.transport.interface import Wire

FAILED: Final = "ConditionalCheckFailed"
_AT_OLD: Final = (Phase.STABLE, Phase.PREPARE)
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
        self._step = step
        self._steps = steps
        self._store = store
        self.key = steps.key_of(step)
        self._prepared: Prepared | None = None
        self._revisions: set[str] = set()
        self._places = store.router.places(self.entity, self.key)
        self._moved = False
        self._empty = False
        self._sent = ""

    @property
    def entity(self) -> EntityDefinition[Any]:
        """The compiled declaration of the step's entity."""
        return self._steps.entity

    @property
    def name(self) -> str:
        """The step's item, as messages name it."""
        return self._steps.name(self._step)

    def stored(self) -> Entity | None:
        """What the step has stored, if it was a whole item."""
        return self._steps.stored(self.prepared)

    def refuse_sum(self, refused: InvalidValueError) -> InvalidValueError:
        """DynamoDB's refusal of what the step adds, with the field at fault. Cost: 1 read unit, 1 round trip."""
        return self._steps.refuse_sum(self._step, refused)

    @property
    def prepared(self) -> Prepared:
        """What the step does, prepared when first asked for, and again when that is out of date.

        Raises:
            TransactionRefusedError: it was read first, and is not what the step asks for.
        """
        if self._prepared is None:
            try:
                self._prepared = self._steps.prepare(self._step)
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
        if stand(before) != stand(places):
            self._moved, self._empty = False, prepared.creates
        self._places = places
        table, write = self._store.table, prepared.write
        if not places.moving or places.view.phase in _AT_OLD or self._moved:
            place = places.new if self._moved else places.old
            self._sent = place
            if self._empty and prepared.born:
                return [put(table, prepared.born(), place)]
            return [_action(table, write, place, prepared.alone)]
        if self._empty and prepared.born:
            self._sent = places.new
            return create_with_marker(table, prepared.born(), places)
        self._sent = places.old if places.view.phase is Phase.MOVE else places.new
        action = _action(table, write, self._sent, prepared.over)
        if settling(places) and prepared.content_with_none:
            return [none_alive(table, write, places), action]
        return [action]

    @property
    def shards(self) -> int:
        """The shard count that the place follows from to which the step was sent last."""
        view = self._places.view
        return view.count if self._sent == self._places.old else view.new_count

    def did(self, reasons: Sequence[CancellationReason]) -> bool:
        """Whether the step's own work was met: an earlier attempt of the whole transaction has succeeded."""
        met = [reason.item for reason in reasons if reason.code == FAILED]
        return any(wrote(revision, item) for item in met for revision in self._revisions if revision)

    def stands(self) -> bool:
        """Whether the step, which was done, certainly took effect where readers look; see `late.confirm`.

        Cost: none as long as the view lasts under which it was sent.
        """
        if not ended(self._store, self._places):
            return True
        return confirm(self._store, self.entity, self.prepared.write, self._sent, undo=False) is Late.STANDS

    def learn(self, reasons: Sequence[CancellationReason]) -> Verdict:
        """Take note of why the transaction was cancelled.

        Args:
            reasons: those of the actions last given, in order.

        Raises:
            TransactionRefusedError: the step asks for what is not so.
        """
        met = [reason.item if reason.code == FAILED else None for reason in reasons]
        if not any(reason.code == FAILED for reason in reasons):
            return Verdict.LATER if any(reason.code != "None" for reason in reasons) else Verdict.NOTHING
        places = self._places
        if ended(self._store, places):
            # What was not as it should be here may be so at another home by now.
            return self._outdated()
        if len(reasons) > 1:
            return self._not_born(met[0], met[1], places)
        place = places.new if self._moved or self._settling(places) else places.old
        if met[0] is not None and is_marker(met[0]):
            return self._marked(met[0], place, places)
        if self._helped(met[0], places):
            return Verdict.LATER
        return self._not_so(met[0])

    def _helped(self, met: Mapping[str, Any] | None, places: Places) -> bool:
        """Whether something lived at the old home while nothing was met at the new one; it is brought home."""
        if not settling(places) or is_live(met, self.prepared.write.now):
            return False
        return helped(self._store, self.key.sort, places)

    def _settling(self, places: Places) -> bool:
        return places.moving and places.view.phase is Phase.SETTLE

    def _not_born(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None, places: Places) -> Verdict:
        """What brings an item to life, or demands that none lives, at both places was refused."""
        if old is not None and is_marker(old):
            return self._marked(old, places.old, places)
        if is_live(old, self.prepared.write.now) and self._helped(new, places):
            return Verdict.LATER
        rival = old if places.view.phase is Phase.MOVE else new
        if not is_live(rival, self.prepared.write.now):
            return self._outdated()
        return self._not_so(rival)

    def _marked(self, mark: Mapping[str, Any], place: str, places: Places) -> Verdict:
        if not leads_on(self.entity, self.key, mark, place, places):
            return self._outdated()
        self._moved, self._empty = True, self.prepared.creates
        return Verdict.NEXT

    def _outdated(self) -> Verdict:
        self._store.router.refresh(self.entity, self.key.partition)
        self._moved, self._empty = False, self.prepared.creates
        return Verdict.LATER

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
