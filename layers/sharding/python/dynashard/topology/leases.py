"""Values that are read once, used while their lease lasts, and never after."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Final, Generic, TypeVar

from dynashard.errors import EngineUnavailableError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_STRIPES: Final = 64
_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class _Held(Generic[V]):
    """A value, and the times by either clock between which it holds."""

    value: V
    read: float
    until: float
    steady_until: float


class Leases(Generic[K, V]):
    """Values by key. Safe to share between threads: of those who want the same value, one reads it.

    A lease ends when either clock says so. The wall clock goes on while a Lambda function is frozen; the steady one
    goes on when the wall clock is set back.

    Args:
        clock: the wall clock, in seconds.
        steady: a clock that is never set, in seconds.
        limit: how many values are kept; beyond it those that were read longest ago are forgotten.
    """

    def __init__(self, clock: Callable[[], float], steady: Callable[[], float], *, limit: int) -> None:
        self._clock = clock
        self._steady = steady
        self._limit = limit
        self._held: dict[K, _Held[V]] = {}
        self._forgotten = 0
        self._lock = Lock()
        self._turns = [Lock() for _ in range(_STRIPES)]

    def get(self, key: K) -> V | None:
        """The value, while its lease lasts."""
        held = self._held.get(key)
        return held.value if held is not None and self._lasts(held) else None

    def renew(self, key: K, read: Callable[[float], tuple[V, float]]) -> V:
        """The value; read if nobody else has read it meanwhile.

        Args:
            key: its key.
            read: reads it, given the present time; answers with the value and its lease in seconds. The lease counts
                from before it was called.

        Raises:
            EngineUnavailableError: reading took longer than the lease, time and again. And what `read` raises.
        """
        with self._turns[hash(key) % _STRIPES]:
            for _ in range(_TRIES):
                value = self.get(key)
                if value is not None:
                    return value
                forgotten, now, steady = self._forgotten, self._clock(), self._steady()
                value, lease = read(now)
                held = _Held(value, now, now + lease, steady + lease)
                if self._lasts(held):
                    self._keep(key, held, forgotten)
                    return value
        raise EngineUnavailableError(
            "The topology takes longer to read than its lease lasts. Try again; if it goes on, raise "
            "TOPOLOGY_LEASE_SECONDS.",
            operation="BatchGetItem",
        )

    def forget(self, key: K) -> None:
        """Forget a value: whoever asks from now on gets one that was read from now on."""
        with self._lock:
            self._forgotten += 1
            self._held.pop(key, None)

    def __len__(self) -> int:
        return len(self._held)

    def _keep(self, key: K, held: _Held[V], forgotten: int) -> None:
        with self._lock:
            if self._forgotten != forgotten:
                # Somebody forgot while this was being read: it is good for its reader only.
                return
            self._held.pop(key, None)
            self._held[key] = held
            while len(self._held) > self._limit:
                del self._held[next(iter(self._held))]

    def _lasts(self, held: _Held[V]) -> bool:
        return held.read <= self._clock() < held.until and self._steady() < held.steady_until
