"""The ordered listing: a total order by sort key over all sources, by a merge in two bounded rounds.

Round 1 reads L items from every source at once, L being a page's fair share and a little more. H is the P-th smallest
key then known, for a page of P. Round 2 reads on, at once, only those sources that may still hold keys before H,
and only up to H. No source needs a third: it has then reached H, or has P keys before it.

The cursor is the last sort key. Where sort keys can tie, in an index, it also names the source and the item, and
resumes so: sources before it have been read through that key, those after it not at all. A source is what hashes lead
to, so this holds under any other count: what an entry's hash says of its source then says whether it was read.

Where the layout changes while a page is gathered, the page ends short; it never mixes two.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from math import ceil, inf, sqrt
from typing import Any, Final

from dynashard.reads.bounds import Bounds
from dynashard.reads.by_shard import FILTERED_READ
from dynashard.reads.fetch import Fetch, OvertakenError
from dynashard.reads.layout import Layout
from dynashard.reads.moved import distinct
from dynashard.reads.progress import remembering, returned_at, returned_before
from dynashard.reads.sources import Chunk, Position, Reading, Stream, Want
from dynashard.transport.interface import Wire

BLOCK_BYTES: Final = 4096
"""What DynamoDB bills a Query in."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a page ended.

    Attributes:
        position: that of the last item.
        number: in an index, the stream it came from.
        streams: in an index, how many there were.
        passed: in an index, the same two of earlier pages that ended at this sort key under another count.
        version: in an index, that of the view.
    """

    position: Position
    number: int = 0
    streams: int = 1
    passed: tuple[tuple[int, int], ...] = ()
    version: str = ""


_Place = tuple[str, float]
"""A sort key and the number of a source: what the merge puts in order, sort keys by direction, sources always up."""


@dataclass(slots=True)
class _Lane:
    """One source while a page is gathered.

    `reached` is where to read on, None for the beginning. All that the source holds up to `place` is known, and
    nothing is left in it if it has `ended`. `new` tells what no earlier page returned; None where all is new. Before it
    come `again` rows that are read once more.
    """

    source: Stream
    bounds: Bounds
    reached: Position | None = None
    new: Callable[[Wire], bool] | None = None
    again: int = 0
    rows: list[Wire] = field(default_factory=list)
    place: _Place = ("", 0)
    ended: bool = False

    def take(self, layout: Layout, chunk: Chunk, bound: str | None) -> None:
        """Add what a Query brought that went no further than `bound`."""
        self.rows += chunk.rows if self.new is None else filter(self.new, chunk.rows)
        if layout.moving and layout.identity is not None:
            self.rows = distinct(layout, self.rows)
        if chunk.last is not None:
            # In a table no two live items have one sort key, but a mark and its item have: all are known up to it.
            rank = inf if layout.identity is None else self.source.number
            # Within a page, what has its place does not leave it unseen.
            self.reached, self.place = replace(chunk.last, forced=True), (chunk.last.sort, rank)
        elif bound is not None:
            # The Query ended at its bound, equal keys and all; what lies beyond is not known.
            self.place = (bound, inf)
        else:
            self.ended = True


def list_ordered(fetch: Fetch, after: Mark | None, *, limit: int, item_bytes: float) -> tuple[list[Wire], Mark | None]:
    """One page in order, and its mark, None after the last.

    Args:
        fetch: sends the Queries.
        after: the mark of the last page; None for the first.
        limit: items wanted, P.
        item_bytes: what an item takes on average, so that round 1 fills the blocks it is billed for.

    Cost: a Query for every source, and one more for those that H asks on; at most 2 round trips, unless a filter or
    DynamoDB's 1 MB a Query cut a round short.
    """
    layout, lanes = _first_round(fetch, after, limit, item_bytes)
    reading = layout.reading
    while fetch.allowed:
        ranked = _ranked(reading, lanes)
        last = ranked[limit - 1] if len(ranked) >= limit else None
        behind = [lane for lane in lanes if not lane.ended and (last is None or _before(reading, lane.place, last))]
        if not behind:
            break
        bound = None if last is None else reading.position(last[1]).sort
        try:
            chunks = fetch.wave(layout, [_rest(reading, lane, limit, bound) for lane in behind])
        except OvertakenError:
            break
        for lane, chunk in zip(behind, chunks, strict=True):
            lane.take(layout, chunk, bound)
    return _page(layout, lanes, after, limit)


def _first_round(fetch: Fetch, after: Mark | None, limit: int, item_bytes: float) -> tuple[Layout, list[_Lane]]:
    while True:
        layout = fetch.layout()
        new = _new(layout, after)
        lanes = [_lane(layout, stream, after, new) for stream in layout.streams]
        share = first_limit(limit, len(lanes), item_bytes)
        if layout.reading.filters.text:
            share = min(share * 4, FILTERED_READ)
        try:
            wants = [Want(lane.source, share + lane.again, lane.reached, lane.bounds) for lane in lanes]
            first = fetch.wave(layout, wants)
        except OvertakenError:
            continue
        for lane, chunk in zip(lanes, first, strict=True):
            lane.take(layout, chunk, None)
        return layout, lanes


def first_limit(limit: int, sources: int, item_bytes: float) -> int:
    """How many items round 1 reads from each source for a page of `limit`.

    A source's share of the page, P/N, and its standard deviation, rounded up to fill the 4 KB blocks that are billed.
    """
    share = limit / sources
    items = ceil(share + sqrt(share))
    blocks = ceil(items * item_bytes / BLOCK_BYTES)
    return min(limit, max(items, int(blocks * BLOCK_BYTES / item_bytes)))


def _lane(layout: Layout, stream: Stream, after: Mark | None, new: Callable[[Wire], bool] | None) -> _Lane:
    bounds, forward = layout.reading.bounds, layout.reading.forward
    if after is None:
        return _Lane(stream, bounds)
    if layout.identity is None:
        return _Lane(stream, bounds, after.position)
    key, again = after.position.sort, returned_before(after.position)
    if after.streams != len(layout.streams):
        return _Lane(stream, bounds.at(key, forward=forward), new=new, again=again)
    if stream.number > after.number:
        return _Lane(stream, bounds.at(key, forward=forward), new=new if after.passed else None)
    if stream.number < after.number:
        return _Lane(stream, bounds.after(key, forward=forward))
    stale = after.position.stale or after.version != layout.version
    start = layout.resumed(replace(after.position, stale=stale))
    # The last item itself may stand elsewhere by now.
    return _Lane(stream, bounds, start, new, 0 if start is None or start.item else again)


def _new(layout: Layout, after: Mark | None) -> Callable[[Wire], bool] | None:
    """Tells the entries that no earlier page returned, where their sort key alone does not."""
    hash_of = layout.hash_of
    if after is None or layout.identity is None or hash_of is None:
        return None
    at = after.position
    same = after.streams == len(layout.streams)
    attribute, returned = layout.reading.sort_attribute, returned_at(layout, at)
    # Under the same count, streams themselves begin where they stand.
    passed = after.passed if same else (*after.passed, (after.streams, after.number))

    def new(row: Wire) -> bool:
        if row[attribute]["S"] != at.sort:
            return True
        hashed = hash_of(row)
        return not any(hashed & (streams - 1) < number for streams, number in passed) and (
            layout.identity_of(row) not in returned
        )

    return new


def _rest(reading: Reading, lane: _Lane, limit: int, bound: str | None) -> Want:
    bounds = lane.bounds if bound is None else lane.bounds.until(bound, forward=reading.forward)
    wanted = FILTERED_READ if reading.filters.text else max(1, limit - len(lane.rows))
    return Want(lane.source, wanted, lane.reached, bounds)


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


def _page(layout: Layout, lanes: Sequence[_Lane], after: Mark | None, limit: int) -> tuple[list[Wire], Mark | None]:
    """The items up to where every source has been read, and where that is."""
    reading = layout.reading
    ranked = _ranked(reading, lanes)
    open_lanes = [lane for lane in lanes if not lane.ended]
    least = _least(open_lanes, forward=reading.forward) if open_lanes else None
    known = ranked if least is None else takewhile(lambda item: not _before(reading, least.place, item), ranked)
    items = list(islice(known, limit))
    rows = [row for _, row in items]
    if len(items) == limit and (least is not None or len(ranked) > limit):
        return rows, _mark(layout, items, after, items[-1][0], reading.position(rows[-1]))
    if least is None or least.reached is None:
        return rows, None
    # Cut short: go on where the source stands that was read least far. A source that ended at a bound is not it: a
    # bound is the key of a page's last item, so the page would be full.
    return rows, _mark(layout, items, after, least.source.number, least.reached)


def _mark(layout: Layout, items: Sequence[_Ranked], after: Mark | None, number: int, position: Position) -> Mark:
    if layout.identity is None:
        return Mark(position)
    streams = len(layout.streams)
    passed: tuple[tuple[int, int], ...] = ()
    before: list[Position] = []
    if after is not None and after.position.sort == position.sort:
        passed = after.passed if after.streams == streams else (*after.passed, (after.streams, after.number))
        if passed or after.number == number:
            before = [after.position]
    taken = [row for source, row in items if source == number]
    position = remembering(layout, replace(position, forced=False), before, taken, positions=1)
    return Mark(position, number, streams, passed, layout.version)


def _least(lanes: Sequence[_Lane], *, forward: bool) -> _Lane:
    """The source that was read least far."""
    if forward:
        return min(lanes, key=lambda lane: lane.place)
    return max(lanes, key=lambda lane: (lane.place[0], -lane.place[1]))


def state_of_mark(mark: Mark, partition: str = "") -> list[Any]:
    """The JSON state of a cursor; `partition` is what all stored partition keys begin with."""
    at = mark.position
    if at.item is None:
        return [at.sort]
    state = [at.sort, *at.item, at.shard.removeprefix(partition), mark.streams, mark.number]
    if not (at.change or at.seen or mark.passed or mark.version or at.forced):
        return state
    return [*state, mark.version, at.change, at.forced, mark.passed, *at.seen]


def mark_of(state: Sequence[Any], partition: str = "") -> Mark:
    """The mark that `state_of_mark` wrote."""
    if len(state) == 1:
        return Mark(Position(state[0]))
    sort, pk, sk, shard, streams, number, *more = state
    version, change, forced, passed, *seen = more or ["", "", False, []]
    position = Position(sort, (pk, sk), partition + shard, change, tuple(seen), forced=forced)
    return Mark(position, number, streams, tuple((was, at) for was, at in passed), version)
