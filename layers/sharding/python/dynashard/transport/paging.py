"""Queries and Scans to their end: each answer says where the next request starts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dynashard.errors import ThrottledError
from dynashard.transport.interface import Call, Transport, Wire


def segments(request: Mapping[str, Any], count: int) -> list[Call]:
    """Divide a Scan into segments that can be read in parallel; one segment is the Scan itself."""
    if count == 1:
        # The local engine looks at the whole table for each page of a segment.
        return [Call("Scan", request)]
    return [Call("Scan", {**request, "Segment": segment, "TotalSegments": count}) for segment in range(count)]


def pages(
    transport: Transport, *calls: Call, pauses: Callable[[], Iterator[float]] = lambda: iter(())
) -> Iterator[Wire]:
    """Yield the answers of Queries or Scans, page after page, reading all of them in parallel.

    `calls` are the first request of each. `pauses` starts the backoff for a page that is throttled beyond the
    transport's retries; `ThrottledError` is raised when it ends.

    Cost: 1 round trip for 1 MB of each, and what it reads; one answer of each is held in memory.
    """
    left: Sequence[Call] = calls
    while left:
        answers = _sent(transport, left, pauses())
        following = []
        for call, answer in zip(left, answers, strict=True):
            yield answer
            if "LastEvaluatedKey" in answer:
                further = {**call.request, "ExclusiveStartKey": answer["LastEvaluatedKey"]}
                following.append(Call(call.operation, further))
        left = following


def _sent(transport: Transport, calls: Sequence[Call], pauses: Iterator[float]) -> list[Wire]:
    while True:
        try:
            return transport.call_all(calls, concurrency=len(calls))
        except ThrottledError:
            if next(pauses, None) is None:
                raise
