"""The ordered listing: a total order by sort key over all sources, by a merge in two bounded rounds.

Round 1 reads L items from every source at once, L being a page's fair share and a little more. H is the P-th smallest
key then known, for a page of P. Round 2 reads on, at once, only those sources that may still hold keys before H,
and only up to H. No source needs a third: it has then reached H, or has P keys before it.

The cursor is the last sort key. Where sort keys can tie, in an index, it also names the source and the item, and
resumes so: sources before it have been read through that key, those after it not at all. A source is what hashes lead
to, so this holds under any other count: what an entry's hash says of its source then says whether it was read.

Several logical partitions are more sources. Where sort keys tie, they come partition by partition; the cursor names
the partition, and in the others reading goes on at its key or just after it.

Where a layout changes while a page is gathered, the page ends short; it never mixes two.
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
from dynashard.reads.moved_items import distinct
from dynashard.reads.progress import reread_limit, returned_at, with_seen
from dynashard.reads.sources import Chunk, Position, Reading, Stream, StreamRead
from dynashard.transport.interface import Wire

BLOCK_BYTES: Final = 4096
"""What DynamoDB bills a Query in."""
MAX_ROUND_BYTES: Final = 32 * 1024 * 1024
"""The most bytes that round 1 reads from all sources together, because all of them are held in memory. One item of each
source is always read."""
MAX_READ: Final = 2000
"""Items that round 1 reads from all sources together to make up for those that are dropped."""
_ROUNDS: Final = 2


@dataclass(frozen=True, slots=True)
class PageEnd:
    """Where a page ended.

    Attributes:
        position: that of the last item.
        number: in an index, the stream it came from.
        streams: in an index, how many there were.
        passed: in an index, the same two of earlier pages that ended at this sort key under another count.
        version: in an index, that of the view.
        part: which of the listed partitions it came from.
        whole: whether nothing with this sort key is to be returned any more, wherever it stands.
    """

    position: Position
    number: int = 0
    streams: int = 1
    passed: tuple[tuple[int, int], ...] = ()
    version: str = ""
    part: int = 0
    whole: bool = False


_Place = tuple[str, float]
"""A sort key and the rank of a source: what the merge puts in order, sort keys by direction, sources always up."""


@dataclass(slots=True)
class _Run:
    """One sorted run of the merge: a source while a page is gathered.

    `rank` is its number among the sources of all partitions; `through` is that of the last source in which nothing
    stands at a sort key through which this one has been read. `reached` is where to read on, None for the beginning.
    All that the source holds up to `place` is known, and nothing is left in it if it has `ended`. `new` tells what no
    earlier page returned; None where all is new. Before it come `reread` rows that are read once more.
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

    def take(self, chunk: Chunk, bound: str | None) -> None:
        """Add what a Query brought that went no further than `bound`."""
        layout = self.layout
        self.rows += chunk.rows if self.new is None else filter(self.new, chunk.rows)
        if layout.moving and layout.identity is not None:
            self.rows = distinct(layout, self.rows)
        if chunk.last is not None:
            # Within a page, what has its place does not leave it unseen.
            self.reached, self.place = replace(chunk.last, forced=True), (chunk.last.sort, self.through)
        elif bound is not None:
            # The Query ended at its bound, equal keys and all; what lies beyond is not known.
            self.place = (bound, inf)
        else:
            self.ended = True


def list_ordered(
    fetch: Fetch, after: PageEnd | None, *, limit: int, item_bytes: float, dedup: Dedup | None = None
) -> tuple[list[Wire], PageEnd | None]:
    """One page in order, and its end, None after the last.

    Args:
        fetch: sends the Queries.
        after: the end of the last page; None for the first.
        limit: items wanted, P.
        item_bytes: what an item takes on average, so that round 1 fills the blocks it is billed for.
        dedup: drops items that say the same as another one.

    Cost: a Query for every source, and one more for those that H asks on; at most 2 round trips, unless a filter or
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
            chunks = fetch.wave(layouts, [_rest(run, limit, bound) for run in behind])
        except OvertakenError:
            break
        for run, chunk in zip(behind, chunks, strict=True):
            run.take(chunk, bound)
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
            reads = [
                StreamRead(each.source, share + each.reread, each.reached, each.bounds, each.part) for each in runs
            ]
            first = fetch.wave(layouts, reads)
        except OvertakenError:
            continue
        for run, chunk in zip(runs, first, strict=True):
            run.take(chunk, None)
        return layouts, runs


def first_limit(limit: int, sources: int, item_bytes: float) -> int:
    """How many items round 1 reads from each source for a page of `limit`.

    A source's share of the page, P/N, and its standard deviation, rounded up to fill the 4 KB blocks that are billed.
    """
    share = limit / sources
    items = ceil(share + sqrt(share))
    blocks = ceil(items * item_bytes / BLOCK_BYTES)
    most = max(1, int(MAX_ROUND_BYTES / sources / item_bytes))
    return min(limit, most, max(items, int(blocks * BLOCK_BYTES / item_bytes)))


def _runs(layouts: Sequence[Layout], after: PageEnd | None) -> list[_Run]:
    """The sources of all partitions, each begun where the last page ended."""
    runs: list[_Run] = []
    for part, layout in enumerate(layouts):
        first, past = len(runs), len(runs) + len(layout.streams) - 1
        bounds, forward = layout.reading.bounds, layout.reading.forward
        for rank, stream in enumerate(layout.streams, first):
            # In a table no two live items have one sort key, but a mark and its item have: all are known up to it.
            run = _Run(layout, part, rank, past if layout.identity is None else rank, stream, bounds)
            if after is not None and after.part == part and not after.whole:
                _resume(run, after)
            elif after is not None and (after.whole or part < after.part):
                run.bounds = bounds.after(after.position.sort, forward=forward)
            elif after is not None:
                run.bounds = bounds.at(after.position.sort, forward=forward)
            runs.append(run)
    return runs


def _resume(run: _Run, after: PageEnd) -> None:
    """Have a source of the partition that the end is of begin where the last page ended."""
    layout, stream, at = run.layout, run.source, after.position
    forward = layout.reading.forward
    if layout.identity is None:
        run.reached = at
    elif after.streams != len(layout.streams):
        run.bounds = run.bounds.at(at.sort, forward=forward)
        run.new, run.reread = _new(layout, after), reread_limit(at)
    elif stream.number > after.number:
        run.bounds = run.bounds.at(at.sort, forward=forward)
        run.new = _new(layout, after) if after.passed else None
    elif stream.number < after.number:
        run.bounds = run.bounds.after(at.sort, forward=forward)
    else:
        stale = at.stale or after.version != layout.version
        run.reached, run.new = layout.resumed(replace(at, stale=stale)), _new(layout, after)
        # The last item itself may stand elsewhere by now.
        run.reread = 0 if run.reached is None or run.reached.item else reread_limit(at)


def _new(layout: Layout, after: PageEnd) -> Callable[[Wire], bool] | None:
    """Tells the entries that no earlier page returned, where their sort key alone does not."""
    hash_of = layout.hash_of
    if hash_of is None:
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


def _rest(run: _Run, limit: int, bound: str | None) -> StreamRead:
    reading = run.layout.reading
    bounds = run.bounds if bound is None else run.bounds.until(bound, forward=reading.forward)
    wanted = FILTERED_READ if reading.filters.text else max(1, limit - len(run.rows))
    return StreamRead(run.source, wanted, run.reached, bounds, run.part)


_Ranked = tuple[int, Wire]
"""A source's rank and an item of it."""


