"""Creates that are done once per idempotency key, however often they are sent, by records in a table of their own.

A key belongs to one tenant and one entity. A record keeps only what the answer adds to the request (identifier,
revision, stamps, defaults). A retry sends the rest again, and its digest must equal that of the first request.

One transaction puts the item and the record, on condition that there is no record. So a create with an unknown outcome
can be sent again: the request that is executed first counts. As long as its record lives, no other one has any effect,
however late it is executed, even if the item is gone.

Items that a transaction cannot hold (attachments, random placement) are created in steps: the record keeps the planned
item, then the item is created, then the record gets the answer. A retry continues with the plan.

A refused create leaves no record, so the retry of an error is a new attempt.
"""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any, Final

from dynashard import schema
from dynashard.codec import item_size
from dynashard.entity import Entity, definition
from dynashard.errors import (
    AlreadyExistsError,
    ConditionFailedError,
    DynashardError,
    IdempotencyKeyReusedError,
    InputError,
    ItemTooLargeError,
    NotUniqueError,
    OutcomeUnknownError,
    RequestInProgressError,
)
from dynashard.repository import Companion
from dynashard.repository.interface import SingleItems
from dynashard.transport.deadline import evidence, within
from dynashard.transport.interface import Transport, Wire
from dynashard_serving.documents import REVISION, Document, given_part, representation, validated, without, written
from dynashard_serving.limits import LONGEST_SECONDS

KEPT_SECONDS: Final = 24 * 60 * 60
MAX_KEY_LENGTH: Final = 255

_CLAIM: Final = "claim"
_BODY: Final = "body"
_SUBJECT: Final = "subject"
_PLAN: Final = "item_plan"
_ANSWER: Final = "answer"
_SHARDS: Final = "shards"
_UNTIL: Final = "in_progress_expiration"
"""Attributes of a record; the last in milliseconds since the epoch."""

_REFUSED: Final = (InputError, AlreadyExistsError, NotUniqueError)
"""What says for certain that nothing was stored."""


def usable(key: str) -> bool:
    """Whether a text can be an idempotency key: 1 to 255 printable ASCII characters."""
    return 0 < len(key) <= MAX_KEY_LENGTH and key.isascii() and key.isprintable()


@dataclass(frozen=True, slots=True)
class Attempt:
    """A create that carries an idempotency key.

    Attributes:
        tenant: whose it is.
        key: the key; `usable`.
        body: the request, as its caller sent it.
        item: what is to be stored, its identifier included.
        seconds: the longest it can still take.
        check: raises an error if the create must not begin now. It is not called for a repeat.
        subject: the caller whom the key belongs to; None for one who may repeat the requests of all.
    """

    tenant: str
    key: str
    body: Document
    item: Entity
    seconds: float = LONGEST_SECONDS
    check: Callable[[], None] = lambda: None
    subject: str | None = None

    @property
    def record(self) -> str:
        """The key of its record."""
        return "create#" + _digest([self.tenant, definition(type(self.item)).name, self.key])


