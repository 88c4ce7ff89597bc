"""Listings that keep a position for each shard: round-robin and shard-ordered.

Source of round-robin: ConductorOne's 'round-robin ordered reads'. Here a page that fills from one shard is one Query
that reads nothing twice, and the shards that must make up the rest of a page are read at the same time, each for its
part, instead of one after the other.
"""

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any, Final

from dynashard.reads.cursor import pack_texts, unpack_texts
from dynashard.reads.fetch import Fetch, Want
from dynashard.reads.positions import DONE, Positions
from dynashard.reads.sources import Chunk, Position, Source
from dynashard.transport.interface import Wire

WAVE: Final = 16
"""How many shards are read at a time."""
FILTERED_READ: Final = 500
"""How many items a Query with a filter looks at, since most may not pass."""

_NOTHING: Final[Position] = ()
"""Nothing of a chunk was taken, so its shard stays where it was."""

HashOf = Callable[[Wire], int]
"""The hash that decides a stored item's shard."""


def list_by_shard(
    fetch: Fetch,
    sources: Sequence[Source],
    positions: Positions | None,
    *,
    limit: int,
    in_turn: bool,
    hash_of: HashOf,
) -> tuple[list[Wire], Positions | None]:
    """One page, and where the next one starts, None after the last.

    Args:
        fetch: sends the Queries.
        sources: all shards, in order.
        positions: where the last page ended; None for the first.
        limit: items wanted.
        in_turn: read from each shard in turn; otherwise each shard to its end.
        hash_of: decides an item's virtual shard where shards have merged since the listing began.

    Cost: 1 Query and 1 round trip if the shard whose turn it is fills the page; else also one Query for each further
    shard that is needed, up to `WAVE` of them a round trip.
    """
    count = len(sources)
    state = (positions or Positions.beginning(count)).under(count)
    items: list[Wire] = []
    width = 1
    while len(items) < limit and fetch.allowed:
        shards = _due(state, count, width)
        if not shards:
            break
        share = (limit - len(items)) // len(shards)
        wanted = max(share, FILTERED_READ) if fetch.reading.filters.text else share
        forward = fetch.reading.forward
        starts = [state.start(shard, count, forward=forward) for shard in shards]
        chunks = fetch.wave([Want(sources[shard], wanted, start) for shard, start in zip(shards, starts, strict=True)])
        for shard, chunk in zip(shards, chunks, strict=True):
            taken, last = _take(fetch, chunk, limit - len(items), _is_new(fetch, state, count, hash_of))
            items += taken
            if last is not _NOTHING:
                state = state.read(shard, count, last, forward=forward)
        if in_turn:
            width = _width(limit - len(items), sum(len(chunk.rows) for chunk in chunks), starts)
        turn = shards[-1] + 1 if in_turn else shards[-1]
        state = Positions(state.at, turn % count)
    return items, None if state.done else state


def _take(
    fetch: Fetch, chunk: Chunk, room: int, new: Callable[[Wire], bool] | None
) -> tuple[list[Wire], Position | None]:
    """The items of a chunk that are new and fit, and how far the shard counts as read."""
    rows = chunk.rows if new is None else [row for row in chunk.rows if new(row)]
    if len(rows) <= room:
        return rows, chunk.last
    if room == 0:
        return [], _NOTHING
    return rows[:room], fetch.reading.position(rows[room - 1])


def _width(room: int, brought: int, starts: Sequence[Position | None]) -> int:
    """How many shards to read next for the rest of a page, if they hold about what the last ones did.

    Reading many shards of a large listing for one item each would leave crumbs in all of them, and a crumb costs a
    Query later. Reading the shards of a small tenant one by one would cost a round trip for each.
    """
    if brought:
        return max(1, min(WAVE, room, ceil(room * len(starts) / brought)))
    # Shards that were empty from their beginning speak of a small listing; one that was read up before, of none.
    return min(WAVE, room) if None in starts else 1


def _is_new(fetch: Fetch, state: Positions, count: int, hash_of: HashOf) -> Callable[[Wire], bool] | None:
    """Tells the items that were not returned before; None where all are, since no shards have merged."""
    virtual = len(state.at)
    if virtual == count:
        return None
    position, forward = fetch.reading.position, fetch.reading.forward
    return lambda row: state.counts(position(row), hash_of(row) & (virtual - 1), forward=forward)


def _due(state: Positions, count: int, most: int) -> list[int]:
    """The next shards that have something left, at most this many, beginning with the one whose turn it is."""
    shards = []
    for step in range(count):
        shard = (state.turn + step) % count
        if not state.finished(shard, count):
            shards.append(shard)
            if len(shards) == most:
                break
    return shards


def state_of(positions: Positions) -> list[Any]:
    """The JSON state of a cursor: whose turn it is, what became of each virtual shard, and the open positions."""
    marks = "".join("n" if at is None else "d" if at == DONE else "p" for at in positions.at)
    columns = zip(*(at for at in positions.at if at is not None and at != DONE), strict=True)
    return [positions.turn, marks, *(pack_texts(column) for column in columns)]


def positions_of(state: Sequence[Any]) -> Positions:
    """The positions that `state_of` wrote."""
    turn, marks, *columns = state
    known = iter(list(zip(*(unpack_texts(column) for column in columns), strict=True)))
    at = tuple(None if mark == "n" else DONE if mark == "d" else next(known) for mark in marks)
    return Positions(at, turn)
