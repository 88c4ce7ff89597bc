"""Writes of items that have one home, while their shard counts change.

In each phase a write goes where the protocol sends it:

    phase            create                      upsert                       change
    stable, prepare  at old                      at old                       at old
    move             mark at old, put at new     at old, if it lives there;   at old
                                                 else as create
    settle           mark at old, put at new     at new, if it lives there;   at new
                                                 else as create

In the settle phase, what still lives at old is brought to new first (`late`). "At old" demands that no mark stands
there. In the move phase a mark sends the write to new; in all others it says that the view is out of date. "Mark at
old, put at new" is one transaction. Keys that do not move are written as if stable.
"""

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final

from dynashard.entity import EntityDefinition
from dynashard.errors import (
    ConditionFailedError,
    EngineError,
    OutcomeUnknownError,
    ThrottledError,
    TransactionCanceledError,
    TransactionConflictError,
)
from dynashard.repository.batch import WRITE_WAVE, StoredKey, write_once
from dynashard.repository.conditions import Condition, is_live, is_marker
from dynashard.repository.late import Late, answered_late, confirm, ended, helped, settling
from dynashard.repository.marked_create import create_with_marker, leads_on
from dynashard.repository.operation import write_operation
from dynashard.repository.retry_policy import Left, at_once, go_on
from dynashard.repository.store import Store
from dynashard.repository.view_guard import Stand, stand, unproved, unsettled
from dynashard.repository.writes import Done, Kind, Write, send
from dynashard.routing import Places
from dynashard.topology import Phase

_AT_OLD: Final = (Phase.STABLE, Phase.PREPARE)
_FAILED: Final = "ConditionalCheckFailed"


class _Obstacle(Enum):
    """What a step met instead of being done."""

    MARK = auto()
    """The item has moved: its home is the new one."""
    NOTHING = auto()
    """No live item is where an upsert would have written over one."""
    CHANGE = auto()
    """Things are not what they were, or not what the view says: start again."""


