"""Counting items: by DynamoDB where a count of its own is exact, otherwise by their keys."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from dynashard.reads.bounds import Bounds
from dynashard.reads.fetch import Fetch
from dynashard.reads.filters import FilterExpression
from dynashard.reads.layout import Layout, OvertakenError
from dynashard.reads.positions import Positions
from dynashard.reads.progress import advanced, continues_exactly, next_read, passed, unseen
from dynashard.reads.sources import Source
from dynashard.transport.interface import Call

_PAGE: Final = 1000
"""Items a Query that brings keys."""


@dataclass(frozen=True, slots=True)
class Counting:
    """Counts the items of a listing.

    Attributes:
        fetch: sends the requests.
        visible_only: what readers must not see, where DynamoDB counts and they do not see the items.
    """

    fetch: Fetch
    visible_only: FilterExpression

    def count(self, bounds: Bounds) -> int:
        """How many items there are within bounds.

        Cost: what reading them costs. The answers are small while nothing moves; else they bring the items' keys,
        and each mark is followed.
        """
        total = 0 if bounds.empty else self._counted(bounds)
        if None not in (bounds.low, bounds.high) and bounds.high_open and not bounds.empty:
            # A two-sided condition includes both ends.
            total -= self._counted(Bounds(low=bounds.high, high=bounds.high))
        return total

    def _counted(self, bounds: Bounds) -> int:
        bounds = replace(bounds, high_open=bounds.high_open and bounds.low is None)
        total, state, known = 0, None, None
        while state is None or not state.done:
            layout = _forward(self.fetch.layout(), bounds)
            if known not in (None, layout.signature):
                # Of entries with equal sort keys, DynamoDB's count does not tell which ones were in it.
                total, state, known = 0, None, None
            count = len(layout.streams)
            state = layout.rebase(state)
            left = [stream for stream in range(count) if not state.finished(stream, count)]
            self.fetch.require_room(layout.streams[stream] for stream in left)
            # DynamoDB can leave out neither what it meets twice nor what was counted before.
            alone = not layout.moving and all(continues_exactly(layout, state, stream) for stream in left)
            try:
                if alone:
                    known = layout.signature if layout.identity is not None else None
                    more, state = self._by_dynamodb(layout, state, left)
                else:
                    more, state = self._by_keys(layout, state, left)
            except OvertakenError:
                continue
            total += more
        return total

    def _by_dynamodb(self, layout: Layout, state: Positions, left: Sequence[int]) -> tuple[int, Positions]:
        reading = replace(layout.reading, fields=None, filters=layout.reading.filters & self.visible_only)
        calls: list[Call] = []
        asked: list[int] = []
        total = 0
        for stream in left:
            source = layout.streams[stream]
            if not isinstance(source, Source):
                raise TypeError(source)
            start, bounds = source.begin(state.at[stream], reading.bounds, forward=True)
            if bounds.empty:
                state = state.read(stream, len(layout.streams), None, forward=True)
                continue
            call = reading.call(source, limit=_PAGE, start=start, bounds=bounds)
            request = {**call.request, "Select": "COUNT"}
            del request["Limit"]
            calls.append(Call(call.operation, request))
            asked.append(stream)
        answers = self.fetch.send((layout,), calls) if calls else []
        for stream, answer in zip(asked, answers, strict=True):
            total += answer["Count"]
            key = answer.get("LastEvaluatedKey")
            last = None if key is None else reading.position(key)
            state = state.read(stream, len(layout.streams), last, forward=True)
        return total, state

    def _by_keys(self, layout: Layout, state: Positions, left: Sequence[int]) -> tuple[int, Positions]:
        total = 0
        reads = [next_read(layout, state, stream, _PAGE) for stream in left]
        before = state
        chunks = self.fetch.wave((layout,), reads, lambda _, row: passed(layout, before, row))
        for stream, chunk in zip(left, chunks, strict=True):
            rows = unseen(layout, state, stream, chunk.rows)
            total += len(rows)
            state = advanced(layout, state, stream, rows, chunk.last)
        return total, state


def _forward(layout: Layout, bounds: Bounds) -> Layout:
    # Forward, whatever the listing's direction: then DynamoDB takes both bounds.
    return replace(layout, reading=replace(layout.reading, forward=True, fields=(), bounds=bounds))
