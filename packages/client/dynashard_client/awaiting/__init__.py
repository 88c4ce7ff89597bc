"""The client for programs on asyncio: the same names with `await`, over steps that both faces share."""

from dynashard_client.awaiting.client import AsyncClient
from dynashard_client.awaiting.items import AsyncItems

__all__ = ["AsyncClient", "AsyncItems"]
