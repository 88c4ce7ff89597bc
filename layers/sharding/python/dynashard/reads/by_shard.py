"""Listings that keep a keyset position for each shard: round-robin and shard-ordered.

Source of round-robin: ConductorOne's 'round-robin ordered reads'. Here a page that fills from one shard is one Query
that reads nothing twice, and the shards for the rest of a page are read at the same time, each for its part.

A cursor has a position for each shard that is being read. So only `WINDOW` shards take turns, fewer if their sort keys
are long; when one of them ends, the next shard begins.
"""

from bisect import bisect_right
from collections.abc import Sequence
from math import ceil
from typing import Any, Final

from msgspec.structs import replace

from dynashard.reads.fetch import Fetch, States
from dynashard.reads.layout import Layout, OvertakenError
from dynashard.reads.positions import MAX_WEIGHT, WINDOW, Positions, bits
from dynashard.reads.sources import Chunk, Position

FILTERED_READ: Final = 500
"""How many items a Query with a filter reads, because most may not pass."""
FOLLOWED_READ: Final = 100
"""The same while relocation markers are followed, each of which takes a read of its own."""


def list_by_shard(fetch: Fetch, positions: States, *, limit: int, in_turn: bool) -> tuple[list[Any], States]:
    """Return one page, and the positions after it, None after the last.

    `positions` are where the last page ended in each logical partition; None for the first page. The shards of all
    partitions take turns; the first partition's positions say whose turn it is among all. Without `in_turn`, each shard
    is read to its end.

    Cost: 1 Query and 1 round trip if the shard whose turn it is fills the page; otherwise also one Query for each
    further shard that is needed, up to `WINDOW` of them a round trip. If sort keys become longer than those before,
    some of these are read again.
    """
    state = list(positions or ())
    items: list[Any] = []
    width, longest = 1, 0
    while len(items) < limit and fetch.allowed:
        layouts, room = fetch.layouts(), limit - len(items)
        turn = state[0].turn if state else 0
        state = [layout.rebase(state[part] if state else None) for part, layout in enumerate(layouts)]
        due = _due(layouts, state, turn, width, longest)
        while due and not fetch.fits(layouts[part].streams[shard] for _, part, shard in due):
            due.pop()
        if not due:
            break
        reads = [
            layouts[part].next_read(state[part], shard, _read_limit(layouts[part], room // len(due)), part=part)
            for _, part, shard in due
        ]
        try:
            chunks = fetch.wave(layouts, reads, tuple(state))
        except OvertakenError:
            continue
        rows, state = _accepted(layouts, state, due, chunks, room, in_turn=in_turn)
        items += rows
        if len(items) == limit:
            # What follows is about another wave.
            break
        filled = [chunk for chunk in chunks if chunk.rows]
        ends = [chunk.end or layouts[0].reading.position(chunk.rows[-1]) for chunk in filled]
        longest = max([longest, *(position.weight for position in ends)])
        if in_turn:
            width = _width(limit - len(items), sum(len(chunk.rows) for chunk in filled), [read.start for read in reads])
    return items, None if all(each.ended for each in state) else state


_Due = list[tuple[int, int, int]]
"""Number among the streams of all partitions, partition, and number in it, of streams to read."""


def _due(layouts: Sequence[Layout], state: Sequence[Positions], turn: int, width: int, longest: int) -> _Due:
    """The next streams to read, beginning with the one whose turn it is.

    A stream without a position of its own adds one to the cursor. It begins if there is room for one more, as long as
    `longest` or the longest that is open.
    """
    firsts, weights = [], list[int]()
    left = alone = total = 0
    for layout, each in zip(layouts, state, strict=True):
        count = len(layout.streams)
        left |= each.left(count) << total
        alone |= each.alone(count) << total
        weights += each.weights
        firsts.append(total)
        total += count
    room = min(WINDOW - len(weights), (MAX_WEIGHT - sum(weights)) // max([longest, 1, *weights]))
    # After shards have split, none may have a position of its own. Then one begins in any case.
    room = max(room, int(not alone))
    due: _Due = []
    for number in bits(left if room > 0 else alone, turn % total):
        begins = not alone >> number & 1
        if room >= begins:
            room -= begins
            part = bisect_right(firsts, number) - 1
            due.append((number, part, number - firsts[part]))
        if len(due) == (width if sum(weights) <= MAX_WEIGHT else 1):
            break
    return due


def _accepted(
    layouts: Sequence[Layout], state: list[Positions], due: _Due, chunks: Sequence[Chunk], room: int, *, in_turn: bool
) -> tuple[list[Any], list[Positions]]:
    """At most `room` new rows of the chunks that were read, and the positions after them."""
    rows: list[Any] = []
    after = list(state)
    for (_, part, shard), chunk in zip(due, chunks, strict=True):
        more, after[part] = layouts[part].accept(after[part], shard, chunk, room - len(rows))
        rows += more
    heavy = sum([each.weight for each in after]) > MAX_WEIGHT
    if heavy and len(due) > 1:
        # The others are read again later, when the first has ended.
        return _accepted(layouts, state, due[:1], chunks[:1], room, in_turn=in_turn)
    after[0] = replace(after[0], turn=due[-1][0] + (in_turn and not heavy))
    return rows, after


def _read_limit(layout: Layout, share: int) -> int:
    if not layout.reading.filters.text:
        return share
    return max(share, FOLLOWED_READ if layout.follows and layout.moving else FILTERED_READ)


def _width(room: int, found: int, starts: Sequence[Position | None]) -> int:
    """How many shards to read next for the rest of a page, if they hold about what the last ones did.

    Reading many shards of a large listing for one item each would leave small rests in all of them, each of which costs
    a Query later. Reading the shards of a small tenant one by one would cost a round trip for each.
    """
    if found:
        return max(1, min(WINDOW, room, ceil(room * len(starts) / found)))
    # Shards that are empty from their beginning suggest a small listing; one that was read to its end before does not.
    return min(WINDOW, room) if None in starts else 1


def encode_positions(positions: Positions, partition: str = "") -> list[Any]:
    """Return the JSON state of a cursor: the virtual shards, those that are done, the turn, and the open positions.

    `partition` is the common beginning of all stored partition keys.
    """
    open_ = [
        [where.bit_length() - 1 if where.bit_count() == 1 else f"{where:x}", *at.pack(partition)]
        for at, where in positions.open
    ]
    return [positions.size, f"{positions.done:x}", positions.turn, positions.version, *open_]


def decode_positions(state: Sequence[Any], partition: str = "") -> Positions:
    """Return the positions that `encode_positions` wrote."""
    size, done, turn, version, *known = state
    open_ = [
        (Position.unpack(at, partition), int(place, 16) if isinstance(place, str) else 1 << place)
        for place, *at in known
    ]
    return Positions(size, int(done, 16), tuple(open_), turn, version)
