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
from typing import Final

from dynashard.errors import InvalidQueryError, ThrottledError
from dynashard.reads.fetch import Fetch
from dynashard.reads.layout import Layout, OvertakenError
from dynashard.reads.positions import Positions
from dynashard.reads.progress import accept, next_read
from dynashard.reads.sources import Chunk
from dynashard.repository import RetryPolicy
from dynashard.transport.interface import Wire

MAX_WORKERS: Final = 64
_PAGE: Final = 1000
"""Items a Query; with 1 MB a Query as DynamoDB's own bound."""
_AHEAD: Final = 2
"""Answers a worker that are held in memory while the caller handles items."""


def scan_shards(new_fetch: Callable[[], Fetch], retry_policy: RetryPolicy, workers: int) -> Iterator[list[Wire]]:
    """Stream the items of all shards, a Query's worth at a time, in no order between shards.

    At most two answers a worker are held in memory. Closing the iterator stops the workers.

    Args:
        new_fetch: returns a new sender of requests.
        retry_policy: how long a worker retries throttled reads.
        workers: how many shards are read at a time, 1 to 64.

    Raises:
        InvalidQueryError: a number of workers out of range.
        ThrottledError: throttling outlasted the retry policy.
    """
    if not 1 <= workers <= MAX_WORKERS:
        raise InvalidQueryError(f"workers is {workers}; it must be a number from 1 to {MAX_WORKERS}", field="workers")
    context, layout_now = copy_context(), new_fetch().layout
    layout = layout_now()
    state = layout.rebase(None)
    ready: deque[list[Wire]] = deque()
    reads: dict[Future[tuple[Fetch, Chunk | None]], tuple[Layout, int]] = {}
    pool = ThreadPoolExecutor(min(workers, len(layout.streams)), thread_name_prefix="dynashard-scan")
    try:
        while True:
            if reads and not ready:
                wait(reads, return_when=FIRST_COMPLETED)
            for done in [read for read in reads if read.done()]:
                under, stream = reads.pop(done)
                fetch, chunk = done.result()
                if chunk is not None:
                    rows, state = accept(under, state, stream, chunk)
                    ready.append([fetch.item(row) for row in rows])
            answer = ready.popleft() if ready else None
            now = layout_now()
            if now.signature == layout.signature or not reads:
                layout, state = now, now.rebase(state)
                # An item that is moved home from one shard must not be missed by a read of the other meanwhile.
                most = 1 if layout.strays is not None else _AHEAD * workers - len(ready)
                for stream in _next_streams(layout, state, [stream for _, stream in reads.values()], most):
                    read = pool.submit(context.copy().run, _read, new_fetch, retry_policy, layout, state, stream)
                    reads[read] = layout, stream
            if answer:
                yield answer
            elif not (reads or ready):
                return
    finally:
        pool.shutdown(cancel_futures=True)


def _next_streams(layout: Layout, state: Positions, busy: Sequence[int], most: int) -> list[int]:
    """The next streams to read, so that at most so many are read at a time."""
    count = len(layout.streams)
    free = (stream for stream in range(count) if stream not in busy and not state.finished(stream, count))
    return list(islice(free, max(0, most - len(busy))))


def _read(
    new_fetch: Callable[[], Fetch], retry_policy: RetryPolicy, layout: Layout, state: Positions, stream: int
) -> tuple[Fetch, Chunk | None]:
    """Read on in a stream, with retries beyond the transport's own; None if the layout has changed."""
    fetch, pauses = new_fetch(), retry_policy.pauses()
    while True:
        fetch.require_room([layout.streams[stream]])
        read = next_read(layout, state, stream, _PAGE)
        try:
            # The read has waited for a worker meanwhile.
            fetch.require((layout,))
            [chunk] = fetch.wave((layout,), [read], (state,))
        except OvertakenError:
            return fetch, None
        except ThrottledError:
            if next(pauses, None) is None:
                raise
        else:
            return fetch, chunk
