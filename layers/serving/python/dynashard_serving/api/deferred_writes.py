"""`Prefer: respond-async` (RFC 7240): a write is checked, recorded and sent to the queue, and answered with 202.

The caller reads the outcome from the record. It is written before the message is sent, so that every 202 has one. A
message without a record is never done, and its caller has got an error.
"""

import json
from base64 import b32encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http import HTTPStatus
from typing import Any, Final

from dynashard import Collection, Entity
from dynashard.errors import (
    AlreadyExistsError,
    IdempotencyKeyReusedError,
    NotFoundError,
    QueueUnavailableError,
    RevisionMismatchError,
    ValidationFailedError,
)
from dynashard_serving.api.headers import idempotency_key, preferences
from dynashard_serving.api.queue_sender import QueueMessage, QueueSender
from dynashard_serving.api.request import ApiRequest, path_values
from dynashard_serving.api.resource import PREFIX, Resource
from dynashard_serving.api.response import Response, json_response
from dynashard_serving.dependants import dependants_of
from dynashard_serving.documents import TENANT, given_part, representation, with_fixed, without
from dynashard_serving.operation_records import Operation
from dynashard_serving.operations.accepting import accept, item_of, refuse_untimely
from dynashard_serving.operations.item_reads import Key
from dynashard_serving.operations.requests import Create, Write
from dynashard_serving.operations.served import Served
from dynashard_serving.queue_messages import write_body

PREFERENCE: Final = "respond-async"
KEPT: Final = timedelta(days=7)
"""How long a record is kept: longer than a message can lie on a queue."""
ROOT: Final = f"{PREFIX}/operations"
WRITES: Final = ("create", "put", "update", "delete")
"""The operations that can be done later."""


def transacted(served: Served) -> bool:
    """Return whether an item and the record of its operation can be written in one transaction, and nothing else is.

    Without that a message that comes twice could be done twice: then the preference is left aside, as RFC 7240 allows,
    and the write is done at once.
    """
    entity = served.definition
    if served.exposed.numbered is not None or dependants_of(served.entity):
        return False
    return not entity.attachments and (entity.shards is None or entity.shards.placement != "random")


