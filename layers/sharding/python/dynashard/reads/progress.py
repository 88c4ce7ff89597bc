"""How a listing that keeps positions progresses: which of the rows it reads are new, and its positions afterwards."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from dynashard.reads.layout import Layout
from dynashard.reads.positions import Positions
from dynashard.reads.sources import Chunk, Position, Source, StreamRead
from dynashard.schema import PK, SK
from dynashard.transport.interface import Wire


def next_read(layout: Layout, state: Positions, stream: int, limit: int, *, part: int = 0) -> StreamRead:
    """Return the read of so many more rows of a stream of the listing's logical partition with this number."""
    count = len(layout.streams)
    start = layout.resumed(state.start(stream, count, forward=layout.reading.forward))
    if start is not None and start.item is None and layout.identity is not None:
        # Index entries with equal sort keys have no defined order, so those that were returned are read again.
        limit += sum(map(reread_limit, state.last(stream, count, start.sort)))
    return StreamRead(layout.streams[stream], limit, start, part=part)


def accept(
    layout: Layout, state: Positions, stream: int, chunk: Chunk, room: int = sys.maxsize
) -> tuple[list[Wire], Positions]:
    """Return the rows of a chunk that were not returned before, at most `room`, and the positions after them."""
    rows, last, count = _unseen(layout, state, stream, chunk.rows), chunk.last, len(layout.streams)
    if len(rows) > room:
        if room == 0:
            return [], state
        rows = rows[:room]
        last = layout.reading.position(rows[-1])
    if last is not None and layout.identity is not None:
        last = with_seen(layout, last, state.last(stream, count, last.sort), rows, positions=len(state.at))
    return rows, state.read(stream, count, last, forward=layout.reading.forward)


def _unseen(layout: Layout, state: Positions, stream: int, rows: list[Wire]) -> list[Wire]:
    count, virtual = len(layout.streams), len(state.at)
    attribute, forward = layout.reading.sort_attribute, layout.reading.forward
    hash_of = layout.hash_of if virtual > count else None
    if hash_of is None:
        at = state.at[stream]
        if at is None or layout.identity is None:
            return rows
        before = returned_at(layout, at)
        return [row for row in rows if row[attribute]["S"] != at.sort or layout.identity_of(row) not in before]
    returned = {v: returned_at(layout, state.at[v]) for v in state.served(stream, count)}

    def new(row: Wire) -> bool:
        sort = row[attribute]["S"]
        v = hash_of(row) & (virtual - 1)
        at = state.at[v]
        if at is None or at.sort != sort:
            return state.counts(sort, v, forward=forward)
        return layout.identity is not None and layout.identity_of(row) not in returned[v]

    return [row for row in rows if new(row)]


def passed(layout: Layout, state: Positions, row: Wire) -> bool:
    """Whether the listing has read the shard that a row belongs to beyond the row's sort key."""
    if layout.hash_of is None:
        return False
    sort = row[layout.reading.sort_attribute]["S"]
    return not state.counts(sort, layout.hash_of(row) & (len(state.at) - 1), forward=layout.reading.forward)


def reread_limit(position: Position) -> int:
    """Return how many rows at a position's sort key may be read again: each item returned, and by now its marker."""
    return 2 * (len(position.seen) + 1)


def continues_exactly(layout: Layout, state: Positions, stream: int) -> bool:
    """Whether the next read of a stream returns nothing that was returned before."""
    if len(state.at) > len(layout.streams) and layout.hash_of is not None:
        return False
    at = state.at[stream]
    if at is None or layout.identity is None:
        return True
    source = layout.streams[stream]
    return layout.resumed(at) is at and not at.seen and isinstance(source, Source) and at.shard == source.partition


def returned_at(layout: Layout, position: Position | None) -> set[str]:
    """Return the hashes of the items that were returned at a position's sort key, as far as it names them."""
    if position is None or position.item is None or layout.identity is None:
        return set() if position is None else set(position.seen)
    return {*position.seen, layout.identity(*position.item)}


def with_seen(
    layout: Layout, last: Position, before: Sequence[Position], returned: Sequence[Wire], *, positions: int
) -> Position:
    """Return a position of an index that also names the items returned at its sort key, as far as there is room.

    `before` are the earlier positions at this sort key, and `returned` is what was returned from the stream since. A
    cursor carries so many `positions`.
    """
    attribute = layout.reading.sort_attribute
    tied = takewhile(lambda row: row[attribute]["S"] == last.sort, reversed(returned))
    items = [layout.identity_of(row) for row in tied if (row[PK]["S"], row[SK]["S"]) != last.item]
    known = dict.fromkeys([name for at in before for name in sorted(returned_at(layout, at))] + items[::-1])
    if known and last.item is not None and layout.identity is not None:
        known.pop(layout.identity(*last.item), None)
    room = layout.max_seen(positions)
    # Items that cannot be remembered must not be read again, or the listing would not end.
    stuck = len(known) > room or (bool(before) and not returned)
    return replace(last, seen=tuple(known)[-room:], forced=layout.moving and stuck)
