"""Reads what is stored at a bounded rate: the whole table, or the shards of one logical partition."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dynashard.repository import Store
from dynashard.resharding.pace import largest_page
from dynashard.schema import PK, SK
from dynashard.transport.interface import Call, Wire, consumed_of
from dynashard.transport.paging import pages

_CHUNK: Final = 500
_FIRST_PAGED: Final = 50
"""Items of the first page if there is a limit: what they consume is not known yet."""


@dataclass
class ReadPace:
    """Limits reading to some read units a second; None for no limit."""

    rate: float | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _free_at: float = field(default=float("-inf"))

    @property
    def first_page(self) -> int:
        """How many items to read at first."""
        return _CHUNK if self.rate is None else _FIRST_PAGED

    def page(self, units: float, items: int) -> int:
        """Return how many items to read at a time after a page that has consumed so many units.

        A page with all that the limit allows in a second would delay other readers and writers.
        """
        return _CHUNK if self.rate is None else max(1, int(min(_CHUNK, largest_page(self.rate, units, items))))

    def spent(self, units: float) -> None:
        """Count what was read, and wait until the rate is below the limit."""
        if self.rate is None or not units:
            return
        now = self.clock()
        self._free_at = max(self._free_at, now) + units / self.rate
        self.sleep(self._free_at - now)


def key_text(item: Wire) -> str:
    """Return the stored key of an item, as findings name it."""
    return f"{item[PK]['S']} / {item[SK]['S']}"


def whole_table(store: Store, pace: ReadPace) -> Iterator[list[Wire]]:
    """Read all stored items, page by page. Cost: a consistent read of the table."""
    yield from _pages(store, pace, "Scan", {"TableName": store.table})


def places(store: Store, pace: ReadPace, keys: Sequence[str]) -> Iterator[list[Wire]]:
    """Read all items under some stored partition keys. Cost: a consistent Query for each, and what it reads."""
    for key in keys:
        request: dict[str, Any] = {
            "TableName": store.table,
            "KeyConditionExpression": "#pk = :pk",
            "ExpressionAttributeNames": {"#pk": PK},
            "ExpressionAttributeValues": {":pk": {"S": key}},
        }
        yield from _pages(store, pace, "Query", request)


def _pages(store: Store, pace: ReadPace, operation: str, request: dict[str, Any]) -> Iterator[list[Wire]]:
    most = pace.first_page
    while True:
        call = Call(operation, {**request, "ConsistentRead": True, "Limit": most})
        answer = next(pages(store.transport, call, pauses=store.retry_policy.pauses))
        units = consumed_of(operation, answer).read_units
        pace.spent(units)
        most = pace.page(units, answer["ScannedCount"])
        yield answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return
        request = {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]}
