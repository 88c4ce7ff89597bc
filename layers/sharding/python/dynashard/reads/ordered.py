"""The ordered listing: a scatter-gather over all sources, and a k-way merge by sort key in two bounded rounds.

Round 1 reads L items from every source at once: a page's fair share and a little more. H is the P-th smallest key then
known, for a page of P. Round 2 continues, at once, in only those sources that may still hold keys before H, and only up
to H. No source needs a third round: it has then reached H, or has P keys before it.

Fence keys of the last page say which sources hold nothing before some key. Those that are not expected to have a part
of this page are left out of round 1, and take part in round 2 only if their fence lies before H, or there is no H.

The cursor is a keyset: the last sort key. In an index, where sort keys can tie, it also names the source and the item:
sources before it have been read through that key, those after it have not. These are positions of virtual shards, so
they hold under any other count.

Several logical partitions are more sources. Equal sort keys are returned partition by partition; the cursor names the
partition, and in the others reading continues at its key or just after it. If a layout changes while a page is
gathered, the page ends short; it never mixes two.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import islice, takewhile
from math import ceil, inf
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from dynashard.codec import item_size
from dynashard.reads.by_shard import FILTERED_READ
from dynashard.reads.dedup import Dedup
from dynashard.reads.epoch_sources import EpochSources
from dynashard.reads.fences import ENDED, ENDS, LIFE_SECONDS, MOVING_LIFE_SECONDS, Ahead, Fences, fences_after, turn_of
from dynashard.reads.fetch import Fetch
from dynashard.reads.first_round import BLOCK_BYTES, LARGE_BYTES, first_limit, read_ahead
from dynashard.reads.layout import Layout, OvertakenError
from dynashard.reads.positions import Positions
from dynashard.reads.sources import Chunk, Position, Reading, Stream, StreamRead
from dynashard.transport.interface import Wire

MAX_READ: Final = 2000
"""Items that round 1 reads from all sources together to make up for those that are dropped."""
_ROUNDS: Final = 2
_SAMPLE: Final = 16
"""How many items of round 1 tell the size of items."""

_Place = tuple[str, float]
"""A sort key and the rank of a source, by which the merge sorts: keys by direction, ranks always upwards."""


class _Run(Struct):
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
        if self.reached is None:
            return replace(self.first(wanted), bounds=bounds)
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
    fetch: Fetch,
    after: Sequence[Positions] | None,
    fences: Fences | None = None,
    *,
    limit: int,
    item_bytes: float | None,
    dedup: Dedup | None = None,
) -> tuple[list[Wire], Sequence[Positions] | None, Fences | None]:
    """Return one page of P items (`limit`) in order, the positions after it, None after the last, and its fences.

    `after` are the positions after the last page, for each logical partition, and `fences` what it has learned, if it
    has. `item_bytes` is the average size of an item, by which round 1 fills the blocks that it is billed for; None
    while it is unknown.

    Cost: a Query for every source that its fence does not exclude, and one more for those read up to H; at most 2 round
    trips, unless a filter or DynamoDB's 1 MB a Query cut a round short. With `dedup`, 2 round trips even so: the page
    is then short.
    """
    began = fetch.clock()
    share = limit if dedup is None else min(MAX_READ, ceil(limit * dedup.excess))
    layouts, runs, asked = _first_round(fetch, after, fences, share, item_bytes, began=began)
    reading = layouts[0].reading
    known = sum(len(run.rows) for run in runs)
    stored = _stored_bytes(runs, item_bytes)
    large = stored >= LARGE_BYTES
    pays = dedup is None and (large or 3 * len(runs) > limit) and _skippable(layouts)
    # None is known of items that have all expired.
    beyond = pays and 0 < stored < BLOCK_BYTES
    if large and known < limit and any(0 < len(run.rows) < asked and not run.ended for run in runs):
        # DynamoDB's 1 MB a Query ended round 1. A smaller page is complete with what it has read.
        limit = max(1, 2 * known // 3)
    rounds = 1
    while dedup is None or rounds < _ROUNDS or reading.filters.text:
        ranked = _ranked(reading, runs, fetch, dedup)
        last = ranked[limit - 1] if len(ranked) >= limit else None
        # Reading up to H takes little, and without it most of what round 1 has read would be read again. So it is for
        # a round 3, if 1 MB a Query ends round 2 before H; with a filter there may be any number of rounds.
        completes = last is not None and (rounds < _ROUNDS or not reading.filters.text)
        if not (fetch.may_finish if completes else fetch.allowed):
            break
        behind = [run for run in runs if not run.ended and (last is None or _before(reading, run.place, last))]
        if not behind or not fetch.fits(run.source for run in behind):
            break
        bound, further = None, None
        if last is not None:
            # What was left out is read beyond H, so that the next page knows where it goes on. Of small items all are:
            # the next item is in the block that is billed anyway.
            ahead = read_ahead(limit, len(ranked), stored if beyond and asked == 1 else None)
            bound, further = (reading.position(ranked[n][1]).sort for n in (limit - 1, ahead))
        bounds = [further if beyond or run.reached is None else bound for run in behind]
        try:
            chunks = fetch.wave(layouts, [run.rest(limit, each) for run, each in zip(behind, bounds, strict=True)])
        except OvertakenError:
            break
        for run, chunk, each in zip(behind, chunks, bounds, strict=True):
            run.add(chunk, each)
        rounds += 1
    items, end = _page(fetch, runs, limit, dedup)
    rows = [row for _, row in items]
    if end is None:
        # If the budget ended before an item was known to come first, the next page begins here again, without fences.
        ended = all(run.ended for run in runs)
        return rows, None if ended else [_unread(run, runs) for run in runs if run.number == 0], None
    learned = _learned(_turn(layouts, began), runs, items, end[1].sort) if pays else None
    return rows, _positions(runs, items, end, dedup), learned


def _first_round(
    fetch: Fetch,
    after: Sequence[Positions] | None,
    fences: Fences | None,
    limit: int,
    item_bytes: float | None,
    *,
    began: float,
) -> tuple[Sequence[Layout], list[_Run], int]:
    """Return the layouts, all sources, and how many items were asked of those that were read."""
    while True:
        layouts = fetch.layouts()
        runs = _runs(layouts, after)
        asked = begun = _begun(layouts, runs)
        used = fences if fences is not None and _skippable(layouts) and fences.shape == _shape(layouts) else None
        if used is not None:
            first, others = used.parted(limit, _turn(layouts, began))
            known = {run.rank for run in begun}
            asked = [runs[rank] for rank in first if rank in known]
            for rank in others if asked else ():
                runs[rank].place = used.place(rank, forward=layouts[0].reading.forward)
            # None of those that fences put first can come next by its epoch. Then all that can are read.
            asked = asked or begun
        if not asked:
            return layouts, runs, limit
        share = first_limit(limit, len(asked), item_bytes, filtered=bool(layouts[0].reading.filters.text))
        try:
            chunks = fetch.wave(layouts, [run.first(share) for run in asked])
        except OvertakenError:
            continue
        for run, chunk in zip(asked, chunks, strict=True):
            run.add(chunk, None)
        return layouts, runs, share


def _stored_bytes(runs: Sequence[_Run], item_bytes: float | None) -> float:
    """Return the average size of an item; while it is unknown, that of a few items of round 1, and 0 if it has none."""
    if item_bytes is not None:
        return item_bytes
    sample = list(islice((row for run in runs for row in run.rows[:1]), _SAMPLE))
    return sum(map(item_size, sample)) / max(1, len(sample))


def _skippable(layouts: Sequence[Layout]) -> bool:
    """Whether what was learned from a page is true of the next one, and numbers of rows can be foreseen."""
    reading = layouts[0].reading
    return not (reading.consistent or reading.filters.text or any(layout.moving for layout in layouts))


def _turn(layouts: Sequence[Layout], now: float) -> int:
    """Return the turn of fences at a time."""
    return turn_of(now, LIFE_SECONDS if all(layout.stationary for layout in layouts) else MOVING_LIFE_SECONDS)


def _shape(layouts: Sequence[Layout]) -> list[Any]:
    return [layouts[0].reading.slot, *(layout.shape for layout in layouts)]


def _runs(layouts: Sequence[Layout], after: Sequence[Positions] | None) -> list[_Run]:
    """The sources of all partitions, each of which begins where the last page ended."""
    runs: list[_Run] = []
    for part, layout in enumerate(layouts):
        first, past = len(runs), len(runs) + len(layout.streams) - 1
        state = Positions(1) if after is None else after[part]
        # A table's position is one sort key, wherever items are placed.
        state = state.under(len(layout.streams)) if layout.identity is None else layout.rebase(state)
        for number in range(len(layout.streams)):
            # In a table no two live items have equal sort keys, only an item and its marker: all are known up to it.
            through = past if layout.identity is None else first + number
            runs.append(_Run(layout, state, part, number, first + number, through))
    return runs


def _begun(layouts: Sequence[Layout], runs: Sequence[_Run]) -> list[_Run]:
    """The sources that may have the next item of their partition: with epochs, not all may.

    The range of each of the others is a fence that is known without reading: its place is set, or that it has ended.
    """
    begun: list[_Run] = []
    for part, layout in enumerate(layouts):
        mine = [run for run in runs if run.part == part]
        if not isinstance(layout.streams, EpochSources):
            begun += mine
            continue
        known = layout.streams.begun(mine[0].state, forward=layout.reading.forward)
        for run in mine:
            run.place = known.later.get(run.number, run.place)
            run.ended = run.number not in known.now and run.number not in known.later
        begun += [run for run in mine if run.number in known.now]
    return begun


def _unread(run: _Run, runs: Sequence[_Run]) -> Positions:
    """The positions in the partition of a source after a page without items: where the next epoch begins, if one does.

    Otherwise a page whose budget ends there would be read again and again.
    """
    mine = [each for each in runs if each.part == run.part]
    places = [each.place[0] for each in mine if not each.ended]
    if not isinstance(run.layout.streams, EpochSources) or not places or any(each.reached for each in mine):
        return run.state
    forward = run.layout.reading.forward
    nearest = (min if forward else max)(places)
    if nearest in ENDS:
        # Only fences say that all others have ended. The next page has no fences, and asks them.
        return run.state
    return Positions(1, 0, ((Position(nearest, side=-forward), 1),), version=run.state.version)


_Ranked = tuple[int, Wire]
"""A source's rank and an item of it."""


