"""Follow the local bus: events as they are published, from some number on, as documents or as server-sent events."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from dynashard_local.bus.store import EventStore, StoredEvent


class Wanted(NamedTuple):
    """Which events are shown; None for all."""

    tenant: str | None = None
    entity: str | None = None

    def takes(self, document: dict[str, Any]) -> bool:
        """Return whether an event with this document is shown."""
        detail = document["detail"]
        of_tenant = self.tenant is None or detail.get("key", {}).get("tenant_id") == self.tenant
        return of_tenant and (self.entity is None or detail.get("entity") == self.entity)


def document_of(event: StoredEvent) -> dict[str, Any]:
    """Return an event as EventBridge delivers it to targets."""
    return {
        "id": event.id,
        "detail-type": event.name,
        "source": event.source,
        "time": datetime.fromtimestamp(event.at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "detail": json.loads(event.detail),
    }


class Follower:
    """Follows a store from a number on; `number` is the last that was read."""

    def __init__(self, store: EventStore, wanted: Wanted, number: int) -> None:
        self._store, self._wanted, self.number = store, wanted, number

    def new(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the events that were published since the last time, with their numbers."""
        while events := self._store.after(self.number):
            for event in events:
                self.number = event.number
                document = document_of(event)
                if self._wanted.takes(document):
                    yield event.number, document
