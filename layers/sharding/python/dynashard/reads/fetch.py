"""Sending the Queries of one call, in waves, while counting what they consume."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dynashard.reads.bounds import Bounds
from dynashard.reads.query import Budget
from dynashard.reads.sources import Chunk, Position, Reading, Source
from dynashard.transport.capacity import consumed_of
from dynashard.transport.interface import Consumed, Transport


@dataclass(frozen=True, slots=True)
class Want:
    """One source to read on: at most `limit` items after `start`, within `bounds` or the listing's own."""

    source: Source
    limit: int
    start: Position | None = None
    bounds: Bounds | None = None


@dataclass(slots=True)
class Fetch:
    """The requests of one call of a listing.

    Attributes:
        transport: the wire.
        reading: how every source is read.
        budget: how much work the call may do.
        consumed: capacity used so far.
        rounds: waves sent so far.
    """

    transport: Transport
    reading: Reading
    budget: Budget
    consumed: Consumed = field(default_factory=Consumed)
    rounds: int = 0

    @property
    def allowed(self) -> bool:
        """Whether the budget has room. The first wave is always sent, so that every call gets on."""
        return self.rounds == 0 or self.budget.left(self.consumed)

    def wave(self, wants: Sequence[Want]) -> list[Chunk]:
        """Read these sources at the same time.

        Cost: 1 round trip for as many as the transport has connections; a Query each, billed for what it reads in
        blocks of 4 KB (0.5 units, 1 if consistent).
        """
        self.rounds += 1
        chunks = [Chunk([], None)] * len(wants)
        sent = [i for i, want in enumerate(wants) if not (want.bounds or self.reading.bounds).empty]
        calls = [
            self.reading.call(wants[i].source, limit=wants[i].limit, start=wants[i].start, bounds=wants[i].bounds)
            for i in sent
        ]
        if len(calls) == 1:
            answers = [self.transport.call(calls[0].operation, calls[0].request)]
        else:
            answers = self.transport.call_all(calls, concurrency=len(calls))
        for i, answer in zip(sent, answers, strict=True):
            self.consumed.add(consumed_of("Query", answer))
            chunks[i] = self.reading.chunk(answer)
        return chunks
