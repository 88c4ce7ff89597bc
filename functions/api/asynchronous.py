"""`Prefer: respond-async` (RFC 7240): a write is checked, recorded and laid on the queue, and answered with 202.

The record is what the caller asks what came of it. It is written before the message is sent, so that a 202 always has
one; a message whose record was never answered for does no harm, because its caller was told of an error.
"""

import json
from base64 import b32encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools.event_handler import Response

from domain import Operation
from dynashard import Collection, Entity
from dynashard.errors import (
    AlreadyExistsError,
    FieldError,
    IdempotencyKeyReusedError,
    InvalidValueError,
    NotFoundError,
    QueueUnavailableError,
    ValidationFailedError,
)
from dynashard.hosting.acceptance import refuse_past, refuse_past_expiry
from dynashard.hosting.idempotency import MAX_KEY_LENGTH, usable
from functions.api.bodies import (
    JSON,
    MERGE_PATCH,
    Document,
    json_object,
    refuse_changed,
    refuse_read_only,
    representation,
    validated,
    with_fixed,
    without,
    written,
)
from functions.api.conditional import Preconditions, Tags
from functions.api.incoming import Incoming
from functions.api.outbox import Letter, Outbox, as_body
from functions.api.parameters import consistent_only
from functions.api.problems import ProblemError
from functions.api.resource import PREFIX, TENANT, Resource

PREFERENCE: Final = "respond-async"
KEPT: Final = timedelta(days=7)
"""How long a record is kept: longer than a message can lie on a queue."""
ROOT: Final = f"{PREFIX}/operations"
_ANY: Final = "*"

Perform = Callable[[Incoming], Response[Any]]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A request that was checked: what its message says, which item it is about, and that item's address."""

    message: Mapping[str, Any]
    item: Mapping[str, Any] | Entity
    target: str
    check: Callable[[], None] = lambda: None
    """Raises an error if the write must not begin now. It is not called for a repeat of an accepted write."""


