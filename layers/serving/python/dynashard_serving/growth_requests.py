"""The growth policy at work: it looks at the topology table, and asks for changes as an operator does."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from dynashard.entity import EntityDefinition
from dynashard.errors import ConfigurationError
from dynashard.placement import UNSHARDED
from dynashard.resharding.resharder import Resharder
from dynashard.resharding.scope import Scope
from dynashard.topology import Record, TopologyTable, family_of
from dynashard_serving.growth_policy import Growth, GrowthSettings, News, Report, Standing
from dynashard_serving.growth_terms import AskLoad

MOST_SHRUNK: Final = 20
"""Counts halved by one look. A family's record names all that change, and each change has a driver of its own."""


def growth_of(
    resharder: Resharder,
    *,
    settings: GrowthSettings,
    waits: bool = False,
    load: AskLoad | None = None,
    report: Callable[[Report], None] = lambda _: None,
    cause: str = "throttle",
) -> Growth:
    """The growth policy of a process, whose `throttled` is what a `Dynashard` tells of throttles.

    Args:
        resharder: is asked for changes; its time and randomness are the policy's.
        settings: how it behaves.
        waits: wait in the calling thread. Otherwise no request ever waits; see `Growth`.
        load: tells whether the table is below its limits; None if nobody knows.
        report: is told the news.
        cause: what the status of a change gives as its cause.

    Cost: none. What a throttle costs, `Growth.throttled` tells: a look is 1 round trip and at most 2 read units; what
    asking costs, `Resharder.start`. Items are not counted beforehand: that would read a hot partition through.
    """
    return Growth(
        lambda scope, target: resharder.start(scope, target, cause=cause, survey=False),
        lambda scope: _standing(resharder.topology, scope),
        runtime=resharder.runtime,
        settings=settings,
        waits=waits,
        load=load,
        report=report,
    )


def shrink_quiet(
    resharder: Resharder,
    *,
    settings: GrowthSettings,
    load: AskLoad | None = None,
    report: Callable[[Report], None] = lambda _: None,
    most: int = MOST_SHRUNK,
) -> list[Report]:
    """Look once whether counts have stood quiet for long enough to be halved, and ask for that.

    Args:
        resharder: is asked for changes; the partitions and indexes of its entities are looked at.
        settings: how the policy behaves.
        load: tells whether a table was throttled; with None, none was.
        report: is told the news.
        most: how many to ask for at most; the rest is for the next look.

    Returns:
        What was reported.

    Raises:
        EngineError: the topology table cannot be read.

    Cost: a Scan of the topology table for each family, and what `Growth.shrink` costs. Nothing with the mode off.
    """
    if settings.mode == "off":
        return []
    known = resharder.entities
    told: list[Report] = []

    def tell(news: Report) -> None:
        told.append(news)
        report(news)

    def records() -> Iterator[Record]:
        for family in dict.fromkeys(map(family_of, known)):
            for record in resharder.topology.own(family):
                if sum(news.news in (News.ASKED, News.WOULD_ASK) for news in told) >= most:
                    return
                if _belongs(record, known):
                    yield record

    return growth_of(resharder, settings=settings, load=load, report=tell, cause="quiet").shrink(records(), known)


def _standing(topology: TopologyTable, scope: Scope) -> Standing:
    records = topology.read([scope.key] if scope.index else [scope.key, scope.family])
    record = records.get(scope.key) or records.get(scope.family)
    if record is None:
        return Standing(scope.shards.initial if scope.shards else UNSHARDED, 0.0, busy=False)
    counted = [int(entry.partition(":")[0]) for entry in record.history]
    # A change that was called off leaves no count behind; it deserves its cooldown all the same.
    return Standing(record.count, max([record.since, *counted]), record.busy)


def _belongs(record: Record, entities: Sequence[EntityDefinition[Any]]) -> bool:
    """Whether a record is still declared: an index may have lost its shards since."""
    try:
        Scope.of_key(record.key, entities)
    except ConfigurationError:
        return False
    return True
