"""Executes a transaction: all of its steps at one moment or none, whatever the phases of their shard counts."""

import secrets
from collections.abc import Sequence
from typing import Any, Final

from dynashard.codec import item_size
from dynashard.entity import Entity
from dynashard.errors import (
    CancellationReason,
    ConditionFailedError,
    DynashardError,
    EngineError,
    InvalidKeyError,
    InvalidQueryError,
    ItemTooLargeError,
    OutcomeUnknownError,
    ThrottledError,
    TransactionCanceledError,
    TransactionConflictError,
)
from dynashard.repository.late import answered_late
from dynashard.repository.retry_policy import unsettled
from dynashard.repository.store import Companion, Store, write_operation
from dynashard.schema import MAX_ITEM_BYTES, PK, SK
from dynashard.transactions.participant import Participant, Verdict
from dynashard.transactions.reservations import Reservations
from dynashard.transactions.steps import CheckStored, Step
from dynashard.transport.attempts import TOKEN_MISMATCH
from dynashard.transport.classification import refused_sum
from dynashard.transport.deadline import evidence
from dynashard.transport.interface import Wire

MOST_WRITES: Final = 100
MOST_BYTES: Final = 4 * 1024 * 1024
SETTLED: Final = "dynashard:settled"
"""The partition key of the items that settling transactions delete. Nothing is ever stored there."""
_CANCELLED: Final = "TransactionCanceledException"
_NO_REASON: Final = CancellationReason(CancellationReason.NONE)
_THROTTLES: Final = 4
"""How often a throttled transaction is tried, each time with all the retries of the transport."""

_Refused = tuple[Participant, list[CancellationReason]]
"""A step, and why each of its actions was refused."""


