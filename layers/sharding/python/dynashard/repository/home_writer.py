"""Writes of items that have one home, while their shard counts change: each goes where `phase_table` sends it."""

import secrets
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any

from dynashard.entity import EntityDefinition
from dynashard.errors import (
    ConditionFailedError,
    DynashardError,
    EngineError,
    OutcomeUnknownError,
    TransactionCanceledError,
    TransactionConflictError,
)
from dynashard.repository.batch import BATCH_WRITE, write_once
from dynashard.repository.conditions import Condition, later_version
from dynashard.repository.late import Late, answered_late, confirm, next_after
from dynashard.repository.markers import create_with_marker
from dynashard.repository.phase_table import Encountered, How, Next, plan
from dynashard.repository.replacement import replacing
from dynashard.repository.retry_policy import Unfinished, map_concurrently, run_rounds, unsettled
from dynashard.repository.store import Store, view_ended, write_operation
from dynashard.repository.write import Done, Kind, Write, send
from dynashard.routing import Places, StoredKey


class HomeWriter:
    """Writes items at their homes, for placements that give every key one home. Safe to share between threads."""

    def __init__(self, store: Store, entity: EntityDefinition[Any]) -> None:
        self._store = store
        self._entity = entity

    def write(self, write: Write, pauses: Iterator[float] | None = None) -> Done:
        """Do one write, with the pauses of the store's retry policy unless others are given.

        Raises:
            ConditionFailedError: with the live item that prevents it, or with None if it needs one.
            TransactionConflictError: other writes or moves of the item conflicted with it until the last retry.

        Cost: one request when stable; at most two more, a transaction among them, while its key moves.
        """
        found, under, pauses = Next.RESTART, None, pauses or self._store.retry_policy.pauses()
        while True:
            places = self._store.router.places_to_write(self._entity, write.key)
            # What was found says where to go only under the view in which it was found.
            if found is not Next.RESTART and under != places.view.guard:
                found = Next.RESTART
            conflict = None
            try:
                outcome = self._step(write, places, found)
            except TransactionConflictError as error:
                outcome, conflict = Next.RESTART, error
            if isinstance(outcome, Done):
                return outcome
            found, under = outcome, places.view.guard
            if found is Next.RESTART and next(pauses, None) is None:
                raise conflict or unsettled(self._entity, write.operation)

    def write_all(self, writes: Sequence[Write]) -> Unfinished[Write]:
        """Do many writes of distinct keys; return those that are not proved to be done. Raises nothing.

        A delete of an item that does not exist counts as done.

        Cost: one BatchWriteItem for 25 of those whose logical partitions are stable, 16 at a time; what `write` costs
        for each of the others, as many at a time as `Store.batch_concurrency`.
        """
        return run_rounds(BATCH_WRITE, writes, self._round, self._store.retry_policy.pauses())

    @write_operation
    def _round(self, writes: Sequence[Write]) -> Unfinished[Write]:
        try:
            batch, single = self._placed(writes)
        except DynashardError as error:
            return Unfinished.unsent(writes, error)
        answer = write_once(self._store, {key: write for key, (write, _) in batch.items()})
        errors = map_concurrently(self._hindrance, single, self._store.batch_concurrency)
        alone = Unfinished.by_error((write, error) for write, error in zip(single, errors, strict=True) if error)
        left = [batch.pop(key)[0] for key in answer.members] + [*alone.members]
        unknown = [batch.pop(key)[0] for key in answer.unknown] + [*alone.unknown]
        failed = [(batch.pop(key)[0], error) for key, error in answer.failed] + [*alone.failed]
        now = self._store.runtime.clock()
        for (place, _), (write, places) in batch.items():
            if now <= places.view.expires:
                continue
            came = confirm(self._store, self._entity, write, place, places, undo=True)
            if came is not Late.VISIBLE:
                (unknown if came is Late.UNKNOWN else left).append(write)
        return Unfinished(left, answer.cause or alone.cause, unknown, failed)

    def _placed(self, writes: Sequence[Write]) -> tuple[dict[StoredKey, tuple[Write, Places]], list[Write]]:
        """The writes that can be sent together, by their stored keys, and those whose logical partitions change."""
        batch: dict[StoredKey, tuple[Write, Places]] = {}
        single: list[Write] = []
        view_of = cache(partial(self._store.router.topology.view, self._entity))
        places_of = self._store.router.places_to_write
        for write in writes:
            key = write.key
            view = view_of(key.partition)
            # BatchWriteItem takes no conditions, so it could write over a marker (decision 24).
            places = places_of(self._entity, key, view) if view.stable else None
            if places is not None and places.view.stable:
                batch[places.old, key.sort] = write, places
            else:
                single.append(write)
        return batch, single

    def _hindrance(self, write: Write) -> DynashardError | None:
        """Do a write of a batch; return the error if it is not proved to be done."""
        try:
            self.write(replacing(self._entity, write), iter(()))
        except ConditionFailedError as failed:
            # A delete demands a live item, and its item is gone. A put is refused by a later version.
            return later_version(self._entity, failed.item)
        except DynashardError as error:
            return error
        return None

    def _step(self, write: Write, places: Places, found: Next) -> Done | Next:
        """Send one request, chosen by the phase and by the result of the request before it."""
        creates = write.kind is Kind.CREATE or found is Next.DECIDE
        target = plan(places, creates=creates, followed=found is Next.FOLLOW)
        if target.how is How.WITH_MARKER:
            return self._create(write.creation(), places)
        if target.how is How.OVER_LIVE:
            return self._at(target.place, write, places, write.live_condition())
        return self._at(target.place, write, places, write.direct_condition(), final=True)

    def _at(
        self, place: str, write: Write, places: Places, condition: Condition, *, final: bool = False
    ) -> Done | Next:
        """Send a write to one place, whose answer may be final."""
        try:
            done = send(self._store, write, place, condition)
        except ConditionFailedError as failed:
            if failed.ambiguous:
                # The item may be the result of an earlier attempt: the caller looks for evidence.
                raise
            found = self._refused(write, Encountered(places, {place: failed.item}), failed)
            if found is not Next.DECIDE or not final:
                return found
            if write.operation == "PutItem":
                # It was the creation below, and another writer's item came first: start again, over that item.
                return Next.RESTART
            # An expired item is in the way: nothing of it may be left in the new one.
            return self._at(place, write.creation(), places, write.absent_condition(), final=True)
        return self._acknowledged(done, write, place, places) if view_ended(self._store, places) else done

    def _create(self, write: Write, places: Places) -> Done | Next:
        """Create an item at its new home, with a marker at the old one."""
        request = {
            "TransactItems": create_with_marker(self._store.table, write, places),
            # DynamoDB recognises a request that is sent again by this token; another attempt is another request.
            "ClientRequestToken": secrets.token_urlsafe(24),
        }
        try:
            self._store.transport.call("TransactWriteItems", request)
        except TransactionCanceledError as cancelled:
            stored = [reason.conflicting_item for reason in cancelled.reasons]
            mine = next((each for each in stored if write.did(each)), None)
            if mine is not None:
                return Done(mine, proved=True)
            if cancelled.ambiguous:
                # A failed attempt does not use its token up, so this refusal proves nothing about an earlier attempt.
                raise OutcomeUnknownError(
                    str(cancelled), operation=cancelled.operation, aws_code=cancelled.aws_code
                ) from cancelled
            if not any(reason.condition_failed for reason in cancelled.reasons):
                raise
            at = dict(zip((places.old, places.new), stored, strict=True))
            return self._refused(write, Encountered(places, at), cancelled)
        return self._acknowledged(Done(), write, places.new, places)

    def _acknowledged(self, done: Done, write: Write, place: str, places: Places) -> Done | Next:
        """Return what was done once it is certain that readers find it; see `late.confirm`."""
        came = confirm(self._store, self._entity, write, place, places, undo=True)
        if came is Late.UNKNOWN:
            raise answered_late(write.operation)
        return Next.RESTART if came is Late.UNDONE else done

    def _refused(self, write: Write, encountered: Encountered, error: EngineError) -> Next:
        """Return what follows a failed condition; raise the error, with the item, if that is final."""
        found = next_after(self._store, self._entity, write, encountered)
        if found is not Next.DECIDE:
            return found
        if write.kind is Kind.UPSERT and not write.refused_unread(encountered.rival):
            # It creates the item next, or was about to when another writer did.
            return Next.DECIDE if len(encountered.at) == 1 else Next.RESTART
        raise ConditionFailedError(str(error), operation=error.operation, item=encountered.rival) from error
