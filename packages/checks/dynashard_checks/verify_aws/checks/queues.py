"""Checks of SQS: which characters and sizes it accepts, and the order of groups."""

import json
from typing import Final

from dynashard_checks.verify_aws.check import Check, Outcome, compare, differs, holds, unclear
from dynashard_checks.verify_aws.context import Answer, Context, answer_of
from dynashard_serving.queue_messages import MAX_MESSAGE_BYTES, as_text

_FORBIDDEN: Final = ("\x01", "\ufffe", "\uffff")
_ALLOWED: Final = "\t\n\r aä€\ue000\ufffd\U0010ffff"
_RECEIVE_SECONDS: Final = 30.0


def characters(context: Context) -> Outcome:
    """Send every kind of character as the backend writes it, and raw characters that SQS does not document."""
    url, sqs = context.scratch.queue("characters"), context.client("sqs")
    document = {"text": _ALLOWED + "".join(_FORBIDDEN)}
    sqs.send_message(QueueUrl=url, MessageBody=as_text(document))
    received = context.until(lambda: _receive(context, url), seconds=_RECEIVE_SECONDS)
    if not received:
        return unclear("the message did not arrive")
    raw = {
        f"U+{ord(each):04X}": answer_of(sqs.send_message, QueueUrl=url, MessageBody=f"a{each}") for each in _FORBIDDEN
    }
    return judge_characters(same=json.loads(received[0]) == document, raw=raw)


def judge_characters(*, same: bool, raw: dict[str, Answer]) -> Outcome:
    """Judge whether an escaped message arrived unchanged, and the answers to raw characters."""
    answers = ", ".join(f"{name}: {answer.code or 'accepted'}" for name, answer in raw.items())
    if not same:
        return differs(f"an escaped message arrived changed; {answers}")
    return holds(f"an escaped message arrived unchanged; raw characters: {answers}")


def _receive(context: Context, url: str) -> list[str]:
    answer = context.client("sqs").receive_message(QueueUrl=url, WaitTimeSeconds=1)
    return [message["Body"] for message in answer.get("Messages", [])]


def sizes(context: Context) -> Outcome:
    """Send the largest message and batch, and those of one byte and one message more."""
    url, sqs = context.scratch.queue("sizes", MaximumMessageSize=str(MAX_MESSAGE_BYTES)), context.client("sqs")

    def batch(count: int, size: int) -> str:
        entries = [{"Id": str(number), "MessageBody": "x" * size} for number in range(count)]
        answer = answer_of(sqs.send_message_batch, QueueUrl=url, Entries=entries)
        return "refused" if answer.code or answer.document.get("Failed") else "accepted"

    half = MAX_MESSAGE_BYTES // 2
    seen = {
        "message of 1 MiB": batch(1, MAX_MESSAGE_BYTES),
        "one byte more": batch(1, MAX_MESSAGE_BYTES + 1),
        "batch of 1 MiB": batch(2, half),
        "batch of two bytes more": batch(2, half + 1),
        "10 messages": batch(10, 1),
        "11 messages": batch(11, 1),
    }
    return compare(dict(zip(seen, ("accepted", "refused") * 3, strict=True)), seen)


def groups(context: Context) -> Outcome:
    """Send messages of two groups to a FIFO queue, one of them twice, and receive them."""
    url, sqs = context.scratch.queue("groups.fifo", FifoQueue="true"), context.client("sqs")
    for number in (0, 1, 1, 2):
        for group in "ab":
            sqs.send_message(
                QueueUrl=url,
                MessageBody=f"{group}{number}",
                MessageGroupId=group,
                MessageDeduplicationId=f"{group}{number}",
            )
    received: list[str] = []

    def take() -> bool:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        for message in answer.get("Messages", []):
            received.append(message["Body"])
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return len(received) >= 6  # noqa: PLR2004 - three of each group

    context.until(take, seconds=_RECEIVE_SECONDS)
    seen = {group: [body for body in received if body.startswith(group)] for group in "ab"}
    return compare({group: [f"{group}{number}" for number in range(3)] for group in "ab"}, seen)


CHECKS: Final = (
    Check(
        "queue-characters",
        "a message as the backend writes it arrives unchanged, whatever characters its texts have",
        characters,
        local=True,
    ),
    Check(
        "queue-sizes",
        "SQS takes messages, and all messages of a call, of 1 MiB, and 10 messages a call",
        sizes,
    ),
    Check(
        "queue-groups",
        "a FIFO queue keeps the order of each group, and stores a repeated deduplication id once",
        groups,
        local=True,
    ),
)
