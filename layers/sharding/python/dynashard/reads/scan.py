"""Parallel scan: several shards are read at the same time, in waves, and the items are streamed.

Source of the parallel read over shards: ConductorOne's 'parallel shard reads'. Here one set of positions, kept for each
virtual shard, is shared: a scan may outlast many resizes. Before each wave the positions are rebased
if the layout has changed. While the caller handles the items of a wave, one thread reads the next.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from itertools import islice
from typing import Any, Final

from dynashard import waiting
from dynashard.errors import InvalidQueryError, ThrottledError
from dynashard.reads.fetch import Fetch
from dynashard.reads.layout import OvertakenError
from dynashard.reads.positions import Positions, bits
from dynashard.repository import RetryPolicy
from dynashard.waiting import Waiter

MAX_WORKERS: Final = 64
_PAGE: Final = 1000
"""Items a Query; with 1 MB a Query as DynamoDB's own bound."""

_Wave = deque[list[Any]]
"""The items of each shard that was read at the same time."""


def scan_shards(new_fetch: Callable[[], Fetch], retry_policy: RetryPolicy, workers: int) -> Iterator[list[Any]]:
    """Stream the items of all shards, a Query's worth at a time, in no order between shards.

    So many shards as there are `workers` are read at a time, and two answers of each are held in memory at most. A
    single worker reads in the caller's own thread, when the caller asks for more.

    Raises:
        InvalidQueryError: a number of workers out of range.
        ThrottledError: throttling outlasted the retry policy.
    """
    if not isinstance(workers, int) or not 1 <= workers <= MAX_WORKERS:
        raise InvalidQueryError(f"workers is {workers!r}; it must be a number from 1 to {MAX_WORKERS}", field="workers")
    waves = _waves(new_fetch, retry_policy, workers)
    for wave in waves if workers == 1 else _read_ahead(waves):
        while wave:
            if rows := wave.popleft():
                yield rows


def _read_ahead(waves: Iterator[_Wave]) -> Iterator[_Wave]:
    """Yield the waves, each of which is read while the one before is handled."""
    if (waiter := waiting.current()) is not None:
        yield from _read_ahead_by_tasks(waiter, waves)
        return
    following = partial(copy_context().run, partial(next, waves, None))
    pool = ThreadPoolExecutor(1, thread_name_prefix="dynashard-scan")
    try:
        coming = pool.submit(following)
        while (wave := coming.result()) is not None:
            coming = pool.submit(following)
            yield wave
    finally:
        pool.shutdown(cancel_futures=True)


def _read_ahead_by_tasks(waiter: Waiter, waves: Iterator[_Wave]) -> Iterator[_Wave]:
    coming = waiter.begin(partial(next, waves, None))
    try:
        while (wave := coming.result()) is not None:
            # The next wave may be requested by another task.
            coming = (waiting.current() or waiter).begin(partial(next, waves, None))
            yield wave
    finally:
        coming.cancel()


def _waves(new_fetch: Callable[[], Fetch], retry_policy: RetryPolicy, workers: int) -> Iterator[_Wave]:
    state: Positions | None = None
    pauses = retry_policy.pauses()
    while True:
        fetch = new_fetch()
        [layout] = fetch.layouts()
        state = layout.rebase(state)
        # An item that is moved home from one shard must not be missed by a read of the other meanwhile.
        most = workers if layout.strays is None else 1
        streams = list(islice(bits(state.left(len(layout.streams))), most))
        if not streams:
            return
        reads = [layout.next_read(state, stream, _PAGE) for stream in streams]
        fetch.require_room([read.source for read in reads])
        wave = _Wave()
        try:
            for stream, chunk in zip(streams, fetch.wave((layout,), reads, (state,)), strict=True):
                rows, state = layout.accept(state, stream, chunk)
                wave.append(fetch.items(rows))
        except (OvertakenError, ThrottledError) as error:
            if isinstance(error, ThrottledError) and next(pauses, None) is None:
                raise
            continue
        pauses = retry_policy.pauses()
        yield wave
