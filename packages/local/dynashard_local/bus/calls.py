"""Answers the calls of EventBridge that functions make from the local event store."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from dynashard_local.aws_calls import RefusedError
from dynashard_local.bus.store import EventStore, NewEvent
from dynashard_serving.events.event import MOST_BYTES, size
from dynashard_serving.events.publishing import MOST_ENTRIES


class BusCalls:
    """Answers the calls from a store."""

    namespace = "com.amazonaws.events"

    def __init__(self, store: EventStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    def answer(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a call; raises `RefusedError`. As on AWS, an entry may be refused while others are accepted."""
        if operation != "PutEvents":
            raise RefusedError("UnsupportedOperation", f"the local event bus has no {operation}")
        entries = request.get("Entries") or []
        if not 1 <= len(entries) <= MOST_ENTRIES or sum(map(size, entries)) > MOST_BYTES:
            raise RefusedError(
                "ValidationException", f"a call has 1 to {MOST_ENTRIES} entries of at most {MOST_BYTES} bytes"
            )
        events = [None if _malformed(entry) else self._event(entry) for entry in entries]
        ids = iter(self._store.add([event for event in events if event is not None]))
        answers = [_MALFORMED if event is None else {"EventId": next(ids)} for event in events]
        return {"FailedEntryCount": events.count(None), "Entries": answers}

    def _event(self, entry: Mapping[str, Any]) -> NewEvent:
        return NewEvent(entry["Source"], entry["DetailType"], entry["Detail"], float(entry.get("Time", self._clock())))


_MALFORMED: Final = {"ErrorCode": "MalformedDetail", "ErrorMessage": "Detail is malformed."}


def _malformed(entry: Mapping[str, Any]) -> bool:
    try:
        return not isinstance(json.loads(entry["Detail"]), dict)
    except ValueError:
        return True
