"""Takes messages out of a dead-letter queue: back onto their queue, or into a file."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, Final
from uuid import uuid4

from dynashard_patterns.batches import bounded
from dynashard_serving.queue_messages import MAX_MESSAGE_BYTES, as_text
from dynashard_tools.failure import CommandError
from dynashard_tools.queue.reach import Call, Queue

AT_ONCE: Final = 10
WAIT_SECONDS: Final = 2
"""Long poll: a short poll may miss messages of a queue that is not empty."""

Message = Mapping[str, Any]


def depth(call: Call, url: str) -> tuple[int, int]:
    """Return about how many messages of a queue are visible, and in flight."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    values = call("GetQueueAttributes", {"QueueUrl": url, "AttributeNames": names})["Attributes"]
    return int(values[names[0]]), int(values[names[1]])


def redrive(call: Call, queue: Queue, *, most: int, done: Callable[[int], None]) -> int:
    """Put at most `most` dead letters back onto their queue, and return how many.

    A message is deleted from the dead letters after it was sent: if that is interrupted, it is on both queues, and is
    still executed once. An operation whose caller waits is reported as failed instead of executed, because later
    operations on its item may have been executed since. `done` is called with the number of messages of each call.

    Raises:
        CommandError: the queue does not accept some of them; they stay dead letters.
    """

    def send(messages: Sequence[Message]) -> Sequence[Message]:
        entries = [_entry(str(number), message) for number, message in enumerate(messages)]
        sent: set[str] = set()
        for part in bounded(entries, _size, most=AT_ONCE, most_size=MAX_MESSAGE_BYTES):
            answer = call("SendMessageBatch", {"QueueUrl": queue.url, "Entries": part})
            sent |= {each["Id"] for each in answer.get("Successful", ())}
        return [message for number, message in enumerate(messages) if str(number) in sent]

    return _drain(call, queue.dead_letters_url, send, most, done)


def keep(call: Call, url: str, file: IO[str], *, most: int, done: Callable[[int], None]) -> int:
    """Move the messages of a dead-letter queue into a file, a JSON line each with the reason. Return how many."""

    def write(messages: Sequence[Message]) -> Sequence[Message]:
        for message in messages:
            attributes = message.get("MessageAttributes", {}).items()
            values = {name: value.get("StringValue") for name, value in attributes}
            line = {"message_id": message["MessageId"], **values, "body": message["Body"]}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        file.flush()
        # The queue forgets them now, so they must outlive a crash of this machine.
        os.fsync(file.fileno())
        return messages

    return _drain(call, url, write, most, done)


def _drain(
    call: Call,
    url: str,
    move: Callable[[Sequence[Message]], Sequence[Message]],
    most: int,
    done: Callable[[int], None],
) -> int:
    """Receive messages, and delete those that `move` returns."""
    total = 0
    while total < most:
        request = {
            "QueueUrl": url,
            "MaxNumberOfMessages": min(AT_ONCE, most - total),
            "WaitTimeSeconds": WAIT_SECONDS,
            "AttributeNames": ["MessageGroupId"],
            "MessageAttributeNames": ["All"],
        }
        messages: Sequence[Message] = call("ReceiveMessage", request).get("Messages", [])
        if not messages:
            break
        moved = move(messages)
        if moved:
            receipts = [{"Id": str(number), "ReceiptHandle": m["ReceiptHandle"]} for number, m in enumerate(moved)]
            call("DeleteMessageBatch", {"QueueUrl": url, "Entries": receipts})
        total += len(moved)
        done(len(moved))
        if len(moved) < len(messages):
            raise CommandError(
                f"the queue refused some messages: {total:,} were put back, and the others are still dead letters"
            )
    return total


def _entry(number: str, message: Message) -> dict[str, Any]:
    group = message.get("Attributes", {}).get("MessageGroupId")
    entry: dict[str, Any] = {"Id": number, "MessageBody": _body(message["Body"], ordered=group is not None)}
    if group is not None:
        entry |= {"MessageGroupId": group, "MessageDeduplicationId": str(uuid4())}
    return entry


def _body(body: str, *, ordered: bool) -> str:
    """Return the body to send again. A body that could not be read is sent as it came."""
    try:
        document = json.loads(body)
    except ValueError:
        return body
    if not isinstance(document, dict):
        return body
    if document.keys() == {"unreadable"}:
        return str(document["unreadable"])
    return as_text({**document, "redriven": True}) if ordered else body


def _size(entry: Mapping[str, Any]) -> int:
    return len(entry["MessageBody"].encode())
