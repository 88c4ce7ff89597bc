"""Send changes that cannot be handled to the dead-letter queue."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from dynashard_patterns.changes import DeadLetter
from dynashard_serving.aws_services import sqs_client

MOST_BYTES: Final = 240 * 1024
"""Bytes of a message; a queue accepts 256 KB. A larger record is sent without its images, but with its keys."""

Keep = Callable[[DeadLetter], None]


def message(letter: DeadLetter) -> str:
    """Return a dead letter as JSON: the consumer, the reason, and the record."""
    document: dict[str, Any] = {"consumer": letter.consumer, "reason": letter.reason, "record": letter.record}
    text = json.dumps(document, separators=(",", ":"))
    if len(text.encode()) <= MOST_BYTES:
        return text
    bare = {name: value for name, value in letter.record["dynamodb"].items() if not name.endswith("Image")}
    document["record"] = {**letter.record, "dynamodb": bare}
    return json.dumps({**document, "reason": letter.reason[:1000]}, separators=(",", ":"))


def to_queue(url: str) -> Keep:
    """Return what sends dead letters to the queue with this URL. The first one opens the client."""
    client = cache(sqs_client)

    def keep(letter: DeadLetter) -> None:
        client().send_message(QueueUrl=url, MessageBody=message(letter))

    return keep
