"""Counts of items: by DynamoDB if its own count is exact, otherwise by the items' keys."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dynashard.reads.bounds import Bounds
from dynashard.reads.fetch import Fetch
from dynashard.reads.filters import FilterExpression
from dynashard.reads.layout import Layout, OvertakenError
from dynashard.reads.positions import Positions, bits
from dynashard.reads.sources import Source
from dynashard.transport.interface import Call

_PAGE: Final = 1000
"""Items a Query that returns keys."""


def count_items(fetch: Fetch, bounds: Bounds, visible_only: FilterExpression) -> int:
    """Count the items within bounds; `visible_only` is the condition of items that readers may see.

    Cost: what reading them costs. The answers are small while nothing moves; otherwise they hold the items' keys, and
    each relocation marker is followed.
    """
    total = 0 if bounds.empty else _counted(fetch, bounds, visible_only)
    if None not in (bounds.low, bounds.high) and bounds.high_open and not bounds.empty:
        # A two-sided condition includes both ends.
        total -= _counted(fetch, Bounds(low=bounds.high, high=bounds.high), visible_only)
    return total


def _counted(fetch: Fetch, bounds: Bounds, visible_only: FilterExpression) -> int:
    bounds = replace(bounds, high_open=bounds.high_open and bounds.low is None)
    total, state, known = 0, None, None
    while state is None or not state.ended:
        [layout] = fetch.layouts()
        # Forward, whatever the listing's direction, because DynamoDB then takes both bounds.
        layout = replace(layout, reading=replace(layout.reading, forward=True, fields=(), bounds=bounds))
        if known not in (None, layout.signature):
            # DynamoDB's count does not say which of the entries with equal sort keys were in it.
            total, state, known = 0, None, None
        state = layout.rebase(state)
        left = list(bits(state.left(len(layout.streams))))
        fetch.require_room(layout.streams[stream] for stream in left)
        # DynamoDB would count again what is read again, and both entries of an item that moves.
        exact = not layout.moving and all(layout.continues_exactly(state, stream) for stream in left)
        try:
            if exact:
                known = layout.signature if layout.identity is not None else None
                more, state = _by_dynamodb(fetch, visible_only, layout, state, left)
            else:
                more, state = _by_keys(fetch, layout, state, left)
        except OvertakenError:
            continue
        total += more
    return total


def _by_dynamodb(
    fetch: Fetch, visible_only: FilterExpression, layout: Layout, state: Positions, left: Sequence[int]
) -> tuple[int, Positions]:
    reading, count, total = replace(layout.reading, fields=None), len(layout.streams), 0
    reading = replace(reading, filters=reading.filters & visible_only)
    calls: dict[int, Call] = {}
    for stream in left:
        source = layout.streams[stream]
        if not isinstance(source, Source):
            raise TypeError(f"{source} is a group, and nothing moves")
        call = reading.call(source, _PAGE, state.at(stream))
        if call is None:
            state = state.read(1 << stream, count, None, forward=True)
        else:
            request = {name: value for name, value in call.request.items() if name != "Limit"}
            calls[stream] = Call(call.operation, {**request, "Select": "COUNT"})
    answers = fetch.send((layout,), list(calls.values())) if calls else []
    for stream, answer in zip(calls, answers, strict=True):
        total += answer["Count"]
        key = answer.get("LastEvaluatedKey")
        state = state.read(1 << stream, count, None if key is None else reading.position(key), forward=True)
    return total, state


def _by_keys(fetch: Fetch, layout: Layout, state: Positions, left: Sequence[int]) -> tuple[int, Positions]:
    chunks = fetch.wave((layout,), [layout.next_read(state, stream, _PAGE) for stream in left], (state,))
    total = 0
    for stream, chunk in zip(left, chunks, strict=True):
        rows, state = layout.accept(state, stream, chunk)
        total += len(rows)
    return total, state
