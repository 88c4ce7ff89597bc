"""The ordered listing: a total order by sort key over all sources, by a merge in two bounded rounds.

Round 1 reads L items from every source at once, L being a page's fair share and a little more. H is the P-th smallest
key then known, for a page of P. Round 2 reads on, at once, only those sources that may still hold keys before H,
and only up to H. No source needs a third: it has then reached H, or has P keys before it.

The cursor is the last sort key. Where sort keys can tie, in an index, it also names the source and the item, and
resumes so: sources before it have been read through that key, those after it not at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from math import ceil, inf, sqrt
from typing import Final

from dynashard.reads.bounds import Bounds
from dynashard.reads.by_shard import FILTERED_READ
from dynashard.reads.fetch import Fetch, Want
from dynashard.reads.sources import Chunk, Position, Reading, Source
from dynashard.transport.interface import Wire

BLOCK_BYTES: Final = 4096
"""What DynamoDB bills a Query in."""

Mark = tuple[int, Position]
"""Where a page ended: the number of the source, and the position in it, of the last item."""


_Place = tuple[str, float]
"""A sort key and the number of a source: what the merge puts in order, sort keys by direction, sources always up."""


@dataclass(slots=True)
class _Lane:
    """One source while a page is gathered.

    `reached` is where to read on, empty for the beginning. All that the source holds up to `place` is known, and
    nothing is left in it if it has `ended`.
    """

    source: Source
    bounds: Bounds
    reached: Position = ()
    rows: list[Wire] = field(default_factory=list)
    place: _Place = ("", 0)
    ended: bool = False

    def take(self, chunk: Chunk, bound: str | None) -> None:
        """Add what a Query brought that went no further than `bound`."""
        self.rows += chunk.rows
        if chunk.last is not None:
            self.reached, self.place = chunk.last, (chunk.last[0], self.source.number)
        elif bound is not None:
            # The Query ended at its bound, equal keys and all; what lies beyond is not known.
            self.place = (bound, inf)
        else:
            self.ended = True


def list_ordered(
    fetch: Fetch, sources: Sequence[Source], after: Mark | None, *, limit: int, item_bytes: float
) -> tuple[list[Wire], Mark | None]:
    """One page in order, and its mark, None after the last.

    Args:
        fetch: sends the Queries.
        sources: all sources, in a fixed order.
        after: the mark of the last page; None for the first.
        limit: items wanted, P.
        item_bytes: what an item takes on average, so that round 1 fills the blocks it is billed for.

    Cost: a Query for every source, and one more for those that H asks on; at most 2 round trips, unless a filter or
    DynamoDB's 1 MB a Query cut a round short.
    """
    reading = fetch.reading
    lanes = [_lane(reading, source, after) for source in sources]
    share = first_limit(limit, len(lanes), item_bytes)
    if reading.filters.text:
        share = min(share * 4, FILTERED_READ)
    first = fetch.wave([Want(lane.source, share, lane.reached or None, lane.bounds) for lane in lanes])
    for lane, chunk in zip(lanes, first, strict=True):
        lane.take(chunk, None)
    while fetch.allowed:
        ranked = _ranked(reading, lanes)
        last = ranked[limit - 1] if len(ranked) >= limit else None
        behind = [lane for lane in lanes if not lane.ended and (last is None or _before(reading, lane.place, last))]
        if not behind:
            break
        bound = None if last is None else reading.position(last[1])[0]
        wants = [_rest(reading, lane, limit, bound) for lane in behind]
        for lane, chunk in zip(behind, fetch.wave(wants), strict=True):
            lane.take(chunk, bound)
    return _page(reading, lanes, limit)


def first_limit(limit: int, sources: int, item_bytes: float) -> int:
    """How many items round 1 reads from each source for a page of `limit`.

    A source's share of the page, P/N, and its standard deviation, rounded up to fill the 4 KB blocks that are billed.
    """
    share = limit / sources
    items = ceil(share + sqrt(share))
    blocks = ceil(items * item_bytes / BLOCK_BYTES)
    return min(limit, max(items, int(blocks * BLOCK_BYTES / item_bytes)))


def _lane(reading: Reading, source: Source, after: Mark | None) -> _Lane:
    if after is None:
        return _Lane(source, reading.bounds)
    number, position = after
    if reading.slot is None or source.number == number:
        return _Lane(source, reading.bounds, position)
    edge = reading.bounds.after if source.number < number else reading.bounds.at
    return _Lane(source, edge(position[0], forward=reading.forward))


def _rest(reading: Reading, lane: _Lane, limit: int, bound: str | None) -> Want:
    bounds = lane.bounds if bound is None else lane.bounds.until(bound, forward=reading.forward)
    wanted = FILTERED_READ if reading.filters.text else limit - len(lane.rows)
    return Want(lane.source, wanted, lane.reached or None, bounds)


_Ranked = tuple[int, Wire]
"""A source's number and an item of it."""


def _ranked(reading: Reading, lanes: Sequence[_Lane]) -> list[_Ranked]:
    """All items known, in order; equal sort keys by source, and within a source as it returned them."""
    attribute = reading.sort_attribute
    ranked = [(lane.source.number, row) for lane in lanes for row in lane.rows]
    ranked.sort(key=lambda item: item[1][attribute]["S"], reverse=not reading.forward)
    return ranked


def _before(reading: Reading, place: _Place, item: _Ranked) -> bool:
    """Whether a place comes before an item's own."""
    number, row = item
    key = row[reading.sort_attribute]["S"]
    if place[0] == key:
        return place[1] < number
    return (place[0] < key) is reading.forward


def _page(reading: Reading, lanes: Sequence[_Lane], limit: int) -> tuple[list[Wire], Mark | None]:
    """The items up to where every source has been read, and where that is."""
    ranked = _ranked(reading, lanes)
    open_lanes = [lane for lane in lanes if not lane.ended]
    least = _least(open_lanes, forward=reading.forward) if open_lanes else None
    known = ranked if least is None else takewhile(lambda item: not _before(reading, least.place, item), ranked)
    items = list(islice(known, limit))
    rows = [row for _, row in items]
    if len(items) == limit and (least is not None or len(ranked) > limit):
        return rows, (items[-1][0], reading.position(rows[-1]))
    if least is None:
        return rows, None
    # Cut short: go on where the source stands that was read least far. A source that ended at a bound is not it: a
    # bound is the key of a page's last item, so the page would be full.
    return rows, (least.source.number, least.reached)


def _least(lanes: Sequence[_Lane], *, forward: bool) -> _Lane:
    """The source that was read least far."""
    if forward:
        return min(lanes, key=lambda lane: lane.place)
    return max(lanes, key=lambda lane: (lane.place[0], -lane.place[1]))
