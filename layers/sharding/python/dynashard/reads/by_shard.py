"""Listings that keep a keyset position for each shard: round-robin and shard-ordered.

Source of round-robin: ConductorOne's 'round-robin ordered reads'. Here a page that fills from one shard is one Query
that reads nothing twice, and the shards for the rest of a page are read at the same time, each for its part.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import ceil
from typing import Any, Final

from dynashard.reads.cursor import pack_texts, unpack_texts
from dynashard.reads.fetch import Fetch
from dynashard.reads.layout import Layout, OvertakenError
from dynashard.reads.positions import DONE, Positions
from dynashard.reads.sources import Position
from dynashard.transport.interface import Wire

WAVE: Final = 16
"""How many shards are read at a time."""
FILTERED_READ: Final = 500
"""How many items a Query with a filter reads, because most may not pass."""
FOLLOWED_READ: Final = 100
"""The same while relocation markers are followed, each of which takes a read of its own."""
_STALE: Final = 1
_FORCED: Final = 2


def list_by_shard(
    fetch: Fetch, positions: Sequence[Positions] | None, *, limit: int, in_turn: bool
) -> tuple[list[Wire], Sequence[Positions] | None]:
    """Return one page, and the positions after it, None after the last.

    `positions` are where the last page ended in each logical partition; None for the first page. The shards of all
    partitions take turns; the first partition's positions say whose turn it is among all. Without `in_turn`, each shard
    is read to its end.

    Cost: 1 Query and 1 round trip if the shard whose turn it is fills the page; otherwise also one Query for each
    further shard that is needed, up to `WAVE` of them a round trip.
    """
    state = None if positions is None else list(positions)
    items: list[Wire] = []
    width = 1
    while len(items) < limit and fetch.allowed:
        layouts = fetch.layouts()
        streams = [(part, shard) for part, layout in enumerate(layouts) for shard in range(len(layout.streams))]
        turn = 0 if state is None else state[0].turn
        before = [None] * len(layouts) if state is None else state
        state = [layout.rebase(each) for layout, each in zip(layouts, before, strict=True)]
        due = list(islice(_due(layouts, state, streams, turn % len(streams)), width))
        while due and not fetch.fits(layouts[part].streams[shard] for _, part, shard in due):
            due.pop()
        if not due:
            break
        share = (limit - len(items)) // len(due)
        reads = [
            layouts[part].next_read(state[part], shard, _read_limit(layouts[part], share), part=part)
            for _, part, shard in due
        ]
        try:
            chunks = fetch.wave(layouts, reads, tuple(state))
        except OvertakenError:
            state[0] = replace(state[0], turn=turn)
            continue
        for (_, part, shard), chunk in zip(due, chunks, strict=True):
            rows, state[part] = layouts[part].accept(state[part], shard, chunk, limit - len(items))
            items += rows
        if in_turn:
            width = _width(limit - len(items), sum(len(chunk.rows) for chunk in chunks), [read.start for read in reads])
        state[0] = replace(state[0], turn=(due[-1][0] + in_turn) % len(streams))
    return items, None if state is None or all(each.done for each in state) else state


def _due(
    layouts: Sequence[Layout], state: Sequence[Positions], streams: Sequence[tuple[int, int]], turn: int
) -> Iterator[tuple[int, int, int]]:
    """Number, partition and shard of each stream that has something left, beginning with the one whose turn it is."""
    for number in (*range(turn, len(streams)), *range(turn)):
        part, shard = streams[number]
        if not state[part].finished(shard, len(layouts[part].streams)):
            yield number, part, shard


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
        return max(1, min(WAVE, room, ceil(room * len(starts) / found)))
    # Shards that are empty from their beginning suggest a small listing; one that was read to its end before does not.
    return min(WAVE, room) if None in starts else 1


def encode_positions(positions: Positions, partition: str = "") -> list[Any]:
    """Return the JSON state of a cursor: whose turn it is, the state of each virtual shard, and the open positions.

    What is usual for a position in an index is left out: that it was taken in the shard of its own number.
    `partition` is the common beginning of all stored partition keys.
    """
    kinds = "".join("n" if at is None else "d" if at == DONE else "p" for at in positions.at)
    known = [(v, at) for v, at in enumerate(positions.at) if at is not None and at != DONE]
    turn = [positions.turn, positions.version] if positions.version else positions.turn
    state: list[Any] = [turn, kinds]
    if known:
        state.append(pack_texts([at.sort for _, at in known]))
    if any(at.shard or at.item or at.seen for _, at in known):
        items = [at.item or ("", "") for _, at in known]
        state += [pack_texts([pk for pk, _ in items]), pack_texts([sk for _, sk in items])]
        state += [rest for place, (v, at) in enumerate(known) if (rest := _rest(place, v, at, partition))]
    return state


def decode_positions(state: Sequence[Any], partition: str = "") -> Positions:
    """Return the positions that `encode_positions` wrote."""
    at, kinds, *columns = state
    turn, version = at if isinstance(at, list) else (at, "")
    known = [Position(sort) for sort in unpack_texts(columns[0])] if columns else []
    if len(columns) > 1:
        places = [v for v, kind in enumerate(kinds) if kind == "p"]
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
        tuple(None if kind == "n" else DONE if kind == "d" else next(left) for kind in kinds), turn, version
    )


def _usual(virtual: int, partition: str) -> str:
    return f"{partition}:{virtual}"


def _rest(place: int, virtual: int, at: Position, partition: str) -> list[Any]:
    """What is unusual of a position; empty if nothing is."""
    flags = _STALE * at.stale + _FORCED * at.forced
    if at.shard == _usual(virtual, partition) and not at.change and not at.seen and not flags:
        return []
    return [place, at.shard.removeprefix(partition), at.change, flags, *at.seen]
