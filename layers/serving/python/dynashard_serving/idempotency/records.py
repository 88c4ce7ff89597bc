"""Records of idempotency keys: what they hold, and how they are read, first stored, updated and removed.

A key belongs to one tenant and one entity. A record keeps only what the answer adds to the request (identifier,
revision, stamps, defaults). A retry sends the rest again, and its digest must equal that of the first request.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from dynashard import schema
from dynashard.entity import Entity, definition
from dynashard.errors import IdempotencyKeyReusedError, UndecodableItemError
from dynashard.transport.interface import Transport, Wire
from dynashard_serving.documents import Document, written
from dynashard_serving.limits import LONGEST_SECONDS

KEPT_SECONDS: Final = 24 * 60 * 60
MAX_KEY_LENGTH: Final = 255

CLAIM: Final = "claim"
BODY: Final = "body"
SUBJECT: Final = "subject"
PLAN: Final = "item_plan"
ANSWER: Final = "answer"
SHARDS: Final = "shards"
UNTIL: Final = "in_progress_expiration"
"""Attributes of a record; the last in milliseconds since the epoch."""


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

    def recorded(self, claim: str, now: float) -> Wire:
        """Return its record as it begins at `now`, in epoch seconds, under a claim that no other attempt has."""
        return {
            schema.IDEMPOTENCY_KEY: {"S": self.record},
            schema.IDEMPOTENCY_TTL: {"N": str(int(now) + KEPT_SECONDS)},
            CLAIM: {"S": claim},
            BODY: {"S": _digest(self.body)},
            **self._of_subject,
        }

    def refuse_reused(self, kept: Wire) -> None:
        """Raise `IdempotencyKeyReusedError` if a record is of another request, or of another caller."""
        mine = self._of_subject.get(SUBJECT)
        others = mine is not None and kept.get(SUBJECT, mine) != mine
        if others or (BODY in kept and kept[BODY] != {"S": _digest(self.body)}):
            raise IdempotencyKeyReusedError(
                "This idempotency key came with another request: use a new key.", field="idempotency_key"
            ) from None

    @property
    def _of_subject(self) -> Wire:
        """Whom its record answers, by a digest, if not every caller of the tenant."""
        return {} if self.subject is None else {SUBJECT: {"S": _digest(self.subject)}}


@contextmanager
def read(record: str) -> Iterator[None]:
    """Raise `UndecodableItemError` with the key of a record if what is read of it has another form."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UndecodableItemError(f"The idempotency record {record} cannot be read: {reason}") from error


class Records:
    """The table of idempotency records. Safe to share between threads."""

    def __init__(self, table: str, transport: Transport, clock: Callable[[], float]) -> None:
        self._table = table
        self._transport = transport
        self.clock = clock

    def kept(self, record: str) -> Wire | None:
        """Return the record with this key, if it has not expired. Cost: 1 read unit, 1 round trip."""
        key = {schema.IDEMPOTENCY_KEY: {"S": record}}
        request = {"TableName": self._table, "Key": key, "ConsistentRead": True}
        found: Wire | None = self._transport.call("GetItem", request).get("Item")
        with read(record):
            live = found is not None and int(found[schema.IDEMPOTENCY_TTL]["N"]) >= int(self.clock())
        return found if live else None

    def first(self, record: Wire, now: float) -> Wire:
        """Return the put of a record on condition that there is none; if there is one, its error has it."""
        return {
            "TableName": self._table,
            "Item": record,
            "ConditionExpression": "attribute_not_exists(#id) OR #ttl < :now",
            "ExpressionAttributeNames": {"#id": schema.IDEMPOTENCY_KEY, "#ttl": schema.IDEMPOTENCY_TTL},
            "ExpressionAttributeValues": {":now": {"N": str(int(now))}},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def put_first(self, record: Wire, now: float) -> None:
        """Store a record if there is none; raises `ConditionFailedError` with the one that there is."""
        self._transport.call("PutItem", self.first(record, now))

    def update(self, record: str, claim: str, expression: str, values: Wire) -> None:
        """Update a record while it is under a claim; else raises `ConditionFailedError`."""
        request = {**self._claimed(record, claim, values), "UpdateExpression": expression}
        self._transport.call("UpdateItem", request)

    def remove(self, record: str, claim: str) -> None:
        """Remove a record while it is under a claim; else raises `ConditionFailedError`."""
        self._transport.call("DeleteItem", self._claimed(record, claim, {}))

    def _claimed(self, record: str, claim: str, values: Wire) -> Wire:
        return {
            "TableName": self._table,
            "Key": {schema.IDEMPOTENCY_KEY: {"S": record}},
            "ConditionExpression": f"{CLAIM} = :claim",
            "ExpressionAttributeValues": {**values, ":claim": {"S": claim}},
        }


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def added(document: Document, body: Document) -> str:
    """Return what a document has beyond the body, and the order of all its fields, as text."""
    changed = {name: value for name, value in document.items() if _differs(name, value, body)}
    return written({"order": list(document), "added": changed})


def _differs(name: str, value: Any, body: Mapping[str, Any]) -> bool:
    return name not in body or written(body[name]) != written(value)


def restored(kept: str, body: Document) -> Document:
    """Return the document of which `added` has made a text."""
    document = json.loads(kept)
    more = document["added"]
    return {name: more[name] if name in more else body[name] for name in document["order"]}
