"""The requests of REST, direct invocation and the queue, after parsing; `item_reads` has that of a read.

A key is complete and typed, as `Served.key` makes it. Items and patches are JSON documents as their senders wrote them.
The values that select the items of a listing are JSON, or text from a query string: `Served.value` reads both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dynashard.reads.limits import DEFAULT_LIMIT
from dynashard_serving.access import Caller
from dynashard_serving.documents import Document
from dynashard_serving.limits import LONGEST_SECONDS
from dynashard_serving.operations.conditions import UNCONDITIONAL, Conditions
from dynashard_serving.operations.item_reads import Key


class Create(NamedTuple):
    """Store a new item.

    Attributes:
        tenant: whose it is.
        item: its document.
        handling: the write guarantee; the entity's own if None.
        idempotency_key: what a repeat of this request is recognised by.
        seconds: how long the request can still take.
        caller: who sends it, as in every request here; without it, entities with access rules refuse it.
    """

    tenant: str
    item: Document
    handling: str | None = None
    idempotency_key: str | None = None
    seconds: float = LONGEST_SECONDS
    caller: Caller | None = None


class Put(NamedTuple):
    """Replace an item, or create it, under a key; None if the key is in the document only."""

    tenant: str
    item: Document
    key: Key | None = None
    conditions: Conditions = UNCONDITIONAL
    handling: str | None = None
    caller: Caller | None = None


class Update(NamedTuple):
    """Apply a patch to an item: a JSON Merge Patch (RFC 7396) is an object, a JSON Patch (RFC 6902) a list."""

    key: Key
    patch: Document | list[Any]
    conditions: Conditions = UNCONDITIONAL
    handling: str | None = None
    caller: Caller | None = None


class Delete(NamedTuple):
    """Delete an item."""

    key: Key
    conditions: Conditions = UNCONDITIONAL
    handling: str | None = None
    caller: Caller | None = None


Write = Create | Put | Update | Delete


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which items of a tenant.

    Attributes:
        tenant: whose.
        partition: the fields of a logical partition; a list of values for a field names several partitions.
        index: the index to list, as `choosing.index_of` finds it; None for the table.
        sort: the first fields of the sort key.
        prefix: only sort keys that begin so.
        start: only sort keys from this one on.
        end: only sort keys before this one.
        filters: values of fields that the entity may be filtered by.
        consistent: see every write that was acknowledged before.
        strict: refuse to leave out stored items that do not fit their entity.
        caller: who sends the request.
    """

    tenant: str
    partition: Mapping[str, Any] = field(default_factory=dict)
    index: str | None = None
    sort: Mapping[str, Any] = field(default_factory=dict)
    prefix: str | None = None
    start: str | None = None
    end: str | None = None
    filters: Mapping[str, Any] = field(default_factory=dict)
    consistent: bool = False
    strict: bool = False
    caller: Caller | None = None


class Paging(NamedTuple):
    """How to turn the pages of a listing. None of them is checked before the listing is."""

    order: str = "round_robin"
    direction: str = "asc"
    limit: int = DEFAULT_LIMIT
    cursor: str | None = None


class List(NamedTuple):
    """List a page of items."""

    choice: Choice
    paging: Paging
    fields: Sequence[str] | None = None
    distinct: str | None = None


class BatchGet(NamedTuple):
    """Read items by their keys, which are as their sender wrote them."""

    tenant: str
    keys: Sequence[Document]
    consistent: bool = False
    caller: Caller | None = None


class BatchWrite(NamedTuple):
    """Store and delete items, each whether or not its key had one."""

    tenant: str
    put: Sequence[Document] = ()
    delete: Sequence[Document] = ()
    caller: Caller | None = None