class DeferredWrites:
    """Accepts writes of a resource to be done later, where `transacted` allows it."""

    def __init__(
        self,
        resource: Resource,
        items: Collection[Any],
        records: Collection[Operation],
        *,
        sender: QueueSender,
        queue_url: str,
        clock: Callable[[], float],
    ) -> None:
        self._resource = resource
        self._items = items
        self._records = records
        self._sender = sender
        self._queue_url = queue_url
        self._clock = clock

    def accepted(self, incoming: ApiRequest, request: Write) -> Response[str] | None:
        """Accept a write if its caller prefers not to wait for it: 202. Return None if it is to be done at once.

        Cost: 1 write unit for the record, 1 call of SQS.
        """
        if (PREFERENCE, "") not in preferences(incoming.headers):
            return None
        served = self._resource.served
        permit = served.permit(type(request).__name__.lower(), request.caller)
        about, target = accept(served, request), incoming.path
        if isinstance(about, Entity):
            permit.require_new(about)
            self._items.check(about)
            if isinstance(request, Create):
                target = self._resource.location(representation(about, None))
        record = self._record(incoming, target)
        message = self._message(incoming, request, about, record.id)
        message.refuse_too_large()
        try:
            refuse_untimely(served, request, about, self._clock())
        except ValidationFailedError:
            # A repeat of an accepted request gets the first answer.
            if "idempotency-key" not in incoming.headers or self._records.find(record, consistent=True) is None:
                raise
        kept, repeated = self._kept(record)
        if kept.status is None:
            if repeated and isinstance(request, Create):
                message = self._message(incoming, request, self._item_of(kept, request), record.id)
            kept = self._sent(kept, message, keyed="idempotency-key" in incoming.headers)
        headers = {"Location": f"{ROOT}/{kept.id}", "Preference-Applied": PREFERENCE, "Retry-After": "1"}
        return json_response(representation(kept, kept.revision), HTTPStatus.ACCEPTED, headers)

    def _message(self, incoming: ApiRequest, request: Write, about: Entity | Key, operation_id: str) -> QueueMessage:
        permit = self._resource.served.permit(type(request).__name__.lower(), request.caller)
        body = write_body(
            self._resource.served,
            incoming.tenant,
            request,
            given_part(about) if isinstance(about, Entity) else None,
            operation_id=operation_id,
            accepted_at=self._clock(),
            request_id=incoming.request_id,
            caller=incoming.caller if permit.narrow else None,
        )
        return QueueMessage(body, self._group(about), operation_id)

    def _item_of(self, kept: Operation, request: Create) -> Entity:
        """Return the item of a repeated create under the key that its record names, which the server may have made."""
        served = self._resource.served
        values = path_values(kept.target, f"{self._resource.root}/", len(served.address)) or ()
        key = served.read_key(dict(zip(served.address, values, strict=True)), request.tenant)
        return item_of(served, request._replace(item=with_fixed(request.item, without(key, served.server_fields))))

    def _record(self, incoming: ApiRequest, target: str) -> Operation:
        kept_until = datetime.fromtimestamp(self._clock(), UTC) + KEPT
        fields: dict[str, str | None] = {TENANT: incoming.tenant, "method": incoming.method, "target": target}
        if self._resource.exposed.access is not None:
            fields["subject"] = incoming.caller.subject or ""
        key = idempotency_key(incoming.headers)
        if key is None:
            return Operation(**fields, expires_at=kept_until)
        route = f"{incoming.method} {incoming.path}"
        named = b32encode(sha256(f"{route}\n{key}".encode()).digest()).decode()[:32].lower()
        # Nobody has read the body of a delete.
        body = incoming.body.decode(errors="backslashreplace")
        asked = [_header(incoming, "if-match"), _header(incoming, "if-none-match"), body]
        request = sha256(json.dumps(asked).encode()).hexdigest()
        return Operation(**fields, id=named, request=request, expires_at=kept_until)

    def _kept(self, record: Operation) -> tuple[Operation, bool]:
        """The record as it is kept now, and whether it is that of an earlier request with the same idempotency key."""
        try:
            return self._records.create(record), False
        except AlreadyExistsError:
            earlier = self._records.get(record, consistent=True)
            if earlier.request != record.request or earlier.subject not in (None, record.subject):
                raise IdempotencyKeyReusedError(
                    "This Idempotency-Key came with another request: use a new key.", field="idempotency_key"
                ) from None
            return earlier, True

    def _sent(self, record: Operation, message: QueueMessage, *, keyed: bool) -> Operation:
        """Send the message of a record, and return the record as it is then."""
        try:
            self._sender.send(self._queue_url, [message])
        except QueueUnavailableError as error:
            # With an idempotency key the record stays: the queue may have accepted the message of another request with
            # it, and a repeat goes on from here. Without one nobody could repeat the request, so it is taken back.
            if not keyed and (ended := self._not_taken_back(record)) is not None:
                return ended
            raise QueueUnavailableError("The queue did not accept the request: send it again.") from error
        return record

    def _not_taken_back(self, record: Operation) -> Operation | None:
        """Delete a record, without which the queue's message is not done; return it if it is done already."""
        try:
            self._records.delete(record, if_match=record.revision)
        except (NotFoundError, RevisionMismatchError):
            return self._records.find(record, consistent=True)
        return None

    def _group(self, about: Entity | Key) -> str:
        key = self._resource.served.definition.key_of(about)
        return sha256(f"{key.partition}\n{key.sort}".encode()).hexdigest()


def _header(incoming: ApiRequest, name: str) -> str:
    return incoming.headers.get(name, "")
