"""`POST` of queued entities: checked, sent to the queue, answered with 202. No request to DynamoDB is made."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final

from dynashard import Collection
from dynashard.errors import FieldError, InputError, QueueUnavailableError, ValidationFailedError
from dynashard_patterns.batches import bounded
from dynashard_serving.api.queue_sender import QueueMessage, QueueSender
from dynashard_serving.api.request import ApiRequest
from dynashard_serving.api.resource import Resource
from dynashard_serving.api.response import Response, json_response
from dynashard_serving.documents import Document, given_part
from dynashard_serving.operations.accepting import item_of, refuse_untimely
from dynashard_serving.operations.permits import Permit
from dynashard_serving.operations.requests import Create
from dynashard_serving.queue_messages import as_body, creates_body

MOST_ITEMS: Final = 500
PACK_ITEMS: Final = 50
PACK_BYTES: Final = 60_000
"""SQS bills a message by 64 KB: items are packed up to that."""
MOST_ERRORS: Final = 100


class QueuedCreates:
    """Accepts new items of a resource."""

    def __init__(
        self,
        resource: Resource,
        items: Collection[Any],
        sender: QueueSender,
        queue_url: str,
        clock: Callable[[], float],
    ) -> None:
        self._resource = resource
        self._items = items
        self._sender = sender
        self._queue_url = queue_url
        self._clock = clock

    def create(self, incoming: ApiRequest) -> Response[str]:
        """`POST` of an item, or of a list of up to 500: 202 once the queue has all of them.

        Raises:
            ValidationFailedError: with the fields at fault, `3.at` for a field of the fourth; nothing was sent.
            NotPermittedError: the caller may not create one of them; nothing was sent.
            QueueUnavailableError: the queue did not accept all of them. Sending all again is harmless.

        Cost: 1 call of SQS for 500 items of 200 bytes; no request to DynamoDB.
        """
        permit = self._resource.served.permit("create", incoming.caller)
        body = incoming.json()
        listed = isinstance(body, list)
        documents = self._documents(body if listed else [body], incoming.tenant, permit, listed=listed)
        self._send(documents, incoming)
        headers = {} if listed else {"Location": self._resource.location(documents[0])}
        return json_response({"accepted": len(documents)}, HTTPStatus.ACCEPTED, headers)

    def _documents(self, items: Sequence[Any], tenant: str, permit: Permit, *, listed: bool) -> list[Document]:
        if not 0 < len(items) <= MOST_ITEMS:
            raise ValidationFailedError(FieldError("", f"A list holds 1 to {MOST_ITEMS} items.", "list_length"))
        documents: list[Document] = []
        errors: list[FieldError] = []
        for number, item in enumerate(items):
            try:
                documents.append(self._document(item, tenant, permit))
            except InputError as error:
                errors += _named(error, f"{number}" if listed else "")
            if len(errors) >= MOST_ERRORS:
                break
        if errors:
            raise ValidationFailedError(*errors[:MOST_ERRORS])
        return documents

    def _document(self, given: object, tenant: str, permit: Permit) -> Document:
        if not isinstance(given, dict):
            raise ValidationFailedError(FieldError("", "An item is a JSON object.", "object_type"))
        request = Create(tenant=tenant, item=given)
        served = self._resource.served
        entity = item_of(served, request)
        permit.require_new(entity)
        refuse_untimely(served, request, entity, self._clock())
        # The writer stores an item that is placed by its time when that time has come.
        self._items.check(entity, timely=not served.has_bounded_key_time)
        return given_part(entity)

    def _send(self, documents: Sequence[Document], incoming: ApiRequest) -> None:
        positions: list[range] = []
        messages = []
        for pack in bounded(documents, lambda each: len(as_body(each)), most=PACK_ITEMS, most_size=PACK_BYTES):
            begin = positions[-1].stop if positions else 0
            positions.append(range(begin, begin + len(pack)))
            body = creates_body(self._resource.served, incoming.tenant, pack, self._clock(), incoming.request_id)
            messages.append(QueueMessage(body))
        try:
            self._sender.send(self._queue_url, messages)
        except QueueUnavailableError as error:
            left = [position for number in error.not_accepted or () for position in positions[number]]
            raise QueueUnavailableError(str(error), not_accepted=left) from error


def _named(error: InputError, at: str) -> list[FieldError]:
    found: Sequence[FieldError] = getattr(error, "errors", ())
    errors = found or [FieldError(error.field or "", str(error), error.code)]
    return [FieldError(".".join(filter(None, (at, each.field))), each.message, each.code) for each in errors]
