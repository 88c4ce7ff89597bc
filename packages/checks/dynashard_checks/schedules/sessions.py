"""The listings of clients, from the first page to the last, and the checks of what they have shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynashard_checks.linearizability.listings import Listing
from dynashard_checks.schedules.history import History, Key, Value, Watch
from dynashard_checks.schedules.operations import Operation
from dynashard_checks.schedules.scheduler import AnomalyError


@dataclass(eq=False)
class Session:
    """A listing from its first page to its last. Each page may be requested by another client.

    Attributes:
        asked: the arguments of `list`.
        history: the reference model.
        watch: the values of all keys since the listing began.
        cursor: the cursor of the next page.
        pages: how many pages were read.
        received: the items of its pages, as keys and values.
        invoked: the time at which it began.
    """

    asked: Mapping[str, Any]
    history: History
    watch: Watch
    cursor: str | None = None
    pages: int = 0
    received: list[tuple[Key, str]] = field(default_factory=list)
    invoked: int = field(init=False)

    def __post_init__(self) -> None:
        self.invoked = self.history.recorder.now()

    def receive(self, items: Sequence[Any], page: Operation) -> None:
        """Check the items of a page. Each must have existed while the page was read."""
        for item in items:
            page.saw(item.id, item)
            self.received.append((item.id, item.revision or f"~{item.value}"))

    def finish(self) -> None:
        """Check the complete listing: it has every key that was live all the time once, and no key twice."""
        if not self.history.values_known:
            self._keep()
            return
        counts: dict[Key, int] = {}
        for key, _ in self.received:
            counts[key] = counts.get(key, 0) + 1
        for key in sorted({*counts, *self.watch.seen}):
            least, most = self._bounds(key)
            if not least <= counts.get(key, 0) <= most:
                raise AnomalyError(
                    f"the listing {dict(self.asked)} has {key} {counts.get(key, 0)} times in {self.pages} pages, "
                    f"not {least} to {most}: it was {sorted(map(str, self.watch.of(key)))}"
                )
        if self.asked.get("order") == "ordered":
            self._check_order()

    def count(self, number: int) -> None:
        """Check the count of a listing."""
        if not self.history.values_known:
            return
        bounds = [self._bounds(key) for key in self.watch.seen]
        least, most = sum(low for low, _ in bounds), sum(high for _, high in bounds)
        if not least <= number <= most:
            raise AnomalyError(f"the listing {dict(self.asked)} counts {number}, not {least} to {most}")

    def _keep(self) -> None:
        """Keep a listing of the whole table, which is compared with other answers at the end.

        Filters, ranges and indexes are only checked in schedules whose stored items determine the values of keys.
        """
        if any(self.asked.get(name) for name in ("filters", "index", "start", "end")):
            return
        keys = tuple(key for key, _ in self.received if key not in self.history.expiring_keys)
        now = self.history.recorder.now()
        # It is judged at the end, because operations that run now have no answers yet.
        self.history.listings.append(Listing(self.invoked, now, keys, f"the listing {dict(self.asked)}"))

    def _bounds(self, key: Key) -> tuple[int, int]:
        """Return how often the listing must and may have a key."""
        values = self.watch.of(key)
        places = {self._place(key, value) for value in values}
        found = places - {None}
        if not found:
            return 0, 0
        # An index entry whose key changes may be read at both of its places, or at none.
        return int(len(places) == 1), len(found)

    def _place(self, key: Key, value: Value) -> str | None:
        """Return the sort key of a value in the listing; None if the listing does not have it."""
        if value is None:
            return None
        content = self.history.contents[value]
        filtered = self.asked.get("filters")
        if filtered and not content["kept"]["BOOL"]:
            return None
        sort = key
        if self.asked.get("index"):
            if "group" not in content or "rank" not in content:
                return None
            sort = content["rank"]["S"]
        prefix, start, end = (self.asked.get(name) for name in ("prefix", "start", "end"))
        inside = sort.startswith(prefix or "") and (start is None or start <= sort) and (end is None or sort < end)
        return sort if inside else None

    def _check_order(self) -> None:
        backward = self.asked.get("direction") == "desc"
        places = [self._place(key, value) or "" for key, value in self.received]
        if places != sorted(places, reverse=backward):
            raise AnomalyError(f"the listing {dict(self.asked)} is out of order: {places}")