def _ranked(reading: Reading, runs: Sequence[_Run], fetch: Fetch, dedup: Dedup | None) -> list[_Ranked]:
    """All items known, in order; equal sort keys by source, and within a source as it returned them."""
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
    open_runs = [run for run in runs if not run.ended]
    least = _least(open_runs, forward=reading.forward) if open_runs else None
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
        # Cut short: go on where the source stands that was read least far. A source that ended at a bound is not it: a
        # bound is the key of a page's last item, so the page would be full.
        run, position = least, least.reached
    if dedup is not None and rows and rows[-1][reading.sort_attribute]["S"] == position.sort:
        # All others with this key say the same.
        return rows, PageEnd(Position(position.sort), part=run.part, whole=True)
    return rows, _page_end(run, items, after, position)


def _page_end(run: _Run, items: Sequence[_Ranked], after: PageEnd | None, position: Position) -> PageEnd:
    layout, part, number = run.layout, run.part, run.source.number
    if layout.identity is None:
        return PageEnd(position, part=part)
    streams = len(layout.streams)
    passed: tuple[tuple[int, int], ...] = ()
    before: list[Position] = []
    if after is not None and after.position.sort == position.sort and after.part == part:
        passed = after.passed if after.streams == streams else (*after.passed, (after.streams, after.number))
        if passed or after.number == number:
            before = [after.position]
    taken = [row for rank, row in items if rank == run.rank]
    position = with_seen(layout, replace(position, forced=False), before, taken, positions=1)
    return PageEnd(position, number, streams, passed, layout.version, part)


def _least(runs: Sequence[_Run], *, forward: bool) -> _Run:
    """The source that was read least far."""
    if forward:
        return min(runs, key=lambda run: run.place)
    return max(runs, key=lambda run: (run.place[0], -run.place[1]))


def encode_end(end: PageEnd, partition: str = "") -> list[Any]:
    """The JSON state of a cursor; `partition` is what all stored partition keys begin with."""
    at = end.position
    if at.item is None:
        return [at.sort]
    state = [at.sort, *at.item, at.shard.removeprefix(partition), end.streams, end.number]
    if not (at.change or at.seen or end.passed or end.version or at.forced):
        return state
    return [*state, end.version, at.change, at.forced, end.passed, *at.seen]


def encode_end_of_several(end: PageEnd, partitions: Sequence[str], recent: Mapping[str, int]) -> list[Any]:
    """The JSON state of a cursor over several partitions, or of one that returns values once."""
    hashes, times = list(recent), list(recent.values())
    return [end.part, int(end.whole), hashes, times, *encode_end(end, partitions[end.part])]


def decode_end_of_several(state: Sequence[Any], partitions: Sequence[str]) -> PageEnd:
    """The end that `encode_end_of_several` wrote."""
    part, whole, _, _, *rest = state
    return replace(decode_end(rest, partitions[part]), part=part, whole=bool(whole))


def decode_recent(state: Sequence[Any]) -> dict[str, int]:
    """The values returned lately that `encode_end_of_several` wrote."""
    return dict(zip(state[2], state[3], strict=True))


def decode_end(state: Sequence[Any], partition: str = "") -> PageEnd:
    """The end that `encode_end` wrote."""
    if len(state) == 1:
        return PageEnd(Position(state[0]))
    sort, pk, sk, shard, streams, number, *more = state
    version, change, forced, passed, *seen = more or ["", "", False, []]
    position = Position(sort, (pk, sk), partition + shard, change, tuple(seen), forced=forced)
    return PageEnd(position, number, streams, tuple((was, at) for was, at in passed), version)
