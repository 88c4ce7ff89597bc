"""Sending the requests of one call, in waves, while counting what they consume."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import time
from typing import cast

from dynashard.errors import QueryTooWideError
from dynashard.reads.allowance import Allowance, current_allowance
from dynashard.reads.layout import Layout, OvertakenError
from dynashard.reads.merged import read_groups
from dynashard.reads.moved_items import MovedItems, distinct
from dynashard.reads.query import Budget
from dynashard.reads.sources import Chunk, Group, Source, Stream, StreamRead, queries_of
from dynashard.repository.batch import StoredKey, stored_key
from dynashard.schema import MOVED_TO
from dynashard.transport.capacity import consumed_of
from dynashard.transport.interface import Call, Consumed, Transport, Wire

Passed = Callable[[int, Wire], bool]


def never(_part: int, _row: Wire) -> bool:
    """Answer for a listing in the order of sort keys: it reads all shards up to one sort key, and none beyond."""
    return False


@dataclass(slots=True)
class Fetch:
    """The requests of one call of a listing.

    Attributes:
        transport: the wire.
        budget: how much work the call may do.
        layouts: tells the layouts now, one for each logical partition that is listed.
        moved_items: finds the items that marks lead to; None where there are no marks.
        consumed: capacity used so far.
        rounds: round trips so far.
        allowance: the Queries that the request may send.
        clock: gives the time in epoch seconds.
    """

    transport: Transport
    budget: Budget
    layouts: Callable[[], Sequence[Layout]]
    moved_items: MovedItems | None = None
    consumed: Consumed = field(default_factory=Consumed)
    rounds: int = 0
    allowance: Allowance = field(default_factory=current_allowance)
    clock: Callable[[], float] = time
    _followed: dict[StoredKey, Wire] = field(default_factory=dict)

    @property
    def allowed(self) -> bool:
        """Whether the budget has room. The first wave is always sent, so that every call gets on."""
        return self.rounds == 0 or (self.budget.left(self.consumed) and not self.allowance.over)

    def fits(self, streams: Iterable[Stream]) -> bool:
        """Whether a wave over these streams may be sent. The first wave may be tried, and is refused with a reason."""
        return self.rounds == 0 or queries_of(streams) <= self.allowance.left

    def require_room(self, streams: Iterable[Stream]) -> None:
        """Check that a scan or a count, which cannot end short, may read on in these streams.

        Raises:
            QueryTooWideError: the request has sent too many Queries, or its time is over.
        """
        reason = "read a part of the items at a time, with prefix or with from and to, or page through them"
        self.allowance.demand(queries_of(streams), reason)
        if self.allowance.over:
            raise QueryTooWideError(f"this takes longer than one request may: {reason}")

    def layout(self) -> Layout:
        """The layout now, of a listing of one logical partition."""
        [layout] = self.layouts()
        return layout

    def wave(self, layouts: Sequence[Layout], reads: Sequence[StreamRead], passed: Passed = never) -> list[Chunk]:
        """Read these streams at the same time.

        Args:
            layouts: one for each logical partition.
            reads: what is read.
            passed: whether the listing has read the home of a row of this partition beyond the row's sort key.

        Raises:
            OvertakenError: a layout changed before all was read that belongs to what was, or an item was moved home.

        Cost: 1 round trip for as many as the transport has connections; a Query each, billed for what it reads in
        blocks of 4 KB (0.5 units, 1 if consistent). A group takes a Query for each of its shards, in 2 round trips;
        marks that are followed take 1 round trip more, or 2.
        """
        if isinstance(reads[0].source, Group):
            # All of them are of one index, and are read alike.
            chunks = read_groups(partial(self._query, layouts), layouts[0].reading, reads)
        else:
            chunks = self._query(layouts, reads)
        return self._settled(layouts, reads, chunks, passed)

    def send(self, layouts: Sequence[Layout], calls: Sequence[Call]) -> list[Wire]:
        """Send calls at the same time.

        Raises:
            OvertakenError: a layout has changed, before the calls or before the last of their answers.
            QueryTooWideError: they are more Queries than the request may still send; none was sent.
        """
        if self.rounds:
            self._require(layouts)
        self.allowance.take(sum(call.operation == "Query" for call in calls))
        self.rounds += 1
        if len(calls) == 1:
            answers = [self.transport.call(calls[0].operation, calls[0].request)]
        else:
            answers = self.transport.call_all(calls, concurrency=len(calls))
        for call, answer in zip(calls, answers, strict=True):
            self.consumed.add(consumed_of(call.operation, answer))
        if self.clock() > min(layout.expires for layout in layouts):
            # They may have been executed when items had already left these shards.
            self._require(layouts)
        return answers

    def _require(self, layouts: Sequence[Layout]) -> None:
        """Raise `OvertakenError` unless these are the layouts now."""
        if any(now.signature != layout.signature for now, layout in zip(self.layouts(), layouts, strict=True)):
            raise OvertakenError

    def item(self, row: Wire) -> Wire:
        """The item that a row stands for: itself, or the one that it leads to as a mark."""
        return self._followed[stored_key(row)] if self._followed and MOVED_TO in row else row

    def _query(self, layouts: Sequence[Layout], reads: Sequence[StreamRead]) -> list[Chunk]:
        chunks = [Chunk([], None)] * len(reads)
        sent: list[tuple[int, Call, StreamRead]] = []
        for i, read in enumerate(reads):
            source, reading = cast("Source", read.source), layouts[read.part].reading
            start, bounds = source.begin(read.start, read.bounds or reading.bounds, forward=reading.forward)
            if not bounds.empty:
                sent.append((i, reading.call(source, limit=read.limit, start=start, bounds=bounds), read))
        answers = self.send(layouts, [call for _, call, _ in sent]) if sent else []
        for (i, _, read), answer in zip(sent, answers, strict=True):
            chunks[i] = layouts[read.part].reading.chunk(answer, read.bounds)
        return chunks

    def _settled(
        self, layouts: Sequence[Layout], reads: Sequence[StreamRead], chunks: list[Chunk], passed: Passed
    ) -> list[Chunk]:
        """The chunks without items that are none of their stream's own, and with no mark that leads nowhere."""
        if not any(layout.foreign or layout.follows or layout.moving for layout in layouts):
            return chunks
        for i, read in enumerate(reads):
            layout, chunk = layouts[read.part], chunks[i]
            if layout.foreign:
                own = [row for row in chunk.rows if layout.at_home(row, read.source.number)]
                if layout.strays is not None and self.moved_items is not None and len(own) < len(chunk.rows):
                    own = self.moved_items.with_strays(
                        partial(self.send, layouts),
                        chunk.rows,
                        own,
                        home_of=layout.strays,
                        passed=partial(passed, read.part),
                    )
                chunks[i] = Chunk(own, chunk.last)
        marks = [
            mark
            for chunk, read in zip(chunks, reads, strict=True)
            if layouts[read.part].follows
            for mark in chunk.rows
            if MOVED_TO in mark
        ]
        if marks and self.moved_items:
            self._followed |= self.moved_items.follow(partial(self.send, layouts), marks)
            chunks = [Chunk([row for row in chunk.rows if self._stands(row)], chunk.last) for chunk in chunks]
        for i, read in enumerate(reads):
            layout = layouts[read.part]
            if layout.moving and layout.identity is not None:
                chunks[i] = Chunk(distinct(layout, chunks[i].rows), chunks[i].last)
        return chunks

    def _stands(self, row: Wire) -> bool:
        return MOVED_TO not in row or stored_key(row) in self._followed
