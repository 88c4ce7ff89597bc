"""What clients on asyncio share: a loop of their own, and sums over shards that are read at the same time."""

import asyncio
from collections.abc import Awaitable, Callable


class Awaiting:
    """A client whose operations are awaited in `loop`."""

    def __init__(self, shards: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.shards = shards

    async def total(self, read: Callable[[int], Awaitable[int]]) -> int:
        """Return the sum of what `read` returns for each shard, read at the same time."""
        return sum(await asyncio.gather(*(read(shard) for shard in range(self.shards))))

    def close(self) -> None:
        """End the loop."""
        self.loop.close()
