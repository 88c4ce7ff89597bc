"""Reads of single items, without what writes them: the first request of a function is often a read."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from dynashard.entity import Entity
from dynashard.errors import FieldError, ValidationFailedError
from dynashard.service import Collection
from dynashard_serving.access import Caller
from dynashard_serving.documents import Document, part, representation
from dynashard_serving.operations.conditions import UNCONDITIONAL, Conditions
from dynashard_serving.operations.served import Served

CollectionOf = Callable[[type[Entity]], Collection[Any]]
Key = Mapping[str, Any]
"""The fields of a key, complete and typed, as `Served.key` makes it."""


class Get(Struct, frozen=True):
    """Read an item, or only `fields` of it; `include` names the attachments that come along."""

    key: Key
    consistent: bool = False
    include: Sequence[str] = ()
    conditions: Conditions = UNCONDITIONAL
    fields: Sequence[str] | None = None
    caller: Caller | None = None


class Found(Struct, frozen=True):
    """The result of a get; without a document if the request excluded the state that the item is in."""

    revision: str | None
    document: Document | None


class ItemReads:
    """The operation that reads single items. Safe to share between threads."""

    def __init__(self, collection_of: CollectionOf) -> None:
        self._collection_of = collection_of

    def get(self, served: Served, request: Get) -> Found:
        """Read an item, with the attachments that its entity is served with unless the request names some.

        Raises:
            NotFoundError: there is none that the caller may read.
            NotPermittedError: the caller may read none.
            RevisionMismatchError: `if_match` does not hold.
            ValidationFailedError: a field or an attachment is unknown.

        Cost: 1 read, and those of the attachments that it includes. DynamoDB bills the whole item, whatever its fields.
        """
        permit = served.permit("get", request.caller)
        known = served.definition.attachments
        if set(request.include).difference(known):
            message = f"Use a list of {', '.join(known) or 'nothing'}."
            raise ValidationFailedError(FieldError("include", message, "enum"))
        include = tuple(dict.fromkeys(request.include))
        if not include and request.fields is None:
            include = served.exposed.include
        items, fields = self._collection_of(served.entity), None
        if request.fields is not None:
            fields = served.projected(request.fields)
            if not include and not permit.narrow:
                found = items.part(request.key, fields=fields, consistent=request.consistent)
                shows = is_shown(request.conditions, found.revision)
                return Found(found.revision, part(served.entity, found.values) if shows else None)
        item = permit.found(lambda: items.get(request.key, consistent=request.consistent, include=include))
        if not is_shown(request.conditions, item.revision):
            return Found(item.revision, None)
        document = representation(item, item.revision)
        if fields is not None:
            # A required field that another version has not stored is None, as in a part that is read by itself.
            document = {name: document.get(name) for name in (*fields, *include)}
        return Found(item.revision, document)


def is_shown(conditions: Conditions, revision: str | None) -> bool:
    """Refuse a read whose `if_match` does not hold; return whether `if_none_match` holds."""
    if not conditions.match(revision):
        conditions.demand(revision)
    return conditions.none_match(revision)


def shown(item: Entity) -> Document:
    """The document of a stored item."""
    return representation(item, item.revision)
