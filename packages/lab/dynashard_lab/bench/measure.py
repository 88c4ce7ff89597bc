"""Measure contenders side by side: interleaved rounds, medians with quartiles, and ratios within a round.

The client's CPU is the CPU time of this process with all its threads, or that which a process of the contender reports.
Servers run in processes of their own. A ratio is taken within each round and the median of the ratios is reported, so a
slow minute of the machine affects both sides.
"""

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from dynashard_lab.bench.processors import processors

Clock = Literal["cpu", "wall"]
MICROSECONDS = 1e6


@dataclass(frozen=True, slots=True)
class Sample:
    """What one run cost: seconds, and MB of resident memory at its highest if a process of its own measured them."""

    cpu: float
    wall: float
    megabytes: float | None = None

    def on(self, clock: Clock) -> float:
        """Return the seconds on a clock."""
        return self.cpu if clock == "cpu" else self.wall


class Contender(Protocol):
    """One way to do the work of a row."""

    @property
    def name(self) -> str:
        """What the tables call it."""
        ...

    def sample(self, repeat: int, items: int | None) -> Sample:
        """Do the work so often at least, and return what one run of it cost.

        Raises `WrongAnswerError` if a run answers another number of items than `items`.
        """
        ...


class WrongAnswerError(Exception):
    """A contender answered something else than the row demands, so its time means nothing."""


@dataclass(frozen=True, slots=True)
class Here:
    """A contender in this process: `run` does the work once, and returns an item, a list of items, or their number.

    With a `loop`, `run` returns an awaitable, and runs are awaited one after the other inside one call of the loop, as
    a program on asyncio would.

    A sample begins with a collection of garbage, so that no contender collects what another one left. The first runs
    then find little of their own in the processor's caches. A sample shorter than `seconds` of the clock therefore does
    not count, and the work is done for so long once more: the same number of runs would be a much shorter sample of a
    quick contender than of a slow one, and a noisier one.
    """

    name: str
    run: Callable[[], object]
    loop: AbstractEventLoop | None = None
    seconds: float = 0.05
    clock: Callable[[], float] = time.perf_counter

    def sample(self, repeat: int, items: int | None) -> Sample:
        """See `Contender`. The number of measured runs is a multiple of `repeat`."""
        gc.collect()
        sample = self._measured(repeat, items, 0.0)
        return sample if sample.wall * repeat >= self.seconds else self._measured(repeat, items, self.seconds)

    def _measured(self, repeat: int, items: int | None, seconds: float) -> Sample:
        answer: object = None
        runs, wall, cpu = 0, self.clock(), time.process_time()
        while not runs or self.clock() - wall < seconds:
            answer = self._answer(repeat)
            runs += repeat
        cpu, wall = time.process_time() - cpu, self.clock() - wall
        require(self.name, how_many(answer), items)
        return Sample(cpu / runs, wall / runs)

    def _answer(self, repeat: int) -> object:
        if self.loop is not None:
            return self.loop.run_until_complete(self._awaited(repeat))
        for _ in range(repeat):
            answer = self.run()
        return answer

    async def _awaited(self, repeat: int) -> object:
        answer: object = None
        for _ in range(repeat):
            answer = await cast("Awaitable[object]", self.run())
        return answer


