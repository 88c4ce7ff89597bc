"""The ordered listing: a scatter-gather over all sources, and a k-way merge by sort key in two bounded rounds.

Round 1 reads L items from every source at once: a page's fair share and a little more. H is the P-th smallest key then
known, for a page of P. Round 2 continues, at once, in only those sources that may still hold keys before H, and only up
to H. No source needs a third round: it has then reached H, or has P keys before it.

The cursor is a keyset: the last sort key. In an index, where sort keys can tie, it also names the source and the item:
sources before it have been read through that key, those after it have not. These are positions of virtual shards, so
they hold under any other count.

Several logical partitions are more sources. Equal sort keys are returned partition by partition; the cursor names the
partition, and in the others reading continues at its key or just after it. If a layout changes while a page is
gathered, the page ends short; it never mixes two.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from math import ceil, inf, sqrt
from typing import Final

from dynashard.reads.by_shard import FILTERED_READ
from dynashard.reads.dedup import Dedup
from dynashard.reads.fetch import Fetch
from dynashard.reads.layout import Layout, OvertakenError
from dynashard.reads.positions import Positions
from dynashard.reads.sources import Chunk, Position, Reading, Stream, StreamRead
from dynashard.transport.interface import Wire

BLOCK_BYTES: Final = 4096
"""The unit in which DynamoDB bills a Query."""
MAX_ROUND_BYTES: Final = 32 * 1024 * 1024
"""The most bytes that round 1 reads from all sources together, because they are held in memory. One item of each source
is always read."""
MAX_READ: Final = 2000
"""Items that round 1 reads from all sources together to make up for those that are dropped."""
_ROUNDS: Final = 2

_Place = tuple[str, float]
"""A sort key and the rank of a source, by which the merge sorts: keys by direction, ranks always upwards."""


@dataclass(slots=True)
class _Run:
    """One sorted run of the merge: a source while a page is gathered.

    `state` are the positions in its partition. `rank` is its number among the sources of all partitions. When it has
    been read through a sort key, sources up to the rank `through` hold no more items with that key. Reading continues
    at `reached`. All items up to `place` are known; `ended` is true when the source has no more.
    """

    layout: Layout
    state: Positions
    part: int
    number: int
    rank: int
    through: float
    reached: Position | None = None
    rows: list[Wire] = field(default_factory=list)
    place: _Place = ("", 0)
    ended: bool = False

    @property
    def source(self) -> Stream:
        """What is read."""
        return self.layout.streams[self.number]

    def first(self, share: int) -> StreamRead:
        """Return the read of round 1."""
        return self.layout.next_read(self.state, self.number, share, part=self.part)

    def rest(self, limit: int, bound: str | None) -> StreamRead:
        """Return the read of round 2, up to H, `bound`."""
        reading = self.layout.reading
        bounds = None if bound is None else reading.bounds.until(bound, forward=reading.forward)
        wanted = FILTERED_READ if reading.filters.text else max(1, limit - len(self.rows))
        return StreamRead(self.source, wanted, self.reached, bounds, self.part)

    def add(self, chunk: Chunk, bound: str | None) -> None:
        """Add what a Query returned that went no further than `bound`."""
        self.rows = self.layout.distinct(self.rows + self.layout.unseen(self.state, self.number, chunk.rows))
        if chunk.last is not None:
            # An item's position does not change within a page.
            self.reached, self.place = chunk.last._replace(forced=True), (chunk.last.sort, self.through)
        elif bound is not None:
            # The Query read all items at its bound, and none beyond.
            self.place = (bound, inf)
        else:
            self.ended = True


def list_ordered(
    fetch: Fetch, after: Sequence[Positions] | None, *, limit: int, item_bytes: float, dedup: Dedup | None = None
) -> tuple[list[Wire], Sequence[Positions] | None]:
    """Return one page of P items (`limit`) in order, and the positions after it, None after the last.

    `after` are the positions after the last page, for each logical partition. `item_bytes` is the average size of an
    item, by which round 1 fills the blocks that it is billed for.

    Cost: a Query for every source, and one more for those read up to H; at most 2 round trips, unless a filter or
    DynamoDB's 1 MB a Query cut a round short. With `dedup`, 2 round trips even so: the page is then short.
    """
    share = limit if dedup is None else min(MAX_READ, ceil(limit * dedup.excess))
    layouts, runs = _first_round(fetch, after, share, item_bytes)
    reading = layouts[0].reading
    rounds = 1
    while fetch.allowed and (dedup is None or rounds < _ROUNDS or reading.filters.text):
        ranked = _ranked(reading, runs, fetch, dedup)
        last = ranked[limit - 1] if len(ranked) >= limit else None
        behind = [run for run in runs if not run.ended and (last is None or _before(reading, run.place, last))]
        if not behind or not fetch.fits(run.source for run in behind):
            break
        bound = None if last is None else reading.position(last[1]).sort
        try:
            chunks = fetch.wave(layouts, [run.rest(limit, bound) for run in behind])
        except OvertakenError:
            break
        for run, chunk in zip(behind, chunks, strict=True):
            run.add(chunk, bound)
        rounds += 1
    return _page(fetch, runs, limit, dedup)


def _first_round(
    fetch: Fetch, after: Sequence[Positions] | None, limit: int, item_bytes: float
) -> tuple[Sequence[Layout], list[_Run]]:
    while True:
        layouts = fetch.layouts()
        runs = _runs(layouts, after)
        share = first_limit(limit, len(runs), item_bytes)
        if layouts[0].reading.filters.text:
            share = min(share * 4, FILTERED_READ)
        try:
            first = fetch.wave(layouts, [run.first(share) for run in runs])
        except OvertakenError:
            continue
        for run, chunk in zip(runs, first, strict=True):
            run.add(chunk, None)
        return layouts, runs


def first_limit(limit: int, sources: int, item_bytes: float) -> int:
    """Return how many items round 1 reads from each source for a page of `limit`.

    This is a source's share of the page, P/N, and its standard deviation, rounded up to fill the 4 KB blocks billed.
    """
    share = limit / sources
    items = ceil(share + sqrt(share))
    blocks = ceil(items * item_bytes / BLOCK_BYTES)
    most = max(1, int(MAX_ROUND_BYTES / sources / item_bytes))
    return min(limit, most, max(items, int(blocks * BLOCK_BYTES / item_bytes)))


def _runs(layouts: Sequence[Layout], after: Sequence[Positions] | None) -> list[_Run]:
    """The sources of all partitions, each of which begins where the last page ended."""
    runs: list[_Run] = []
    for part, layout in enumerate(layouts):
        first, past = len(runs), len(runs) + len(layout.streams) - 1
        state = Positions(1) if after is None else after[part]
        # A table's position is one sort key, wherever items are placed.
        state = state.under(past + 1 - first) if layout.identity is None else layout.rebase(state)
        for number in range(len(layout.streams)):
            # In a table no two live items have equal sort keys, only an item and its marker: all are known up to it.
            through = past if layout.identity is None else first + number
            runs.append(_Run(layout, state, part, number, first + number, through))
    return runs


_Ranked = tuple[int, Wire]
"""A source's rank and an item of it."""


