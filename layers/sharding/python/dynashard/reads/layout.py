"""What a listing enumerates now: which shards, and how the stored items in them are interpreted.

A listing asks for the layout before each round. While the signature is the same, positions hold; when it changes, they
are rebased. A layout also says how a listing that keeps positions progresses: which of the rows that it reads are new,
and its positions afterwards.
"""

import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import groupby, takewhile
from math import ceil, inf, sqrt
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dynashard.entity import IndexDefinition
from dynashard.errors import InvalidCursorError
from dynashard.placement import CALCULATED
from dynashard.reads.epoch_sources import EpochSources
from dynashard.reads.positions import WINDOW, Positions
from dynashard.reads.sources import Chunk, Group, Position, Reading, Source, Sources, Stream, StreamRead
from dynashard.routing import shard_keys
from dynashard.schema import PK, SK
from dynashard.topology import View
from dynashard.transport.interface import Wire

EPOCHS: Final = "e"
"""The version of layouts with epochs, and of positions in them."""
MAX_SEEN_IN_MEMORY: Final = 10_000
"""How many returned items a position may name that no cursor carries."""
_MAX_SEEN: Final = 64
"""How many returned items a position of a cursor may name at most."""


class OvertakenError(Exception):
    """The layout has changed, or items have moved: the read must be repeated under the new layout."""


