"""An index whose count is changing: the shards among which entries move, read as one.

The mover rewrites index keys in place, so an entry goes from one shard to another between two Queries. The shards that
entries leave are read first, and those they come to only as far as the first have been read by then: so an entry is
seen twice, but never missed. Equal sort keys are read shard by shard in that order: what comes to a shard at a key
where reading stands has been read where it came from.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynashard.reads.bounds import Bounds
from dynashard.reads.sources import Chunk, Group, Position, Reading, StreamRead

Send = Callable[[Sequence[StreamRead]], list[Chunk]]
"""Reads plain sources, at the same time."""


@dataclass(slots=True)
class _Gathered:
    """What was read of one group."""

    group: Group
    reads: list[StreamRead]
    chunks: list[Chunk] = field(default_factory=list)


def read_groups(send: Send, reading: Reading, reads: Sequence[StreamRead]) -> list[Chunk]:
    """Read groups on, each as one stream in order of sort keys. An entry may come twice, with one sort key.

    Cost: a Query for each shard of each group, in 2 round trips.
    """
    gathered = [_gathered(reading, read, read.source) for read in reads if isinstance(read.source, Group)]
    leaving = [read for each in gathered for read in each.reads[: each.group.leaving]]
    chunks = iter(send(leaving))
    for each in gathered:
        each.chunks = [next(chunks) for _ in range(each.group.leaving)]
    coming = [
        _short_of(read, _reached(reading, each), reading)
        for each in gathered
        for read in each.reads[each.group.leaving :]
    ]
    chunks = iter(send(coming))
    for each in gathered:
        each.chunks += [next(chunks) for _ in each.reads[each.group.leaving :]]
    return [_merge(reading, each) for each in gathered]


def _gathered(reading: Reading, read: StreamRead, group: Group) -> _Gathered:
    bounds = read.bounds or reading.bounds
    begun = _begin(group, read.start, bounds, forward=reading.forward)
    reads = [
        StreamRead(source, read.limit, start, within)
        for source, (start, within) in zip(group.sources, begun, strict=True)
    ]
    return _Gathered(group, reads)


def _begin(
    group: Group, after: Position | None, bounds: Bounds, *, forward: bool
) -> list[tuple[Position | None, Bounds]]:
    """Where reading goes on in each source."""
    if after is None:
        return [(None, bounds)] * len(group.sources)
    at, beyond = bounds.at(after.sort, forward=forward), bounds.after(after.sort, forward=forward)
    place = next((i for i, source in enumerate(group.sources) if after.item and source.partition == after.shard), None)
    if place is None or after.change != group.change:
        return [(None, at)] * len(group.sources)
    rest = len(group.sources) - place - 1
    return [*[(None, beyond)] * place, (after, bounds), *[(None, at)] * rest]


def _reached(reading: Reading, gathered: _Gathered) -> str | None:
    """Up to which sort key all shards that entries leave have been read, that key left out; None for all."""
    ends = [chunk.last.sort for chunk in gathered.chunks if chunk.last is not None]
    if not ends:
        return None
    return min(ends) if reading.forward else max(ends)


def _short_of(read: StreamRead, key: str | None, reading: Reading) -> StreamRead:
    if key is None:
        return read
    # Beyond the key in the other direction, so what lies before it in this one.
    bounds = (read.bounds or reading.bounds).after(key, forward=not reading.forward)
    return StreamRead(read.source, read.limit, read.start, bounds)


def _merge(reading: Reading, gathered: _Gathered) -> Chunk:
    """The entries up to where every source has been read."""
    attribute, forward = reading.sort_attribute, reading.forward
    ranked = [(source, row) for source, chunk in enumerate(gathered.chunks) for row in chunk.rows]
    ranked.sort(key=lambda entry: entry[1][attribute]["S"], reverse=not forward)
    open_sources = [(chunk.last, source) for source, chunk in enumerate(gathered.chunks) if chunk.last is not None]
    if not open_sources:
        return Chunk([row for _, row in ranked], None)
    ends = sorted((last.sort for last, _ in open_sources), reverse=not forward)
    last, least = next((last, source) for last, source in open_sources if last.sort == ends[0])

    def known(row: dict[str, Any], source: int) -> bool:
        key = row[attribute]["S"]
        return source <= least if key == last.sort else (key < last.sort) is forward

    return Chunk([row for source, row in ranked if known(row, source)], last)
