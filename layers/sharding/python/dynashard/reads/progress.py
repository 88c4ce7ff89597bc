"""How a listing that keeps positions gets on: which of the rows it reads are new, and where it stands afterwards."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from dynashard.reads.layout import Layout
from dynashard.reads.positions import Positions
from dynashard.reads.sources import Position, Source, StreamRead
from dynashard.schema import PK, SK
from dynashard.transport.interface import Wire


def unseen(layout: Layout, state: Positions, stream: int, rows: list[Wire]) -> list[Wire]:
    """Those of the rows read from a stream's position on that were not returned before."""
    count, virtual = len(layout.streams), len(state.at)
    attribute, forward = layout.reading.sort_attribute, layout.reading.forward
    hash_of = layout.hash_of if virtual > count else None
    if hash_of is None:
        return rows if layout.identity is None else _after(layout, state.at[stream], rows)
    returned = {v: returned_at(layout, state.at[v]) for v in state.served(stream, count)}

    def new(row: Wire) -> bool:
        sort = row[attribute]["S"]
        v = hash_of(row) & (virtual - 1)
        at = state.at[v]
        if at is None or at.sort != sort:
            return state.counts(sort, v, forward=forward)
        return layout.identity is not None and layout.identity_of(row) not in returned[v]

    return [row for row in rows if new(row)]


def _after(layout: Layout, at: Position | None, rows: list[Wire]) -> list[Wire]:
    """The entries of an index without those that were returned at the sort key of the position."""
    attribute = layout.reading.sort_attribute
    tied = 0 if at is None else sum(1 for _ in takewhile(lambda row: row[attribute]["S"] == at.sort, rows))
    if not tied:
        return rows
    returned = returned_at(layout, at)
    return [row for row in rows[:tied] if layout.identity_of(row) not in returned] + rows[tied:]


def passed(layout: Layout, state: Positions, row: Wire) -> bool:
    """Whether the listing has read the shard that a row belongs to beyond the row's sort key."""
    if layout.hash_of is None:
        return False
    sort = row[layout.reading.sort_attribute]["S"]
    return not state.counts(sort, layout.hash_of(row) & (len(state.at) - 1), forward=layout.reading.forward)


def start_of(layout: Layout, state: Positions, stream: int) -> Position | None:
    """Where to go on reading a stream; None for its beginning."""
    return layout.resumed(state.start(stream, len(layout.streams), forward=layout.reading.forward))


def next_read(layout: Layout, state: Positions, stream: int, limit: int, *, part: int = 0) -> StreamRead:
    """So many rows more of a stream of the layout that is this part of the listing."""
    start = start_of(layout, state, stream)
    return StreamRead(layout.streams[stream], limit + rows_to_reread(start, layout, state, stream), start, part=part)


def rows_to_reread(start: Position | None, layout: Layout, state: Positions, stream: int) -> int:
    """How many rows are read once more, since entries with equal sort keys keep no order."""
    if start is None or layout.identity is None or start.item is not None:
        return 0
    return sum(map(reread_limit, state.last(stream, len(layout.streams), start.sort)))


def reread_limit(position: Position) -> int:
    """How many rows at the sort key of a position were returned before: each may be a mark and an item by now."""
    return 2 * (len(position.seen) + 1)


def continues_exactly(layout: Layout, state: Positions, stream: int) -> bool:
    """Whether reading on from a stream's position brings nothing that was returned before."""
    if len(state.at) > len(layout.streams) and layout.hash_of is not None:
        return False
    at = state.at[stream]
    if at is None or layout.identity is None:
        return True
    source = layout.streams[stream]
    return layout.resumed(at) is at and not at.seen and isinstance(source, Source) and at.shard == source.partition


def returned_at(layout: Layout, position: Position | None) -> set[str]:
    """The items, as far as a position of an index knows them, that were returned at its sort key."""
    if position is None or position.item is None or layout.identity is None:
        return set() if position is None else set(position.seen)
    return {*position.seen, layout.identity(*position.item)}


def advanced(layout: Layout, state: Positions, stream: int, taken: Sequence[Wire], last: Position | None) -> Positions:
    """The positions after rows were taken from a stream that was read up to `last`, or to its end if that is None."""
    count = len(layout.streams)
    if last is not None and layout.identity is not None:
        before = state.last(stream, count, last.sort)
        last = with_seen(layout, last, before, taken, positions=len(state.at))
    return state.read(stream, count, last, forward=layout.reading.forward)


def with_seen(
    layout: Layout, last: Position, before: Sequence[Position], taken: Sequence[Wire], *, positions: int
) -> Position:
    """A position of an index that also names what was returned at its sort key, as far as there is room.

    Args:
        layout: the layout.
        last: the position.
        before: the earlier positions at this sort key.
        taken: what was returned from the stream since.
        positions: how many positions a cursor carries.
    """
    attribute = layout.reading.sort_attribute
    tied = takewhile(lambda row: row[attribute]["S"] == last.sort, reversed(taken))
    items = [layout.identity_of(row) for row in tied if (row[PK]["S"], row[SK]["S"]) != last.item]
    known = dict.fromkeys([name for at in before for name in sorted(returned_at(layout, at))] + items[::-1])
    if known and last.item is not None and layout.identity is not None:
        known.pop(layout.identity(*last.item), None)
    room = layout.max_seen(positions)
    # What cannot be remembered must not be read again, or the listing would not end.
    stuck = len(known) > room or (bool(before) and not taken)
    return replace(last, seen=tuple(known)[-room:], forced=layout.moving and stuck)
