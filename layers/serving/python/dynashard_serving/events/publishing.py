"""Publish events to a bus of EventBridge: in order for each item, and at least once."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

from dynashard.errors import EventBusUnavailableError, EventRefusedError
from dynashard_serving.aws_services import client, put_events
from dynashard_serving.events.event import MOST_BYTES, Event, size

MOST_ENTRIES: Final = 10
"""EventBridge's limit for the entries of one call."""
ATTEMPTS: Final = 3
"""How often an entry is sent before the stream delivers its change again."""
FIRST_PAUSE: Final = 0.1
"""Seconds before an entry is sent again, doubled each time."""
_REFUSALS: Final = frozenset({
    "InvalidArgument", "MalformedDetail", "NotAuthorizedForDetailTypeException", "NotAuthorizedForSourceException",
})  # fmt: skip
"""Codes of entries that no repetition helps."""

Publish = Callable[[Sequence[Event]], None]
"""Publishes events in their order; see `Publisher`."""
PutEvents = Callable[[Sequence[Mapping[str, Any]]], Mapping[str, Any]]
"""A call `PutEvents` with entries, and its answer."""


class Publisher:
    """Publishes events to one bus. Safe to share between threads if `put` is.

    Args:
        put: sends a call to EventBridge.
        bus: the name of the bus, or its ARN.
        source: the `source` of the events.
        sleep: waits for so many seconds.
    """

    def __init__(self, put: PutEvents, bus: str, source: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._put, self._bus, self._source, self._sleep = put, bus, source, sleep

    def __call__(self, events: Sequence[Event]) -> None:
        """Publish events. Of one item, an event is sent after the one before it was accepted.

        Raises:
            EventBusUnavailableError: the bus did not accept all of them; it may later.
            EventRefusedError: the bus refuses one of them whenever it comes.

        Cost: 1 round trip to EventBridge for up to 10 events of different items; nothing on the table.
        """
        for entries in self._calls(events):
            self._send(entries)

    def _calls(self, events: Sequence[Event]) -> Iterator[list[dict[str, Any]]]:
        """Yield the entries of one call after the other."""
        entries: list[dict[str, Any]] = []
        items: set[str] = set()
        total = 0
        for event in events:
            entry = event.entry(self._bus, self._source)
            full = len(entries) == MOST_ENTRIES or total + size(entry) > MOST_BYTES
            # EventBridge may accept one entry of a call and not the one before it.
            if entries and (full or event.item in items):
                yield entries
                entries, items, total = [], set(), 0
            entries.append(entry)
            items.add(event.item)
            total += size(entry)
        if entries:
            yield entries

    def _send(self, entries: Sequence[dict[str, Any]]) -> None:
        """Send entries until the bus has accepted all of them."""
        for attempt in range(ATTEMPTS):
            if attempt:
                self._sleep(FIRST_PAUSE * 2 ** (attempt - 1))
            answers = self._put(entries)["Entries"]
            failed = [(each, at) for each, at in zip(entries, answers, strict=True) if "ErrorCode" in at]
            if not failed:
                return
            entries = [each for each, _ in failed]
        codes = {answer["ErrorCode"] for _, answer in failed}
        reasons = "; ".join(sorted({f"{at['ErrorCode']}: {at.get('ErrorMessage', '')}" for _, at in failed}))
        if codes & _REFUSALS:
            raise EventRefusedError(f"the bus {self._bus} refuses {len(failed)} events: {reasons}")
        raise EventBusUnavailableError(f"the bus {self._bus} did not accept {len(failed)} events: {reasons}")


def to_bus(bus: str, source: str, opened: Callable[[], Any] = lambda: client("events", attempts=3)) -> Publisher:
    """Return what publishes to a bus of EventBridge. The first event opens the client of boto3."""
    return Publisher(partial(put_events, cache(opened)), bus, source)
