"""Measure contenders side by side: one process, interleaved rounds, medians, and ratios within a round.

The client's CPU is the CPU time of this process with all its threads. Servers run in processes of their own. A ratio is
taken within each round and the median of the ratios is reported, so a slow minute of the machine affects both sides.
"""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Clock = Literal["cpu", "wall"]


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to do the work of a row: `run` does it once."""

    name: str
    run: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. The first contender is the baseline.

    Attributes:
        name: what is done, such as `GetItem`.
        contenders: the ways to do it.
        repeat: how often a sample runs a contender.
        clock: whether ratios compare client CPU or wall time. Both are reported.
        limits: the highest ratio to the baseline that a contender may have.
    """

    name: str
    contenders: Sequence[Contender]
    repeat: int
    clock: Clock = "cpu"
    limits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Figure:
    """The figures of one contender. Times are microseconds for one run, as medians over the rounds."""

    row: str
    contender: str
    clock: Clock
    cpu_us: float
    wall_us: float
    ratio: float
    limit: float | None
    met: bool | None

    def as_json(self) -> dict[str, Any]:
        """Return the figure as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Fact:
    """A figure other than a time, such as a number of Queries, bytes or units."""

    subject: str
    name: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the value is within its limit; None without a limit."""
        return None if self.limit is None else self.value <= self.limit

    def as_json(self) -> dict[str, Any]:
        """Return the fact as JSON values."""
        return {**asdict(self), "met": self.met}


@dataclass(frozen=True, slots=True)
class _Sample:
    cpu: float
    wall: float

    def on(self, clock: Clock) -> float:
        return self.cpu if clock == "cpu" else self.wall


def measure(row: Row, *, rounds: int) -> list[Figure]:
    """Measure the contenders of a row.

    Args:
        row: the row; each contender runs once beforehand, unmeasured.
        rounds: how many samples each contender gives. Each round begins with another contender.

    Returns:
        One figure for each contender, in the order of the row.
    """
    contenders = list(row.contenders)
    for contender in contenders:
        contender.run()
    samples: dict[str, list[_Sample]] = {contender.name: [] for contender in contenders}
    for turn in range(rounds):
        first = turn % len(contenders)
        for contender in contenders[first:] + contenders[:first]:
            samples[contender.name].append(_sample(contender.run, row.repeat))
    baseline = samples[contenders[0].name]
    return [_figure(row, contender.name, samples[contender.name], baseline) for contender in contenders]


def _sample(run: Callable[[], object], repeat: int) -> _Sample:
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(repeat):
        run()
    return _Sample((time.process_time() - cpu) / repeat, (time.perf_counter() - wall) / repeat)


def _figure(row: Row, name: str, samples: Sequence[_Sample], baseline: Sequence[_Sample]) -> Figure:
    ratios = [sample.on(row.clock) / base.on(row.clock) for sample, base in zip(samples, baseline, strict=True)]
    ratio = statistics.median(ratios)
    limit = row.limits.get(name)
    return Figure(
        row=row.name,
        contender=name,
        clock=row.clock,
        cpu_us=round(statistics.median(sample.cpu for sample in samples) * 1e6, 1),
        wall_us=round(statistics.median(sample.wall for sample in samples) * 1e6, 1),
        ratio=round(ratio, 3),
        limit=limit,
        met=None if limit is None else ratio <= limit,
    )