class Layout(Struct, frozen=True):
    """The shards of a logical partition under one view, in the order in which they are read, and how.

    Attributes:
        signature: equal for layouts that are read alike.
        hash_of: the hash that places a stored item in its stream; None if items are placed at random, or by epochs.
        home_hash: the hash that places a stored item in the streams of epochs.
        follows: relocation markers are followed to the items they lead to.
        foreign: a shard may hold items whose home is elsewhere; they are skipped.
        strays: returns the new home of an item found unmarked at its old home, None for items elsewhere. Such an item
            is returned if its new home is empty. None if no such items are returned.
        moving: items may be moving: there may be markers, and in an index several entries of one item with equal sort
            keys.
        identity: in an index, returns a short hash of an item's key from its stored one; None in a table.
        version: in an index, another text whenever the view changes.
        stationary: a stored item keeps its sort key; else an update can give it another one, as in many indexes.
        former: how many streams there were while one count held for all keys, if there are epochs now; 0 otherwise.
            Positions are then those of the streams, whatever the hash of an item.
        in_memory: no cursor carries the positions.
        expires: when the answer of a Query requires another look at the layout, in epoch seconds.
    """

    streams: Sequence[Stream]
    reading: Reading
    signature: Hashable = None
    hash_of: Callable[[Wire], int] | None = None
    home_hash: Callable[[Wire], int] | None = None
    follows: bool = False
    foreign: bool = False
    strays: Callable[[Wire], str | None] | None = None
    moving: bool = False
    identity: Callable[[str, str], str] | None = None
    version: str = ""
    stationary: bool = True
    former: int = 0
    in_memory: bool = False
    expires: float = inf

    def rebase(self, positions: Positions | None) -> Positions:
        """Return the positions of any earlier layout as this layout's; None is the beginning.

        Raises `InvalidCursorError` if those of virtual shards, several to a stream, meet epochs.
        """
        count = len(self.streams)
        if positions is not None and EPOCHS in (self.version, positions.version):
            return self._across_epochs(positions)
        if positions is None:
            return Positions(count, version=self.version)
        if positions.version != self.version:
            positions = positions.as_of(self.version)
        return positions.among(count) if self.hash_of is None else positions.under(count)

    def _across_epochs(self, positions: Positions) -> Positions:
        """Return positions of this layout or an earlier one, one of which has epochs.

        Every epoch uses the same stored partition keys, so their positions hold in all of them: nothing moves.
        """
        if positions.version != EPOCHS:
            if positions.size > self.former:
                raise InvalidCursorError("the shards have changed twice; list from the start", field="cursor")
            positions = positions.under(self.former)
        # Positions of shards that this view does not know may go: it is older than any key in them, because an epoch
        # begins only after every view has it (docs/topology.md, "Epochs").
        return replace(positions.among(len(self.streams)), version=self.version)

    def converts(self, state: Positions, stream: int) -> bool:
        """Return whether a reader may put other things in place of the items that the next read of a stream returns.

        All of them are new, and nothing moves, so nobody has to look at a stored item.
        """
        return not (self.foreign or self.moving) and self.continues_exactly(state, stream)

    @property
    def shape(self) -> list[Any]:
        """What fences that were learned under this layout depend on."""
        if isinstance(self.streams, EpochSources):
            return [self.version, len(self.streams), len(self.streams.epochs.entries)]
        return [self.version, len(self.streams)]

    @property
    def still(self) -> bool:
        """Whether no item moves or has moved, so that stored items are returned as they are."""
        return not (self.foreign or self.follows or self.moving)

    def resumed(self, after: Position | None) -> Position | None:
        """Return the position to continue at; without its item if all entries with its sort key are to be read again.

        An item that moves leaves one place among equal sort keys for another. While that may happen, what was returned
        is recognised by its hash, not by its place.
        """
        if after is None or self.identity is None or after.item is None or after.forced:
            return after
        return Position(after.sort) if self.moving or after.stale else after

    def covers(self, read: StreamRead, chunk: Chunk, sort: str) -> bool:
        """Whether a read returned all that its stream has at a sort key."""

        def after(one: str, other: str) -> bool:
            return one > other if self.reading.forward else one < other

        start = read.start
        # A start before its sort key (`side` < 0) has all of that key still ahead; any other may be in the middle.
        begun = start is None or after(sort, start.sort) or (start.side < 0 and sort == start.sort)
        ended = chunk.last is not None and after(sort, chunk.last.sort)
        return begun and not ended and (read.bounds is None or read.bounds.contains(sort))

    def number_of(self, row: Wire) -> int | None:
        """Return the number of the stream that a stored item belongs to; None if that is not known."""
        if isinstance(self.streams, EpochSources) and self.home_hash is not None:
            return self.streams.number_of(row[SK]["S"], self.home_hash(row))
        return None if self.hash_of is None else self.hash_of(row) & (len(self.streams) - 1)

    def identity_of(self, row: Wire) -> str:
        """Return the short hash of an index entry's item; '' in a table."""
        return "" if self.identity is None else self.identity(row[PK]["S"], row[SK]["S"])

    def distinct(self, rows: list[Wire]) -> list[Wire]:
        """Return rows without second entries of an item that moves in an index: neighbours with the same sort key."""
        if not self.moving or self.identity is None:
            return rows
        attribute = self.reading.sort_attribute
        kept: list[Wire] = []
        for _, tied in groupby(rows, key=lambda row: row[attribute]["S"]):
            entries: dict[str, Wire] = {}
            for row in tied:
                # The mover rewrites the index key and nothing else of the item, so either entry will do.
                entries.setdefault(self.identity_of(row), row)
            kept += entries.values()
        return kept

    def next_read(self, state: Positions, stream: int, limit: int, *, part: int = 0) -> StreamRead:
        """Return the read of so many more rows of a stream of the listing's logical partition with this number."""
        count, source = len(self.streams), self.streams[stream]
        if isinstance(source, Group) and not self.reading.filters.text:
            limit = _part(limit, len(source.sources))
        start = self.resumed(state.start(stream, count, forward=self.reading.forward))
        if start is not None and start.item is None and self.identity is not None:
            # Index entries with equal sort keys have no defined order, so those that were returned are read again.
            limit += sum(position.reread_limit for position in state.last(stream, count, start.sort))
        return StreamRead(source, limit, start, part=part)

    def accept(
        self, state: Positions, stream: int, chunk: Chunk, room: int = sys.maxsize
    ) -> tuple[list[Wire], Positions]:
        """Return the rows of a chunk that were not returned before, at most `room`, and the positions after them."""
        read_whole = chunk.end is not None
        rows = chunk.rows if read_whole else self.unseen(state, stream, chunk.rows)
        last, count = chunk.last, len(self.streams)
        if len(rows) > room:
            if room == 0:
                return [], state
            # The rest is read again: a position must not go further than what was returned.
            rows = rows[:room]
            last = self.reading.position(rows[-1])
        if last is not None and self.identity is not None:
            returned = chunk.tied if read_whole else rows
            before = state.last(stream, count, last.sort)
            last = self.with_seen(last, before, returned, positions=min(WINDOW, state.size))
        return rows, state.read(1 << stream, count, last, forward=self.reading.forward)

    def unseen(self, state: Positions, stream: int, rows: list[Wire]) -> list[Wire]:
        """Return the rows of a stream that are beyond their positions."""
        count, virtual = len(self.streams), state.size
        attribute, forward = self.reading.sort_attribute, self.reading.forward
        # With one virtual shard in each shard, the read began at its position, so only ties there can be known already.
        # With more, it began at the earliest of theirs, and each row is held against that of its own virtual shard.
        hash_of = self.hash_of if virtual > count else None
        if hash_of is None:
            at = state.at(stream)
            if at is None or self.identity is None:
                return rows
            before = self.returned_at(at)
            return [row for row in rows if row[attribute]["S"] != at.sort or self.identity_of(row) not in before]
        returned: dict[int, set[str]] = {}

        def new(row: Wire) -> bool:
            sort, v = row[attribute]["S"], hash_of(row) & (virtual - 1)
            at = state.at(v)
            if at is None or at.sort != sort:
                return state.counts(sort, v, forward=forward)
            if at.side or self.identity is None:
                return at.side < 0
            if v not in returned:
                returned[v] = self.returned_at(at)
            return self.identity_of(row) not in returned[v]

        return [row for row in rows if new(row)]

    def passed(self, state: Positions, row: Wire) -> bool:
        """Whether the listing has read the shard that a row belongs to beyond the row's sort key."""
        if self.hash_of is None:
            return False
        sort = row[self.reading.sort_attribute]["S"]
        return not state.counts(sort, self.hash_of(row) & (state.size - 1), forward=self.reading.forward)

    def continues_exactly(self, state: Positions, stream: int) -> bool:
        """Whether the next read of a stream returns nothing that was returned before."""
        if state.size > len(self.streams) and self.hash_of is not None:
            # A shard is read from the earliest position of its virtual shards, so rows of the others come again.
            return False
        at = state.at(stream)
        if at is None or self.identity is None:
            return True
        # Among equal sort keys DynamoDB continues after an item only in the shard that the item was read from.
        source = self.streams[stream]
        return self.resumed(at) is at and not at.seen and isinstance(source, Source) and at.shard == source.partition

    def returned_at(self, position: Position | None) -> set[str]:
        """Return the hashes of the items that were returned at a position's sort key, as far as it names them."""
        if position is None or position.item is None or self.identity is None:
            return set() if position is None else set(position.seen)
        return {*position.seen, self.identity(*position.item)}

    def with_seen(
        self, last: Position, before: Sequence[Position], returned: Sequence[Wire], *, positions: int
    ) -> Position:
        """Return a position of an index that also names the items returned at its sort key, as far as there is room.

        `before` are the earlier positions at this sort key, and `returned` is what was returned from the stream since.
        A cursor carries so many `positions`.
        """
        attribute = self.reading.sort_attribute
        tied = takewhile(lambda row: row[attribute]["S"] == last.sort, reversed(returned))
        items = [self.identity_of(row) for row in tied if (row[PK]["S"], row[SK]["S"]) != last.item]
        ahead = dict.fromkeys(name for at in before for name in self._ahead(at))
        known = ahead | dict.fromkeys([name for at in before for name in sorted(self.returned_at(at))] + items[::-1])
        if known and last.item is not None and self.identity is not None:
            known.pop(self.identity(*last.item), None)
        room = self._max_seen(positions)
        # Items that cannot be remembered must not be read again, or the listing would not end. The same holds if all
        # that was read at this sort key had been returned before: the next read would begin there again.
        stuck = len(known) > room or (bool(before) and not returned)
        if self.moving:
            return last._replace(seen=tuple(known)[-room:], forced=stuck)
        # What is behind the position is named for a later resize only; what may be ahead would be returned again.
        return last._replace(seen=tuple(known)[: max(room, min(_MAX_SEEN, len(ahead)))], forced=False)

    def _ahead(self, at: Position) -> Iterable[str]:
        """Return the names of returned items that may be ahead of a position, in another order than they were read."""
        return sorted(self.returned_at(at)) if at.stale else at.seen

    def _max_seen(self, positions: int) -> int:
        """How many returned items each position of a cursor of so many may name, at 8 bytes each."""
        if self.in_memory:
            return MAX_SEEN_IN_MEMORY
        # Outside a resize they are needed only if one begins before the next page.
        return min(_MAX_SEEN, max(8, (512 if self.moving else 128) // positions))


def _part(limit: int, sources: int) -> int:
    """How many items to read from each source of a group for so many: its share, and its standard deviation."""
    share = limit / sources
    return min(limit, ceil(share + sqrt(share)))


def sources_of(keys: Iterable[str]) -> tuple[Source, ...]:
    """Return the shards with these stored partition keys, shard 0 first."""
    return tuple(Source(number, key) for number, key in enumerate(keys))


def index_streams(index: IndexDefinition, partition: str, view: View) -> Sequence[Stream]:
    """Return the shards of an index; in groups among which entries move, while some stand by another count."""
    counts = sorted({view.count, view.new_count, *view.former})
    if len(counts) == 1:
        return Sources(CALCULATED, partition, index.separator, view.count)
    # Counts are powers of two, so the lowest bits of a hash are those of its shard under all of them: entries move only
    # among shards whose numbers are equal modulo the smallest count.
    groups = counts[0]
    waves = _waves(counts, view.new_count)
    keys = shard_keys(CALCULATED, partition, index.separator, counts[-1])
    return tuple(
        _group(number, [keys[first + number : end : groups] for first, end in waves]) for number in range(groups)
    )


def _waves(counts: list[int], to: int) -> list[tuple[int, int]]:
    """Return the ranges of shards between which entries move forwards only, as they come to their places under `to`.

    Entries leave the shards from `to` on. Among the others an entry goes from its place under a smaller count to one
    with a higher number, which no smaller count has.
    """
    first, ends = 0, [count for count in counts if count <= to]
    ranges = [(to, counts[-1])] if counts[-1] > to else []
    for end in ends:
        ranges.append((first, end))
        first = end
    return ranges


def _group(number: int, waves: list[list[str]]) -> Group:
    """Return a group of shards, given by their stored partition keys in waves."""
    return Group(number, sources_of(key for wave in waves for key in wave), tuple(len(wave) for wave in waves))