class Transaction:
    """One transaction. For one thread. With a companion there is one step, a create."""

    def __init__(self, store: Store, steps: Sequence[Step | CheckStored], companion: Companion | None = None) -> None:
        self._store = store
        self._companion = companion
        self._participants = [Participant(store, number, step) for number, step in enumerate(steps)]
        self._reservations = Reservations(store, self._participants)
        self._guards: list[Participant] = []
        self._parts: list[list[Wire]] = []
        self._reserved = 0
        self._refuse_doubles()

    @write_operation
    def run(self) -> list[Entity | None]:
        """Execute it; see `Dynashard.transact`."""
        request: Wire | None = None
        pauses = self._store.retry_policy.pauses()
        throttles = 0
        while self._participants:
            request = self._request(request)
            verdict, error = self._send(request)
            if error is None or verdict is Verdict.DONE:
                # All of them are asked: each item that is elsewhere is moved home, whatever became of the others.
                visible = [participant.visible() for participant in (*self._participants, *self._guards)]
                if not all(visible):
                    raise self._naming(answered_late("TransactWriteItems"))
                break
            throttles += isinstance(error, ThrottledError)
            if isinstance(error, OutcomeUnknownError) or error.aws_code == _CANCELLED:
                # Another request takes another token: that of this one may be used up.
                request = None
            if verdict is Verdict.RETRY and (throttles == _THROTTLES or next(pauses, None) is None):
                raise self._given_up(error)
        return [participant.stored() for participant in self._participants]

    def _send(self, request: Wire) -> tuple[Verdict, EngineError | None]:
        """Send it once. If the companion's condition fails, it ends, whatever became of earlier attempts."""
        try:
            self._store.transport.call("TransactWriteItems", request)
        except OutcomeUnknownError as unknown:
            return Verdict.DONE if self._was_done(request, unknown) else Verdict.RETRY, unknown
        except TransactionCanceledError as cancelled:
            reasons = iter(cancelled.reasons)
            steps = zip((*self._participants, *self._guards), self._parts, strict=True)
            refused = [(step, [next(reasons, _NO_REASON) for _ in part]) for step, part in steps]
            reserved = [next(reasons, _NO_REASON) for _ in range(self._reserved)]
            companion = _NO_REASON if self._companion is None else next(reasons, _NO_REASON)
            if companion.condition_failed:
                failed = ConditionFailedError(str(cancelled), operation=cancelled.operation, item=companion.item)
                raise failed from cancelled
            # If one step was executed, all were.
            done = any(participant.did(why) for participant, why in refused)
            if done or (cancelled.ambiguous and self._was_done(request, cancelled)):
                return Verdict.DONE, cancelled
            if companion.refused and companion.transient:
                # Its condition was not evaluated, and decides before the conditions of the steps.
                return Verdict.RETRY, cancelled
            return self._learn(cancelled, refused, reserved), cancelled
        except (TransactionConflictError, ThrottledError) as error:
            return Verdict.RETRY, error
        return Verdict.DONE, None

    def _refuse_doubles(self) -> None:
        seen: dict[Any, int] = {}
        for number, participant in enumerate(self._participants):
            first = seen.setdefault(participant.writes.key, number)
            if first != number:
                raise InvalidKeyError(
                    f"steps {first} and {number} of the transaction concern one item, {participant.writes.name}: "
                    "make them one"
                )

    def _request(self, before: Wire | None) -> Wire:
        """The next request: the one before, token included, if its actions are the same, so it is executed once."""
        self._parts = [participant.actions() for participant in self._participants]
        reserved = self._reservations.actions()
        self._reserved = len(reserved)
        self._guards = self._reservations.guards
        self._parts += [guard.actions() for guard in self._guards]
        actions = [action for part in self._parts for action in part] + reserved
        if self._companion is not None:
            [participant] = self._participants
            item = participant.stored()
            assert item is not None  # noqa: S101 - a create stores an item
            actions.append(self._companion(item, participant.shards))
        if len(actions) > MOST_WRITES:
            raise InvalidQueryError(
                f"The transaction makes {len(actions)} stored writes of {len(self._participants)} steps, and "
                f"{MOST_WRITES} is the most. Send fewer steps; one that creates an item takes two while its shard "
                "count changes"
            )
        if before is not None and before["TransactItems"] == actions:
            return before
        _require_fits(actions, [step.prepared.write.item for step in self._participants])
        return {"TransactItems": actions, "ClientRequestToken": secrets.token_urlsafe(24)}

    def _was_done(self, request: Wire, error: EngineError) -> bool:
        """Whether a transaction with an ambiguous attempt was executed; if not, it never will be.

        Sends a harmless transaction with the same token. DynamoDB refuses it as a mismatch if the token's transaction
        was executed. If DynamoDB accepts it, the token is used up, and the other transaction is refused whenever it
        arrives. DynamoDB remembers tokens for ten minutes, which is longer than any operation.

        Cost: 2 write units, 1 round trip.
        """
        token = request["ClientRequestToken"]
        delete = {"TableName": self._store.table, "Key": {PK: {"S": SETTLED}, SK: {"S": token}}}
        harmless = {"TransactItems": [{"Delete": delete}], "ClientRequestToken": token}
        try:
            with evidence():
                self._store.transport.call("TransactWriteItems", harmless)
        except EngineError as failed:
            if failed.aws_code == TOKEN_MISMATCH:
                return True
            unknown = OutcomeUnknownError(
                "The transaction may have been done, or may still be: no usable answer came. Read what it writes "
                "before you send it again.",
                operation=error.operation,
                aws_code=error.aws_code,
            )
            raise self._naming(unknown) from failed
        return False

    def _naming(self, unknown: OutcomeUnknownError) -> OutcomeUnknownError:
        """Return the error with the item of the one step and the revision to look for; of several, none is named."""
        if len(self._participants) == 1:
            [participant] = self._participants
            unknown.key = participant.writes.named
            unknown.revision = participant.prepared.write.revision or None
        return unknown

    def _learn(
        self, cancelled: TransactionCanceledError, refused: Sequence[_Refused], reserved: Sequence[CancellationReason]
    ) -> Verdict:
        steps, guards = refused[: len(self._participants)], refused[len(self._participants) :]
        verdicts = [participant.learn(why) for participant, why in steps]
        verdicts += [self._reservations.learn_guard(guard, why) for guard, why in guards]
        verdict = max(*verdicts, self._reservations.learn(iter(reserved)))
        if verdict is Verdict.UNAFFECTED or not all(reason.transient for reason in cancelled.reasons):
            raise _explained(cancelled, refused)
        return verdict

    def _given_up(self, error: EngineError) -> EngineError:
        if isinstance(error, ThrottledError):
            parts = zip((*self._participants, *self._guards), self._parts, strict=True)
            owners = [participant for participant, part in parts for _ in part]
            hot = [owners[at] for at in error.actions if at < len(owners)]
            if not hot and not error.actions:
                hot = self._participants
            writes = [each.writes for each in hot]
            for each in {(each.entity.name, each.key.partition): each for each in writes}.values():
                self._store.throttled(each.entity, each.key.partition, error)
        if isinstance(error, ThrottledError | TransactionConflictError):
            return error
        return unsettled(self._participants[0].writes.entity, "TransactWriteItems")


def _require_fits(actions: Sequence[Wire], items: Sequence[Wire | None]) -> None:
    if len(actions) * MAX_ITEM_BYTES <= MOST_BYTES:
        return
    size = sum(item_size(item) for item in items if item is not None)
    if size > MOST_BYTES:
        raise ItemTooLargeError(
            f"The items of the transaction have {size} bytes together, and {MOST_BYTES} is the most: send fewer steps",
            size=size,
            limit=MOST_BYTES,
        )


def _explained(cancelled: TransactionCanceledError, refused: Sequence[_Refused]) -> DynashardError:
    """Return the error of a transaction that was not executed; an item or a sum that is too large has its own.

    Raises `UndecodableItemError` if a step adds to an item that does not fit its entity.
    """
    for participant, reasons in refused:
        for reason in reasons:
            if reason.code != CancellationReason.INVALID:
                continue
            if "Item size" in reason.message:
                return ItemTooLargeError(
                    f"A step of the transaction would make its item larger than {MAX_ITEM_BYTES} bytes. Store less "
                    "in it.",
                    size=None,
                    limit=MAX_ITEM_BYTES,
                )
            if error := refused_sum("A step of the transaction", reason.message):
                return participant.writes.sum_refused(error)
            participant.writes.require_decodable()
    return cancelled
