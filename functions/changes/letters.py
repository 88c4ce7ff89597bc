"""Where changes are kept that cannot be handled: a queue, or a file on the local stack."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from dynashard.changes import Letter

MOST_BYTES: Final = 240 * 1024
"""Of a message: a queue takes 256 KB. A larger record is kept without its images; its keys tell whose change it was."""

Keep = Callable[[Letter], None]


def message(letter: Letter) -> str:
    """A dead letter as JSON: who could not handle it, why, and the record."""
    told: dict[str, Any] = {"consumer": letter.consumer, "reason": letter.reason, "record": letter.record}
    text = json.dumps(told, separators=(",", ":"))
    if len(text.encode()) <= MOST_BYTES:
        return text
    bare = {name: value for name, value in letter.record["dynamodb"].items() if not name.endswith("Image")}
    told["record"] = {**letter.record, "dynamodb": bare}
    return json.dumps({**told, "reason": letter.reason[:1000]}, separators=(",", ":"))


def to_queue(client: Any, url: str) -> Keep:
    """Keeps letters in a queue.

    Args:
        client: of SQS.
        url: of the queue.
    """

    def keep(letter: Letter) -> None:
        client.send_message(QueueUrl=url, MessageBody=message(letter))

    return keep


def to_file(path: Path) -> Keep:
    """Keeps letters in a file, one a line; on disk before it returns."""

    def keep(letter: Letter) -> None:
        with path.open("a") as file:
            file.write(f"{message(letter)}\n")
            file.flush()
            os.fsync(file.fileno())

    return keep
