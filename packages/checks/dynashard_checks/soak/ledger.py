"""The items that clients know to be stored. Answers are compared with them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic


@dataclass(slots=True)
class Life:
    """The time in which an item certainly existed, in seconds of this process's monotonic clock.

    Attributes:
        born: when its creation was acknowledged.
        leaving: when its deletion was requested.
        gone: when its deletion was acknowledged.
    """

    born: float
    leaving: float | None = None
    gone: float | None = None

    def throughout(self, start: float, end: float) -> bool:
        """Return whether it existed from `start` to `end`."""
        return self.born <= start and (self.leaving is None or self.leaving >= end)

    def gone_before(self, start: float) -> bool:
        """Return whether it was deleted before `start`."""
        return self.gone is not None and self.gone < start


@dataclass
class Ledger:
    """All items by id. Every id is created once and deleted at most once. Threads may share a ledger."""

    lives: dict[str, Life] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def born(self, name: str) -> None:
        """Note that the creation of an item was acknowledged."""
        with self._lock:
            self.lives[name] = Life(monotonic())

    def leaving(self, name: str) -> None:
        """Note that the deletion of an item is about to be requested."""
        with self._lock:
            self.lives[name].leaving = monotonic()

    def gone(self, name: str) -> None:
        """Note that the deletion of an item was acknowledged."""
        with self._lock:
            self.lives[name].gone = monotonic()

    def compare(self, seen: Mapping[str, int], start: float, end: float) -> list[str]:
        """Return what is wrong with a listing.

        Args:
            seen: how often the listing returned each id.
            start: the time of its first request.
            end: the time of its last answer.
        """
        with self._lock:
            lives = list(self.lives.items())
        wrong = [f"listed {times} times: {name}" for name, times in seen.items() if times > 1]
        wrong += [f"not listed: {name}" for name, life in lives if life.throughout(start, end) and name not in seen]
        wrong += [
            f"listed after its deletion: {name}" for name, life in lives if name in seen and life.gone_before(start)
        ]
        return wrong

    def alive(self) -> set[str]:
        """Return the ids of all items that were not deleted. Call it when no request is running."""
        with self._lock:
            return {name for name, life in self.lives.items() if life.gone is None}


@dataclass
class Findings:
    """Errors, anomalies, and the durations of writes. Threads may share them."""

    window: str = "before"
    anomalies: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    requests: int = 0
    listings: int = 0
    seconds: dict[str, list[float]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def anomaly(self, *what: str) -> None:
        """Add items that were lost, repeated or stale."""
        with self._lock:
            self.anomalies += what

    def answered(self, status: int, allowed: Iterable[int], what: str) -> bool:
        """Count an answer, and return whether its status is allowed."""
        fine = status in allowed
        with self._lock:
            self.requests += 1
            if not fine:
                self.errors.append(f"{what}: {status}")
        return fine

    def failed(self, what: str) -> None:
        """Add a request without an answer."""
        with self._lock:
            self.errors.append(what)

    def wrote(self, seconds: float) -> None:
        """Add the duration of a write to the current window."""
        with self._lock:
            self.seconds.setdefault(self.window, []).append(seconds)

    def listed(self) -> None:
        """Count a complete listing."""
        with self._lock:
            self.listings += 1
