"""Publish the events of dead letters again."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dynashard.errors import DynashardError
from dynashard_patterns.changes import decode, entity_of, kind_of, watched
from dynashard_serving.events import Events
from dynashard_serving.events.publishing import Publish
from dynashard_tools.entities import declared
from dynashard_tools.queue.reach import Call
from dynashard_tools.queue.redriving import AT_ONCE, WAIT_SECONDS


class Replayed(NamedTuple):
    """What became of dead letters: events that were published, that cannot be published, and letters of others."""

    published: int
    refused: int
    others: int


def replayed(call: Call, url: str, publish: Publish, *, most: int) -> Replayed:
    """Publish the events of at most `most` dead letters on a queue, and delete these. Others stay on the queue.

    A letter is deleted after its event was published: if that is interrupted, it is published once more. The others
    are visible again at the end, so that `dynashard queue redrive changes` finds them at once.
    """
    declarations = declared().declarations.events
    published = refused = others = 0
    left: list[str] = []
    while published + refused + others < most:
        request = {"QueueUrl": url, "MaxNumberOfMessages": AT_ONCE, "WaitTimeSeconds": WAIT_SECONDS}
        messages = call("ReceiveMessage", request).get("Messages", [])
        if not messages:
            break
        done = []
        for message in messages:
            letter = _letter(message["Body"])
            events = _lacking(letter, declarations)
            if events is None:
                others += 1
            elif _published(events, letter["record"], publish):
                published += 1
                done.append(message)
            else:
                refused += 1
        left += [message["ReceiptHandle"] for message in messages if message not in done]
        if done:
            receipts = [{"Id": str(number), "ReceiptHandle": each["ReceiptHandle"]} for number, each in enumerate(done)]
            call("DeleteMessageBatch", {"QueueUrl": url, "Entries": receipts})
    for start in range(0, len(left), AT_ONCE):
        entries = [
            {"Id": str(number), "ReceiptHandle": receipt, "VisibilityTimeout": 0}
            for number, receipt in enumerate(left[start : start + AT_ONCE])
        ]
        call("ChangeMessageVisibilityBatch", {"QueueUrl": url, "Entries": entries})
    return Replayed(published, refused, others)


def _letter(body: str) -> Mapping[str, Any]:
    try:
        letter = json.loads(body)
    except ValueError:
        return {}
    return letter if isinstance(letter, dict) else {}


def _lacking(letter: Mapping[str, Any], declarations: Sequence[Events]) -> Events | None:
    """Return the declaration whose event a letter is about; None for letters of others.

    A letter without a consumer is of a record that could not be decoded, so none of them has seen it.
    """
    if letter.get("consumer") is not None:
        return next((each for each in declarations if each.name == letter["consumer"]), None)
    images = letter.get("record", {}).get("dynamodb", {})
    image = images.get("NewImage") or images.get("OldImage")
    entity = image and entity_of(image, watched(each.of for each in declarations))
    if not entity:
        return None
    kind = kind_of(letter["record"])
    return next((each for each in declarations if each.of is entity.model and kind in each.kinds), None)


def _published(events: Events, record: Mapping[str, Any], publish: Publish) -> bool:
    """Publish the event of a record; return whether it had one and the bus accepted it."""
    try:
        change = decode(record, watched([events.of]))
        if change is None:
            return False
        publish([events.event(change)])
    except DynashardError:
        return False
    return True