class Asynchronous:
    """Accepts writes of a resource to be done later.

    Args:
        resource: the resource.
        items: its items, for checks that send nothing.
        records: of operations.
        outbox: the way to the queue.
        queue_url: the queue, which keeps the order of each group.
        clock: epoch seconds.
    """

    def __init__(
        self,
        resource: Resource,
        items: Collection[Any],
        records: Collection[Operation],
        *,
        outbox: Outbox,
        queue_url: str,
        clock: Callable[[], float],
    ) -> None:
        self._resource = resource
        self._items = items
        self._records = records
        self._outbox = outbox
        self._queue_url = queue_url
        self._clock = clock
        self._accept = {
            "create": self._created,
            "put": self._put,
            "update": self._updated,
            "delete": self._deleted,
        }

    def where_preferred(self, name: str, perform: Perform) -> Perform:
        """An operation that is accepted for later where its caller prefers that, and else done at once.

        Cost of accepting: 1 write unit for the record, 1 call of SQS.
        """
        accept = self._accept[name]

        def answer(incoming: Incoming) -> Response[Any]:
            return self._answer(incoming, name, accept(incoming)) if preferred(incoming) else perform(incoming)

        return answer

    def _created(self, incoming: Incoming) -> Accepted:
        body = json_object(incoming)
        refuse_read_only(body, self._resource.server_fields)
        fixed = {TENANT: incoming.tenant}
        item = validated(self._resource.entity, with_fixed(body, fixed))
        refuse_changed(item, fixed)
        document = representation(item, None)
        self._resource.refuse_unaddressable(document)
        self._items.check(item)
        return Accepted({"item": document}, item, self._resource.location(document), self._unexpired(item))

    def _put(self, incoming: Incoming) -> Accepted:
        key = self._key(incoming)
        body = with_fixed(json_object(incoming), key)
        item = validated(self._resource.entity, without(body, self._resource.server_fields))
        refuse_changed(item, key)
        self._resource.refuse_unaddressable(_plain(key))
        self._items.check(item)
        return Accepted({"item": representation(item, None)}, item, incoming.path, self._unexpired(item))

    def _updated(self, incoming: Incoming) -> Accepted:
        key = self._key(incoming)
        patch = json_object(incoming, (MERGE_PATCH, JSON))
        self._refuse_patch(without(patch, self._resource.server_fields), key)
        expires = self._resource.definition.expires
        until = None if expires is None else patch.get(expires)
        if expires is None or until is None:
            return Accepted({"key": _plain(key), "patch": patch}, key, incoming.path)
        time = self._resource.definition.check_value(expires, until)
        return Accepted(
            {"key": _plain(key), "patch": patch}, key, incoming.path, lambda: refuse_past(expires, time, self._clock())
        )

    def _deleted(self, incoming: Incoming) -> Accepted:
        key = self._key(incoming)
        return Accepted({"key": _plain(key)}, key, incoming.path)

    def _key(self, incoming: Incoming) -> dict[str, Any]:
        consistent_only(incoming.query, allowed=False)
        return self._resource.key_of(incoming)

    def _refuse_patch(self, patch: Document, key: Mapping[str, Any]) -> None:
        """Refuse what would be wrong whatever the item is; the rest is checked when it is done."""
        errors = []
        for name, value in patch.items():
            field = self._resource.entity.model_fields.get(name)
            if field is None:
                errors.append(FieldError(name, "There is no such field.", "extra_forbidden"))
            elif value is None:
                if field.is_required():
                    errors.append(FieldError(name, "The field is required: it cannot be removed.", "missing"))
            elif not isinstance(value, dict):
                try:
                    checked = self._resource.definition.check_value(name, value)
                except InvalidValueError as error:
                    errors.append(FieldError(name, str(error), error.code))
                    continue
                if name in key and checked != key[name]:
                    told = "The address and the token decide this field: leave it out or as it is."
                    errors.append(FieldError(name, told, "immutable"))
        if errors:
            raise ValidationFailedError(*errors)

    def _answer(self, incoming: Incoming, name: str, accepted: Accepted) -> Response[str]:
        record = self._record(incoming, accepted)
        conditions = Preconditions.of(incoming.headers)
        message = {
            "entity": self._resource.definition.name,
            "operation": name,
            TENANT: incoming.tenant,
            **accepted.message,
            "operation_id": record.id,
            "if_match": _revisions(conditions.if_match, weak=False),
            "if_none_match": _revisions(conditions.if_none_match, weak=True),
            "accepted_at": int(self._clock() * 1000),
        }
        letter = Letter(as_body(message), self._group(accepted.item), record.id)
        letter.refuse_too_large()
        self._refuse_unless_repeated(incoming, accepted, record)
        kept = self._kept(record)
        if kept.status is None:
            self._send(kept, letter)
        headers = {"Location": f"{ROOT}/{kept.id}", "Preference-Applied": PREFERENCE, "Retry-After": "1"}
        body = written(representation(kept, kept.revision))
        return Response(HTTPStatus.ACCEPTED, content_type=JSON, body=body, headers=headers)

    def _record(self, incoming: Incoming, accepted: Accepted) -> Operation:
        kept_until = datetime.fromtimestamp(self._clock(), UTC) + KEPT
        fields = {TENANT: incoming.tenant, "method": incoming.method, "target": accepted.target}
        key = incoming.headers.get("idempotency-key")
        if key is None:
            return Operation(**fields, expires_at=kept_until)
        if not usable(key):
            raise ProblemError(
                "malformed_header", f"Idempotency-Key is 1 to {MAX_KEY_LENGTH} printable ASCII characters."
            )
        route = f"{incoming.method} {incoming.path}"
        named = b32encode(sha256(f"{route}\n{key}".encode()).digest()).decode()[:32].lower()
        asked = [_header(incoming, "if-match"), _header(incoming, "if-none-match"), incoming.body.decode()]
        request = sha256(json.dumps(asked).encode()).hexdigest()
        return Operation(**fields, id=named, request=request, expires_at=kept_until)

    def _unexpired(self, item: Entity) -> Callable[[], None]:
        return lambda: refuse_past_expiry(item, self._clock())

    def _refuse_unless_repeated(self, incoming: Incoming, accepted: Accepted, record: Operation) -> None:
        """Refuse a write that must not begin now, unless it was accepted before. Cost: a read of the record if so."""
        try:
            accepted.check()
        except ValidationFailedError:
            if "idempotency-key" not in incoming.headers or self._records.find(record, consistent=True) is None:
                raise

    def _kept(self, record: Operation) -> Operation:
        """The record as it is kept now: this request's, or that of an earlier one with the same idempotency key."""
        try:
            return self._records.create(record)
        except AlreadyExistsError:
            earlier = self._records.get(record, consistent=True)
            if earlier.request != record.request:
                raise IdempotencyKeyReusedError(
                    "This Idempotency-Key came with another request: use a new key."
                ) from None
            return earlier

    def _send(self, record: Operation, letter: Letter) -> None:
        try:
            self._outbox.send(self._queue_url, [letter])
        except QueueUnavailableError as error:
            # It may lie on the queue all the same; without its record nobody does it.
            self._take_back(record)
            raise QueueUnavailableError("The queue did not take the request: send it again.") from error

    def _take_back(self, record: Operation) -> None:
        try:
            self._records.delete(record, if_match=record.revision)
        except NotFoundError:
            return

    def _group(self, item: Mapping[str, Any] | Entity) -> str:
        key = self._resource.definition.key_of(item)
        return sha256(f"{key.partition}\n{key.sort}".encode()).hexdigest()


def preferred(incoming: Incoming) -> bool:
    """Whether a request carries the preference `respond-async`."""
    preferences = incoming.headers.get("prefer", "").split(",")
    return any(each.partition(";")[0].strip().lower() == PREFERENCE for each in preferences)


def _plain(key: Mapping[str, Any]) -> Document:
    return with_fixed({}, key)


def _header(incoming: Incoming, name: str) -> str:
    return incoming.headers.get(name, "")


def _revisions(tags: Tags | None, *, weak: bool) -> list[str] | None:
    """The revisions that a header names; weak tags never match where a strong comparison is asked for."""
    if tags is None:
        return None
    if tags.anything:
        return [_ANY]
    return sorted(tags.strong | tags.weak if weak else tags.strong)
