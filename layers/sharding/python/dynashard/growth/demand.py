"""Count what a process asks of stored partition keys and gets, so that the growth policy knows what they need.

Counting starts with a throttle and ends a minute after the last one. Before that, a request costs one comparison.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from dynashard.errors import ConditionFailedError, DynashardError, ThrottledError
from dynashard.growth.requested_keys import created_keys, stored_keys, unexecuted_keys
from dynashard.transport.forks import own_lock
from dynashard.transport.interface import (
    WRITING,
    Call,
    Resend,
    Transport,
    Wire,
    answers_of,
    forget_throttles,
    throttle_reasons,
)

WINDOW_SECONDS: Final = 20.0
"""How long a window lasts. Decisions see the current one and the one before it."""
_ACTIVE_SECONDS: Final = 60.0
"""How long counting continues after a throttle."""
_MOST_KEYS: Final = 4096
"""Stored partition keys, and throttled scopes, that one window keeps for one place."""


class Place(NamedTuple):
    """Where a request needs capacity: the slot of an index, None for the table; and whether it writes."""

    slot: str | None
    writing: bool


class Tally(Struct, eq=False):
    """Requests at one place in one window.

    Attributes:
        admitted: how many were executed, by their stored partition keys.
        refused: how many were throttled, by their stored partition keys; parts of a batch each time they are sent.
        throttled: how many were throttled for good, by the keys of their topology records.
        retried: how many were executed after throttles, by the keys of their topology records.
        created: how many of the executed ones may have created an item, by their stored partition keys.
        all_admitted, all_throttled: their sums, with those of keys that did not fit.
    """

    admitted: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    throttled: dict[str, int] = field(default_factory=dict)
    retried: dict[str, int] = field(default_factory=dict)
    created: dict[str, int] = field(default_factory=dict)
    all_admitted: int = 0
    all_throttled: int = 0


class Demand:
    """What this process asked for and got, while throttles go on. Safe to share between threads.

    Threads that count at the same instant may lose a request, because the counts are a sample: no request waits for a
    lock. Memory is bounded: at most 8,192 keys for the table and each index, reads and writes.

    Args:
        clock: wall clock, in epoch seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = own_lock(self)
        self.active = False
        """Whether requests are counted now."""
        self._began = self._last = self._since = 0.0
        self._current: dict[Place, Tally] = {}
        self._previous: dict[Place, Tally] = {}

    def throttled(self, place: Place, key: str) -> None:
        """Count a request that was throttled for good, by the key of its topology record, and start counting."""
        with self._lock:
            self._begin()
            tally = self._tally(place)
            tally.all_throttled += 1
            _count(tally.throttled, key, 1)

    def retried(self, place: Place, stored: str, key: str) -> int:
        """Count a request that is executed after throttles, by its stored partition key and its topology record's key.

        Starts counting: the caller then counts the same request by `admitted`. Returns how many there were in both
        windows for that record.
        """
        with self._lock:
            self._begin()
            tally = self._tally(place)
            _count(tally.refused, stored, 1)
            _count(tally.retried, key, 1)
            before = self._previous.get(place)
            return tally.retried.get(key, 0) + (before.retried.get(key, 0) if before else 0)

    def _begin(self) -> None:
        now = self._clock()
        if not self.active:
            self._current, self._previous, self._began, self._since, self.active = {}, {}, now, now, True
        self._last = now
        self._rotate(now)

    def admitted(self, operation: str, request: Mapping[str, Any], answer: Mapping[str, Any], table: str) -> None:
        """Count an executed request. Cost: a few microseconds for each item."""
        self._pass_time()
        writing = operation in WRITING
        left = unexecuted_keys(answer, table)
        executed = stored_keys(operation, request, answer, table)
        for slot, key in left:
            _count(self._tally(Place(slot, writing)).refused, key, 1)
            if (slot, key) in executed:
                executed.remove((slot, key))
        for slot, key in executed:
            tally = self._tally(Place(slot, writing))
            tally.all_admitted += 1
            _count(tally.admitted, key, 1)
        for key in created_keys(operation, request, table):
            _count(self._tally(Place(None, writing)).created, key, 1)

    def refused(self, operation: str, request: Mapping[str, Any], error: ThrottledError, table: str) -> None:
        """Count a throttled request by its stored partition keys; `throttled` counts it once more, by its scope."""
        self._pass_time()
        for slot, key in stored_keys(operation, request, {}, table, error.actions):
            _count(self._tally(Place(slot, operation in WRITING)).refused, key, 1)

    def _pass_time(self) -> None:
        now = self._clock()
        if not 0 <= now - self._since < WINDOW_SECONDS:
            with self._lock:
                self.active = 0 <= now - self._last < _ACTIVE_SECONDS
                self._rotate(now)

    def seconds(self) -> float:
        """Return for how long requests have been counted."""
        return self._clock() - self._began

    def tallies(self, place: Place) -> list[Tally]:
        """Return copies of the tallies of a place in the current window and the one before it."""
        with self._lock:
            self._rotate(self._clock())
            windows = [each.get(place) for each in (self._previous, self._current)]
        return [
            replace(
                each,
                admitted=dict(each.admitted),
                refused=dict(each.refused),
                throttled=dict(each.throttled),
                retried=dict(each.retried),
                created=dict(each.created),
            )
            for each in windows
            if each is not None
        ]

    def _rotate(self, now: float) -> None:
        age = now - self._since
        if 0 <= age < WINDOW_SECONDS:
            return
        # A clock that was set back does not tell how old the counts are.
        recent = WINDOW_SECONDS <= age < 2 * WINDOW_SECONDS
        self._previous = self._current if recent else {}
        self._current, self._since = {}, now

    def _tally(self, place: Place) -> Tally:
        return self._current.get(place) or self._current.setdefault(place, Tally())


