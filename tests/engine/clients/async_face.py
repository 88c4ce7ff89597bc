"""`AsyncClient` for the tests of `Client`: the same calls, each of which an event loop of the test runs to its end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import TracebackType
from typing import Any, Final, Self, cast

from dynashard_client import AsyncClient, AsyncItems, Client, Items

STREAMED: Final = ("pages", "items")
"""The methods that return an asynchronous iterator; the others return an awaitable."""
_END: Final = object()


class DrivenItems:
    """The methods of `Items`, which those of an `AsyncItems` answer."""

    def __init__(self, items: AsyncItems[Any], runner: asyncio.Runner) -> None:
        self._items, self._runner = items, runner

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._items, name)
        if name in STREAMED:
            return lambda *args, **named: self._iterated(method(*args, **named))
        return lambda *args, **named: self._runner.run(_coroutine(method(*args, **named)))

    def _iterated(self, stream: AsyncIterator[Any]) -> Iterator[Any]:
        while (member := self._runner.run(_coroutine(anext(stream, _END)))) is not _END:
            yield member


class DrivenClient:
    """The methods of `Client`, which those of `inner` answer."""

    def __init__(self, inner: AsyncClient) -> None:
        self.inner = inner
        self._runner = asyncio.Runner()

    def collection(self, model: type[Any]) -> Items[Any]:
        return cast("Items[Any]", DrivenItems(self.inner.collection(model), self._runner))

    def call(self, *args: Any, **named: Any) -> Any:
        return self._runner.run(self.inner.call(*args, **named))

    def close(self) -> None:
        self._runner.run(self.inner.close())
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def driven(client: AsyncClient) -> Client:
    """Return a client whose calls block until an event loop has done them."""
    return cast("Client", DrivenClient(client))


async def _coroutine(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
