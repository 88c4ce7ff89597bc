"""Connect the policies to the topology table: they read records there, and request resizes as an operator does."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from dynashard.entity import EntityDefinition
from dynashard.errors import ConfigurationError
from dynashard.growth.demand import Demand
from dynashard.growth.policy import Growth
from dynashard.growth.settings import GrowthSettings, LoadSource
from dynashard.growth.shrinking import Shrinking
from dynashard.growth.terms import CountState, GrowthEvent, Report, RequestCount
from dynashard.placement import UNSHARDED
from dynashard.resharding.resharder import Resharder
from dynashard.resharding.resize import Resize
from dynashard.resharding.scope import Scope
from dynashard.topology import Phase, Record, TopologyTable, family_of

MOST_SHRUNK: Final = 20
"""Counts halved at a time. A family's record names all that change, and each resize has a driver of its own."""


def growth_of(
    resharder: Resharder,
    *,
    settings: GrowthSettings,
    waits: bool = False,
    load: LoadSource | None = None,
    demand: Demand | None = None,
    report: Callable[[Report], None] = lambda _: None,
) -> Growth:
    """Return the growth policy of a process; a `Dynashard` reports throttles to its `throttled`.

    Args:
        resharder: takes the requests; its time and randomness are the policy's.
        settings: how the policy behaves.
        waits: as of `Growth`.
        load: as of `Growth`.
        demand: as of `Growth`; what a `CountingTransport` under that `Dynashard` fills.
        report: as of `Growth`.

    Cost: none. A throttle costs what `Growth.throttled` does: reading a count is 1 round trip and at most 2 read units;
    a request costs what `Resharder.start` does. Items are not counted first: that would read a hot partition through.
    """
    return Growth(
        _requests_of(resharder, "throttle"),
        lambda scope: _state_of(resharder.topology, scope),
        runtime=resharder.runtime,
        settings=settings,
        waits=waits,
        withdraw=resharder.abort,
        load=load,
        demand=demand,
        report=report,
    )


def shrink_quiet(
    resharder: Resharder,
    *,
    settings: GrowthSettings,
    load: LoadSource | None = None,
    report: Callable[[Report], None] = lambda _: None,
) -> list[Report]:
    """Request half of the counts that were quiet for long enough, at most 20. The others wait for the next call.

    Args:
        resharder: takes the requests; the partitions and indexes of its entities are looked at.
        settings: as of `Shrinking`.
        load: as of `Shrinking`.
        report: as of `Shrinking`.

    Returns:
        The reports.

    Raises:
        EngineError: the topology table cannot be read.

    Cost: a Scan of the topology table for each family, and what `Shrinking.shrink` costs. Nothing with the mode off.
    """
    if settings.mode == "off":
        return []
    known = resharder.entities
    reports: list[Report] = []

    def collect(event: Report) -> None:
        reports.append(event)
        report(event)

    def records() -> Iterator[Record]:
        for family in dict.fromkeys(map(family_of, known)):
            for record in resharder.topology.own(family):
                if sum(each.event in (GrowthEvent.ASKED, GrowthEvent.WOULD_ASK) for each in reports) >= MOST_SHRUNK:
                    return
                if _belongs(record, known):
                    yield record

    request, clock = _requests_of(resharder, "quiet"), resharder.runtime.clock
    return Shrinking(request, clock=clock, settings=settings, load=load, report=collect).shrink(records(), known)


def _requests_of(resharder: Resharder, cause: str) -> RequestCount:
    """Return what requests counts for a cause, which the status of a resize names."""

    def request(scope: Scope, target: int, creating: float) -> None:
        # A hot index grows for new entries alone. When it is quiet, there is time to rewrite the others.
        rewrite = True if scope.index is not None and cause == "quiet" else None
        resharder.start(scope, target, cause=cause, survey=False, creating=creating, rewrite=rewrite)

    return request


def _state_of(topology: TopologyTable, scope: Scope) -> CountState:
    records = topology.read([scope.key] if scope.index else [scope.key, scope.family])
    record = records.get(scope.key) or records.get(scope.family)
    if record is None:
        return CountState(scope.shards.initial if scope.shards else UNSHARDED, 0.0, busy=False)
    counted = [int(entry.partition(":")[0]) for entry in record.history]
    resize = Resize.of(record)
    return CountState(
        record.count,
        # A resize that was aborted leaves no count behind, but it has a cooldown too.
        max([record.since, *counted]),
        record.busy,
        narrowing=record.phase is Phase.PREPARE and (record.target or 0) < record.count,
        declined=None if resize is None else resize.declined,
        target=record.target if resize is None or record.busy else resize.target,
    )


def _belongs(record: Record, entities: Sequence[EntityDefinition[Any]]) -> bool:
    """Whether a record is still declared: an index may have lost its shards since."""
    try:
        Scope.of_key(record.key, entities)
    except ConfigurationError:
        return False
    return True
