"""Writes that somebody waits for: done once, in order for each item, together with the record that says so.

The write and the end of its record are one transaction, so a message that comes again finds that it is done. The order
is the queue's: messages about one item have one group, and a group's next message waits for the one before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from domain import Operation, OperationState
from dynashard import Create, Delete, Dynashard, Entity, Put, definition
from dynashard.errors import (
    AlreadyExistsError,
    DynashardError,
    EngineUnavailableError,
    NotFoundError,
    OutcomeUnknownError,
    RevisionMismatchError,
    TransactionRefusedError,
    WriteContendedError,
)
from dynashard.hosting.documents import REVISION, TENANT, merge_patch, refuse_changed, validated, without
from dynashard.hosting.refusals import refusal_of
from functions.writer.messages import Message
from functions.writer.outcomes import DUPLICATE, STORED, End, Outcome

ATTEMPTS: Final = 5
"""How often a write is tried while others come between its reading and its writing."""
MOST_RECEIVES: Final = 40
"""Deliveries after which an operation ends as failed, before the queue gives its message up."""
ANY: Final = "*"

Step = Create | Put | Delete


@dataclass(frozen=True, slots=True)
class Operations:
    """Does operations.

    Args:
        database: the entities.
        describe: makes a problem document of an error.
    """

    database: Dynashard
    describe: Callable[[Exception], dict[str, Any]]

    def operate(self, message: Message, receives: int) -> Outcome:
        """Do what a message asks for, unless its record says that it is done.

        Args:
            message: the message.
            receives: how often it was delivered, this time included.

        Cost: 2 reads, and a transaction of 2 writes.
        """
        key = {TENANT: message.tenant, "id": message.operation_id}
        record = self.database.collection(Operation).find(key, consistent=True)
        if record is None:
            return Outcome(End.POISON, "unknown_operation", f"there is no record of {message.operation_id}")
        if record.state is not OperationState.PENDING:
            return DUPLICATE
        try:
            if message.redriven:
                return self._failed(record, _out_of_turn())
            return self._done(message, record)
        except DynashardError as error:
            if error.passing and receives < MOST_RECEIVES:
                return Outcome(End.LEFT, error.code, str(error))
            return self._failed(record, error)

    def _done(self, message: Message, record: Operation) -> Outcome:
        for _ in range(ATTEMPTS):
            step, status = self._step(message)
            ended = record.model_copy(update={"state": OperationState.DONE, "status": int(status)})
            try:
                self.database.transact(step, Put(ended, if_match=record.revision))
            except TransactionRefusedError as refused:
                if refused.step == 1:
                    # Another delivery of this very message was faster.
                    return DUPLICATE
                continue
            return STORED
        raise WriteContendedError("Other writers kept changing this item: try again.")

    def _failed(self, record: Operation, error: Exception) -> Outcome:
        if isinstance(error, OutcomeUnknownError):
            # Once the record says "failed", no transaction that awaits its revision can be done any more.
            error = EngineUnavailableError("DynamoDB gave no answer; the operation was given up and not done.")
        problem = self.describe(error)
        update = {"state": OperationState.FAILED, "status": problem["status"], "problem": problem}
        try:
            self.database.collection(Operation).replace(record.model_copy(update=update), if_match=record.revision)
        except (RevisionMismatchError, NotFoundError):
            return DUPLICATE
        except DynashardError as unwritten:
            return Outcome(End.LEFT, unwritten.code, str(unwritten))
        return STORED

    def _step(self, message: Message) -> tuple[Step, HTTPStatus]:
        """What is written, and the status that the same request would have got at once.

        Raises:
            DynashardError: the request cannot be done, as things are.
        """
        match message.operation:
            case "create":
                return self._create(message), HTTPStatus.CREATED
            case "put":
                return self._put(message)
            case "update":
                return self._update(message), HTTPStatus.OK
            case _:
                current = self._current(message, message.key)
                return Delete(message.model, current, if_match=current.revision or ""), HTTPStatus.NO_CONTENT

    def _create(self, message: Message) -> Create:
        item = validated(message.model, message.items[0])
        if self.database.collection(message.model).exists(item, consistent=True):
            raise AlreadyExistsError(f"{definition(message.model).name} exists already")
        return Create(item)

    def _put(self, message: Message) -> tuple[Step, HTTPStatus]:
        item = validated(message.model, message.items[0])
        current = self.database.collection(message.model).find(item, consistent=True)
        _demand(message, current)
        if current is None:
            return Create(item), HTTPStatus.CREATED
        return Put(_over(current, item), if_match=current.revision or ""), HTTPStatus.OK

    def _update(self, message: Message) -> Put:
        current = self._current(message, message.key)
        merged = merge_patch(current.model_dump(mode="json"), message.patch)
        item = validated(message.model, without(merged, _server_fields(message.model)))
        refuse_changed(item, {name: getattr(current, name) for name in definition(message.model).key_fields})
        return Put(_over(current, item), if_match=current.revision or "")

    def _current(self, message: Message, key: dict[str, Any]) -> Entity:
        known = definition(message.model)
        checked = {name: known.check_value(name, value) for name, value in key.items()}
        current: Entity = self.database.collection(message.model).get(checked, consistent=True)
        _demand(message, current)
        return current


def _over(current: Entity, item: Entity) -> Entity:
    """The new item in the place of the stored one, whose stamps it keeps."""
    server = _server_fields(type(item))
    return current.model_copy(update={name: value for name, value in item if name not in server})


def _server_fields(model: type[Entity]) -> frozenset[str]:
    return definition(model).server_fields | {REVISION}


def _demand(message: Message, current: Entity | None) -> None:
    """Refuse what the conditions of a request do not allow.

    Raises:
        RevisionMismatchError: one does not hold.
    """
    revision = None if current is None else current.revision
    if message.if_match is not None and not _names(message.if_match, current, revision):
        raise RevisionMismatchError(
            "The item is not at the revision that If-Match names: read it again.", current=revision
        )
    if message.if_none_match is not None and _names(message.if_none_match, current, revision):
        raise RevisionMismatchError("The item exists in the state that If-None-Match excludes.", current=revision)


def _names(revisions: Sequence[str], current: Entity | None, revision: str | None) -> bool:
    return current is not None and (ANY in revisions or revision in revisions)


def _out_of_turn() -> DynashardError:
    return WriteContendedError(
        "The operation was given up before it could be done, and others may have been done since: send it again."
    )


def problem_document(error: Exception) -> dict[str, Any]:
    """The problem document (RFC 9457) of an error, as REST would have answered it, but for the request's id."""
    refusal = refusal_of(error)
    document: dict[str, Any] = {
        "type": f"urn:dynashard:problem:{refusal.code}",
        "title": HTTPStatus(refusal.status).phrase,
        "status": refusal.status,
        "detail": refusal.message,
        "code": refusal.code,
    }
    if refusal.errors:
        document["errors"] = [
            {"field": each.field, "message": each.message, "code": each.code} for each in refusal.errors
        ]
    if refusal.details:
        document["details"] = dict(refusal.details)
    return document
