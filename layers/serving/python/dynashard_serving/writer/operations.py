"""Writes that a caller waits for: done once, in order for each item, together with the record of the outcome.

The write and the end of its record are one transaction, so a message that comes again finds that it is done. The order
is the queue's: messages about one item have one group, and a group's next message waits for the one before.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from dynashard import Dynashard, Entity
from dynashard.errors import (
    AlreadyExistsError,
    DynashardError,
    EngineUnavailableError,
    KeyTooFarAheadError,
    NotFoundError,
    NotUniqueError,
    OutcomeUnknownError,
    RevisionMismatchError,
    TransactionRefusedError,
    UndecodableItemError,
    WriteContendedError,
)
from dynashard.transactions import steps
from dynashard_serving.documents import TENANT, validated
from dynashard_serving.limits import WRITE_ATTEMPTS
from dynashard_serving.operation_records import Operation, OperationState
from dynashard_serving.operations.merging import Step, step_of
from dynashard_serving.operations.permits import Permit
from dynashard_serving.operations.requests import Create, Delete, Put, Update, Write
from dynashard_serving.operations.served import Served
from dynashard_serving.queue_messages import Message
from dynashard_serving.refusals import one_line, refusal_of
from dynashard_serving.writer.outcomes import DUPLICATE, End, Outcome

if TYPE_CHECKING:
    from dynashard.repository import KeyLike

MOST_RECEIVES: Final = 40
"""Deliveries after which an operation ends as failed, before the queue gives its message up."""


@dataclass(frozen=True, slots=True)
class Operations:
    """Does the writes that callers wait for."""

    database: Dynashard
    clock: Callable[[], float] = time.time

    def operate(self, message: Message, receives: int) -> Outcome:
        """Do what a message asks for at its n-th delivery, counted by `receives`, unless its record says it is done.

        Cost: 2 reads, and a transaction of 2 writes.
        """
        key = {TENANT: message.tenant, "id": message.operation_id}
        try:
            record = self.database.collection(Operation).find(key, consistent=True)
        except DynashardError as error:
            # What is known of no record cannot end as failed, so it is tried for as long as the queue allows.
            return Outcome(End.LEFT, error.code, str(error), unexpected=not error.transient)
        if record is None:
            return Outcome(End.POISON, "unknown_operation", f"there is no record of {message.operation_id}")
        if record.state is not OperationState.PENDING:
            return DUPLICATE
        return self._attempted(message, record, receives)

    def _attempted(self, message: Message, record: Operation, receives: int) -> Outcome:
        """Do what a message asks for; end its record as failed if that cannot be done, or was tried too often."""
        try:
            if message.redriven:
                # Operators know of it: its dead letter had an alarm.
                return replace(self._failed(record, _out_of_turn()), ours=False)
            return self._done(message, record)
        except DynashardError as error:
            if error.transient and receives < MOST_RECEIVES:
                # The clock that accepted a key may be ahead of this one.
                wait = error.wait if isinstance(error, KeyTooFarAheadError) else 0.0
                return Outcome(End.LEFT, error.code, str(error), wait=wait)
            return self._failed(record, error)

    def _done(self, message: Message, record: Operation) -> Outcome:
        served, request, items = message.served, message.request(), self.database.collection(message.served.entity)
        permit = served.permit(message.operation, message.caller)
        item: Entity | None = None
        if isinstance(request, Update | Delete):
            about: KeyLike = request.key
        else:
            about = item = validated(served.entity, request.item)
            permit.require_new(item)
        # What a time may be was decided when the request was accepted.
        now = self.clock() if message.accepted_at is None else message.accepted_at / 1000
        for _ in range(WRITE_ATTEMPTS):
            current = _stored(served, permit, request, partial(items.find, about, consistent=True))
            step = step_of(served, request, item, current, now)
            if isinstance(step, steps.Put) and isinstance(step.item, Entity):
                permit.require_new(step.item)
            ended = record.model_copy(update={"state": OperationState.DONE, "status": int(_status(step))})
            try:
                stored, _ = self.database.transact(step, steps.Put(ended, if_match=record.revision))
            except TransactionRefusedError as refused:
                if refused.step == 1:
                    # Another delivery of this very message was faster.
                    return DUPLICATE
                if isinstance(refused.cause, NotUniqueError):
                    raise refused.cause from None
                continue
            return Outcome(End.STORED, revision=None if stored is None else stored.revision)
        raise WriteContendedError("Other writers kept changing this item: try again.")

    def _failed(self, record: Operation, error: Exception) -> Outcome:
        if isinstance(error, OutcomeUnknownError):
            # Once the record says "failed", no transaction that awaits its revision can be done any more.
            error = EngineUnavailableError("DynamoDB gave no answer; the operation was given up and not done.")
        refusal = refusal_of(error)
        problem = refusal.problem()
        update = {"state": OperationState.FAILED, "status": problem["status"], "problem": problem}
        try:
            self.database.collection(Operation).replace(record.model_copy(update=update), if_match=record.revision)
        except (RevisionMismatchError, NotFoundError):
            return DUPLICATE
        except DynashardError as unwritten:
            return Outcome(End.LEFT, unwritten.code, str(unwritten))
        return Outcome(End.REFUSED, refusal.code, one_line(error), ours=refusal.ours or refusal.retry_after is not None)


def _stored(served: Served, permit: Permit, request: Write, read: Callable[[], Entity | None]) -> Entity | None:
    """Return the stored item, None if there is none; refuse a write that its caller may not do to it."""
    match request:
        case Create():
            try:
                return read()
            except UndecodableItemError as error:
                # Whatever it holds, its key is taken.
                raise AlreadyExistsError(f"{served.name} exists already") from error
        case Put():
            return permit.replaced(read)
    return permit.found(read)


def _status(step: Step) -> HTTPStatus:
    """The status that the same request would have got at once."""
    match step:
        case steps.Create():
            return HTTPStatus.CREATED
        case steps.Delete():
            return HTTPStatus.NO_CONTENT
    return HTTPStatus.OK


def _out_of_turn() -> DynashardError:
    return WriteContendedError(
        "The operation was given up before it could be done, and others may have been done since: send it again."
    )
