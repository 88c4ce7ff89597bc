"""An event, as it is put on a bus of EventBridge."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from pydantic_core import to_jsonable_python

from dynashard.entity import Entity
from dynashard_patterns.changes import Change
from dynashard_serving.documents import Document, written

MOST_BYTES: Final = 256 * 1024
"""EventBridge's limit for an entry, and for all entries of one call."""
_ID_BYTES: Final = 16
_LARGE: Final = ("before", "after")
"""What is left out of an event that is too large, in this order."""
_TIME_BYTES: Final = 14
"""What EventBridge counts for the time of an entry."""


class Event(NamedTuple):
    """A change for others.

    Attributes:
        name: the entity's name and the kind of the change: the `detail-type` on the bus.
        document: the `detail` on the bus; docs/events.md describes its members.
        at: when the change was stored, in epoch seconds; None if the stream does not say.
    """

    name: str
    document: Document
    at: float | None

    @property
    def item(self) -> str:
        """The item that it is about: equal for equal entities and keys."""
        return written([self.document["entity"], self.document["key"]])

    def entry(self, bus: str, source: str) -> dict[str, Any]:
        """Return the entry of a call `PutEvents`. What is too large for a bus is left out, and named in `truncated`."""
        document = self.document
        if self.at is not None:
            document = {**document, "time": _text_of(self.at)}
        entry: dict[str, Any] = {"EventBusName": bus, "Source": source, "DetailType": self.name}
        if self.at is not None:
            entry["Time"] = self.at
        entry["Detail"] = written(document)
        for name in _LARGE:
            if size(entry) <= MOST_BYTES:
                break
            if name in document:
                left_out = [*document.get("truncated", ()), name]
                document = {**{key: value for key, value in document.items() if key != name}, "truncated": left_out}
                entry["Detail"] = written(document)
        return entry


def size(entry: Mapping[str, Any]) -> int:
    """Return the bytes of an entry, as EventBridge counts them."""
    texts = (entry["Source"], entry["DetailType"], entry["Detail"])
    return sum(len(text.encode()) for text in texts) + (_TIME_BYTES if "Time" in entry else 0)


def identifier(entity: str, change: Change[Any]) -> str:
    """Return the id of a change: the same each time it is delivered, and of no other change."""
    revisions = [revision_of(change.old), revision_of(change.new)]
    # What another program writes has no revision, or leaves it as it was.
    about = [change.sequence] if revisions[0] == revisions[1] else revisions
    key = to_jsonable_python(dict(change.key))
    text = json.dumps([entity, change.kind, key, *about], sort_keys=True, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=_ID_BYTES).hexdigest()


def revision_of(item: Entity | None) -> str | None:
    """Return the revision of an item; None if there is no item, or if another program wrote it without one."""
    return None if item is None else item.revision or None


def _text_of(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
