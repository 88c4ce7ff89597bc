"""Creates with an idempotency key that no transaction can hold, in steps: for attachments and random placement.

The record keeps the planned item, then the item is created, then the record gets the answer. A retry continues with
the plan. A refused create leaves no record, so the retry of an error is a new attempt.
"""

from contextlib import suppress
from secrets import token_urlsafe
from typing import Any, Final

from dynashard.entity import Entity, definition
from dynashard.errors import (
    AlreadyExistsError,
    ConditionFailedError,
    DynashardError,
    InputError,
    NotUniqueError,
    RequestInProgressError,
)
from dynashard.repository.interface import SingleItems
from dynashard.schema import IDEMPOTENCY_KEY
from dynashard.transport.deadline import evidence
from dynashard.transport.interface import Wire
from dynashard_serving.documents import Document, given_part, representation, validated, without
from dynashard_serving.idempotency.records import ANSWER, CLAIM, PLAN, UNTIL, Attempt, Records, added, read, restored

_REFUSED: Final = (InputError, AlreadyExistsError, NotUniqueError)
"""What says for certain that nothing was stored."""


class StepwiseCreates:
    """Creates in steps. Safe to share between threads."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def run(self, attempt: Attempt, items: SingleItems[Any]) -> tuple[Document, bool]:
        """Create once for the key of an attempt; see `IdempotentCreates.run`.

        Cost: 2 writes of the record, or 1 for a repeat, besides the create.
        """
        claim = token_urlsafe()
        kept, again = self._claimed(attempt, claim)
        if ANSWER in kept:
            return restored(kept[ANSWER]["S"], attempt.body), True
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
        now = self._records.clock()
        until = {"N": str(int((now + attempt.seconds) * 1000))}
        record = {**attempt.recorded(claim, now), PLAN: {"S": _plan_of(attempt)}, UNTIL: until}
        try:
            self._records.put_first(record, now)
        except ConditionFailedError as failed:
            found: Wire = dict(failed.item or {})
            attempt.refuse_reused(found)
            if ANSWER in found:
                return found, True
            with read(attempt.record):
                under_way = UNTIL not in found or float(found[UNTIL]["N"]) >= now * 1000
            if under_way:
                raise _in_progress() from None
            return self._taken_over(record, found), True
        return record, False

    def _taken_over(self, record: Wire, found: Wire) -> Wire:
        """The record of an attempt that ended without an answer, as ours now: its plan holds."""
        update, values = f"SET {CLAIM} = :new, {UNTIL} = :until", {":new": record[CLAIM], ":until": record[UNTIL]}
        try:
            self._records.update(record[IDEMPOTENCY_KEY]["S"], found[CLAIM]["S"], update, values)
        except ConditionFailedError:
            raise _in_progress() from None
        return {**record, PLAN: found[PLAN]}

    def _released(self, attempt: Attempt, claim: str, *, forget: bool) -> None:
        """Let the next attempt begin: anew if nothing was stored, else with the same plan."""
        # An error of the record would hide the one that is being raised; the record expires by itself.
        with suppress(DynashardError), evidence():
            if forget:
                self._records.remove(attempt.record, claim)
            else:
                self._records.update(attempt.record, claim, f"SET {UNTIL} = :zero", {":zero": {"N": "0"}})

    def _finished(self, attempt: Attempt, claim: str, document: Document) -> None:
        answer = {":answer": {"S": added(document, attempt.body)}}
        # The item is there; only the record of it may fail. Saying so beats an error that invites a repeat.
        with suppress(DynashardError), evidence():
            self._records.update(attempt.record, claim, f"SET {ANSWER} = :answer REMOVE {PLAN}", answer)


def _plan_of(attempt: Attempt) -> str:
    """Return the plan of an attempt, as `added`.

    Attachments are in it as they were sent, however the item has them: a record could not hold them.
    """
    document, attachments = given_part(attempt.item), definition(type(attempt.item)).attachments
    sent = {name: attempt.body[name] for name in attachments if name in document and name in attempt.body}
    return added({**document, **sent}, attempt.body)


def _planned(attempt: Attempt, kept: Wire) -> Entity:
    """The item of an attempt that another process has begun, perhaps of a release with more fields."""
    model = type(attempt.item)
    with read(attempt.record):
        document = restored(kept[PLAN]["S"], attempt.body)
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


def _in_progress() -> RequestInProgressError:
    return RequestInProgressError("A request with this idempotency key is under way: ask again.")
