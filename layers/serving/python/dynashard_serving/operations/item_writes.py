"""Writes of single items: create, put, update, delete."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from dynashard.entity import Entity, WriteGuarantee
from dynashard.errors import (
    AlreadyExistsError,
    RevisionMismatchError,
    WriteContendedError,
)
from dynashard.repository import Written
from dynashard_serving.dependants import dependants_of, refuse_dependants
from dynashard_serving.documents import Document, without
from dynashard_serving.idempotency import Attempt, IdempotentCreates
from dynashard_serving.limits import WRITE_ATTEMPTS
from dynashard_serving.operations.accepting import accept, item_of, refuse_untimely
from dynashard_serving.operations.conditions import PreconditionFailedError
from dynashard_serving.operations.item_reads import CollectionOf, shown
from dynashard_serving.operations.merging import in_place_of, merged, refuse_probe, refuse_put
from dynashard_serving.operations.patching import attachments_read
from dynashard_serving.operations.permits import Permit
from dynashard_serving.operations.requests import Create, Delete, Put, Update
from dynashard_serving.operations.served import Served
from dynashard_serving.transitions import begun


class Created(NamedTuple):
    """A new item as its creator is answered, without the attachments that it has just sent.

    Attributes:
        document: the item.
        replayed: whether it is the answer of an earlier request with the idempotency key.
    """

    document: Document
    replayed: bool = False


class Stored(NamedTuple):
    """What a put has stored, and whether it created it."""

    document: Document
    created: bool


class ItemWrites:
    """The operations that write single items. Safe to share between threads."""

    def __init__(self, collection_of: CollectionOf, idempotent: IdempotentCreates, clock: Callable[[], float]) -> None:
        self._collection_of = collection_of
        self._idempotent = idempotent
        self._clock = clock

    def create(self, served: Served, request: Create) -> Created:
        """Store a new item.

        Raises:
            AlreadyExistsError: there is one.
            ValidationFailedError: with every field at fault.

        Cost: 1 write; an idempotency key doubles it, and adds 2.
        """
        permit = served.permit("create", request.caller)
        item, items = item_of(served, request), self._collection_of(served.entity)
        permit.require_new(item)

        def check() -> None:
            refuse_untimely(served, request, item, self._clock())

        attempt = None
        if request.idempotency_key is not None:
            attempt = Attempt(
                request.tenant,
                request.idempotency_key,
                request.item,
                item,
                request.seconds,
                check,
                _bound(served, request),
            )
        if served.exposed.has_lifecycle and (attempt is None or not self._idempotent.begun(attempt)):
            check()
            item = self._begun(served, item, request.idempotency_key)
        if attempt is None:
            check()
            created = items.create(item, handling=request.handling)
            return Created(_created(served, permit, shown(created), created))
        document, replayed = self._idempotent.run(replace(attempt, item=item), items)
        return Created(_created(served, permit, document, item), replayed)

    def put(self, served: Served, request: Put) -> Stored:
        """Replace an item, or create it. An item that exists may be replaced whatever its time.

        Raises:
            RevisionMismatchError, PreconditionFailedError: a condition does not hold.
            NotPermittedError: the caller may not put this item, or not over the stored one.
            ValidationFailedError: with every field at fault; or it would create an item outside of its entity's window.
            WriteContendedError: other writers were faster each time.

        Cost: 1 write, and a read if the entity keeps a creation stamp, the conditions are more than one revision,
        the item lies outside of the window, or the caller's right depends on the stored item.
        """
        permit = served.permit("put", request.caller)
        item, now = item_of(served, request), self._clock()
        permit.require_new(item)
        refuse_untimely(served, request, item, now)
        unread = None if permit.narrow or served.exposed.has_lifecycle else self._put_unread(served, request, item, now)
        done = unread or self._put_over_what_is_read(served, request, permit, item, now)
        return _stored(served, permit, done.item, created=done.created)

    def _put_unread(self, served: Served, request: Put, item: Entity, now: float) -> Written[Any] | None:
        """Put an item without reading the stored one first; None if the conditions or the window depend on that."""
        items, conditions, new = self._collection_of(served.entity), request.conditions, served.in_window(item, now)
        revision = conditions.single_revision
        if revision is not None or (conditions.none and new):
            return items.put(item, if_match=revision, handling=request.handling)
        if not conditions.only_new or not new:
            return None
        try:
            return Written(items.create(item, handling=request.handling), created=True)
        except AlreadyExistsError as error:
            raise PreconditionFailedError("The item exists already.") from error

    def _put_over_what_is_read(
        self, served: Served, request: Put, permit: Permit, item: Entity, now: float
    ) -> Written[Any]:
        items = self._collection_of(served.entity)
        for current in _tries(lambda: permit.replaced(lambda: items.find(item, consistent=True))):
            refuse_put(served, request.conditions, item, current, now)
            try:
                if current is None:
                    new = self._begun(served, item)
                    return Written(items.create(new, handling=request.handling), created=True)
                over = in_place_of(served, current, item, now) if served.exposed.has_lifecycle else item
                return items.put(over, over=current, handling=_of_what_was_read(request.handling))
            except (AlreadyExistsError, RevisionMismatchError):
                continue
        raise contended()

    def update(self, served: Served, request: Update) -> Document:
        """Apply a patch: to what was read, validate the whole, replace what was read.

        Raises:
            NotFoundError: there is no such item, or the caller may not read it.
            NotPermittedError: the caller may not change the item, or not so.
            PatchConflictError: a JSON Patch does not fit the item.
            RevisionMismatchError, PreconditionFailedError: a condition does not hold.
            ValidationFailedError: with every field at fault.
            WriteContendedError: other writers were faster each time.

        Cost: 1 consistent read and 1 write a try.
        """
        permit = served.permit("update", request.caller)
        refuse_untimely(served, request, accept(served, request), self._clock())
        items, include = self._collection_of(served.entity), attachments_read(served, request.patch)
        handling = _of_what_was_read(request.handling)
        for current in _tries(lambda: permit.found(lambda: items.get(request.key, consistent=True, include=include))):
            refuse_probe(permit, request, current)
            item = merged(served, request, current, self._clock())
            permit.require_new(item)
            try:
                stored = items.replace(item, over=current, handling=handling)
                return permit.shown(shown(stored), stored, served.definition.key_fields)
            except RevisionMismatchError:
                continue
        raise contended()

    def delete(self, served: Served, request: Delete) -> None:
        """Delete an item.

        Raises:
            NotFoundError: there is none that the caller may read, whatever the conditions are.
            NotPermittedError: the caller may not delete it.
            HasDependantsError: other items depend on it.
            RevisionMismatchError, PreconditionFailedError: a condition does not hold.
            WriteContendedError: other writers were faster each time.

        Cost: 1 write, and a read if the conditions are more than one revision, or fail, or if the caller's right
        depends on the stored item.
        """
        permit = served.permit("delete", request.caller)
        items, conditions = self._collection_of(served.entity), request.conditions
        revision, guarded = conditions.single_revision, bool(dependants_of(served.entity))
        if not permit.narrow and not guarded and (conditions.none or revision is not None):
            try:
                items.delete(request.key, if_match=revision, handling=request.handling)
            except RevisionMismatchError:
                items.get(request.key, consistent=True)
                raise
            return
        for current in _tries(lambda: permit.found(lambda: items.get(request.key, consistent=True))):
            conditions.demand(current.revision)
            if guarded:
                refuse_dependants(current, self._collection_of)
            try:
                items.delete(request.key, if_match=current.revision, handling=_of_what_was_read(request.handling))
            except RevisionMismatchError:
                continue
            return
        raise contended()

    def _begun(self, served: Served, item: Entity, idempotency_key: str | None = None) -> Entity:
        """Return a new item with what the server sets of it."""
        item = begun(served.exposed.transitions, item, self._clock())
        if served.exposed.numbered is None:
            return item
        from dynashard_serving.numbers import Numbers  # noqa: PLC0415 - few entities are numbered

        return Numbers(self._collection_of, self._clock).numbered(served.exposed.numbered, item, idempotency_key)


def _stored(served: Served, permit: Permit, item: Entity, *, created: bool) -> Stored:
    document = shown(item)
    if created:
        return Stored(_created(served, permit, document, item), created)
    return Stored(permit.shown(document, item, served.definition.key_fields), created)


def _created(served: Served, permit: Permit, document: Document, item: Entity) -> Document:
    plain = without(document, served.definition.attachments.keys() - set(served.exposed.include))
    return permit.shown(plain, item, served.definition.key_fields)


def _bound(served: Served, request: Create) -> str | None:
    """Return the subject whom an idempotency key belongs to; None if rules limit nobody, or not this caller."""
    if served.exposed.access is None or request.caller is None or request.caller.trusted:
        return None
    return request.caller.subject or ""


def _tries(read: Callable[[], Any]) -> Iterator[Any]:
    """The stored item, read again for each try."""
    return (read() for _ in range(WRITE_ATTEMPTS))


def _of_what_was_read(handling: str | None) -> str | None:
    """The level of a write on the revision that was just read: that is what guarded is."""
    return WriteGuarantee.PLAIN if handling == WriteGuarantee.GUARDED else handling


def contended() -> WriteContendedError:
    """Return the refusal of a write that other writers overtook each time it was tried."""
    return WriteContendedError("Other writers kept changing this item: try again.")