@dataclass(frozen=True, slots=True)
class Apart:
    """A contender that is a fresh interpreter each time. It prints `items`, `cpu`, `wall` and `megabytes` as JSON.

    `path` comes first on the interpreter's path of imports.
    """

    name: str
    arguments: Sequence[str]
    path: Path | None = None

    def sample(self, repeat: int, items: int | None) -> Sample:
        """See `Contender`. The figures are those of the median run by CPU."""
        runs = sorted((self._run(items) for _ in range(repeat)), key=lambda run: run.cpu)
        return runs[len(runs) // 2]

    def _run(self, items: int | None) -> Sample:
        # Without compiled modules every start would be slower than it is where functions are deployed.
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        if self.path is not None:
            environ["PYTHONPATH"] = os.pathsep.join([str(self.path), *filter(None, [environ.get("PYTHONPATH")])])
        command = [sys.executable, *self.arguments]
        done = subprocess.run(  # noqa: S603 - this checkout's own modules
            command, stdout=subprocess.PIPE, env=environ, text=True, check=True
        )
        figures = json.loads(done.stdout)
        require(self.name, figures["items"], items)
        return Sample(figures["cpu"], figures["wall"], figures.get("megabytes") or None)


def how_many(answer: object) -> int:
    """Return the number of items in an answer: it is one item, a list of them, or already their number."""
    if answer is None or isinstance(answer, int):
        return answer or 0
    return len(answer) if isinstance(answer, list | tuple) else 1


def require(name: str, answer: int, items: int | None) -> None:
    """Raise `WrongAnswerError` unless a contender answered so many items; None demands nothing."""
    if items is not None and answer != items:
        raise WrongAnswerError(f"{name} answered {answer} items; {items} were expected")


@dataclass(frozen=True, slots=True)
class Limit:
    """The highest ratio that a contender may have, to the baseline or `to` another contender, and the most memory."""

    ratio: float
    to: str | None = None
    megabytes: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. The first contender is the baseline.

    Attributes:
        name: what is done, such as `get an item`.
        contenders: the ways to do it.
        repeat: how often a sample runs a contender at least.
        clock: whether ratios compare client CPU or wall time. Both are reported.
        limits: by contender.
        items: what each run must answer; None demands nothing.
        processors: how many processors this process may use meanwhile; None for all.
        rounds: the highest number of rounds, for slow rows.
        warmed: whether each contender runs once beforehand, unmeasured.
        frozen: whether collections of garbage leave out what exists before the row. If not, they visit the heap of the
            application, as in a program that does not freeze it.
    """

    name: str
    contenders: Sequence[Contender]
    repeat: int
    clock: Clock = "cpu"
    limits: Mapping[str, Limit] = field(default_factory=dict)
    items: int | None = None
    processors: int | None = 1
    rounds: int = 1000
    warmed: bool = True
    frozen: bool = True


@dataclass(frozen=True, slots=True)
class Spread:
    """The median and the quartiles of the rounds."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Figure:
    """The figures of one contender. Times are microseconds for one run.

    Attributes:
        ratio: to the baseline, on the clock of the row.
        limit: the highest ratio to the baseline, or to the contender in `limit_to`.
        limited: the ratio that the limit is about.
        megabytes: the highest resident memory, as the median of the rounds.
        most_megabytes: its limit.
    """

    row: str
    contender: str
    clock: Clock
    cpu_us: Spread
    wall_us: Spread
    ratio: Spread
    limit: float | None = None
    limit_to: str | None = None
    limited: float | None = None
    megabytes: float | None = None
    most_megabytes: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the ratio and the memory are within their limits; None without a limit."""
        if self.limit is None or self.limited is None:
            return None
        fits = self.most_megabytes is None or self.megabytes is None or self.megabytes <= self.most_megabytes
        return self.limited <= self.limit and fits

    def as_json(self) -> dict[str, Any]:
        """Return the figure as JSON values."""
        return {**asdict(self), "met": self.met}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Figure":
        """Return a figure that was written as JSON."""
        spreads = {name: Spread(**content[name]) for name in ("cpu_us", "wall_us", "ratio")}
        return cls(**{name: value for name, value in content.items() if name != "met"} | spreads)


@dataclass(frozen=True, slots=True)
class Fact:
    """A figure other than a comparison of times, such as a number of Queries, bytes or units."""

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

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Fact":
        """Return a fact that was written as JSON."""
        return cls(**{name: value for name, value in content.items() if name != "met"})


@contextmanager
def _left_out_of_collections() -> Iterator[None]:
    """Let collections of garbage leave out what exists: they would visit the objects of all clients, for each sample.

    A round then takes a third of the time, so the machine changes less between the samples that are compared.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def measure(row: Row, *, rounds: int) -> list[Figure]:
    """Measure the contenders of a row.

    Args:
        row: the row.
        rounds: how many samples each contender gives. Each round begins with another contender.

    Returns:
        One figure for each contender, in the order of the row.

    Raises:
        WrongAnswerError: a contender answered another number of items than the row demands.
    """
    contenders = list(row.contenders)
    samples: dict[str, list[Sample]] = {contender.name: [] for contender in contenders}
    with processors(row.processors):
        for contender in contenders if row.warmed else ():
            contender.sample(1, row.items)
        with _left_out_of_collections() if row.frozen else nullcontext():
            for turn in range(min(rounds, row.rounds)):
                first = turn % len(contenders)
                for contender in contenders[first:] + contenders[:first]:
                    samples[contender.name].append(contender.sample(row.repeat, row.items))
    return [_figure(row, contender.name, samples) for contender in contenders]


def _figure(row: Row, name: str, samples: Mapping[str, Sequence[Sample]]) -> Figure:
    own, limit = samples[name], row.limits.get(name)
    memory = [sample.megabytes for sample in own if sample.megabytes is not None]
    return Figure(
        row=row.name,
        contender=name,
        clock=row.clock,
        cpu_us=_spread([sample.cpu * MICROSECONDS for sample in own], 1),
        wall_us=_spread([sample.wall * MICROSECONDS for sample in own], 1),
        ratio=_ratio(own, samples[row.contenders[0].name], row.clock),
        limit=limit.ratio if limit else None,
        limit_to=limit.to if limit else None,
        limited=_limited(row, own, limit, samples),
        megabytes=round(statistics.median(memory), 1) if memory else None,
        most_megabytes=limit.megabytes if limit else None,
    )


def _limited(
    row: Row, own: Sequence[Sample], limit: Limit | None, samples: Mapping[str, Sequence[Sample]]
) -> float | None:
    """Return the ratio that the limit is about; None without a limit, or if the other contender is missing."""
    other = None if limit is None else samples.get(limit.to or row.contenders[0].name)
    return None if other is None else _ratio(own, other, row.clock).median


def _ratio(own: Sequence[Sample], other: Sequence[Sample], clock: Clock) -> Spread:
    return _spread([mine.on(clock) / its.on(clock) for mine, its in zip(own, other, strict=True)], 4)


def _spread(values: Sequence[float], digits: int) -> Spread:
    if len(values) == 1:
        low = median = high = values[0]
    else:
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(round(median, digits), round(low, digits), round(high, digits))
