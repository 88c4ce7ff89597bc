"""What clients know to be stored: the truth that answers are held against."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic


@dataclass(slots=True)
class Life:
    """When an item was certainly there. Times are of this process's monotonic clock, in seconds.

    Attributes:
        born: its creation was acknowledged.
        leaving: its deletion was asked for.
        gone: its deletion was acknowledged.
    """

    born: float
    leaving: float | None = None
    gone: float | None = None

    def throughout(self, start: float, end: float) -> bool:
        """Whether it was there from `start` to `end`."""
        return self.born <= start and (self.leaving is None or self.leaving >= end)

    def gone_before(self, start: float) -> bool:
        """Whether it was gone before `start`."""
        return self.gone is not None and self.gone < start


@dataclass
class Ledger:
    """All items by id; every id is born once and dies at most once. Safe to share between threads."""

    lives: dict[str, Life] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def born(self, name: str) -> None:
        """Its creation was acknowledged."""
        with self._lock:
            self.lives[name] = Life(monotonic())

    def leaving(self, name: str) -> None:
        """Its deletion is about to be asked for."""
        with self._lock:
            self.lives[name].leaving = monotonic()

    def gone(self, name: str) -> None:
        """Its deletion was acknowledged."""
        with self._lock:
            self.lives[name].gone = monotonic()

    def compare(self, seen: Mapping[str, int], start: float, end: float) -> list[str]:
        """What is wrong with a listing that ran from `start` to `end` and brought each id so many times."""
        with self._lock:
            lives = list(self.lives.items())
        wrong = [f"listed {times} times: {name}" for name, times in seen.items() if times > 1]
        wrong += [f"not listed: {name}" for name, life in lives if life.throughout(start, end) and name not in seen]
        wrong += [
            f"listed after its deletion: {name}" for name, life in lives if name in seen and life.gone_before(start)
        ]
        return wrong

    def alive(self) -> set[str]:
        """All ids that are there, once nothing is under way."""
        with self._lock:
            return {name for name, life in self.lives.items() if life.gone is None}


@dataclass
class Findings:
    """What went wrong, and how long writes took. Safe to share between threads."""

    window: str = "before"
    anomalies: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    requests: int = 0
    listings: int = 0
    seconds: dict[str, list[float]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def anomaly(self, *what: str) -> None:
        """Something was lost, doubled, or stale."""
        with self._lock:
            self.anomalies += what

    def answered(self, status: int, allowed: Iterable[int], what: str) -> bool:
        """Count an answer; whether its status is one of those allowed."""
        fine = status in allowed
        with self._lock:
            self.requests += 1
            if not fine:
                self.errors.append(f"{what}: {status}")
        return fine

    def failed(self, what: str) -> None:
        """A request got no answer."""
        with self._lock:
            self.errors.append(what)

    def wrote(self, seconds: float) -> None:
        """A write took so long, in the window that is open."""
        with self._lock:
            self.seconds.setdefault(self.window, []).append(seconds)

    def listed(self) -> None:
        """A listing came to its end."""
        with self._lock:
            self.listings += 1
