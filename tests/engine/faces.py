"""Both faces of the layer for the same tests: the methods of `Collection` and `Dynashard`, and those with `await`.

A test under the asynchronous face is unchanged. Its calls go to an `AsyncCollection` on an event loop of the calling
thread, and the loop runs until they are answered.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from threading import Thread, current_thread, local
from typing import Any, Final

import pytest

from dynashard import AsyncDynashard, Dynashard, waiting
from dynashard.awaiting import AsyncCollection, AsyncScan
from dynashard.awaiting.bridge import require_greenlet, run
from dynashard.collection import Collection
from dynashard.transactions import Transaction
from tests.waiting import until

AWAITED: Final = (
    "create", "create_with", "confirm_created", "put", "replace", "find", "get", "part", "exists", "update", "delete",
    "batch_get", "batch_write", "try_batch_write", "count", "shards", "list",
)  # fmt: skip
"""The methods that return an awaitable."""
STREAMED: Final = ("pages", "items", "scan")
"""The methods that return an asynchronous iterator."""


class Loops(local):
    """An event loop for each thread of a test."""

    opened: Final[dict[asyncio.AbstractEventLoop, Thread]] = {}

    def __init__(self) -> None:
        # A thousand rounds of 64 threads would leave more open files than a process may have.
        for loop, thread in list(self.opened.items()):
            if not thread.is_alive() and self.opened.pop(loop, None) is not None:
                loop.close()
        self.loop = asyncio.new_event_loop()
        self.opened[self.loop] = current_thread()
        self.inside = False


class Stream(Iterator[Any]):
    """An asynchronous iterator, iterated over by an event loop."""

    def __init__(self, loops: Loops, stream: AsyncIterator[Any]) -> None:
        self._loops, self._stream = loops, stream

    @property
    def undecodable(self) -> Any:
        assert isinstance(self._stream, AsyncScan)
        return self._stream.undecodable

    def __next__(self) -> Any:
        try:
            return self._loops.loop.run_until_complete(anext(self._stream))
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self) -> None:
        self._loops.loop.run_until_complete(self._stream.aclose())  # type: ignore[attr-defined]


def sleep(seconds: float) -> None:
    """Wait so many seconds, in a test or below a call of it, while what it has begun goes on."""
    running = [each for each in list(Loops.opened) if not each.is_closed()]
    if waiting.current() is not None or not running:
        waiting.sleep(seconds)
    else:
        running[0].run_until_complete(asyncio.sleep(seconds))


class Meeting:
    """So many calls that wait for each other, in threads or in tasks of one event loop."""

    def __init__(self, calls: int) -> None:
        self._missing = calls

    def joined(self) -> bool:
        """Return once all calls have come."""
        self._missing -= 1
        until(lambda: self._missing <= 0, sleep=sleep)
        return True


@pytest.fixture(autouse=True, params=["sync", "async"])
def face(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The face under which a test calls the layer; a conftest that imports this makes all of its tests run twice."""
    if request.param == "async":
        use_asynchronous_face(monkeypatch)
    yield request.param
    while Loops.opened:
        Loops.opened.popitem()[0].close()


def use_asynchronous_face(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls of collections and transactions go through an event loop until the test ends."""
    require_greenlet()
    loops = Loops()
    for name in AWAITED:
        monkeypatch.setattr(Collection, name, _awaited(loops, name, getattr(Collection, name)))
    for name in STREAMED:
        monkeypatch.setattr(Collection, name, _streamed(loops, name, getattr(Collection, name)))
    monkeypatch.setattr(Dynashard, "transact", _transacted(loops, Dynashard.transact))
    monkeypatch.setattr(Transaction, "run", _ran(loops, Transaction.run))


def _awaited(loops: Loops, name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Collection[Any], *args: Any, **kwargs: Any) -> Any:
        if waiting.current() is not None:
            return plain(self, *args, **kwargs)

        async def awaited() -> Any:
            return await getattr(AsyncCollection(self), name)(*args, **kwargs)

        return loops.loop.run_until_complete(awaited())

    return call


def _streamed(loops: Loops, name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Collection[Any], *args: Any, **kwargs: Any) -> Any:
        # `AsyncCollection` makes its streams of those of the collection, outside of its event loop.
        if loops.inside or waiting.current() is not None:
            return plain(self, *args, **kwargs)
        loops.inside = True
        try:
            return Stream(loops, getattr(AsyncCollection(self), name)(*args, **kwargs))
        finally:
            loops.inside = False

    return call


def _transacted(loops: Loops, plain: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Dynashard, *steps: Any) -> Any:
        if waiting.current() is not None:
            return plain(self, *steps)

        async def awaited() -> Any:
            return await AsyncDynashard.over(self).transact(*steps)

        return loops.loop.run_until_complete(awaited())

    return call


def _ran(loops: Loops, plain: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Transaction) -> Any:
        if waiting.current() is not None:
            return plain(self)
        return loops.loop.run_until_complete(run(plain, self))

    return call
