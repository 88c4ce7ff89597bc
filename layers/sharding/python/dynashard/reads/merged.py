"""An index with entries of several counts: the shards among which entries move are read as one stream (a k-way merge).

The mover and writers rewrite index keys in place, so an entry goes from one shard to another between two Queries. The
shards that entries leave are read first, and those they come to only as far as the first have been read by then: so an
entry may be seen twice, but is never missed. Equal sort keys are read shard by shard in that order, so an entry that
comes to a shard at the sort key where reading has arrived was read in the shard that it left.
"""

from collections.abc import Callable, Sequence
from typing import cast

from msgspec.structs import replace

from dynashard.reads.sources import Chunk, Group, Reading, StreamRead
from dynashard.transport.interface import Wire

Send = Callable[[Sequence[StreamRead]], list[Chunk]]
"""Sends reads of plain sources at the same time."""


def read_groups(send: Send, reading: Reading, reads: Sequence[StreamRead]) -> list[Chunk]:
    """Read groups, each as one stream in order of sort keys. An entry may be returned twice, with one sort key.

    Cost: a Query for each shard of each group, in a round trip for each wave.
    """
    parts = [_parts(reading, read) for read in reads]
    chunks = [list[Chunk]() for _ in reads]
    # All groups of a listing have equally many waves.
    for wave in range(len(cast("Group", reads[0].source).waves)):
        due = [own[_wave(read, wave)] for read, own in zip(reads, parts, strict=True)]
        bounded = [
            [_up_to(known, each, reading) for each in sources] for known, sources in zip(chunks, due, strict=True)
        ]
        chunks = [known + more for known, more in zip(chunks, _send_all(send, bounded), strict=True)]
    return [_merge(reading, known) for known in chunks]


def _wave(read: StreamRead, wave: int) -> slice:
    """Where the sources of a wave of a group are."""
    waves = cast("Group", read.source).waves
    first = sum(waves[:wave])
    return slice(first, first + waves[wave])


def _send_all(send: Send, groups: Sequence[Sequence[StreamRead]]) -> list[list[Chunk]]:
    chunks = iter(send([read for reads in groups for read in reads]))
    return [[next(chunks) for _ in reads] for reads in groups]


def _parts(reading: Reading, read: StreamRead) -> list[StreamRead]:
    """The reads of a group's sources."""
    sources, after, bounds = cast("Group", read.source).sources, read.start, read.bounds or reading.bounds
    starts = [(after, bounds)] * len(sources)
    if after is not None:
        at, beyond = bounds.at(after.sort, forward=reading.forward), bounds.after(after.sort, forward=reading.forward)
        exact = after.item is not None and after.resize == reading.resize
        place = next((i for i, source in enumerate(sources) if exact and source.partition == after.shard), None)
        starts = [(None, beyond if after.side > 0 else at)] * len(sources)
        if place is not None:
            # Equal sort keys are read source by source: those before the position's have none of its key left.
            starts[: place + 1] = [*[(None, beyond)] * place, (after, bounds)]
    return [StreamRead(source, read.limit, *start) for source, start in zip(sources, starts, strict=True)]


def _up_to(chunks: Sequence[Chunk], read: StreamRead, reading: Reading) -> StreamRead:
    """The read, before the sort key up to which all of these chunks' sources have been read."""
    ends = [chunk.last.sort for chunk in chunks if chunk.last is not None]
    key = (min if reading.forward else max)(ends, default=None)
    if key is None or read.bounds is None:
        return read
    # Before the key, not at it: its own source may hold more entries with this key, which come first. What lies before
    # the key lies beyond it in the other direction.
    return replace(read, bounds=read.bounds.after(key, forward=not reading.forward))


def _merge(reading: Reading, chunks: Sequence[Chunk]) -> Chunk:
    """The entries up to where every source has been read."""
    attribute, forward = reading.sort_attribute, reading.forward
    ranked = [(source, row) for source, chunk in enumerate(chunks) for row in chunk.rows]
    ranked.sort(key=lambda entry: entry[1][attribute]["S"], reverse=not forward)
    ends = [(chunk.last, source) for source, chunk in enumerate(chunks) if chunk.last is not None]
    if not ends:
        return Chunk([row for _, row in ranked], None)
    # Of equal ends, the first source's.
    last, least = (min if forward else max)(ends, key=lambda end: end[0].sort)

    def known(row: Wire, source: int) -> bool:
        key = row[attribute]["S"]
        return source <= least if key == last.sort else (key < last.sort) is forward

    return Chunk([row for source, row in ranked if known(row, source)], last)
