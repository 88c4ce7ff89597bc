"""Many items at a time, each with an outcome of its own."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from dynashard.entity import Entity
from dynashard.errors import (
    MOST_FIELD_ERRORS,
    AlreadyExistsError,
    AnswerTooLargeError,
    DynashardError,
    FieldError,
    InputError,
    InvalidKeyError,
    NotFoundError,
    RevisionMismatchError,
    UnprocessedError,
    ValidationFailedError,
)
from dynashard.repository import Found
from dynashard.service import Collection
from dynashard_serving.dependants import dependants_of
from dynashard_serving.documents import Document, written
from dynashard_serving.limits import MAX_ANSWER_BYTES, MAX_BATCH
from dynashard_serving.operations.accepting import item_of, refuse_untimely
from dynashard_serving.operations.item_reads import CollectionOf, shown
from dynashard_serving.operations.item_writes import ItemWrites, contended
from dynashard_serving.operations.outcomes import Outcome, done, refused
from dynashard_serving.operations.pages import answer_bytes
from dynashard_serving.operations.permits import MISSING, NotPermittedError, Permit
from dynashard_serving.operations.requests import BatchGet, BatchWrite, Delete, Put
from dynashard_serving.operations.served import Served
from dynashard_serving.refusals import shortened

ItemKey = Hashable
"""A key as an entity's definition has it."""
Place = tuple[str, int]
"""The place of a write in its request: `put` or `delete`, and its number there."""
Writes = dict[ItemKey, tuple[Place, Any]]

_SHORT_MESSAGE: Final = 200
_SHOWN_KEYS: Final = 10


class Batches:
    """Reads and writes of many items of an entity. Safe to share between threads."""

    def __init__(self, collection_of: CollectionOf, clock: Callable[[], float], writes: ItemWrites) -> None:
        self._collection_of = collection_of
        self._clock = clock
        self._writes = writes

    def get(self, served: Served, request: BatchGet) -> list[Outcome]:
        """Read items by their keys: an outcome for each key, in their order.

        Items that one answer cannot hold are refused as `answer_too_large`: request them again.

        Raises:
            ValidationFailedError: too many keys.
            NotPermittedError: the caller may read no items.

        Cost: 1 read each, 1 round trip for 100.
        """
        permit = served.permit("batch_get", request.caller)
        _refuse_many(keys=request.keys)
        refusals = Refusals()
        outcomes: dict[int, Outcome] = {}
        keys: dict[int, Document] = {}
        for place, document in enumerate(request.keys):
            try:
                keys[place] = served.key(document, request.tenant, f"keys.{place}")
                served.definition.key_of(keys[place])
            except InputError as error:
                outcomes[place] = refusals.of(error)
                keys.pop(place, None)
        try:
            items = self._collection_of(served.entity)
            found = items.batch_get(list(keys.values()), consistent=request.consistent)
        except UnprocessedError as error:
            # The error does not say which items were read, so all of them may be requested again.
            outcomes |= dict.fromkeys(keys, refusals.of(error))
            found = Found()
        refused_items = {at: each.error for at, each in found.left_out.items()}
        for at, (place, item) in enumerate(zip(keys, found, strict=False)):
            if item is not None and permit.allows(item):
                outcomes[place] = done(shown(item))
            elif at in refused_items and _is_said(refused_items[at], permit):
                outcomes[place] = refusals.of(refused_items[at])
            else:
                # Also what the caller may not read, or what cannot be judged.
                outcomes[place] = refused(NotFoundError(MISSING))
        return fitting([outcomes[place] for place in range(len(request.keys))])

    def write(self, served: Served, request: BatchWrite) -> Mapping[str, list[Outcome]]:
        """Store and delete items, each whether or not its key had one: an outcome for each.

        An item outside of its entity's window can only replace one that exists.

        Raises:
            ValidationFailedError: too many items or keys.
            NotPermittedError: the caller may put no items, or delete none, and the batch does.

        Cost: 1 write each, 1 round trip for 25; outside of the window, or if the caller's right depends on the stored
        item, 1 read more each, and 1 round trip each. Where a write depends on what is stored, by transitions, numbers
        or dependants, what each costs as a single write.
        """
        served.require("batch_write")
        parts = {"put": request.put, "delete": request.delete}
        permits = {kind: served.permit(kind, request.caller) for kind, given in parts.items() if given}
        _refuse_many(put=request.put, delete=request.delete)
        refusals, now = Refusals(), self._clock()
        outcomes: dict[Place, Outcome] = {}
        writes: Writes = {}
        singly = served.exposed.has_lifecycle or bool(dependants_of(served.entity))
        places = [
            *((("put", number), document) for number, document in enumerate(request.put)),
            *((("delete", number), document) for number, document in enumerate(request.delete)),
        ]
        for place, document in places:
            try:
                item = _write_of(served, request.tenant, place, document, now)
                if place[0] == "put":
                    permits["put"].require_new(item)
                key = served.definition.key_of(item)
                if key in writes:
                    raise InvalidKeyError("This key appears twice in this batch; send it once.")
                writes[key] = place, item
            except (InputError, NotPermittedError) as error:
                outcomes[place] = refusals.of(error)
        if singly:
            outcomes |= self._singly(served, request, writes, refusals)
            writes = {}
        by_stored = {
            key: (place, each)
            for key, (place, each) in writes.items()
            if permits[place[0]].narrow or (place[0] == "put" and not served.in_window(each, now))
        }
        outcomes |= self._by_stored(served, by_stored, permits, refusals, now)
        others = {key: write for key, write in writes.items() if key not in by_stored}
        outcomes |= self._written(served, others, refusals)
        return {
            "put": [outcomes["put", number] for number in range(len(request.put))],
            "delete": [outcomes["delete", number] for number in range(len(request.delete))],
        }

    def _singly(
        self, served: Served, request: BatchWrite, writes: Writes, refusals: "Refusals"
    ) -> dict[Place, Outcome]:
        """Do writes that depend on what is stored, each by itself, as single writes are done."""
        outcomes: dict[Place, Outcome] = {}
        for place, about in writes.values():
            kind, number = place
            try:
                if kind == "put":
                    self._writes.put(
                        served, Put(tenant=request.tenant, item=request.put[number], caller=request.caller)
                    )
                else:
                    with suppress(NotFoundError):
                        self._writes.delete(served, Delete(key=about, caller=request.caller))
                outcomes[place] = done(None)
            except DynashardError as error:
                outcomes[place] = refusals.of(error)
        return outcomes

    def _by_stored(
        self, served: Served, writes: Writes, permits: Mapping[str, Permit], refusals: "Refusals", now: float
    ) -> dict[Place, Outcome]:
        """Write what depends on the stored item, each by itself."""
        if not writes:
            return {}
        items = self._collection_of(served.entity)
        try:
            found = items.batch_get([item for _, item in writes.values()], consistent=True)
        except UnprocessedError as error:
            return {place: refusals.of(error) for place, _ in writes.values()}
        outcomes: dict[Place, Outcome] = {}
        for at, (place, item) in enumerate(writes.values()):
            permit, read = permits[place[0]], partial(_item_at, found, at)
            try:
                if place[0] == "delete":
                    _delete(items, permit, item, read)
                elif (current := permit.replaced(read)) is None:
                    served.refuse_outside_window(item, now)
                    items.create(item)
                else:
                    items.put(item, if_match=current.revision)
                outcomes[place] = done(None)
            except (AlreadyExistsError, RevisionMismatchError):
                # Nobody has demanded either: it depends on what was read.
                outcomes[place] = refusals.of(contended())
            except DynashardError as error:
                outcomes[place] = refusals.of(error)
        return outcomes

    def _written(self, served: Served, writes: Writes, refusals: "Refusals") -> dict[Place, Outcome]:
        puts = [(place, item) for place, item in writes.values() if place[0] == "put"]
        deletes = [(place, key) for place, key in writes.values() if place[0] == "delete"]
        outcomes = self._collection_of(served.entity).try_batch_write(
            put=[item for _, item in puts], delete=[key for _, key in deletes]
        )
        return {
            place: done(None) if error is None else refusals.of(error)
            for (place, _), error in zip((*puts, *deletes), outcomes, strict=True)
        }


