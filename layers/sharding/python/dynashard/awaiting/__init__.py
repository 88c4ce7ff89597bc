"""The layer for programs on asyncio: the names of `dynashard.service`, with `await`.

One implementation serves both: `bridge` runs it so that its waits let the event loop go on. It needs greenlet, which
`pip install "dynashard[async]"` installs.
"""

from dynashard.awaiting.collection import AsyncCollection, AsyncScan, Listed
from dynashard.awaiting.service import AsyncDynashard

__all__ = [
    "AsyncCollection",
    "AsyncDynashard",
    "AsyncScan",
    "Listed",
]
