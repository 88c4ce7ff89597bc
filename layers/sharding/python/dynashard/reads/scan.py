"""Parallel scan: a bounded pool of workers reads the shards, and the items are streamed.

Source of the pool over shards: ConductorOne's 'parallel shard reads'. Here one set of positions, kept for each virtual
shard, is shared: a scan may outlast many changes of the shard count. When the layout changes, the reads under way are
waited for, the positions are rebased, and the scan continues.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from itertools import islice
from typing import Any, Final

from dynashard.errors import InvalidQueryError, ThrottledError
from dynashard.reads.fetch import Fetch
from dynashard.reads.layout import Layout, OvertakenError
from dynashard.reads.positions import Positions, bits
from dynashard.reads.sources import Chunk
from dynashard.repository import RetryPolicy
from dynashard.transport.interface import Wire

MAX_WORKERS: Final = 64
_PAGE: Final = 1000
"""Items a Query; with 1 MB a Query as DynamoDB's own bound."""
_AHEAD: Final = 2
"""Answers a worker that are held in memory while the caller handles items."""

_Read = tuple[Fetch, Chunk | None]
"""What a worker has read, and by what; None if the layout has changed."""


def scan_shards(new_fetch: Callable[[], Fetch], retry_policy: RetryPolicy, workers: int) -> Iterator[list[Wire]]:
    """Stream the items of all shards, a Query's worth at a time, in no order between shards.

    At most two answers a worker are held in memory. Closing the iterator stops the workers. A single worker reads in
    the caller's own thread, when the caller asks for more.

    Raises:
        InvalidQueryError: a number of workers out of range.
        ThrottledError: throttling outlasted the retry policy.
    """
    if not 1 <= workers <= MAX_WORKERS:
        raise InvalidQueryError(f"workers is {workers}; it must be a number from 1 to {MAX_WORKERS}", field="workers")
    if workers == 1:
        yield from _stream(_run_in_place, new_fetch, retry_policy, 1)
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="dynashard-scan")
    try:
        yield from _stream(pool.submit, new_fetch, retry_policy, _AHEAD * workers)
    finally:
        pool.shutdown(cancel_futures=True)


def _run_in_place(read: Callable[..., _Read], *arguments: Any) -> Future[_Read]:
    done: Future[_Read] = Future()
    done.set_result(read(*arguments))
    return done


def _stream(
    submit: Callable[..., Future[_Read]], new_fetch: Callable[[], Fetch], retry_policy: RetryPolicy, ahead: int
) -> Iterator[list[Wire]]:
    context, layout_now = copy_context(), new_fetch().layout
    layout = layout_now()
    state, overtaken = layout.rebase(None), False
    ready: deque[list[Wire]] = deque()
    reads: dict[Future[_Read], int] = {}
    while True:
        if reads and not ready:
            wait(reads, return_when=FIRST_COMPLETED)
        for read in [read for read in reads if read.done()]:
            stream, (fetch, chunk) = reads.pop(read), read.result()
            if chunk is None:
                overtaken = True
            else:
                rows, state = layout.accept(state, stream, chunk)
                ready.append([fetch.item(row) for row in rows])
        answer = ready.popleft() if ready else None
        if not reads:
            layout, overtaken = layout_now(), False
            state = layout.rebase(state)
        if not overtaken:
            for stream in _next_streams(layout, state, list(reads.values()), ahead - len(ready)):
                run = context.copy().run
                reads[submit(run, _read, new_fetch, retry_policy, layout, state, stream)] = stream
        if answer:
            yield answer
        elif not (reads or ready):
            return


def _next_streams(layout: Layout, state: Positions, busy: Sequence[int], most: int) -> list[int]:
    """The next streams to read, so that at most so many are read at a time."""
    if layout.strays is not None:
        # An item that is moved home from one shard must not be missed by a read of the other meanwhile.
        most = 1
    free = (stream for stream in bits(state.left(len(layout.streams))) if stream not in busy)
    return list(islice(free, max(0, most - len(busy))))


def _read(
    new_fetch: Callable[[], Fetch], retry_policy: RetryPolicy, layout: Layout, state: Positions, stream: int
) -> _Read:
    """Read on in a stream, with retries beyond the transport's own."""
    fetch, pauses = new_fetch(), retry_policy.pauses()
    while True:
        fetch.require_room([layout.streams[stream]])
        now = fetch.layout()
        if now.signature != layout.signature:
            return fetch, None
        try:
            [chunk] = fetch.wave((now,), [now.next_read(state, stream, _PAGE)], (state,))
        except OvertakenError:
            return fetch, None
        except ThrottledError:
            if next(pauses, None) is None:
                raise
        else:
            return fetch, chunk
