"""Values that are read once and used only while their lease lasts."""

from collections.abc import Callable, Hashable
from math import inf
from threading import Lock
from typing import Final, Generic, TypeVar

from msgspec import Struct

from dynashard.errors import EngineUnavailableError
from dynashard.runtime import Runtime
from dynashard.transport.deadline import remaining
from dynashard.transport.forks import after_fork
from dynashard.waiting import Turn

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_STRIPES: Final = 64
_TRIES: Final = 3


class _Held(Struct, Generic[V], frozen=True):
    """A value, and the times by either clock between which it holds."""

    value: V
    read: float
    until: float
    monotonic_until: float


class Leases(Generic[K, V]):
    """A cache of leased values by key. Safe to share between threads: only one of them reads a value.

    A lease ends by either clock. The wall clock goes on while a Lambda function is frozen; the monotonic one goes on
    if the wall clock is set back. Beyond `limit` values, those that were read longest ago are forgotten.
    """

    def __init__(self, runtime: Runtime, *, limit: int) -> None:
        self._clock, self._monotonic = runtime.clock, runtime.monotonic
        self._limit = limit
        self._held: dict[K, _Held[V]] = {}
        self._forgotten = 0
        self._begin()
        after_fork(self, Leases._begin)

    def _begin(self) -> None:
        """Begin with locks that nobody holds. What was read before this process was forked holds here too."""
        self._lock = Lock()
        self._reading = [Turn() for _ in range(_STRIPES)]

    def get(self, key: K, read: Callable[[float], tuple[V, float]]) -> V:
        """Return the value of a key; if no lease on it lasts, `read` is called with the present time.

        `read` returns the value and its lease in seconds, which counts from before the call.

        Raises `EngineUnavailableError` if reading took longer than the lease, repeatedly, or if another call was still
        reading at the deadline in force; and what `read` raises.
        """
        held = self._held.get(key)
        # As in `_lasts`, which would take as long to call as to run.
        if held is not None and held.read <= self._clock() < held.until and self._monotonic() < held.monotonic_until:
            return held.value
        turn, left = self._reading[hash(key) % _STRIPES], remaining()
        if not turn.acquire(None if left == inf else left):
            raise EngineUnavailableError(
                "Another call was still reading the topology at the deadline of this one. Try again.",
                operation="BatchGetItem",
            )
        try:
            return self._read(key, read)
        finally:
            turn.release()

    def _read(self, key: K, read: Callable[[float], tuple[V, float]]) -> V:
        for _ in range(_TRIES):
            if (held := self._held.get(key)) is not None and self._lasts(held):
                return held.value
            forgotten, now, monotonic = self._forgotten, self._clock(), self._monotonic()
            value, lease = read(now)
            held = _Held(value, now, now + lease, monotonic + lease)
            if self._lasts(held):
                self._keep(key, held, forgotten)
                return value
        raise EngineUnavailableError(
            "The topology takes longer to read than its lease lasts. Try again; if it goes on, raise "
            "TOPOLOGY_LEASE_SECONDS.",
            operation="BatchGetItem",
        )

    def forget(self, key: K) -> None:
        """Forget a value: calls from now on return one that was read from now on."""
        with self._lock:
            self._forgotten += 1
            self._held.pop(key, None)

    def _keep(self, key: K, held: _Held[V], forgotten: int) -> None:
        with self._lock:
            if self._forgotten != forgotten:
                # A value was forgotten during the read, so this one holds for its reader only.
                return
            self._held.pop(key, None)
            self._held[key] = held
            while len(self._held) > self._limit:
                del self._held[next(iter(self._held))]

    def _lasts(self, held: _Held[V]) -> bool:
        return held.read <= self._clock() < held.until and self._monotonic() < held.monotonic_until
