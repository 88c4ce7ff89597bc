"""Messages of a batch of SQS, and how they are delayed or sent to the dead-letter queue."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Final, Protocol

from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from dynashard_serving.queue_messages import MAX_MESSAGE_BYTES, NOT_SENDABLE, as_text

LONGEST_PAUSE_SECONDS: Final = 900
"""A message comes back after this long at most, however often it has been left."""
CHANGES_AT_ONCE: Final = 10
LONGEST_EXPLANATION: Final = 1000
"""Characters of the sentence about the reason of a dead letter."""
KEPT_CHARACTERS: Final = 100_000
"""Characters that are kept of a message that is too large to be a dead letter as a whole."""
_EMPTIED: Final[Mapping[str, Any]] = {"item": {}, "items": [{}], "patch": {}}
"""The members of a message with its content, and what replaces them."""


class Sqs(Protocol):
    """As much of boto3's client as is used here."""

    def send_message(self, **request: Any) -> Mapping[str, Any]:
        """Send a message."""

    def change_message_visibility_batch(self, **request: Any) -> Mapping[str, Any]:
        """Say when messages come back."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message as Lambda hands it over.

    Attributes:
        id: the message's id.
        receipt: names this one delivery of it.
        body: what was sent.
        receives: how often it was delivered, this time included.
        group: messages of one group are done in their order; None for those without.
        queue: the name of its queue.
    """

    id: str
    receipt: str
    body: str
    receives: int
    group: str | None
    queue: str

    @classmethod
    def of(cls, record: SQSRecord) -> "Received":
        """Read a record of an SQS event."""
        attributes = record.attributes
        return cls(
            id=record.message_id,
            receipt=record.receipt_handle,
            body=record.body,
            receives=int(attributes.approximate_receive_count),
            group=attributes.message_group_id,
            queue=record.event_source_arn.rpartition(":")[2],
        )


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues that messages come from, and where dead letters go.

    Attributes:
        client: returns the client; called for the first message that is delayed or cannot succeed.
        urls: of the queues, by their names.
        dead_letters: the URLs of their dead-letter queues, by the same names.
    """

    client: Callable[[], Sqs]
    urls: Mapping[str, str]
    dead_letters: Mapping[str, str]

    def bury(self, received: Received, body: Mapping[str, Any], *, reason: str, message: str) -> None:
        """Send a message that cannot succeed to the dead-letter queue, with the reason.

        If both are too large together, the sentence about the reason is left out. If the message is still too large,
        it is sent without its content, as `truncated`.

        Raises what the client raises. Then the message must stay on its queue.
        """
        letters = _letters(received, body, reason, message)
        text, attributes = next(letter for letter in letters if _size(*letter) <= MAX_MESSAGE_BYTES)
        request: dict[str, Any] = {
            "QueueUrl": self.dead_letters[received.queue],
            "MessageBody": text,
            "MessageAttributes": {
                name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
            },
        }
        if received.group is not None:
            request |= {"MessageGroupId": received.group, "MessageDeduplicationId": received.id}
        self.client().send_message(**request)

    def put_off(self, left: Sequence[tuple[Received, int]]) -> None:
        """Have messages come back after so many seconds each, instead of after the queue's own time."""
        for queue in dict.fromkeys(received.queue for received, _ in left):
            mine = [(received, seconds) for received, seconds in left if received.queue == queue]
            for at in range(0, len(mine), CHANGES_AT_ONCE):
                entries = [
                    {"Id": str(number), "ReceiptHandle": received.receipt, "VisibilityTimeout": seconds}
                    for number, (received, seconds) in enumerate(mine[at : at + CHANGES_AT_ONCE])
                ]
                self.client().change_message_visibility_batch(QueueUrl=self.urls[queue], Entries=entries)


def _letters(
    received: Received, body: Mapping[str, Any], reason: str, message: str
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the dead letter for a message with decreasing size, as its text and its attributes. The last one fits."""
    explanation = NOT_SENDABLE.sub("\ufffd", message)[:LONGEST_EXPLANATION] or reason
    named = {"reason": reason, "told": reason, "message_id": received.id}
    explained = {**named, "told": explanation}
    whole = as_text(body)
    yield whole, explained
    yield whole, named
    emptied = {name: value for name, value in _EMPTIED.items() if name in body}
    if emptied:
        yield as_text({**body, **emptied, "truncated": True}), explained
    yield as_text({"unreadable": received.body[:KEPT_CHARACTERS], "truncated": True}), explained


def _size(text: str, attributes: Mapping[str, str]) -> int:
    """Return the bytes of a message as SQS counts them: of the text, and of attributes' names, types and values."""
    counted = sum(len(f"{name}String{value}".encode()) for name, value in attributes.items())
    return len(text.encode()) + counted


def pause(receives: int, random: float) -> int:
    """Seconds until a message that was left comes back: twice as long each time, up to a quarter of an hour.

    Args:
        receives: how often it was delivered.
        random: evenly from 0 to below 1; half of the pause is drawn, so that messages do not come back together.
    """
    bound: int = min(2 ** min(receives, 16), LONGEST_PAUSE_SECONDS)
    return max(1, round(bound * (1 + random) / 2))


def until(wait: float) -> int:
    """Return after how many seconds a message comes back that waits for so many, as far as one pause can."""
    return ceil(min(wait, LONGEST_PAUSE_SECONDS))