def _ranked(reading: Reading, runs: Sequence[_Run], fetch: Fetch, dedup: Dedup | None) -> list[_Ranked]:
    """All items known, in order; equal sort keys by source, and within a source in the order returned."""
    attribute = reading.sort_attribute
    ranked = [(run.rank, row) for run in runs for row in run.rows]
    ranked.sort(key=lambda item: item[1][attribute]["S"], reverse=not reading.forward)
    if dedup is None:
        return ranked
    return dedup.drop_repeats(ranked, lambda item: fetch.item(item[1]))


def _before(reading: Reading, place: _Place, item: _Ranked) -> bool:
    """Whether a place comes before an item's own."""
    rank, row = item
    key = row[reading.sort_attribute]["S"]
    if place[0] == key:
        return place[1] < rank
    return (place[0] < key) is reading.forward


def _page(
    fetch: Fetch, runs: Sequence[_Run], limit: int, dedup: Dedup | None
) -> tuple[list[Wire], Sequence[Positions] | None]:
    """The items up to where every source has been read, and where that is."""
    reading = runs[0].layout.reading
    ranked = _ranked(reading, runs, fetch, dedup)
    sign = 1 if reading.forward else -1
    open_runs = [run for run in runs if not run.ended]
    least_first = min if reading.forward else max
    least = least_first(open_runs, key=lambda run: (run.place[0], sign * run.place[1]), default=None)
    known = ranked if least is None else takewhile(lambda item: not _before(reading, least.place, item), ranked)
    items = list(islice(known, limit))
    rows = [row for _, row in items]
    if dedup is not None and rows:
        dedup.excess = sum(
            not _before(reading, (rows[-1][reading.sort_attribute]["S"], inf), (run.rank, row))
            for run in runs
            for row in run.rows
        ) / len(rows)
    if len(items) == limit and (least is not None or len(ranked) > limit):
        run, position = runs[items[-1][0]], runs[items[-1][0]].layout.reading.position(rows[-1])
    elif least is None or least.reached is None:
        return rows, None
    else:
        # The page is cut short where the source ends that was read least far. This source did not end at a bound,
        # because a bound is the key of a page's last item, so the page would be full.
        run, position = least, least.reached
    # With `dedup`, all other items with the last item's key are copies.
    whole = dedup is not None and bool(rows) and rows[-1][reading.sort_attribute]["S"] == position.sort
    of_run = [row for rank, row in items if rank == run.rank]
    parts = {each.part: each for each in runs}
    return rows, [_after(each, run, position, of_run, whole=whole) for each in parts.values()]


def _after(any_of: _Run, run: _Run, position: Position, returned: Sequence[Wire], *, whole: bool) -> Positions:
    """The positions in a partition after a page that ended at a position in a source."""
    sort, layout = position.sort, run.layout
    before, at, behind = Position(sort, side=1), Position(sort), Position(sort, side=-1)
    if whole or any_of.part < run.part:
        return Positions(1, 0, ((before, 1),), version=any_of.layout.version)
    if any_of.part > run.part or layout.identity is None:
        return Positions(1, 0, ((at if any_of.part == run.part else behind, 1),), version=any_of.layout.version)
    count = len(layout.streams)
    position = position._replace(forced=False)
    position = layout.with_seen(position, run.state.last(run.number, count, sort), returned, positions=1)
    state, forward, bit = run.state, layout.reading.forward, 1 << run.number
    state = state.read(bit - 1, count, before, forward=forward).read(bit, count, position, forward=forward)
    return state.read((1 << count) - 2 * bit, count, behind, forward=forward)