Executed = Callable[[str, Mapping[str, Any], Mapping[str, Any], Collection[str]], None]
"""Receives an executed request whose earlier attempts were throttled: operation, request, answer and reasons."""


class CountingTransport:
    """A transport whose requests to one table are counted while throttles go on; see `Transport`.

    `retried` receives those that were executed after throttles; without it, only throttles that last begin the count.
    Of requests that are sent together it receives none, because it is unknown which of them were throttled.
    """

    def __init__(self, inner: Transport, table: str, demand: Demand, retried: Executed | None = None) -> None:
        self._inner = inner
        self._table = table
        self._demand = demand
        self._retried = retried

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Send one request; see `Transport.call`."""
        forget_throttles()
        try:
            answer = self._inner.call(operation, request, resend=resend)
        except ConditionFailedError:
            # DynamoDB has consumed its units.
            self._executed(operation, request, {})
            raise
        except ThrottledError as error:
            if self._demand.active:
                self._demand.refused(operation, request, error, self._table)
            raise
        self._executed(operation, request, answer)
        return answer

    def _executed(self, operation: str, request: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Count an executed request, with the throttles that were met until it was executed."""
        if self._retried is not None and (met := throttle_reasons()):
            self._retried(operation, request, answer, met)
        if self._demand.active:
            self._demand.admitted(operation, request, answer, self._table)

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        """Send several requests at once; see `Transport.call_all`."""
        if not self._demand.active:
            return self._inner.call_all(calls, concurrency=concurrency)
        return answers_of(self.try_all(calls, concurrency=concurrency))

    def try_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire | DynashardError]:
        """Send several requests at once; see `Transport.try_all`."""
        answers = self._inner.try_all(calls, concurrency=concurrency)
        if self._demand.active:
            for call, answer in zip(calls, answers, strict=True):
                if isinstance(answer, ThrottledError):
                    self._demand.refused(call.operation, call.request, answer, self._table)
                elif not isinstance(answer, DynashardError):
                    self._demand.admitted(call.operation, call.request, answer, self._table)
        return answers

    def close(self) -> None:
        """Close the transport; see `Transport.close`."""
        self._inner.close()


def _count(counts: dict[str, int], key: str, more: int) -> None:
    if key in counts or len(counts) < _MOST_KEYS:
        counts[key] = counts.get(key, 0) + more
