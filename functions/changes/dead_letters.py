"""Where changes are kept that cannot be handled."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from dynashard.transport.aws import sqs_client
from dynashard_patterns.changes import DeadLetter

MOST_BYTES: Final = 240 * 1024
"""Of a message: a queue takes 256 KB. A larger record is kept without its images; its keys tell whose change it was."""

Keep = Callable[[DeadLetter], None]


def message(letter: DeadLetter) -> str:
    """A dead letter as JSON: who could not handle it, why, and the record."""
    told: dict[str, Any] = {"consumer": letter.consumer, "reason": letter.reason, "record": letter.record}
    text = json.dumps(told, separators=(",", ":"))
    if len(text.encode()) <= MOST_BYTES:
        return text
    bare = {name: value for name, value in letter.record["dynamodb"].items() if not name.endswith("Image")}
    told["record"] = {**letter.record, "dynamodb": bare}
    return json.dumps({**told, "reason": letter.reason[:1000]}, separators=(",", ":"))


def to_queue(url: str) -> Keep:
    """Keeps letters in the queue with this URL. The first one makes the client."""
    client = cache(sqs_client)

    def keep(letter: DeadLetter) -> None:
        client().send_message(QueueUrl=url, MessageBody=message(letter))

    return keep