def _ranked(reading: Reading, runs: Sequence[_Run], fetch: Fetch, dedup: Dedup | None) -> list[_Ranked]:
    """All items known, in order; equal sort keys by source, and within a source in the order returned."""
    attribute = reading.sort_attribute
    ranked = [(run.rank, row) for run in runs for row in run.rows]
    ranked.sort(key=lambda item: item[1][attribute]["S"], reverse=not reading.forward)
    if dedup is None:
        return ranked
    return dedup.drop_repeats(ranked, lambda item: fetch.items([item[1]])[0])


def _before(reading: Reading, place: _Place, item: _Ranked) -> bool:
    """Whether a place comes before an item's own."""
    rank, row = item
    key = row[reading.sort_attribute]["S"]
    if place[0] == key:
        return place[1] < rank
    return (place[0] < key) is reading.forward


def _page(
    fetch: Fetch, runs: Sequence[_Run], limit: int, dedup: Dedup | None
) -> tuple[list[_Ranked], tuple[_Run, Position] | None]:
    """The items up to where every source has been read, and where that is: None if nowhere, or the end."""
    reading = runs[0].layout.reading
    ranked = _ranked(reading, runs, fetch, dedup)
    sign = 1 if reading.forward else -1
    open_runs = [run for run in runs if not run.ended]
    least_first = min if reading.forward else max
    least = least_first(open_runs, key=lambda run: (run.place[0], sign * run.place[1]), default=None)
    known = ranked if least is None else takewhile(lambda item: not _before(reading, least.place, item), ranked)
    items = list(islice(known, limit))
    if dedup is not None and items:
        dedup.excess = sum(
            not _before(reading, (items[-1][1][reading.sort_attribute]["S"], inf), (run.rank, row))
            for run in runs
            for row in run.rows
        ) / len(items)
    if least is None and len(ranked) <= limit:
        return items, None
    if least is not None and least.reached is not None and len(items) < limit:
        # The page is cut short where the source ends that was read least far. This source did not end at a bound,
        # because a bound is the key of a page's last item, so the page would be full.
        return items, (least, least.reached)
    if not items:
        return items, None
    rank, row = items[-1]
    return items, (runs[rank], reading.position(row))