class Refusals:
    """Makes outcomes of refused items. All outcomes together name at most 50 fields, and count the others."""

    def __init__(self) -> None:
        self._room = MOST_FIELD_ERRORS

    def of(self, error: DynashardError) -> Outcome:
        """The outcome of an item that was refused."""
        outcome = refused(error)
        shown_error = outcome["error"]
        if "keys" in shown_error["details"]:
            # Otherwise each of the outcomes would list the keys of all of them.
            shown_error["details"]["keys"] = shown_error["details"]["keys"][:_SHOWN_KEYS]
        named = shown_error.pop("errors", [])
        kept = named[: self._room]
        self._room -= len(kept)
        if kept:
            shown_error["errors"] = kept
        else:
            shown_error["message"] = shortened(shown_error["message"], _SHORT_MESSAGE)
        if omitted := shown_error.get("errors_omitted", 0) + len(named) - len(kept):
            shown_error["errors_omitted"] = omitted
        return outcome


def _refuse_many(**lists: Sequence[Document]) -> None:
    errors = [
        FieldError(name, f"Send at most {MAX_BATCH} at a time.", "out_of_range")
        for name, given in lists.items()
        if len(given) > MAX_BATCH
    ]
    if errors:
        raise ValidationFailedError(*errors)


def _write_of(served: Served, tenant: str, place: Place, document: Document, now: float) -> Any:
    kind, number = place
    if kind != "put":
        return served.key(document, tenant, f"{kind}.{number}")
    request = Put(tenant=tenant, item=document)
    item = item_of(served, request)
    refuse_untimely(served, request, item, now)
    return item


def _is_said(error: DynashardError, permit: Permit) -> bool:
    """Return whether an answer says that an item cannot be decoded, as `Permit.found` decides it."""
    return error.retryable or not permit.narrow


def _item_at(found: Found[Entity], at: int) -> Entity | None:
    """Return an item of a batch, None if there is none; raise the error of one that cannot be decoded."""
    if at in found.left_out:
        raise found.left_out[at].error
    return found[at]


def _delete(items: Collection[Any], permit: Permit, key: Document, read: Callable[[], Entity | None]) -> None:
    """Delete an item. One that the caller may not read is answered as one that does not exist: there is nothing to do.

    Raises:
        NotPermittedError: the caller may read it, and not delete it.
    """
    with suppress(NotFoundError):
        if (current := permit.found(read)) is not None:
            items.delete(key, if_match=current.revision)


def fitting(outcomes: Sequence[Outcome], room: int = MAX_ANSWER_BYTES) -> list[Outcome]:
    """Return the outcomes, with refusals instead of those that do not fit into `room` bytes of one answer."""
    kept_outcomes = []
    too_large: DynashardError = AnswerTooLargeError("One answer cannot hold this item too: request it again.")
    for outcome in outcomes:
        size = answer_bytes(written(outcome))
        kept = outcome if size <= room else refused(too_large)
        room -= answer_bytes(written(kept))
        kept_outcomes.append(kept)
    return kept_outcomes
