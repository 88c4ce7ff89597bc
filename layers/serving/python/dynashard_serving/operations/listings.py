"""Pages and counts of an entity's items."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from dynashard import Collection
from dynashard.entity import Entity
from dynashard.errors import UndecodableItemError
from dynashard.reads import Counted, Page, Partitions, Query
from dynashard.transport.interface import Wire
from dynashard_serving.documents import REVISION, item_texts, list_text, part, written
from dynashard_serving.operations.choosing import chosen, listed
from dynashard_serving.operations.item_reads import CollectionOf, shown
from dynashard_serving.operations.narrowing import judged, narrowed, refuse_unjudged
from dynashard_serving.operations.pages import Answer, named_outside, page_that_fits, stored_text
from dynashard_serving.operations.permits import Permit
from dynashard_serving.operations.requests import Choice, List
from dynashard_serving.operations.served import Served
from dynashard_serving.operations.unique_lookup import Named, unique_named


class Listings:
    """Pages and counts. Safe to share between threads."""

    def __init__(self, collection_of: CollectionOf) -> None:
        self._collection_of = collection_of

    def page(self, served: Served, request: List) -> Answer:
        """A page of what its caller may read. One that Lambda could not answer is read again with fewer items.

        A listing that is chosen by unique fields alone is a look-up: consistent, and at most one item.

        Raises:
            NotPermittedError: the caller may list no items, or not these.
            ValidationFailedError, InvalidKeyError: with the member at fault.
            InvalidCursorError: the cursor is not one of ours, or not for this listing.
            UndecodableItemError: it is to be strict, and a stored item does not fit its entity.

        Cost: what the order costs; see the collection's `list`.
        """
        permit = served.permit("list", request.choice.caller)
        items, options = self._collection_of(served.entity), listed(served, request)
        if served.definition.unique and (unique := unique_named(served, request)) is not None:
            return _looked_up(items, unique, request.fields, permit)
        if permit.narrow:
            refuse_unjudged(permit, distinct=request.distinct, strict=request.choice.strict)
            options = narrowed(served, permit, options)
        if permit.judges_each:
            read = judged(items.list, {served.entity: permit})
            return page_that_fits(read, {**options, "fields": None}, partial(_whole, request.fields))
        if request.fields is None:
            return page_that_fits(partial(_documents, items), options, stored_text)
        return page_that_fits(items.list, options, partial(_parts, served.entity))

    def count(self, served: Served, choice: Choice, *, up_to: int | None = None) -> Counted:
        """How many items there are that the caller may read; with `up_to`, that many and not exact if there are more.

        Raises:
            NotPermittedError: the caller may count no items, or a policy would have to judge each of them.
            ValidationFailedError, InvalidKeyError: with the member at fault.

        Cost: what reading all of them costs; with `up_to`, what reading so many that pass the filters costs, and up to
        16 Queries more.
        """
        permit = served.permit("count", choice.caller)
        refuse_unjudged(permit, count=True)
        options = narrowed(served, permit, chosen(served, choice))
        with named_outside():
            return self._collection_of(served.entity).count(**options, up_to=up_to)


def _looked_up(items: Collection[Any], named: Named, fields: Sequence[str] | None, permit: Permit) -> Answer:
    """The page with the item that has the values of unique fields, or without one if the caller may not read it."""
    stored = items.unique.find(*named)
    found = [] if stored is None or not _may_see(items, stored, permit) else [stored]
    if fields is None:
        text = stored_text([items.entity.document(each, REVISION) for each in found])
    else:
        text = _parts(items.entity.model, [items.entity.part(each, fields) for each in found])
    return Answer(f'{{"items":{text.decode()},"cursor":null}}', None, len(found))


def _may_see(items: Collection[Any], stored: Wire, permit: Permit) -> bool:
    if not permit.narrow:
        return True
    try:
        return permit.allows(items.entity.decode(stored))
    except UndecodableItemError as error:
        if error.retryable:
            # Another release can read it, and judge.
            raise
        return False


def _documents(items: Collection[Any], partition: Partitions, *, cursor: str | None, **arguments: Any) -> Page[Any]:
    query = Query(items.entity, partition, **arguments)
    return items.listing.page(query, cursor, revision_as=REVISION)


def _whole(fields: Sequence[str] | None, items: Sequence[Any]) -> bytes:
    """Return the JSON list of entities that were read as a whole, each with these fields only."""
    if fields is None:
        return list_text(item_texts(items))
    documents = (shown(item) for item in items)
    return list_text(written({name: document[name] for name in fields}).encode() for document in documents)


def _parts(model: type[Entity], items: Sequence[Any]) -> bytes:
    return list_text(written(part(model, item)).encode() for item in items)
