"""A transaction: all of its steps at one moment, or none, in whatever phase their shard counts are."""

import secrets
from collections.abc import Iterator, Sequence
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
from dynashard.repository.operation import write_operation
from dynashard.repository.outcomes import settled_by_token, unsettled
from dynashard.repository.participant import Participant, Verdict
from dynashard.repository.store import Store
from dynashard.repository.transaction import Companion, Step
from dynashard.repository.transaction_steps import Steps, entity_of
from dynashard.schema import MAX_ITEM_BYTES
from dynashard.transport.classification import is_number_refused, no_number
from dynashard.transport.deadline import evidence
from dynashard.transport.interface import Wire

MOST_WRITES: Final = 100
MOST_BYTES: Final = 4 * 1024 * 1024
_CANCELLED: Final = "TransactionCanceledException"
_UNTOLD: Final = CancellationReason(CancellationReason.NONE)
_THROTTLES: Final = 4
"""How often a throttled transaction is tried, each time with all the retries of the transport."""

_Told = tuple[Participant, list[CancellationReason]]
"""A step, and why each of its actions was refused."""


class Transaction:
    """One transaction. For one thread.

    Args:
        store: the store.
        steps: what is done.
        beside: what is done with it in another table; then there is one step, a create.
    """

    def __init__(self, store: Store, steps: Sequence[Step], beside: Companion | None = None) -> None:
        self._store = store
        self._beside = beside
        known: dict[type[Entity], Steps] = {}
        self._participants: list[Participant] = []
        self._parts: list[list[Wire]] = []
        for number, step in enumerate(steps):
            model = entity_of(step)
            mine = known.get(model) or known.setdefault(model, Steps(store, model))
            self._participants.append(Participant(number, step, mine, store))
        self._refuse_doubles()

    @write_operation
    def run(self) -> list[Entity | None]:
        """Do it; see `Dynashard.transact`."""
        request: Wire | None = None
        pauses: Iterator[float] | None = None
        throttles = 0
        while self._participants:
            request = self._request(request)
            verdict, error = self._sent(request)
            if error is None or verdict is Verdict.DONE:
                self._confirm()
                break
            throttles += isinstance(error, ThrottledError)
            if isinstance(error, OutcomeUnknownError) or error.aws_code == _CANCELLED:
                # Another request takes another token: that of this one may be used up.
                request = None
            if verdict is Verdict.LATER:
                pauses = self._store.retry_policy.pauses() if pauses is None else pauses
                if throttles == _THROTTLES or next(pauses, None) is None:
                    raise self._given_up(error)
        return [participant.stored() for participant in self._participants]

    def _confirm(self) -> None:
        """Pass no success on that was told after a view had ended, before all of it is where readers look."""
        # All of them: each that stands elsewhere is brought home, whatever became of the others.
        stand = [participant.stands() for participant in self._participants]
        if not all(stand):
            raise answered_late("TransactWriteItems")

    def _sent(self, request: Wire) -> tuple[Verdict, EngineError | None]:
        """Send the transaction once; what its failure teaches, and None if there was none."""
        try:
            self._store.transport.call("TransactWriteItems", request)
        except OutcomeUnknownError as unknown:
            return Verdict.DONE if self._was_done(request, unknown) else Verdict.LATER, unknown
        except TransactionCanceledError as cancelled:
            self._refuse_beside(cancelled)
            told = self._told(cancelled)
            # The work of all of its steps was done if that of one was.
            done = any(participant.did(why) for participant, why in told)
            if done or (cancelled.ambiguous and self._was_done(request, cancelled)):
                return Verdict.DONE, cancelled
            return self._learn(cancelled, told), cancelled
        except (TransactionConflictError, ThrottledError) as hindered:
            return Verdict.LATER, hindered
        return Verdict.DONE, None

    def _refuse_doubles(self) -> None:
        seen: dict[Any, int] = {}
        for number, participant in enumerate(self._participants):
            first = seen.setdefault(participant.key, number)
            if first != number:
                raise InvalidKeyError(
                    f"steps {first} and {number} of the transaction concern one item, {participant.name}: make them one"
                )

    def _request(self, before: Wire | None) -> Wire:
        """What to send now. The same as before is the same request to DynamoDB, which then is done once."""
        self._parts = [participant.actions() for participant in self._participants]
        actions = [action for part in self._parts for action in part]
        if self._beside is not None:
            [participant] = self._participants
            item = participant.stored()
            assert item is not None  # noqa: S101 - a create has stored an item
            actions.append(self._beside(item, participant.shards))
        if len(actions) > MOST_WRITES:
            raise InvalidQueryError(
                f"The transaction makes {len(actions)} stored writes of {len(self._participants)} steps, and "
                f"{MOST_WRITES} is the most. Send fewer steps; one that creates an item takes two while its shard "
                "count changes"
            )
        if before is not None and before["TransactItems"] == actions:
            return before
        _require_fits(actions)
        return {"TransactItems": actions, "ClientRequestToken": secrets.token_urlsafe(24)}

    def _told(self, cancelled: TransactionCanceledError) -> list[_Told]:
        """The steps, and why each of them was refused."""
        reasons = iter(cancelled.reasons)
        told = [[next(reasons, _UNTOLD) for _ in part] for part in self._parts]
        return list(zip(self._participants, told, strict=True))

    def _why_beside(self, cancelled: TransactionCanceledError) -> CancellationReason:
        """Why the action on the other table was refused."""
        at = sum(map(len, self._parts))
        return cancelled.reasons[at] if self._beside is not None and at < len(cancelled.reasons) else _UNTOLD

    def _refuse_beside(self, cancelled: TransactionCanceledError) -> None:
        """End where the action on the other table may not be done, whatever became of attempts before.

        Raises:
            ConditionFailedError: with what stands in its way there.
        """
        why = self._why_beside(cancelled)
        if why.condition_failed:
            raise ConditionFailedError(str(cancelled), operation=cancelled.operation, item=why.item) from cancelled

    def _was_done(self, request: Wire, error: EngineError) -> bool:
        """Whether a transaction of which an attempt was ambiguous was done; if not, it never will be.

        Raises:
            OutcomeUnknownError: that cannot be told.
        """
        try:
            with evidence():
                return settled_by_token(self._store, request["ClientRequestToken"])
        except EngineError as failed:
            raise OutcomeUnknownError(
                "The transaction may have been done, or may still be: no usable answer came. Read what it writes "
                "before you send it again.",
                operation=error.operation,
                aws_code=error.aws_code,
            ) from failed

    def _learn(self, cancelled: TransactionCanceledError, participants: Sequence[_Told]) -> Verdict:
        beside = self._why_beside(cancelled)
        if beside.refused and beside.transient:
            # Its condition was not looked at: it decides before what the steps have met.
            return Verdict.LATER
        verdict = max(participant.learn(why) for participant, why in participants)
        if verdict is Verdict.NOTHING or not all(reason.transient for reason in cancelled.reasons):
            raise _explained(cancelled, participants)
        return verdict

    def _given_up(self, error: EngineError) -> EngineError:
        if isinstance(error, ThrottledError):
            owners = [
                participant for participant, part in zip(self._participants, self._parts, strict=True) for _ in part
            ]
            hot = [owners[at] for at in error.actions if at < len(owners)]
            if not hot and not (self._beside and error.actions):
                hot = self._participants
            for participant in {(c.entity.name, c.key.partition): c for c in hot}.values():
                self._store.throttled(participant.entity, participant.key.partition, error)
            return error
        if isinstance(error, TransactionConflictError):
            return error
        return unsettled(self._participants[0].entity, "TransactWriteItems")


def transact(store: Store, steps: Sequence[Step], beside: Companion | None = None) -> list[Entity | None]:
    """Do a transaction; see `Dynashard.transact`, and `Transaction` for `beside`."""
    return Transaction(store, steps, beside).run()


def _require_fits(actions: Sequence[Wire]) -> None:
    if len(actions) * MAX_ITEM_BYTES <= MOST_BYTES:
        return
    size = sum(item_size(action["Put"]["Item"]) for action in actions if "Put" in action)
    if size > MOST_BYTES:
        raise ItemTooLargeError(
            f"The items of the transaction have {size} bytes together, and {MOST_BYTES} is the most: send fewer steps",
            size=size,
            limit=MOST_BYTES,
        )


def _explained(cancelled: TransactionCanceledError, told: Sequence[_Told]) -> DynashardError:
    """An update that DynamoDB could not do: that it made its item or a sum too large is the caller's doing."""
    for participant, reasons in told:
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
            if is_number_refused(reason.message):
                return participant.steps.refuse_sum(participant.step, no_number("A step of the transaction"))
    return cancelled
