"""Send messages to queues, in as few calls as their sizes allow, and again those that were not accepted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

from dynashard.errors import ItemTooLargeError, QueueUnavailableError
from dynashard_patterns.batches import bounded
from dynashard_serving.queue_messages import MAX_MESSAGE_BYTES

MAX_ENTRIES: Final = 10
ATTEMPTS: Final = 3


class Sqs(Protocol):
    """As much of botocore's client as is used here."""

    def send_message_batch(self, **request: Any) -> Mapping[str, Any]:
        """Send up to ten messages."""


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """A message: its body, and for ordered queues its group and the id by which a repeat is recognised."""

    body: bytes
    group: str | None = None
    deduplication: str | None = None

    def refuse_too_large(self) -> None:
        """Raise `ItemTooLargeError` if no queue accepts the message."""
        if len(self.body) > MAX_MESSAGE_BYTES:
            raise ItemTooLargeError(
                f"The request is a message of {len(self.body)} bytes, and a queue takes {MAX_MESSAGE_BYTES}: send it "
                "without Prefer: respond-async, or less at a time",
                size=len(self.body),
                limit=MAX_MESSAGE_BYTES,
            )

    def entry(self, number: int) -> dict[str, Any]:
        """The message as an entry of a call."""
        entry: dict[str, Any] = {"Id": str(number), "MessageBody": self.body.decode()}
        if self.group is not None:
            entry |= {"MessageGroupId": self.group, "MessageDeduplicationId": self.deduplication}
        return entry


class QueueSender:
    """Sends messages to queues. Safe to share between threads; its client is made for the first message."""

    def __init__(self, open_client: Callable[[], Sqs]) -> None:
        self._open_client = open_client

    @cached_property
    def _client(self) -> Sqs:
        return self._open_client()

    def send(self, queue_url: str, messages: Sequence[QueueMessage]) -> None:
        """Send messages to a queue. They are stored there durably when this returns.

        Raises:
            ItemTooLargeError: one is larger than a queue takes; nothing was sent.
            QueueUnavailableError: with the positions of those that the queue did not accept; it has the others.

        Cost: a call for every 10 messages or 1 MiB; SQS bills one request for each 64 KB.
        """
        for message in messages:
            message.refuse_too_large()
        left: list[int] = []
        why: Exception | None = None
        for chunk in bounded(list(enumerate(messages)), _size, most=MAX_ENTRIES, most_size=MAX_MESSAGE_BYTES):
            for number, reason in self._not_taken(queue_url, chunk).items():
                left.append(number)
                why = reason
        if left:
            # The cause is for the log: callers cannot tell a missing permission from a queue that is unavailable.
            raise QueueUnavailableError(
                "The queue did not accept all messages: send the request again.", not_accepted=left
            ) from why

    def _not_taken(self, queue_url: str, chunk: Sequence[tuple[int, QueueMessage]]) -> dict[int, Exception]:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - only a request that sends pays for it

        left = dict(chunk)
        why: dict[int, Exception] = {}
        for _ in range(ATTEMPTS):
            entries = [message.entry(number) for number, message in left.items()]
            try:
                failed = self._client.send_message_batch(QueueUrl=queue_url, Entries=entries).get("Failed", ())
            except (BotoCoreError, ClientError) as error:
                # The client has tried again already.
                return dict.fromkeys(left, error)
            why = {int(each["Id"]): RuntimeError(f"the queue said {each.get('Code')}") for each in failed}
            left = {number: message for number, message in left.items() if number in why}
            if not left:
                break
        return why


def _size(numbered: tuple[int, QueueMessage]) -> int:
    return len(numbered[1].body)