def _positions(
    runs: Sequence[_Run], items: Sequence[_Ranked], end: tuple[_Run, Position], dedup: Dedup | None
) -> list[Positions]:
    """The positions in each partition after a page of these items that ended at a position in a source."""
    run, position = end
    # With `dedup`, all other items with the last item's key are copies.
    attribute = run.layout.reading.sort_attribute
    whole = dedup is not None and bool(items) and items[-1][1][attribute]["S"] == position.sort
    of_run = [row for rank, row in items if rank == run.rank]
    parts = {each.part: each for each in runs}
    return [_after(each, run, position, of_run, whole=whole) for each in parts.values()]


def _learned(turn: int, runs: Sequence[_Run], items: Sequence[_Ranked], end: str) -> Fences | None:
    """The fence keys after a page of these items in a turn."""
    reading = runs[0].layout.reading
    returned = Counter(rank for rank, _ in items)
    ahead = list[Ahead]()
    for run in runs:
        if returned[run.rank] < len(run.rows):
            ahead.append(Ahead(run.rows[returned[run.rank]][reading.sort_attribute]["S"]))
        else:
            ahead.append(Ahead(ENDED if run.ended else run.place[0], beyond=run.reached is None))
    shape = _shape([run.layout for run in runs if run.number == 0])
    return fences_after(shape, turn, end, ahead, forward=reading.forward)


def _after(any_of: _Run, run: _Run, position: Position, returned: Sequence[Wire], *, whole: bool) -> Positions:
    """The positions in a partition after a page that ended at a position in a source."""
    sort, layout = position.sort, run.layout
    read_through, at, unread = Position(sort, side=1), Position(sort), Position(sort, side=-1)
    # At one sort key items are merged partition by partition, and in an index shard by shard: what comes before the
    # last item's source was read through that key, what comes after it was not read there.
    if whole or any_of.part < run.part:
        return Positions(1, 0, ((read_through, 1),), version=any_of.layout.version)
    if any_of.part > run.part or layout.identity is None:
        return Positions(1, 0, ((at if any_of.part == run.part else unread, 1),), version=any_of.layout.version)
    count = len(layout.streams)
    position = position._replace(forced=False)
    position = layout.with_seen(position, run.state.last(run.number, count, sort), returned, positions=1)
    state, forward, bit = run.state, layout.reading.forward, 1 << run.number
    state = state.read(bit - 1, count, read_through, forward=forward).read(bit, count, position, forward=forward)
    return state.read((1 << count) - 2 * bit, count, unread, forward=forward)
