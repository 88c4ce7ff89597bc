"""Takes messages out of a dead-letter queue: back onto their queue, or into a file."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, Final
from uuid import uuid4

from tools.failure import CommandError
from tools.queue.reach import Queue, Sqs

AT_ONCE: Final = 10
WAIT_SECONDS: Final = 2
"""How long a queue is asked before it counts as empty: a short look may miss messages."""

Message = Mapping[str, Any]


def depth(sqs: Sqs, url: str) -> tuple[int, int]:
    """About how many messages a queue holds: visible, and in flight."""
    wanted = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)["Attributes"]
    return int(told[wanted[0]]), int(told[wanted[1]])


def redrive(sqs: Sqs, queue: Queue, *, most: int, done: Callable[[int], None]) -> int:
    """Put dead letters back onto their queue.

    A message is deleted from the dead letters only once the queue has it: killed in between, it is there twice, and
    done once. An operation that somebody waits for is not done any more, but told to have failed: others may have been
    done since.

    Args:
        sqs: a client.
        queue: the queue.
        most: no more messages than this: one that fails again becomes a dead letter again at once.
        done: told how many were put back by each call.

    Returns:
        How many were put back.

    Raises:
        CommandError: the queue does not take some of them; they stay where they are.
    """
    total = 0
    for messages in _batches(sqs, queue.dead_letters_url, most):
        entries = [_entry(str(number), message) for number, message in enumerate(messages)]
        answer = sqs.send_message_batch(QueueUrl=queue.url, Entries=entries)
        taken = {each["Id"] for each in answer.get("Successful", ())}
        kept = [message for number, message in enumerate(messages) if str(number) in taken]
        _delete(sqs, queue.dead_letters_url, kept)
        total += len(kept)
        done(len(kept))
        if len(kept) < len(messages):
            raise CommandError(f"the queue did not take all: {total} were put back, the others stay dead letters")
    return total


def keep(sqs: Sqs, queue: Queue, file: IO[str], *, most: int, done: Callable[[int], None]) -> int:
    """Move dead letters into a file, a JSON line each with the reason; gives how many."""
    total = 0
    for messages in _batches(sqs, queue.dead_letters_url, most):
        for message in messages:
            told = {name: value.get("StringValue") for name, value in message.get("MessageAttributes", {}).items()}
            line = {"message_id": message["MessageId"], **told, "body": message["Body"]}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        file.flush()
        _delete(sqs, queue.dead_letters_url, messages)
        total += len(messages)
        done(len(messages))
    return total


def _batches(sqs: Sqs, url: str, most: int) -> Iterator[Sequence[Message]]:
    left = most
    while left > 0:
        messages: Sequence[Message] = sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=min(AT_ONCE, left),
            WaitTimeSeconds=WAIT_SECONDS,
            AttributeNames=["MessageGroupId"],
            MessageAttributeNames=["All"],
        ).get("Messages", [])
        if not messages:
            return
        left -= len(messages)
        yield messages


def _entry(number: str, message: Message) -> dict[str, Any]:
    group = message.get("Attributes", {}).get("MessageGroupId")
    entry: dict[str, Any] = {"Id": number, "MessageBody": _body(message["Body"], ordered=group is not None)}
    if group is not None:
        entry |= {"MessageGroupId": group, "MessageDeduplicationId": str(uuid4())}
    return entry


def _body(body: str, *, ordered: bool) -> str:
    """The message as it is sent again: what nobody could read is sent as it came."""
    try:
        document = json.loads(body)
    except ValueError:
        return body
    if not isinstance(document, dict):
        return body
    if document.keys() == {"unreadable"}:
        return str(document["unreadable"])
    return json.dumps({**document, "redriven": True}, ensure_ascii=False) if ordered else body


def _delete(sqs: Sqs, url: str, messages: Sequence[Message]) -> None:
    entries = [
        {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]} for number, message in enumerate(messages)
    ]
    if entries:
        sqs.delete_message_batch(QueueUrl=url, Entries=entries)
