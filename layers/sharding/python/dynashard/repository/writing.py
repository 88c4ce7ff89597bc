"""Writes of items that have one home, while their shard counts change: each goes where `phase_table` sends it."""

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

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
from dynashard.repository.conditions import Condition
from dynashard.repository.late import Late, answered_late, confirm, next_after
from dynashard.repository.marked_create import create_with_marker
from dynashard.repository.operation import write_operation
from dynashard.repository.outcomes import unproved, unsettled
from dynashard.repository.phase_table import How, Met, Next, plan
from dynashard.repository.retry_policy import Left, map_concurrently, run_rounds
from dynashard.repository.store import Store
from dynashard.repository.writes import Done, Kind, Write, send
from dynashard.routing import Places


class HomeWriter:
    """Brings writes to where their items live, for placements that give every key one home. Safe between threads."""

    def __init__(self, store: Store, entity: EntityDefinition[Any]) -> None:
        self._store = store
        self._entity = entity

    def write(self, write: Write, pauses: Iterator[float] | None = None) -> Done:
        """Do one write.

        Args:
            write: the write.
            pauses: pauses before it is tried again; those of the store's retry policy if None.

        Raises:
            ConditionFailedError: with the live item that refuses it, or with none where one is needed.
            TransactionConflictError: other writes or moves of the item were in the way all the time.

        Cost: one request when stable; at most two more, a transaction among them, while its key moves.
        """
        found, under = Next.RESTART, None
        while True:
            places = self._store.router.places(self._entity, write.key)
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
            if found is Next.RESTART:
                pauses = self._store.retry_policy.pauses() if pauses is None else pauses
                if next(pauses, None) is None:
                    raise conflict or unsettled(self._entity, write.operation)

    def write_all(self, writes: Sequence[Write]) -> list[Write]:
        """Do many writes, no two of them with one key; deletes take an item that is not there for done.

        Returns:
            Those of which no answer came: they may have been done, or may still be.

        Raises:
            UnprocessedError: with the keys that could not be written in time.

        Cost: one BatchWriteItem for 25 of those whose logical partitions are stable, 16 at a time; what `write` costs
        for each of the others, as many at a time as `Store.batch_concurrency`.
        """
        return run_rounds(
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
        refusals = map_concurrently(self._refusal, single, self._store.batch_concurrency)
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
            if key in others:
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

    def _step(self, write: Write, places: Places, found: Next) -> Done | Next:
        """One request, chosen by the phase and by what the request before it found."""
        creates = write.kind is Kind.CREATE or found is Next.DECIDE
        target = plan(places, creates=creates, followed=found is Next.FOLLOW)
        if target.how is How.WITH_MARKER:
            return self._create(write, places)
        return self._at(target.place, write, places, write.changing() if target.how is How.OVER_LIVE else write.alone())

    def _at(self, place: str, write: Write, places: Places, condition: Condition) -> Done | Next:
        try:
            done = send(self._store, write, place, condition)
        except ConditionFailedError as failed:
            if failed.ambiguous:
                # What it met may be its own work: whoever asked for the write looks for evidence.
                raise
            return self._refused(write, Met(places, {place: failed.item}), failed)
        return self._acknowledged(done, write, place, places)

    def _create(self, write: Write, places: Places) -> Done | Next:
        """Bring an item to life at its new home, leaving a marker at the old one."""
        request = {
            "TransactItems": create_with_marker(self._store.table, write, places),
            # By this DynamoDB recognises a request that is sent again; another attempt is another request.
            "ClientRequestToken": secrets.token_urlsafe(24),
        }
        try:
            self._store.transport.call("TransactWriteItems", request)
        except TransactionCanceledError as cancelled:
            met = [reason.conflicting_item for reason in cancelled.reasons]
            mine = next((stored for stored in met if write.did(stored)), None)
            if mine is not None:
                return Done(mine, proved=True)
            if cancelled.ambiguous:
                raise unproved(cancelled) from cancelled
            if not any(reason.condition_failed for reason in cancelled.reasons):
                raise
            return self._refused(write, Met(places, dict(zip((places.old, places.new), met, strict=True))), cancelled)
        return self._acknowledged(Done(), write, places.new, places)

    def _acknowledged(self, done: Done, write: Write, place: str, places: Places) -> Done | Next:
        """What is done, once it is certain that readers find it; see `late.confirm`."""
        came = confirm(self._store, self._entity, write, place, places, undo=True)
        if came is Late.UNKNOWN:
            raise answered_late(write.operation)
        return Next.RESTART if came is Late.UNDONE else done

    def _refused(self, write: Write, met: Met, error: EngineError) -> Next:
        """What a write does next whose condition failed.

        Raises:
            ConditionFailedError: with the item that refuses it.
        """
        found = next_after(self._store, self._entity, write, met)
        if found is not Next.DECIDE:
            return found
        if write.kind is Kind.UPSERT:
            # It makes the item next, or was about to when another writer did.
            return Next.DECIDE if len(met.at) == 1 else Next.RESTART
        raise ConditionFailedError(str(error), operation=error.operation, item=met.rival) from error
