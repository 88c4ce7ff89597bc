"""From the members of a request for an entity to the operation's own request, and to its result."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from dynashard.errors import FieldError, ValidationFailedError
from dynashard.reads.filters import is_operators
from dynashard.reads.limits import DEFAULT_LIMIT
from dynashard.reads.operators import RANGE_WORDS
from dynashard.service import Dynashard
from dynashard_serving.commands.request import Asked, Members
from dynashard_serving.documents import Document
from dynashard_serving.exposure import UP_TO
from dynashard_serving.idempotency import IdempotentCreates
from dynashard_serving.operations.batches import Batches
from dynashard_serving.operations.choosing import index_of
from dynashard_serving.operations.conditions import UNCONDITIONAL, Conditions, Revisions
from dynashard_serving.operations.item_reads import Get, ItemReads
from dynashard_serving.operations.item_writes import ItemWrites
from dynashard_serving.operations.listings import Listings
from dynashard_serving.operations.mixed_batches import REQUESTS, MixedBatch, MixedBatches, requests_in
from dynashard_serving.operations.outcomes import Outcome
from dynashard_serving.operations.requests import (
    BatchGet,
    BatchWrite,
    Choice,
    Create,
    Delete,
    List,
    Paging,
    Put,
    Update,
)

HANDLING: Final = "handling"
"""The member that names a write guarantee; see docs/promises.md."""
CHOOSING: Final = ("partition", "index", "sort", "prefix", "from", "to", "filters", "consistent", "strict")
"""Members that choose items."""
PAGING: Final = ("order", "direction", "limit", "cursor")
"""Members that say how to turn their pages."""


class Entities:
    """The operations on entities, by their names."""

    def __init__(self, backend: Dynashard, idempotent: IdempotentCreates, clock: Callable[[], float]) -> None:
        self._reads = ItemReads(backend.collection)
        self._writes = ItemWrites(backend.collection, idempotent, clock)
        self._listings = Listings(backend.collection)
        self._batches = Batches(backend.collection, clock, self._writes)
        self._mixed_batches = MixedBatches(self._batches, self._writes)
        self.operations: Mapping[str, Callable[[Asked], Any]] = {
            "create": self._create,
            "get": self._get,
            "put": self._put,
            "update": self._update,
            "delete": self._delete,
            "list": self._list,
            "count": self._count,
            "batch_get": self._batch_get,
            "batch_write": self._batch_write,
            "batch": self._batch,
        }

    def _create(self, asked: Asked) -> Document:
        asked.only("item", "idempotency_key", HANDLING)
        request = Create(
            tenant=asked.tenant,
            item=asked.document("item"),
            handling=asked.text(HANDLING),
            idempotency_key=asked.text("idempotency_key"),
            seconds=asked.seconds,
            caller=asked.caller,
        )
        return self._writes.create(asked.served, request).document

    def _get(self, asked: Asked) -> Document | None:
        asked.only("key", "consistent", "include", "fields")
        request = Get(
            key=asked.key(),
            consistent=asked.flag("consistent"),
            include=asked.texts("include") or (),
            fields=asked.texts("fields"),
            caller=asked.caller,
        )
        return self._reads.get(asked.served, request).document

    def _put(self, asked: Asked) -> Mapping[str, Any]:
        asked.only("item", "if_match", HANDLING)
        request = Put(
            tenant=asked.tenant,
            item=asked.document("item"),
            conditions=_conditions(asked),
            handling=asked.text(HANDLING),
            caller=asked.caller,
        )
        stored = self._writes.put(asked.served, request)
        return {"item": stored.document, "created": stored.created}

    def _update(self, asked: Asked) -> Document:
        asked.only("key", "patch", "if_match", HANDLING)
        request = Update(
            key=asked.key(),
            patch=asked.patch(),
            conditions=_conditions(asked),
            handling=asked.text(HANDLING),
            caller=asked.caller,
        )
        return self._writes.update(asked.served, request)

    def _delete(self, asked: Asked) -> None:
        asked.only("key", "if_match", HANDLING)
        request = Delete(
            key=asked.key(), conditions=_conditions(asked), handling=asked.text(HANDLING), caller=asked.caller
        )
        self._writes.delete(asked.served, request)

    def _list(self, asked: Asked) -> Mapping[str, Any]:
        asked.only(*CHOOSING, *PAGING, "fields", "distinct")
        request = List(
            choice=_choice_of(asked),
            paging=paging_of(asked),
            fields=asked.texts("fields"),
            distinct=asked.text("distinct"),
        )
        return self._listings.page(asked.served, request).document

    def _count(self, asked: Asked) -> int | Mapping[str, Any]:
        asked.only(*CHOOSING, UP_TO)
        if asked.members.get(UP_TO) is None:
            return int(self._listings.count(asked.served, _choice_of(asked)))
        up_to = asked.number(UP_TO, 0)
        if up_to < 1:
            raise ValidationFailedError(FieldError(UP_TO, "Use a number from 1 on.", "out_of_range"))
        counted = self._listings.count(asked.served, _choice_of(asked), up_to=up_to)
        return {"count": int(counted), "exact": counted.exact}

    def _batch(self, asked: Asked) -> list[Outcome]:
        asked.only(REQUESTS, "idempotency_key")
        batch = MixedBatch(
            asked.tenant,
            requests_in(asked.members),
            idempotency_key=asked.text("idempotency_key"),
            seconds=asked.seconds,
            caller=asked.caller,
        )
        return self._mixed_batches.run(asked.served, batch)

    def _batch_get(self, asked: Asked) -> list[Outcome]:
        asked.only("keys", "consistent")
        request = BatchGet(
            tenant=asked.tenant,
            keys=asked.documents("keys", needed=True),
            consistent=asked.flag("consistent"),
            caller=asked.caller,
        )
        return self._batches.get(asked.served, request)

    def _batch_write(self, asked: Asked) -> Mapping[str, list[Outcome]]:
        asked.only("put", "delete")
        request = BatchWrite(
            tenant=asked.tenant, put=asked.documents("put"), delete=asked.documents("delete"), caller=asked.caller
        )
        return self._batches.write(asked.served, request)


def choice_of(asked: Members) -> Choice:
    """Which items of the table a request is about."""
    return Choice(
        tenant=asked.tenant,
        partition=asked.document("partition", needed=False),
        sort=asked.document("sort", needed=False),
        prefix=asked.text("prefix"),
        start=asked.text("from"),
        end=asked.text("to"),
        filters=asked.document("filters", needed=False),
        consistent=asked.flag("consistent"),
        strict=asked.flag("strict"),
        caller=asked.caller,
    )


def paging_of(asked: Members) -> Paging:
    """How a request wants the pages of a listing turned."""
    default = Paging()
    return Paging(
        order=asked.word("order", default.order),
        direction=asked.word("direction", default.direction),
        limit=asked.number("limit", DEFAULT_LIMIT),
        cursor=asked.text("cursor"),
    )


def _choice_of(asked: Asked) -> Choice:
    choice = choice_of(asked)
    operators = (
        (name, operator)
        for given in (choice.filters, choice.sort)
        for name, value in given.items()
        if is_operators(value)
        for operator in value
    )
    ranged = [name for name, operator in operators if operator in RANGE_WORDS]
    served, named = asked.served, asked.text("index")
    index = index_of(served, named, choice.partition, ranged)
    if index is None and not choice.sort.keys() <= set(served.definition.sort.fields):
        # The table's sort key lacks one of these fields, so they select an index, as over REST.
        index = index_of(served, named, {*choice.partition, *choice.sort}, ranged)
    return replace(choice, index=index)


def _conditions(asked: Members) -> Conditions:
    revision = asked.text("if_match")
    return UNCONDITIONAL if revision is None else Conditions(if_match=Revisions.named([revision]))
