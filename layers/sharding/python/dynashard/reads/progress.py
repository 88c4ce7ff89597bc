"""How a listing that keeps positions gets on: which of the rows it reads are new, and where it stands afterwards."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile

from dynashard.reads.layout import Layout
from dynashard.reads.positions import Positions
from dynashard.reads.sources import Position
from dynashard.schema import PK, SK
from dynashard.transport.interface import Wire


def unseen(layout: Layout, state: Positions, stream: int) -> Callable[[Wire], bool] | None:
    """Tells the rows of a stream that were not returned before; None where reading on brings no others."""
    count, virtual = len(layout.streams), len(state.at)
    attribute, forward = layout.reading.sort_attribute, layout.reading.forward
    start = state.start(stream, count, forward=forward)
    hash_of = layout.hash_of if virtual > count else None
    if hash_of is None and (start is None or layout.identity is None or _plain(layout, stream, start)):
        return None
    returned = {v: returned_at(layout, state.at[v]) for v in state.served(stream, count)}

    def new(row: Wire) -> bool:
        sort = row[attribute]["S"]
        v = stream if hash_of is None else hash_of(row) & (virtual - 1)
        at = state.at[v]
        if at is None or at.sort != sort:
            return state.counts(sort, v, forward=forward)
        return layout.identity is not None and layout.identity_of(row) not in returned[v]

    return new


def _plain(layout: Layout, stream: int, start: Position) -> bool:
    return not layout.moving and not start.seen and layout.streams[stream].exact(start)


def returned_at(layout: Layout, position: Position | None) -> set[str]:
    """The items, as far as a position of an index knows them, that were returned at its sort key."""
    if position is None or position.item is None or layout.identity is None:
        return set() if position is None else set(position.seen)
    return {*position.seen, layout.identity(*position.item)}


def advanced(layout: Layout, state: Positions, stream: int, taken: Sequence[Wire], last: Position | None) -> Positions:
    """The positions after rows were taken from a stream that was read up to `last`, or to its end if that is None."""
    count = len(layout.streams)
    if last is not None and layout.identity is not None:
        before = [id_ for at in state.last(stream, count, last.sort) for id_ in sorted(returned_at(layout, at))]
        last = remembering(layout, last, before, taken, positions=len(state.at))
    return state.read(stream, count, last, forward=layout.reading.forward)


def remembering(
    layout: Layout, last: Position, before: Sequence[str], taken: Sequence[Wire], *, positions: int
) -> Position:
    """A position of an index that also names what was returned at its sort key, as far as there is room.

    Args:
        layout: the layout.
        last: the position.
        before: what earlier positions at this sort key named.
        taken: what was returned from the stream since.
        positions: how many positions a cursor carries.
    """
    attribute = layout.reading.sort_attribute
    tied = takewhile(lambda row: row[attribute]["S"] == last.sort, reversed(taken))
    items = [layout.identity_of(row) for row in tied if (row[PK]["S"], row[SK]["S"]) != last.item]
    known = dict.fromkeys([*before, *reversed(items)])
    if not known:
        return last
    if last.item is not None and layout.identity is not None:
        known.pop(layout.identity(*last.item), None)
    return replace(last, seen=tuple(known)[-layout.remembers(positions) :])
