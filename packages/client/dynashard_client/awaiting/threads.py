"""A blocking transport for programs on asyncio: each request is sent by a thread of the loop's executor."""

import asyncio
from typing import Any

from dynashard_client.client_transport import ClientTransport
from dynashard_client.resource import Resource
from dynashard_client.steps import Request


class ThreadedTransport:
    """Awaits the requests of another transport. A request that is cancelled is finished by its thread, unseen.

    Args:
        inner: the transport that blocks.
    """

    def __init__(self, inner: ClientTransport) -> None:
        self._inner = inner

    async def ask(self, resource: Resource[Any], request: Request) -> Any:
        """Ask once; see `ClientTransport.ask`."""
        return await asyncio.to_thread(self._inner.ask, resource, request)

    async def call(self, name: str, request: Request) -> Any:
        """Ask once; see `ClientTransport.call`."""
        return await asyncio.to_thread(self._inner.call, name, request)

    async def close(self) -> None:
        """Close the connections."""
        self._inner.close()
