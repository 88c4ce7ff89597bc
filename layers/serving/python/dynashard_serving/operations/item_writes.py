"""Writes of single items: create, put, update, delete."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dynashard.entity import Entity, WriteGuarantee
from dynashard.errors import (
    AlreadyExistsError,
    RevisionMismatchError,
    WriteContendedError,
)
from dynashard_serving.documents import Document, without
from dynashard_serving.idempotency import Attempt, IdempotentCreates
from dynashard_serving.limits import WRITE_ATTEMPTS
from dynashard_serving.operations.accepting import accept, item_of, refuse_untimely
from dynashard_serving.operations.conditions import PreconditionFailedError
from dynashard_serving.operations.item_reads import CollectionOf, shown
from dynashard_serving.operations.merging import merged, refuse_put
from dynashard_serving.operations.patching import attachments_read
from dynashard_serving.operations.requests import Create, Delete, Put, Update
from dynashard_serving.operations.served import Served


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
        served.require("create")
        item, items = item_of(served, request), self._collection_of(served.entity)

        def check() -> None:
            refuse_untimely(served, request, item, self._clock())

        if request.idempotency_key is None:
            check()
            return Created(_without_attachments(served, shown(items.create(item, handling=request.handling))))
        attempt = Attempt(request.tenant, request.idempotency_key, request.item, item, request.seconds, check)
        document, replayed = self._idempotent.run(attempt, items)
        return Created(_without_attachments(served, document), replayed)

    def put(self, served: Served, request: Put) -> Stored:
        """Replace an item, or create it. An item that exists may be replaced whatever its time.

        Raises:
            RevisionMismatchError, PreconditionFailedError: a condition does not hold.
            ValidationFailedError: with every field at fault; or it would create an item outside of its entity's window.
            WriteContendedError: other writers were faster each time.

        Cost: 1 write, and a read if the entity keeps a creation stamp, the conditions are more than one revision, or
        the item lies outside of the window.
        """
        served.require("put")
        item, items, now = item_of(served, request), self._collection_of(served.entity), self._clock()
        refuse_untimely(served, request, item, now)
        conditions, revision = request.conditions, request.conditions.single_revision
        timely = served.in_window(item, now)
        if revision is not None or (conditions.none and timely):
            done = items.put(item, if_match=revision, handling=request.handling)
            return _stored(served, done.item, created=done.created)
        if conditions.only_new and timely:
            try:
                return _stored(served, items.create(item, handling=request.handling), created=True)
            except AlreadyExistsError as error:
                raise PreconditionFailedError("The item exists already.") from error
        for current in _tries(lambda: items.find(item, consistent=True)):
            refuse_put(served, conditions, item, current, now)
            try:
                if current is None:
                    return _stored(served, items.create(item, handling=request.handling), created=True)
                done = items.put(item, over=current, handling=_of_what_was_read(request.handling))
                return _stored(served, done.item, created=done.created)
            except (AlreadyExistsError, RevisionMismatchError):
                continue
        raise _contended()

    def update(self, served: Served, request: Update) -> Document:
        """Apply a patch: to what was read, validate the whole, replace what was read.

        Raises:
            NotFoundError: there is no such item.
            PatchConflictError: a JSON Patch does not fit the item.
            RevisionMismatchError, PreconditionFailedError: a condition does not hold.
            ValidationFailedError: with every field at fault.
            WriteContendedError: other writers were faster each time.

        Cost: 1 consistent read and 1 write a try.
        """
        served.require("update")
        refuse_untimely(served, request, accept(served, request), self._clock())
        items, include = self._collection_of(served.entity), attachments_read(served, request.patch)
        handling = _of_what_was_read(request.handling)
        for current in _tries(lambda: items.get(request.key, consistent=True, include=include)):
            item = merged(served, request, current, self._clock())
            try:
                return shown(items.replace(item, over=current, handling=handling))
            except RevisionMismatchError:
                continue
        raise _contended()

    def delete(self, served: Served, request: Delete) -> None:
        """Delete an item.

        Raises:
            NotFoundError: there is none, whatever the conditions are.
            RevisionMismatchError, PreconditionFailedError: a condition does not hold.
            WriteContendedError: other writers were faster each time.

        Cost: 1 write, and a read if the conditions are more than one revision, or fail.
        """
        served.require("delete")
        items, conditions = self._collection_of(served.entity), request.conditions
        revision = conditions.single_revision
        if conditions.none or revision is not None:
            try:
                items.delete(request.key, if_match=revision, handling=request.handling)
            except RevisionMismatchError:
                items.get(request.key, consistent=True)
                raise
            return
        for current in _tries(lambda: items.get(request.key, consistent=True)):
            conditions.demand(current.revision)
            try:
                items.delete(request.key, if_match=current.revision, handling=_of_what_was_read(request.handling))
            except RevisionMismatchError:
                continue
            return
        raise _contended()


def _stored(served: Served, item: Entity, *, created: bool) -> Stored:
    document = shown(item)
    return Stored(_without_attachments(served, document) if created else document, created)


def _without_attachments(served: Served, document: Document) -> Document:
    return without(document, served.definition.attachments)


def _tries(read: Callable[[], Any]) -> Iterator[Any]:
    """The stored item, read again for each try."""
    return (read() for _ in range(WRITE_ATTEMPTS))


def _of_what_was_read(handling: str | None) -> str | None:
    """The level of a write on the revision that was just read: that is what guarded is."""
    return WriteGuarantee.PLAIN if handling == WriteGuarantee.GUARDED else handling


def _contended() -> WriteContendedError:
    return WriteContendedError("Other writers kept changing this item: try again.")