class IdempotentCreates:
    """Creates that answer a repeated request as they answered the first. Safe to share between threads."""

    def __init__(self, table: str, transport: Transport, *, clock: Callable[[], float] = time.time) -> None:
        self._table = table
        self._transport = transport
        self._clock = clock

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
                return self._at_once(attempt, items) if items.can_create_with else self._in_steps(attempt, items)
        except OutcomeUnknownError as error:
            error.retryable = True
            raise

    def _at_once(self, attempt: Attempt, items: SingleItems[Any]) -> tuple[Document, bool]:
        try:
            attempt.check()
        except DynashardError:
            kept = self._kept(attempt)
            if kept is None:
                raise
            return self._answered(attempt, kept, items)
        claim = token_urlsafe()
        try:
            created = items.create_with(attempt.item, self._recording(attempt, claim))
        except ConditionFailedError as met:
            kept = dict(met.item or {})
            document, _ = self._answered(attempt, kept, items)
            return document, kept.get(_CLAIM) != {"S": claim}
        return representation(created, created.revision), False

    def _recording(self, attempt: Attempt, claim: str) -> Companion:
        """What puts the record together with the item, if there is none."""
        now = self._clock()
        about = {
            schema.IDEMPOTENCY_KEY: {"S": attempt.record},
            schema.IDEMPOTENCY_TTL: {"N": str(int(now) + KEPT_SECONDS)},
            _CLAIM: {"S": claim},
            _BODY: {"S": _digest(attempt.body)},
            **_subject(attempt),
        }

        def action(item: Entity, shards: int) -> Wire:
            answer = _added(representation(item, item.revision), attempt.body)
            record = {**about, _ANSWER: {"S": answer}, _SHARDS: {"N": str(shards)}}
            _require_fits(record)
            return {"Put": self._first(record, now)}

        return action

    def begun(self, attempt: Attempt) -> bool:
        """Return whether a request with this key has begun before, and its record lives longer than this one can take.

        Cost: 1 read unit in the idempotency table, 1 round trip.
        """
        kept = self._kept(attempt)
        # If its record expired meanwhile, this request would create the item, which nobody has prepared.
        return kept is not None and int(kept[schema.IDEMPOTENCY_TTL]["N"]) > self._clock() + attempt.seconds

    def _kept(self, attempt: Attempt) -> Wire | None:
        """The record of an earlier request, if it has not expired."""
        key = {schema.IDEMPOTENCY_KEY: {"S": attempt.record}}
        request = {"TableName": self._table, "Key": key, "ConsistentRead": True}
        found: Wire | None = self._transport.call("GetItem", request).get("Item")
        if found is None or int(found[schema.IDEMPOTENCY_TTL]["N"]) < int(self._clock()):
            return None
        return found

    def _answered(self, attempt: Attempt, kept: Wire, items: SingleItems[Any]) -> tuple[Document, bool]:
        """The answer that a record holds."""
        _refuse_reused(attempt, kept)
        if _ANSWER not in kept:
            # It was begun in steps.
            return self._in_steps(attempt, items)
        document = _restored(kept[_ANSWER]["S"], attempt.body)
        if _SHARDS in kept:
            declared = definition(type(attempt.item))
            key = {name: declared.assignment.check(name, document[name]) for name in declared.key_fields}
            # The first request may have ended before it was certain that readers find what it created.
            if not items.confirm_created(key, document[REVISION], int(kept[_SHARDS]["N"])):
                raise OutcomeUnknownError("The item was created, but is not yet where readers look. Ask again.")
        return document, True

    def _in_steps(self, attempt: Attempt, items: SingleItems[Any]) -> tuple[Document, bool]:
        claim = token_urlsafe()
        kept, again = self._claimed(attempt, claim)
        if _ANSWER in kept:
            return _restored(kept[_ANSWER]["S"], attempt.body), True
        try:
            if not again:
                attempt.check()
            item = _planned(attempt, kept) if again else attempt.item
            document = _create(items, item, again=again)
        except Exception as error:
            # An earlier attempt may have stored the item: without the plan, the next one would store another.
            self._released(attempt, claim, forget=not again and isinstance(error, _REFUSED))
            raise
        self._finished(attempt, claim, document)
        return document, False

    def _claimed(self, attempt: Attempt, claim: str) -> tuple[Wire, bool]:
        """The record, and whether an earlier attempt has left it; it is ours unless it holds an answer."""
        now = self._clock()
        record = {
            schema.IDEMPOTENCY_KEY: {"S": attempt.record},
            schema.IDEMPOTENCY_TTL: {"N": str(int(now) + KEPT_SECONDS)},
            _CLAIM: {"S": claim},
            _BODY: {"S": _digest(attempt.body)},
            **_subject(attempt),
            _PLAN: {"S": _plan_of(attempt)},
            _UNTIL: _milliseconds(now + attempt.seconds),
        }
        try:
            self._transport.call("PutItem", self._first(record, now))
        except ConditionFailedError as failed:
            found: Wire = dict(failed.item or {})
            if found.get(_CLAIM) == record[_CLAIM]:
                return record, False
            _refuse_reused(attempt, found)
            if _ANSWER in found:
                return found, True
            if _UNTIL not in found or float(found[_UNTIL]["N"]) >= now * 1000:
                raise _in_progress() from None
            return self._taken_over(record, found), True
        return record, False

    def _first(self, record: Wire, now: float) -> Wire:
        return {
            "TableName": self._table,
            "Item": record,
            "ConditionExpression": "attribute_not_exists(#id) OR #ttl < :now",
            "ExpressionAttributeNames": {"#id": schema.IDEMPOTENCY_KEY, "#ttl": schema.IDEMPOTENCY_TTL},
            "ExpressionAttributeValues": {":now": {"N": str(int(now))}},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def _taken_over(self, record: Wire, found: Wire) -> Wire:
        """The record of an attempt that ended without an answer, as ours now: its plan holds."""
        try:
            self._update(
                record[schema.IDEMPOTENCY_KEY]["S"],
                "SET claim = :new, in_progress_expiration = :until",
                {":new": record[_CLAIM], ":until": record[_UNTIL], ":claim": found[_CLAIM]},
            )
        except ConditionFailedError as failed:
            if (failed.item or {}).get(_CLAIM) != record[_CLAIM]:
                raise _in_progress() from None
        return {**record, _PLAN: found[_PLAN]}

    def _released(self, attempt: Attempt, claim: str, *, forget: bool) -> None:
        """Let the next attempt begin: anew if nothing was stored, else with the same plan."""
        # An error of the record would hide the one that is being raised; the record expires by itself.
        with suppress(DynashardError), evidence():
            if forget:
                self._transport.call(
                    "DeleteItem",
                    {
                        "TableName": self._table,
                        "Key": {schema.IDEMPOTENCY_KEY: {"S": attempt.record}},
                        "ConditionExpression": "claim = :claim",
                        "ExpressionAttributeValues": {":claim": {"S": claim}},
                    },
                )
            else:
                self._update(
                    attempt.record,
                    "SET in_progress_expiration = :zero",
                    {":zero": {"N": "0"}, ":claim": {"S": claim}},
                )

    def _finished(self, attempt: Attempt, claim: str, document: Document) -> None:
        # The item is there; only the record of it may fail. Saying so beats an error that invites a repeat.
        with suppress(DynashardError), evidence():
            self._update(
                attempt.record,
                "SET answer = :answer REMOVE item_plan",
                {":answer": {"S": _added(document, attempt.body)}, ":claim": {"S": claim}},
            )

    def _update(self, record: str, expression: str, values: Wire) -> None:
        self._transport.call(
            "UpdateItem",
            {
                "TableName": self._table,
                "Key": {schema.IDEMPOTENCY_KEY: {"S": record}},
                "UpdateExpression": expression,
                "ConditionExpression": "claim = :claim",
                "ExpressionAttributeValues": values,
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            },
        )


def _plan_of(attempt: Attempt) -> str:
    """Return the plan of an attempt, as `_added`.

    Attachments are in it as they were sent, however the item has them: a record could not hold them.
    """
    document, attachments = given_part(attempt.item), definition(type(attempt.item)).attachments
    sent = {name: attempt.body[name] for name in attachments if name in document and name in attempt.body}
    return _added({**document, **sent}, attempt.body)


def _planned(attempt: Attempt, kept: Wire) -> Entity:
    """The item of an attempt that another process has begun, perhaps of a release with more fields."""
    model = type(attempt.item)
    document = _restored(kept[_PLAN]["S"], attempt.body)
    unknown = document.keys() - model.model_fields.keys()
    return validated(model, without(document, definition(model).server_fields | unknown))


def _create(items: SingleItems[Any], item: Entity, *, again: bool) -> Document:
    # Random placement would store it a second time, in another shard.
    created = _stored(items, item) if again else None
    try:
        created = created or items.create(item)
    except AlreadyExistsError:
        created = _stored(items, item) if again else None
        if created is None:
            raise
    return representation(created, created.revision)


def _stored(items: SingleItems[Any], item: Entity) -> Entity | None:
    """Return the item that an earlier attempt has stored, None if there is none.

    Raises `AlreadyExistsError` for another item of its key, or if the item was changed since.
    """
    declared = definition(type(item))
    found: Entity | None = items.find({name: getattr(item, name) for name in declared.key_fields}, consistent=True)
    if found is not None and _planned_fields(found) != _planned_fields(item):
        raise AlreadyExistsError(f"{declared.name}: the item exists already, and is another one or was changed since.")
    return found


def _planned_fields(item: Entity) -> Document:
    declared = definition(type(item))
    return without(given_part(item), declared.server_fields | declared.attachments.keys())


def _refuse_reused(attempt: Attempt, kept: Wire) -> None:
    mine = _subject(attempt).get(_SUBJECT)
    others = mine is not None and kept.get(_SUBJECT, mine) != mine
    if others or (_BODY in kept and kept[_BODY] != {"S": _digest(attempt.body)}):
        raise IdempotencyKeyReusedError(
            "This idempotency key came with another request: use a new key.", field="idempotency_key"
        ) from None


def _subject(attempt: Attempt) -> Wire:
    """Return whom a record answers, by a digest, if not every caller of the tenant."""
    return {} if attempt.subject is None else {_SUBJECT: {"S": _digest(attempt.subject)}}


def _require_fits(record: Wire) -> None:
    size = item_size(record)
    if size > schema.MAX_ITEM_BYTES:
        raise ItemTooLargeError(
            f"The stored item differs from the request by {size} bytes, and {schema.MAX_ITEM_BYTES} can be kept for "
            "repeats of the request. Store less in the item.",
            size=size,
            limit=schema.MAX_ITEM_BYTES,
        )


def _in_progress() -> RequestInProgressError:
    return RequestInProgressError("A request with this idempotency key is under way: ask again.")


def _milliseconds(seconds: float) -> Wire:
    return {"N": str(int(seconds * 1000))}


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _added(document: Document, body: Document) -> str:
    """What a document has beyond the body, and the order of all its fields, as text."""
    changed = {name: value for name, value in document.items() if _differs(name, value, body)}
    return written({"order": list(document), "added": changed})


def _differs(name: str, value: Any, body: Mapping[str, Any]) -> bool:
    return name not in body or written(body[name]) != written(value)


def _restored(kept: str, body: Document) -> Document:
    document = json.loads(kept)
    added = document["added"]
    return {name: added[name] if name in added else body[name] for name in document["order"]}
