"""Fan-out for clients that wait for each answer: 16 threads, as their users would do it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Final

THREADS: Final = 16


class Threads:
    """A pool of threads that is made when it is first needed."""

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(THREADS)

    def total(self, read: Callable[[int], int], shards: int) -> int:
        """Return the sum of what `read` returns for each shard, read in parallel."""
        return sum(self._pool.map(read, range(shards)))

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()
