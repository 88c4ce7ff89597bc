"""Processes that share a topology and a clock, and the throttles that they meet."""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from dynashard import Index, Shards, definition
from dynashard.entity import EntityDefinition
from dynashard.errors import (
    ReshardRefusedError,
    ThrottledError,
)
from dynashard.growth.demand import Demand
from dynashard.growth.policy import Growth
from dynashard.growth.settings import GrowthSettings, Load
from dynashard.growth.shrinking import Shrinking
from dynashard.growth.terms import CountState, GrowthEvent, Report
from dynashard.resharding.scope import Scope
from dynashard.runtime import Runtime
from dynashard.testing.faults import Fault, FaultyTransport, throttled
from dynashard.testing.one_by_one import OneByOne
from dynashard.topology import Record
from dynashard.transport.interface import Resend, Wire
from tests.declaring import declare

TABLE = "arn:aws:dynamodb:eu-west-1:123456789012:table/users"
DAY = 24 * 3600.0
START = 1_800_000_000.0
INDEXES = [
    Index("GSI1", "by_id", "{tenant}", "{id}", shards=Shards(4, max=16)),
    Index("GSI2", "all", "{tenant}", "{id}"),
]


class Nowhere(OneByOne):
    """A transport whose requests always meet a fault."""

    def call(self, operation: str, request: Any, *, resend: Resend | None = None) -> Wire:
        raise NotImplementedError

    def call_all(self, calls: Any, *, concurrency: int = 16) -> list[Wire]:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def throttle(
    reason: str = "TableWriteKeyRangeThroughputExceeded", *, slot: str | None = None, operation: str = "PutItem"
) -> ThrottledError:
    """Return the error that the transport raises."""
    fault: Fault = throttled(operation, reason=reason, resource=f"{TABLE}/index/{slot}" if slot else TABLE)
    with pytest.raises(ThrottledError) as caught:
        FaultyTransport(Nowhere(), [fault]).call(operation, {})
    return caught.value


HOT = throttle()
HOT_INDEX = throttle("IndexWriteKeyRangeThroughputExceeded", slot="GSI1")
NO_REASON = throttle("")


def entity(shards: Shards | None = None, **declared: Any) -> EntityDefinition[Any]:
    return definition(declare(shards=shards or Shards(16, max=64), indexes=INDEXES, **declared))


@dataclass
class World:
    """A topology that several processes share, and a clock."""

    now: float = START
    counts: dict[str, CountState] = field(default_factory=dict)
    asked: list[tuple[str, int]] = field(default_factory=list)
    creating: list[float] = field(default_factory=list)
    reads: int = 0
    reports: list[Report] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None
    trouble: Exception | None = None
    withdrawn: list[str] = field(default_factory=list)

    def present(self, scope: Scope) -> CountState:
        self.reads += 1
        assert scope.shards is not None
        return self.counts.setdefault(scope.key, CountState(scope.shards.initial, START - DAY, busy=False))

    def ask(self, scope: Scope, target: int, creating: float) -> object:
        if self.trouble is not None:
            raise self.trouble
        key = scope.key
        state = self.counts[key]
        if state.busy or state.count == target:
            raise ReshardRefusedError("one is running already", reason="running")
        self.asked.append((key, target))
        self.creating.append(creating)
        self.counts[key] = CountState(target, self.now, busy=False)
        return None

    def withdraw(self, scope: Scope) -> object:
        if self.trouble is not None:
            raise self.trouble
        self.withdrawn.append(scope.key)
        return None

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        self.meanwhile()

    def process(
        self,
        *,
        random: float = 0.5,
        waits: bool = True,
        load: Any = None,
        demand: Demand | None = None,
        **settings: Any,
    ) -> Growth:
        return Growth(
            self.ask,
            self.present,
            runtime=Runtime(lambda: self.now, self.sleep, lambda: random),
            settings=GrowthSettings(**settings),
            waits=waits,
            withdraw=self.withdraw,
            load=load,
            demand=demand,
            report=self.reports.append,
        )

    def shrinking(self, *, load: Any = None, **settings: Any) -> Shrinking:
        return Shrinking(
            self.ask,
            clock=lambda: self.now,
            settings=GrowthSettings(**settings),
            load=load,
            report=self.reports.append,
        )

    @property
    def events(self) -> list[GrowthEvent]:
        return [report.event for report in self.reports]


@dataclass
class Loads:
    """A table load that the test sets."""

    below: bool | None = True
    calmness: bool | None = True
    calm_index: bool | None = None
    """Of an index, if it differs."""
    units: float | None = None
    described: list[tuple[str | None, bool]] = field(default_factory=list)
    asked: list[bool] = field(default_factory=list)
    calms: list[str | None] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None

    def __call__(self, *, index: str | None = None, writing: bool = True) -> Load:
        assert index is None
        self.asked.append(writing)
        self.meanwhile()
        return Load(self.below, "1 of 2 units")

    def limit(self, *, index: str | None = None, writing: bool = True) -> float | None:
        self.described.append((index, writing))
        return self.units

    def calm(self, seconds: float, *, index: str | None = None) -> bool | None:
        assert (seconds, index) in {(DAY, None), (DAY, "GSI1")}
        self.calms.append(index)
        return self.calmness if index is None or self.calm_index is None else self.calm_index


def record(key: str, count: int, *, age: float = DAY, **more: Any) -> Record:
    return Record(key, count, Decimal(str(START - age)), 30.0, **more)
