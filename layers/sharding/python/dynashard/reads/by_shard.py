"""Listings that keep a position for each shard: round-robin and shard-ordered.

Source of round-robin: ConductorOne's 'round-robin ordered reads'. Here a page that fills from one shard is one Query
that reads nothing twice, and the shards that must make up the rest of a page are read at the same time, each for its
part, instead of one after the other.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any, Final

from dynashard.reads.cursor import pack_texts, unpack_texts
from dynashard.reads.fetch import Fetch
from dynashard.reads.layout import Layout, OvertakenError
from dynashard.reads.positions import DONE, Positions
from dynashard.reads.progress import advanced, next_read, passed, unseen
from dynashard.reads.sources import Chunk, Position
from dynashard.transport.interface import Wire

WAVE: Final = 16
"""How many shards are read at a time."""
FILTERED_READ: Final = 500
"""How many items a Query with a filter looks at, since most may not pass."""

FOLLOWED_READ: Final = 100
"""The same while marks are followed, each of which takes a read of its own."""


_STALE: Final = 1
_FORCED: Final = 2


def list_by_shard(
    fetch: Fetch, positions: Sequence[Positions] | None, *, limit: int, in_turn: bool
) -> tuple[list[Wire], Sequence[Positions] | None]:
    """One page, and where the next one starts, None after the last.

    Args:
        fetch: sends the Queries.
        positions: where the last page ended, in each logical partition; None for the first. The shards of all
            partitions take turns; the first partition's positions say whose turn it is among all.
        limit: items wanted.
        in_turn: read from each shard in turn; otherwise each shard to its end.

    Cost: 1 Query and 1 round trip if the shard whose turn it is fills the page; else also one Query for each further
    shard that is needed, up to `WAVE` of them a round trip.
    """
    state = None if positions is None else list(positions)
    items: list[Wire] = []
    width = 1
    while len(items) < limit and fetch.allowed:
        layouts = fetch.layouts()
        streams = [(part, shard) for part, layout in enumerate(layouts) for shard in range(len(layout.streams))]
        turn = 0 if state is None else state[0].turn
        state = _rebased(layouts, state)
        due = _due(layouts, state, streams, turn % len(streams), width)
        due = _affordable(fetch, layouts, streams, due)
        if not due:
            break
        room = limit - len(items)
        reads = [
            next_read(layouts[part], state[part], shard, _read_limit(layouts[part], room // len(due)), part=part)
            for part, shard in (streams[number] for number in due)
        ]
        try:
            chunks = fetch.wave(layouts, reads, partial(_passed, layouts, tuple(state)))
        except OvertakenError:
            state[0] = replace(state[0], turn=turn)
            continue
        for number, chunk in zip(due, chunks, strict=True):
            part, shard = streams[number]
            taken, state[part] = _take(layouts[part], state[part], shard, chunk, limit - len(items))
            items += taken
        if in_turn:
            width = _width(limit - len(items), sum(len(chunk.rows) for chunk in chunks), [read.start for read in reads])
        state[0] = replace(state[0], turn=(due[-1] + in_turn) % len(streams))
    return items, None if state is None or all(each.done for each in state) else state


def _passed(layouts: Sequence[Layout], state: Sequence[Positions], part: int, row: Wire) -> bool:
    return passed(layouts[part], state[part], row)


def _rebased(layouts: Sequence[Layout], state: Sequence[Positions] | None) -> list[Positions]:
    if state is None:
        return [layout.rebase(None) for layout in layouts]
    return [layout.rebase(positions) for layout, positions in zip(layouts, state, strict=True)]


def _affordable(
    fetch: Fetch, layouts: Sequence[Layout], streams: Sequence[tuple[int, int]], due: list[int]
) -> list[int]:
    """The first of the streams that are due, as many as the request may still read."""

    def fits(numbers: Sequence[int]) -> bool:
        return fetch.fits(layouts[part].streams[shard] for part, shard in (streams[number] for number in numbers))

    return next((due[:count] for count in range(len(due), 0, -1) if fits(due[:count])), [])


def _read_limit(layout: Layout, share: int) -> int:
    if not layout.reading.filters.text:
        return share
    return max(share, FOLLOWED_READ if layout.follows and layout.moving else FILTERED_READ)


def _take(layout: Layout, state: Positions, shard: int, chunk: Chunk, room: int) -> tuple[list[Wire], Positions]:
    """The items of a chunk that are new and fit, and the positions after them."""
    rows = unseen(layout, state, shard, chunk.rows)
    if len(rows) <= room:
        return rows, advanced(layout, state, shard, rows, chunk.last)
    if room == 0:
        # Nothing of the chunk is taken, so its shard stays where it was.
        return [], state
    taken = rows[:room]
    return taken, advanced(layout, state, shard, taken, layout.reading.position(taken[-1]))


def _width(room: int, brought: int, starts: Sequence[Position | None]) -> int:
    """How many shards to read next for the rest of a page, if they hold about what the last ones did.

    Reading many shards of a large listing for one item each would leave crumbs in all of them, and a crumb costs a
    Query later. Reading the shards of a small tenant one by one would cost a round trip for each.
    """
    if brought:
        return max(1, min(WAVE, room, ceil(room * len(starts) / brought)))
    # Shards that were empty from their beginning speak of a small listing; one that was read up before, of none.
    return min(WAVE, room) if None in starts else 1


def _due(
    layouts: Sequence[Layout], state: Sequence[Positions], streams: Sequence[tuple[int, int]], turn: int, most: int
) -> list[int]:
    """The next streams that have something left, at most this many, beginning with the one whose turn it is."""
    due = []
    for step in range(len(streams)):
        number = (turn + step) % len(streams)
        part, shard = streams[number]
        if not state[part].finished(shard, len(layouts[part].streams)):
            due.append(number)
            if len(due) == most:
                break
    return due


def encode_positions(positions: Positions, partition: str = "") -> list[Any]:
    """The JSON state of a cursor: whose turn it is, what became of each virtual shard, and the open positions.

    Of a position in an index, what is as usual is left out: that it was taken in the shard of its own number.
    `partition` is what all stored partition keys begin with.
    """
    marks = "".join("n" if at is None else "d" if at == DONE else "p" for at in positions.at)
    known = [(v, at) for v, at in enumerate(positions.at) if at is not None and at != DONE]
    turn = [positions.turn, positions.version] if positions.version else positions.turn
    state: list[Any] = [turn, marks]
    if known:
        state.append(pack_texts([at.sort for _, at in known]))
    if any(at.shard or at.item or at.seen for _, at in known):
        items = [at.item or ("", "") for _, at in known]
        state += [pack_texts([pk for pk, _ in items]), pack_texts([sk for _, sk in items])]
        state += [rest for place, (v, at) in enumerate(known) if (rest := _rest(place, v, at, partition))]
    return state


def decode_positions(state: Sequence[Any], partition: str = "") -> Positions:
    """The positions that `encode_positions` wrote."""
    at, marks, *columns = state
    turn, version = at if isinstance(at, list) else (at, "")
    known = [Position(sort) for sort in unpack_texts(columns[0])] if columns else []
    if len(columns) > 1:
        places = [v for v, mark in enumerate(marks) if mark == "p"]
        items = zip(unpack_texts(columns[1]), unpack_texts(columns[2]), strict=True)
        known = [
            Position(at.sort, item if any(item) else None, _usual(v, partition))
            for at, v, item in zip(known, places, items, strict=True)
        ]
        for place, shard, change, flags, *seen in columns[3:]:
            known[place] = replace(
                known[place],
                shard=partition + shard,
                change=change,
                seen=tuple(seen),
                stale=bool(flags & _STALE),
                forced=bool(flags & _FORCED),
            )
    left = iter(known)
    return Positions(
        tuple(None if mark == "n" else DONE if mark == "d" else next(left) for mark in marks), turn, version
    )


def _usual(virtual: int, partition: str) -> str:
    return f"{partition}:{virtual}"


def _rest(place: int, virtual: int, at: Position, partition: str) -> list[Any]:
    """What of a position is not as usual; empty if nothing is."""
    flags = _STALE * at.stale + _FORCED * at.forced
    if at.shard == _usual(virtual, partition) and not at.change and not at.seen and not flags:
        return []
    return [place, at.shard.removeprefix(partition), at.change, flags, *at.seen]
