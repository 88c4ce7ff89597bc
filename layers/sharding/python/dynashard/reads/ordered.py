"""The ordered listing: a scatter-gather over all sources, and a k-way merge by sort key in two bounded rounds.

Round 1 reads L items from every source at once: a page's fair share and a little more. H is the P-th smallest key then
known, for a page of P. Round 2 continues, at once, in only those sources that may still hold keys before H, and only up
to H. No source needs a third round: it has then reached H, or has P keys before it.

The cursor is a keyset: the last sort key. In an index, where sort keys can tie, it also names the source and the item:
sources before it have been read through that key, those after it have not. A source is what hashes lead to, so this
holds under any other count: the hash of an entry says whether it was read.

Several logical partitions are more sources. Equal sort keys are returned partition by partition; the cursor names the
partition, and in the others reading continues at its key or just after it. If a layout changes while a page is
gathered, the page ends short; it never mixes two.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from math import ceil, inf, sqrt
from typing import Any, Final

from dynashard.reads.bounds import Bounds
from dynashard.reads.by_shard import FILTERED_READ
from dynashard.reads.dedup import Dedup
from dynashard.reads.fetch import Fetch
from dynashard.reads.layout import Layout, OvertakenError
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


@dataclass(frozen=True, slots=True)
class PageEnd:
    """Where a page ended.

    Attributes:
        position: that of the last item.
        number: in an index, the stream that it came from.
        streams: in an index, how many there were.
        passed: in an index, `streams` and `number` of earlier pages that ended at this sort key under other counts.
        version: in an index, that of the view.
        part: which of the listed partitions it came from.
        whole: whether no more items with this sort key are to be returned, of any source.
    """

    position: Position
    number: int = 0
    streams: int = 1
    passed: tuple[tuple[int, int], ...] = ()
    version: str = ""
    part: int = 0
    whole: bool = False

    def passed_under(self, streams: int) -> tuple[tuple[int, int], ...]:
        """Return `passed`, together with this end if there are now another number of streams."""
        return self.passed if self.streams == streams else (*self.passed, (self.streams, self.number))


_Place = tuple[str, float]
"""A sort key and the rank of a source, by which the merge sorts: keys by direction, ranks always upwards."""


@dataclass(slots=True)
class _Run:
    """One sorted run of the merge: a source while a page is gathered.

    `rank` is its number among the sources of all partitions. When it has been read through a sort key, sources up to
    the rank `through` hold no more items with that key. Reading continues at `reached`. All items up to `place` are
    known; `ended` is true when the source has no more. `new` returns whether no earlier page returned a row, None if
    none did; `reread` rows may come before the first new one.
    """

    layout: Layout
    part: int
    rank: int
    through: float
    source: Stream
    bounds: Bounds
    reached: Position | None = None
    new: Callable[[Wire], bool] | None = None
    reread: int = 0
    rows: list[Wire] = field(default_factory=list)
    place: _Place = ("", 0)
    ended: bool = False

    def first(self, share: int) -> StreamRead:
        """Return the read of round 1."""
        return StreamRead(self.source, share + self.reread, self.reached, self.bounds, self.part)

    def rest(self, limit: int, bound: str | None) -> StreamRead:
        """Return the read of round 2, up to H, `bound`."""
        reading = self.layout.reading
        bounds = self.bounds if bound is None else self.bounds.until(bound, forward=reading.forward)
        wanted = FILTERED_READ if reading.filters.text else max(1, limit - len(self.rows))
        return StreamRead(self.source, wanted, self.reached, bounds, self.part)

    def add(self, chunk: Chunk, bound: str | None) -> None:
        """Add what a Query returned that went no further than `bound`."""
        self.rows += chunk.rows if self.new is None else filter(self.new, chunk.rows)
        self.rows = self.layout.distinct(self.rows)
        if chunk.last is not None:
            # An item's position does not change within a page.
            self.reached, self.place = replace(chunk.last, forced=True), (chunk.last.sort, self.through)
        elif bound is not None:
            # The Query read all items at its bound, and none beyond.
            self.place = (bound, inf)
        else:
            self.ended = True


def list_ordered(
    fetch: Fetch, after: PageEnd | None, *, limit: int, item_bytes: float, dedup: Dedup | None = None
) -> tuple[list[Wire], PageEnd | None]:
    """Return one page of P items (`limit`) in order, and its end, None after the last.

    `after` is the end of the last page. `item_bytes` is the average size of an item, by which round 1 fills the blocks
    that it is billed for.

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
    return _page(fetch, runs, after, limit, dedup)


