"""Creates that are done once per idempotency key, most of them at once.

One transaction puts the item and the record, on condition that there is no record. So a create with an unknown outcome
can be sent again: the request that is executed first counts. As long as its record lives, no other one has any effect,
however late it is executed, even if the item is gone. A refused create leaves no record, so the retry of an error is a
new attempt.

Items that a transaction cannot hold are created in steps: see `stepwise`.
"""

import time
from collections.abc import Callable
from secrets import token_urlsafe
from typing import Any

from dynashard.codec import item_size
from dynashard.entity import Entity, definition
from dynashard.errors import ConditionFailedError, DynashardError, ItemTooLargeError, OutcomeUnknownError
from dynashard.repository import Companion
from dynashard.repository.interface import SingleItems
from dynashard.schema import IDEMPOTENCY_TTL, MAX_ITEM_BYTES
from dynashard.transport.deadline import within
from dynashard.transport.interface import Transport, Wire
from dynashard_serving.documents import REVISION, Document, representation
from dynashard_serving.idempotency.records import ANSWER, CLAIM, SHARDS, Attempt, Records, added, read, restored
from dynashard_serving.idempotency.stepwise import StepwiseCreates


class IdempotentCreates:
    """Creates that answer a repeated request as they answered the first. Safe to share between threads."""

    def __init__(self, table: str, transport: Transport, *, clock: Callable[[], float] = time.time) -> None:
        self._records = Records(table, transport, clock)
        self._in_steps = StepwiseCreates(self._records)

    def run(self, attempt: Attempt, items: SingleItems[Any]) -> tuple[Document, bool]:
        """Create once for this key.

        Returns:
            The item's document, and whether it is an earlier request's answer.

        Raises:
            AlreadyExistsError: a live item has the key, and there is no record. An earlier attempt of unknown outcome
                may still be executed.
            IdempotencyKeyReusedError: the key came with another body.
            OutcomeUnknownError: the same request can be sent again.
            RequestInProgressError: the first request is under way; only for what is created in steps.

        Cost: 1 round trip, and twice the write units of the item and of the record, which mostly has less than 1 KB;
        a repeat costs the same. In steps, 2 writes, or 1 for a repeat, in the idempotency table besides the create.
        """
        try:
            with within(attempt.seconds, reserve=True):
                return self._at_once(attempt, items) if items.can_create_with else self._in_steps.run(attempt, items)
        except OutcomeUnknownError as error:
            error.retryable = True
            raise

    def begun(self, attempt: Attempt) -> bool:
        """Return whether a request with this key has begun before, and its record lives longer than this one can take.

        Cost: 1 read unit in the idempotency table, 1 round trip.
        """
        kept = self._records.kept(attempt.record)
        # If its record expired meanwhile, this request would create the item, which nobody has prepared.
        return kept is not None and int(kept[IDEMPOTENCY_TTL]["N"]) > self._records.clock() + attempt.seconds

    def _at_once(self, attempt: Attempt, items: SingleItems[Any]) -> tuple[Document, bool]:
        try:
            attempt.check()
        except DynashardError:
            kept = self._records.kept(attempt.record)
            if kept is None:
                raise
            return self._answered(attempt, kept, items)
        claim = token_urlsafe()
        try:
            created = items.create_with(attempt.item, self._recording(attempt, claim))
        except ConditionFailedError as met:
            kept = dict(met.item or {})
            document, _ = self._answered(attempt, kept, items)
            return document, kept.get(CLAIM) != {"S": claim}
        return representation(created, created.revision), False

    def _recording(self, attempt: Attempt, claim: str) -> Companion:
        """What puts the record together with the item, if there is none."""
        now = self._records.clock()
        about = attempt.recorded(claim, now)

        def action(item: Entity, shards: int) -> Wire:
            answer = added(representation(item, item.revision), attempt.body)
            record = {**about, ANSWER: {"S": answer}, SHARDS: {"N": str(shards)}}
            _require_fits(record)
            return {"Put": self._records.first(record, now)}

        return action

    def _answered(self, attempt: Attempt, kept: Wire, items: SingleItems[Any]) -> tuple[Document, bool]:
        """The answer that a record holds."""
        attempt.refuse_reused(kept)
        if ANSWER not in kept:
            # It was begun in steps.
            return self._in_steps.run(attempt, items)
        with read(attempt.record):
            document = restored(kept[ANSWER]["S"], attempt.body)
            shards = int(kept[SHARDS]["N"]) if SHARDS in kept else None
        if shards is not None:
            declared = definition(type(attempt.item))
            key = {name: declared.assignment.check(name, document[name]) for name in declared.key_fields}
            # The first request may have ended before it was certain that readers find what it created.
            if not items.confirm_created(key, document[REVISION], shards):
                raise OutcomeUnknownError("The item was created, but is not yet where readers look. Ask again.")
        return document, True


def _require_fits(record: Wire) -> None:
    size = item_size(record)
    if size > MAX_ITEM_BYTES:
        raise ItemTooLargeError(
            f"The stored item differs from the request by {size} bytes, and {MAX_ITEM_BYTES} can be kept for "
            "repeats of the request. Store less in the item.",
            size=size,
            limit=MAX_ITEM_BYTES,
        )
