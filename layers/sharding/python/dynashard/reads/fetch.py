"""Sends the requests of one call of a listing, in waves, and counts what they consume."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from time import time
from typing import Any, cast

from msgspec import Struct, field

from dynashard.errors import QueryTooWideError
from dynashard.reads.allowance import Allowance, current_allowance
from dynashard.reads.layout import Layout, OvertakenError
from dynashard.reads.merged import read_groups
from dynashard.reads.moved_items import MovedItems
from dynashard.reads.positions import Positions
from dynashard.reads.query import Budget
from dynashard.reads.sources import Chunk, Convert, Group, Source, Stream, StreamRead, queries_of
from dynashard.repository.conditions import is_damaged, is_marker
from dynashard.routing import StoredKey, stored_key
from dynashard.schema import MOVED_TO
from dynashard.transport.interface import Call, Consumed, Transport, Wire, consumed_of

States = Sequence[Positions] | None
"""The positions of a listing in each logical partition; None before the first page, and after the last."""


class Fetch(Struct):
    """The requests of one call of a listing, within the call's budget and the request's allowance.

    Attributes:
        layouts: returns the layouts now, one for each logical partition.
        moved_items: finds the items that relocation markers lead to; None if there are no markers.
        consumed, rounds: capacity used and round trips made so far.
        clock: returns the time in epoch seconds.
        convert: makes the readers of answers while nothing moves, if their chunks are accepted whole; None for none.
    """

    transport: Transport
    budget: Budget
    layouts: Callable[[], Sequence[Layout]]
    moved_items: MovedItems | None = None
    consumed: Consumed = field(default_factory=Consumed)
    rounds: int = 0
    allowance: Allowance = field(default_factory=current_allowance)
    clock: Callable[[], float] = time
    convert: Convert | None = None
    _followed: dict[StoredKey, Wire] = field(default_factory=dict)

    @property
    def allowed(self) -> bool:
        """Whether another wave is within the budget. The first always is, so that every call makes progress."""
        return self.rounds == 0 or (self.budget.left(self.consumed) and not self.allowance.over)

    @property
    def may_finish(self) -> bool:
        """Whether a wave may be sent that completes a page, even if its read units are used."""
        return self.consumed.requests < self.budget.requests and not self.allowance.over

    def fits(self, streams: Iterable[Stream]) -> bool:
        """Whether a wave over these streams may be sent. The first may be tried, and is refused with a reason."""
        return self.rounds == 0 or queries_of(streams) <= self.allowance.left

    def require_room(self, streams: Iterable[Stream]) -> None:
        """Raise `QueryTooWideError` if a scan or a count, which cannot end short, may not continue in these streams."""
        reason = "read a part of the items at a time, with prefix or with from and to, or page through them"
        self.allowance.demand(queries_of(streams), reason)
        if self.allowance.over:
            raise QueryTooWideError(f"this takes longer than one request may: {reason}")

    def wave(self, layouts: Sequence[Layout], reads: Sequence[StreamRead], states: States = None) -> list[Chunk]:
        """Send reads at the same time (scatter-gather).

        There is a layout for each logical partition, and `states` are the listing's positions in each; None for an
        ordered listing.

        Raises `OvertakenError` if a layout changed before all was read that belongs together, or an item moved home.

        Cost: 1 round trip for as many as the transport has connections; a Query each, billed for what it reads in
        blocks of 4 KB (0.5 units, 1 if consistent). A group takes a Query for each of its shards, in a round trip
        for each of its waves; markers that are followed take 1 or 2 round trips more.
        """
        still = all(layout.still for layout in layouts)
        if isinstance(reads[0].source, Group):
            # All of them are of one index, and are read alike.
            chunks = read_groups(partial(self._query, layouts), layouts[0].reading, reads)
        else:
            chunks = self._query(layouts, reads, states)
        if not still:
            if self.moved_items is not None:
                self.moved_items.require_whole(partial(self.send, layouts), layouts, reads, chunks)
            chunks = self._without_dead_markers(layouts, reads, self._all_own(layouts, states, reads, chunks))
        return chunks

    def send(self, layouts: Sequence[Layout], calls: Sequence[Call]) -> list[Wire]:
        """Send calls at the same time.

        Raises:
            OvertakenError: a layout has changed, before the calls or before the last of their answers.
            QueryTooWideError: they are more Queries than the request may still send; none was sent.
        """
        # Layouts are made just before the first wave. A later one may rely on those of an earlier wave.
        if self.rounds:
            self._require(layouts)
        self.allowance.take([call.operation for call in calls].count("Query"))
        self.rounds += 1
        answers = self.transport.call_all(calls, concurrency=len(calls))
        for call, answer in zip(calls, answers, strict=True):
            self.consumed.add(consumed_of(call.operation, answer))
        if self.clock() > min([layout.expires for layout in layouts]):
            # The Queries may have been executed when items had already left these shards.
            self._require(layouts)
        return answers

    def items(self, rows: list[Any]) -> list[Any]:
        """Return the items that rows stand for: themselves, or those that they lead to as markers."""
        if not self._followed:
            return rows
        found = self._followed
        return [found.get(stored_key(row), row) if isinstance(row, dict) and MOVED_TO in row else row for row in rows]

    def _require(self, layouts: Sequence[Layout]) -> None:
        if any(now.signature != layout.signature for now, layout in zip(self.layouts(), layouts, strict=True)):
            raise OvertakenError

    def _query(self, layouts: Sequence[Layout], reads: Sequence[StreamRead], states: States = None) -> list[Chunk]:
        chunks = [Chunk([], None)] * len(reads)
        sent: dict[int, Call] = {}
        for i, read in enumerate(reads):
            reading = layouts[read.part].reading
            call = reading.call(cast("Source", read.source), read.limit, read.start, read.bounds)
            if call is not None:
                converts = (
                    self.convert and states and layouts[read.part].converts(states[read.part], read.source.number)
                )
                if self.convert and converts:
                    call = Call(call.operation, call.request, reader=self.convert(reading, read))
                sent[i] = call
        answers = self.send(layouts, list(sent.values())) if sent else []
        for i, answer in zip(sent, answers, strict=True):
            chunks[i] = layouts[reads[i].part].reading.chunk(answer, reads[i])
        return chunks

    def _all_own(
        self, layouts: Sequence[Layout], states: States, reads: Sequence[StreamRead], chunks: Sequence[Chunk]
    ) -> list[Chunk]:
        """The chunks without foreign items, except strays.

        All of them are handled before `OvertakenError` says that strays were moved home, so that one wave more reads
        all that moved.
        """
        own: list[Chunk] = []
        for each in zip(reads, chunks, strict=True):
            with suppress(OvertakenError):
                own.append(self._own(layouts, states, *each))
        if len(own) < len(chunks):
            raise OvertakenError
        return own

    def _own(self, layouts: Sequence[Layout], states: States, read: StreamRead, chunk: Chunk) -> Chunk:
        """A chunk without foreign items, except strays."""
        layout = layouts[read.part]
        if not layout.foreign:
            return chunk
        rows = (
            chunk.rows
            if layout.strays is None
            else [row for row in chunk.rows if not is_marker(row) or is_damaged(row)]
        )
        # None: its epoch is not settled in this view. It is met once all the same: its writer has settled the epoch,
        # and no key is ever placed by two counts.
        own = [row for row in rows if layout.number_of(row) in (None, read.source.number)]
        if layout.strays is not None and self.moved_items is not None and len(own) < len(rows):
            # An ordered listing reads no shard beyond the sort key that it has reached in all of them.
            has_passed = partial(layout.passed, states[read.part]) if states else (lambda _: False)
            send = partial(self.send, layouts)
            own = self.moved_items.with_strays(send, rows, own, home_of=layout.strays, passed=has_passed)
        return Chunk(own, chunk.last)

    def _without_dead_markers(
        self, layouts: Sequence[Layout], reads: Sequence[StreamRead], chunks: Sequence[Chunk]
    ) -> list[Chunk]:
        """The chunks without markers that lead nowhere, and without second entries of an item that moves."""
        # A chunk with an end has items that a reader has made, and no markers.
        followed = [chunk for read, chunk in zip(reads, chunks, strict=True) if layouts[read.part].follows]
        markers = [row for chunk in followed if chunk.end is None for row in chunk.rows if MOVED_TO in row]
        if markers and self.moved_items:
            self._followed |= self.moved_items.follow(partial(self.send, layouts), markers)
        kept = []
        for read, chunk in zip(reads, chunks, strict=True):
            rows = chunk.rows
            if chunk.end is not None:
                kept.append(chunk)
                continue
            if markers and self.moved_items:
                rows = [row for row in rows if MOVED_TO not in row or stored_key(row) in self._followed]
            kept.append(Chunk(layouts[read.part].distinct(rows), chunk.last))
        return kept
