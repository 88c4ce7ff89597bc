"""Answers the calls of SQS that functions and tools make from the local queue store."""

import re
from collections.abc import Mapping
from hashlib import md5
from typing import Any, Final

from dynashard_local.aws_calls import RefusedError
from dynashard_local.queues.store import Delivery, NewMessage, QueueStore

MAX_BYTES: Final = 1024 * 1024
"""SQS's limit for a message with its attributes, and for all messages of one call."""
MAX_ENTRIES: Final = 10
_REFUSED: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters other than those that SQS documents for bodies and attributes."""


class QueueCalls:
    """Answers the calls from a store."""

    namespace = "com.amazonaws.sqs"

    def __init__(self, store: QueueStore) -> None:
        self._store = store
        self._calls = {
            "SendMessage": self._send,
            "SendMessageBatch": self._send_batch,
            "ReceiveMessage": self._receive,
            "DeleteMessage": self._delete,
            "DeleteMessageBatch": self._delete_batch,
            "ChangeMessageVisibilityBatch": self._hide_batch,
            "GetQueueAttributes": self._attributes,
        }

    def answer(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a call; raises `RefusedError`."""
        call = self._calls.get(operation)
        if call is None:
            raise RefusedError("UnsupportedOperation", f"the local queues have no {operation}")
        queue = str(request.get("QueueUrl", "")).rpartition("/")[2]
        if queue not in self._store.queues:
            raise RefusedError("QueueDoesNotExist", f"there is no queue {queue!r}")
        return call(queue, request)

    def _send(self, queue: str, request: Mapping[str, Any]) -> dict[str, Any]:
        (answer,) = self._sent(queue, [request])
        return answer

    def _send_batch(self, queue: str, request: Mapping[str, Any]) -> dict[str, Any]:
        entries = _entries(request)
        sent = self._sent(queue, entries)
        return {"Successful": [{"Id": entry["Id"], **answer} for entry, answer in zip(entries, sent, strict=True)]}

    def _sent(self, queue: str, entries: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
        if any(_REFUSED.search(text) for entry in entries for text in _texts(entry)):
            raise RefusedError("InvalidMessageContents", "a message has a character that SQS does not take")
        total = sum(len(text.encode()) for entry in entries for text in _texts(entry))
        if total > MAX_BYTES:
            code = "InvalidParameterValue" if len(entries) == 1 else "BatchRequestTooLong"
            raise RefusedError(code, f"{total} bytes exceed {MAX_BYTES}")
        messages = [
            NewMessage(
                entry["MessageBody"],
                entry.get("MessageAttributes") or {},
                entry.get("MessageGroupId"),
                entry.get("MessageDeduplicationId"),
            )
            for entry in entries
        ]
        ids = self._store.send(queue, messages)
        return [
            {"MessageId": each, "MD5OfMessageBody": _digest(message.body)}
            for each, message in zip(ids, messages, strict=True)
        ]

    def _receive(self, queue: str, request: Mapping[str, Any]) -> dict[str, Any]:
        deliveries = self._store.receive(queue, min(int(request.get("MaxNumberOfMessages", 1)), MAX_ENTRIES))
        return {
            "Messages": [
                {
                    "MessageId": delivery.id,
                    "ReceiptHandle": delivery.receipt,
                    "Body": delivery.body,
                    "MD5OfBody": _digest(delivery.body),
                    "Attributes": system_attributes(delivery),
                    "MessageAttributes": dict(delivery.attributes),
                }
                for delivery in deliveries
            ]
        }

    def _delete(self, _queue: str, request: Mapping[str, Any]) -> dict[str, Any]:
        self._store.delete([request["ReceiptHandle"]])
        return {}

    def _delete_batch(self, _queue: str, request: Mapping[str, Any]) -> dict[str, Any]:
        entries = _entries(request)
        self._store.delete([entry["ReceiptHandle"] for entry in entries])
        return {"Successful": [{"Id": entry["Id"]} for entry in entries], "Failed": []}

    def _hide_batch(self, _queue: str, request: Mapping[str, Any]) -> dict[str, Any]:
        entries = _entries(request)
        self._store.hide({entry["ReceiptHandle"]: float(entry["VisibilityTimeout"]) for entry in entries})
        return {"Successful": [{"Id": entry["Id"]} for entry in entries], "Failed": []}

    def _attributes(self, queue: str, _request: Mapping[str, Any]) -> dict[str, Any]:
        depth = self._store.depth(queue)
        return {
            "Attributes": {
                "ApproximateNumberOfMessages": str(depth.visible),
                "ApproximateNumberOfMessagesNotVisible": str(depth.in_flight),
                "ApproximateNumberOfMessagesDelayed": "0",
            }
        }


def system_attributes(delivery: Delivery) -> dict[str, str]:
    """Return the system attributes of a delivery."""
    attributes = {
        "ApproximateReceiveCount": str(delivery.receives),
        "SentTimestamp": str(int(delivery.sent_at * 1000)),
        "SenderId": "local",
    }
    return attributes if delivery.group is None else {**attributes, "MessageGroupId": delivery.group}


def _entries(request: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    entries: list[Mapping[str, Any]] = list(request.get("Entries") or [])
    if not entries:
        raise RefusedError("EmptyBatchRequest", "the batch has no entry")
    if len(entries) > MAX_ENTRIES:
        raise RefusedError("TooManyEntriesInBatchRequest", f"{len(entries)} entries exceed {MAX_ENTRIES}")
    if len({entry["Id"] for entry in entries}) < len(entries):
        raise RefusedError("BatchEntryIdsNotDistinct", "two entries have one Id")
    return entries


def _texts(entry: Mapping[str, Any]) -> list[str]:
    """Return the texts of a message that count towards its size: the body, and names, types and values."""
    attributes = (entry.get("MessageAttributes") or {}).items()
    parts = [(name, value["DataType"], value.get("StringValue", "")) for name, value in attributes]
    return [entry["MessageBody"], *(text for part in parts for text in part)]


def _digest(body: str) -> str:
    return md5(body.encode(), usedforsecurity=False).hexdigest()