def _first_round(
    fetch: Fetch, after: PageEnd | None, limit: int, item_bytes: float
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


def _runs(layouts: Sequence[Layout], after: PageEnd | None) -> list[_Run]:
    """The sources of all partitions, each of which begins where the last page ended."""
    runs: list[_Run] = []
    for part, layout in enumerate(layouts):
        first, past = len(runs), len(runs) + len(layout.streams) - 1
        bounds, forward = layout.reading.bounds, layout.reading.forward
        for rank, stream in enumerate(layout.streams, first):
            # In a table no two live items have equal sort keys, only an item and its marker: all are known up to it.
            run = _Run(layout, part, rank, past if layout.identity is None else rank, stream, bounds)
            if after is not None and after.part == part and not after.whole:
                _resume(run, after)
            elif after is not None:
                within = bounds.after if after.whole or part < after.part else bounds.at
                run.bounds = within(after.position.sort, forward=forward)
            runs.append(run)
    return runs


def _resume(run: _Run, after: PageEnd) -> None:
    """Let a source of the partition of the last page's end begin there."""
    layout, stream, at = run.layout, run.source, after.position
    forward = layout.reading.forward
    if layout.identity is None:
        run.reached = at
    elif after.streams != len(layout.streams):
        run.bounds = run.bounds.at(at.sort, forward=forward)
        run.new, run.reread = _new(layout, after), at.reread_limit
    elif stream.number > after.number:
        run.bounds = run.bounds.at(at.sort, forward=forward)
        run.new = _new(layout, after) if after.passed else None
    elif stream.number < after.number:
        run.bounds = run.bounds.after(at.sort, forward=forward)
    else:
        stale = at.stale or after.version != layout.version
        run.reached, run.new = layout.resumed(replace(at, stale=stale)), _new(layout, after)
        # The last item itself may have moved.
        run.reread = 0 if run.reached is None or run.reached.item else at.reread_limit


def _new(layout: Layout, after: PageEnd) -> Callable[[Wire], bool] | None:
    """A function that returns whether no earlier page returned an entry; None if its sort key says so."""
    hash_of = layout.hash_of
    if hash_of is None:
        return None
    at, passed = after.position, after.passed_under(len(layout.streams))
    attribute, returned = layout.reading.sort_attribute, layout.returned_at(at)

    def new(row: Wire) -> bool:
        if row[attribute]["S"] != at.sort:
            return True
        hashed = hash_of(row)
        was_passed = any(hashed & (streams - 1) < number for streams, number in passed)
        return not was_passed and layout.identity_of(row) not in returned

    return new


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
    fetch: Fetch, runs: Sequence[_Run], after: PageEnd | None, limit: int, dedup: Dedup | None
) -> tuple[list[Wire], PageEnd | None]:
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
    if dedup is not None and rows and rows[-1][reading.sort_attribute]["S"] == position.sort:
        # All other items with this key are copies.
        return rows, PageEnd(Position(position.sort), part=run.part, whole=True)
    return rows, _end_at(position, run, items, after)


def _end_at(position: Position, run: _Run, items: Sequence[_Ranked], after: PageEnd | None) -> PageEnd:
    layout, part, number = run.layout, run.part, run.source.number
    if layout.identity is None:
        return PageEnd(position, part=part)
    streams = len(layout.streams)
    passed: tuple[tuple[int, int], ...] = ()
    before: list[Position] = []
    if after is not None and after.position.sort == position.sort and after.part == part:
        passed = after.passed_under(streams)
        if passed or after.number == number:
            before = [after.position]
    taken = [row for rank, row in items if rank == run.rank]
    position = layout.with_seen(replace(position, forced=False), before, taken, positions=1)
    return PageEnd(position, number, streams, passed, layout.version, part)


def encode_end(end: PageEnd, partitions: Sequence[str], recent: Mapping[str, int] | None = None) -> list[Any]:
    """Return the JSON state of a cursor; `recent` are the values returned lately, in a listing with `distinct`.

    The stored partition keys in it are without the logical partitions that they begin with.
    """
    at = end.position
    state: list[Any] = [at.sort]
    if at.item is not None:
        state += [*at.item, at.shard.removeprefix(partitions[end.part]), end.streams, end.number]
        if at.change or at.seen or end.passed or end.version or at.forced:
            state += [end.version, at.change, at.forced, end.passed, *at.seen]
    if len(partitions) == 1 and recent is None:
        return state
    recent = recent or {}
    return [end.part, int(end.whole), list(recent), list(recent.values()), *state]


def decode_end(
    state: Sequence[Any], partitions: Sequence[str], *, distinct: bool = False
) -> tuple[PageEnd, dict[str, int]]:
    """Return the end and the values returned lately that `encode_end` wrote."""
    part, whole, recent = 0, False, dict[str, int]()
    if distinct or len(partitions) > 1:
        part, whole, hashes, times, *state = state
        recent = dict(zip(hashes, times, strict=True))
    sort, *rest = state
    end = PageEnd(Position(sort), part=part, whole=bool(whole))
    if rest:
        pk, sk, shard, streams, number, *more = rest
        version, change, forced, passed, *seen = more or ["", "", False, []]
        position = Position(sort, (pk, sk), partitions[part] + shard, change, tuple(seen), forced=forced)
        end = PageEnd(position, number, streams, tuple((was, at) for was, at in passed), version, part, bool(whole))
    return end, recent