class HomeWriter:
    """A `Writer` for placements that give every key one home. Safe to share between threads."""

    def __init__(self, store: Store, entity: EntityDefinition[Any]) -> None:
        self._store = store
        self._entity = entity

    def write(self, write: Write, pauses: Iterator[float] | None = None) -> Done:
        """Do one write; see `Writer.write`.

        Cost: one request when stable; at most two more, a transaction among them, while its key moves.
        """
        met: _Obstacle | None = None
        under: Stand | None = None
        while True:
            places = self._store.router.places(self._entity, write.key)
            if met is not None and under != stand(places):
                met = None
            conflict = None
            try:
                outcome = self._step(write, places, met)
            except TransactionConflictError as error:
                outcome, conflict = _Obstacle.CHANGE, error
            if isinstance(outcome, Done):
                return outcome
            met, under = (None if outcome is _Obstacle.CHANGE else outcome), stand(places)
            if met is None:
                pauses = self._store.retry_policy.pauses() if pauses is None else pauses
                if next(pauses, None) is None:
                    raise conflict or unsettled(self._entity, write.operation)

    def write_all(self, writes: Sequence[Write]) -> list[Write]:
        """Do many writes; see `Writer.write_all`.

        Cost: one BatchWriteItem for 25 of those whose logical partitions are stable, 16 at a time; what `write` costs
        for each of the others, as many at a time as `Store.batch_concurrency`.
        """
        return go_on(
            writes,
            self._round,
            self._store.retry_policy.pauses(),
            wave=WRITE_WAVE,
            operation="BatchWriteItem",
            key_of=lambda write: write.key,
        )

    @write_operation
    def _round(self, writes: Sequence[Write]) -> Left[Write]:
        together: dict[StoredKey, Write] = {}
        under: dict[StoredKey, Places] = {}
        single: list[Write] = []
        for write in writes:
            places = self._store.router.places(self._entity, write.key)
            if places.view.stable:
                together[places.old, write.key.sort] = write
                under[places.old, write.key.sort] = places
            else:
                single.append(write)
        unprocessed = write_once(self._store, together)
        refusals = at_once(self._refusal, single, self._store.batch_concurrency)
        left = [together[key] for key in unprocessed.members]
        unknown = [together[key] for key in unprocessed.unknown]
        undone = self._undone(together, under, {*unprocessed.members, *unprocessed.unknown}, unknown)
        for write, refusal in zip(single, refusals, strict=True):
            if refusal is not None:
                (unknown if isinstance(refusal, OutcomeUnknownError) else left).append(write)
        cause = next((error for error in (unprocessed.cause, *refusals) if error), None)
        return Left([*left, *undone], cause, unknown)

    def _undone(
        self,
        together: Mapping[StoredKey, Write],
        under: Mapping[StoredKey, Places],
        others: Collection[StoredKey],
        unknown: list[Write],
    ) -> list[Write]:
        """Those writes of a batch, answered after the end of their views, that are to be done again.

        Those of which nothing is certain are added to `unknown`; `others` were not answered with success.
        """
        undone: list[Write] = []
        for key, places in under.items():
            if key in others or not ended(self._store, places):
                continue
            try:
                came = self._acknowledged(Done(), together[key], key[0], places)
            except OutcomeUnknownError:
                unknown.append(together[key])
                continue
            if not isinstance(came, Done):
                undone.append(together[key])
        return undone

    def _refusal(self, write: Write) -> EngineError | None:
        """Do a write of a batch; what must be waited for, if anything."""
        try:
            self.write(write, iter(()))
        except (ThrottledError, TransactionConflictError, OutcomeUnknownError) as error:
            return error
        except ConditionFailedError:
            # Only deletes ask for a live item here, and theirs is gone.
            return None
        return None

    def _step(self, write: Write, places: Places, met: _Obstacle | None) -> Done | _Obstacle:
        """One request, chosen by the phase and by what the request before it met."""
        phase = places.view.phase
        if not places.moving or phase in _AT_OLD:
            return self._at(places.old, write, places, write.alone())
        if met is _Obstacle.MARK:
            return self._at(places.new, write, places, write.alone())
        if write.kind is Kind.CREATE or met is _Obstacle.NOTHING:
            return self._create(write, places)
        return self._at(places.old if phase is Phase.MOVE else places.new, write, places, write.changing())

    def _at(self, place: str, write: Write, places: Places, condition: Condition) -> Done | _Obstacle:
        try:
            done = send(self._store, write, place, condition)
        except ConditionFailedError as failed:
            if failed.ambiguous:
                # What it met may be its own work: whoever asked for the write looks for evidence.
                raise
            if ended(self._store, places):
                # What was not as it should be here may be so at another home by now.
                return _Obstacle.CHANGE
            if failed.item is not None and is_marker(failed.item):
                return self._marked(failed.item, place, write, places)
            if settling(places) and not is_live(failed.item, write.now) and helped(self._store, write.key.sort, places):
                return _Obstacle.CHANGE
            if write.kind is Kind.UPSERT:
                return _Obstacle.NOTHING
            raise
        return self._acknowledged(done, write, place, places)

    def _acknowledged(self, done: Done, write: Write, place: str, places: Places) -> Done | _Obstacle:
        """What is done, once it is certain that readers find it; see `late.confirm`."""
        if not ended(self._store, places):
            return done
        came = confirm(self._store, self._entity, write, place, undo=True)
        if came is Late.UNDONE:
            return _Obstacle.CHANGE
        if came is Late.UNKNOWN:
            raise answered_late(write.operation)
        return done

    def _marked(self, mark: Mapping[str, Any], place: str, write: Write, places: Places) -> _Obstacle:
        if leads_on(self._entity, write.key, mark, place, places):
            return _Obstacle.MARK
        return self._outdated(write)

    def _outdated(self, write: Write) -> _Obstacle:
        self._store.router.refresh(self._entity, write.key.partition)
        return _Obstacle.CHANGE

    def _create(self, write: Write, places: Places) -> Done | _Obstacle:
        """Bring an item to life at its new home, leaving a mark at the old one."""
        request = {
            "TransactItems": create_with_marker(self._store.table, write, places),
            # By this DynamoDB recognises a request that is sent again; another attempt is another request.
            "ClientRequestToken": secrets.token_urlsafe(24),
        }
        try:
            self._store.transport.call("TransactWriteItems", request)
        except TransactionCanceledError as cancelled:
            return self._not_created(write, places, cancelled)
        return self._acknowledged(Done(), write, places.new, places)

    def _not_created(self, write: Write, places: Places, cancelled: TransactionCanceledError) -> Done | _Obstacle:
        reasons = cancelled.reasons
        if not any(reason.code == _FAILED for reason in reasons):
            raise unproved(cancelled) if cancelled.ambiguous else cancelled
        old, new = (reason.item if reason.code == _FAILED else None for reason in reasons)
        for stored in (old, new):
            if write.did(stored):
                return Done(stored, again=True)
        if cancelled.ambiguous:
            raise unproved(cancelled)
        if ended(self._store, places):
            return _Obstacle.CHANGE
        moving = places.view.phase is Phase.MOVE
        if not moving and is_live(old, write.now) and helped(self._store, write.key.sort, places):
            return _Obstacle.CHANGE
        if old is not None and is_marker(old):
            return self._marked(old, places.old, write, places)
        rival = old if moving else new
        if not is_live(rival, write.now):
            return self._outdated(write)
        if write.kind is Kind.UPSERT:
            return _Obstacle.CHANGE
        raise ConditionFailedError(str(cancelled), operation=cancelled.operation, item=rival) from cancelled
