"""The direct transport on an event loop: sockets that the loop watches, and connections that belong to it.

Attempts are those of a fan-out (`nonblocking`): each goes on in a callback of the loop when its socket is ready. What
called the transport is suspended until one of its attempts ends, as `dynashard.waiting` describes.
"""

import asyncio
import selectors
import socket
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from typing import Final

from dynashard.errors import DynashardError
from dynashard.transport.direct.connections import Connection, ConnectionPool
from dynashard.transport.direct.http1 import Answer
from dynashard.transport.direct.nonblocking import PendingAttempt, begin_attempt
from dynashard.transport.direct.sending import Channel, PreparedCall
from dynashard.transport.wire_format import require_remaining
from dynashard.waiting import Turnstile, Waiter, Wakeup

_READ: Final = selectors.EVENT_READ


class Readers:
    """The sockets of one event loop that are read.

    A kept connection stays with the loop between requests, because to add it and to remove it would take a third of
    the CPU time of a request.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ready: dict[int, Callable[[], None] | None] = {}

    def watch(self, number: int, ready: Callable[[], None]) -> None:
        """Call a function whenever there is something to read from a socket."""
        known = number in self._ready
        self._ready[number] = ready
        if not known:
            self._loop.add_reader(number, self._read, number)

    def rest(self, number: int) -> None:
        """Keep a socket, and call nothing."""
        if number in self._ready:
            self._ready[number] = None

    def forget(self, number: int) -> None:
        """Remove a socket, which may be closed then."""
        if self._ready.pop(number, self) is not self and not self._loop.is_closed():
            self._loop.remove_reader(number)

    def _read(self, number: int) -> None:
        ready = self._ready.get(number)
        if ready is None:
            # The other side has closed it, which the pool notices before it uses the connection again.
            self.forget(number)
        else:
            ready()


class LoopConnections(ConnectionPool):
    """The connections of one event loop; its tasks alone use them."""

    def __init__(self, most: int, clock: Callable[[], float], loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.readers = Readers(loop)
        self._thread = get_ident()
        super().__init__(most, clock)

    def _begin(self) -> None:
        super()._begin()
        self._changed = Turnstile()

    def connection(self, opened: socket.socket) -> Connection:
        """Return the connection of an open socket, which the loop forgets before it is closed."""
        return Connection(opened, self._clock(), 0.0, self.readers.forget)

    def close(self) -> None:
        """Close idle connections now, or as soon as their loop runs, and those in use when they are released."""
        if get_ident() == self._thread or self.loop.is_closed():
            super().close()
            return
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(super().close)


class LoopSockets:
    """The sockets of one call of the transport; see `nonblocking.Sockets`."""

    __slots__ = ("_ended", "_failure", "_loop", "_readers", "_waiter", "_wakeup", "_writing")

    def __init__(self, waiter: Waiter, readers: Readers) -> None:
        self._waiter = waiter
        self._loop = waiter.loop
        self._readers = readers
        self._ended: list[tuple[PendingAttempt, Answer | DynashardError]] = []
        self._writing: set[int] = set()
        self._wakeup: Wakeup | None = None
        self._failure: Exception | None = None

    def register(self, number: int, events: int, attempt: PendingAttempt, /) -> None:
        """Advance the attempt once these events happen to a socket."""
        if events == _READ:
            self._readers.watch(number, lambda: self._advance(attempt))
        else:
            self._writing.add(number)
            self._loop.add_writer(number, self._advance, attempt)

    def unregister(self, number: int, /) -> None:
        """Wait no longer for events of a socket."""
        if number in self._writing:
            self._writing.discard(number)
            if not self._loop.is_closed():
                self._loop.remove_writer(number)
        else:
            self._readers.forget(number)

    def rest(self, number: int, /) -> None:
        """Wait no longer for events of a socket, which stays with the loop."""
        self._readers.rest(number)

    def collect(self, seconds: float) -> list[tuple[PendingAttempt, Answer | DynashardError]]:
        """Let the loop go on until an attempt has ended, or for so many seconds."""
        if not self._ended and self._failure is None:
            self._wakeup = self._waiter.wakeup()
            try:
                self._wakeup.wait(seconds)
            finally:
                self._wakeup = None
        if self._failure is not None:
            raise self._failure
        ended, self._ended = self._ended, []
        return ended

    def _advance(self, attempt: PendingAttempt) -> None:
        try:
            answer = attempt.advance()
        except DynashardError as error:
            self._ended.append((attempt, error))
        except Exception as error:  # noqa: BLE001 - raised in the call that waits, as it would be without a loop
            self._failure = error
        else:
            if answer is None:
                return
            self._ended.append((attempt, answer))
        if self._wakeup is not None:
            self._wakeup.set()


class LoopChannels:
    """The channel of each event loop that uses a transport."""

    def __init__(self, channel: Channel, most: int) -> None:
        self._channel = channel
        self._most = most
        self._of: dict[asyncio.AbstractEventLoop, tuple[Channel, LoopConnections]] = {}

    def of(self, loop: asyncio.AbstractEventLoop) -> tuple[Channel, LoopConnections]:
        """Return the channel of a loop, and its connections. Those of loops that are closed are closed."""
        found = self._of.get(loop)
        if found is None:
            for ended in [each for each in list(self._of) if each.is_closed()]:
                self._of.pop(ended)[1].close()
            pool = LoopConnections(self._most, self._channel.clock, loop)
            found = self._of.setdefault(loop, (self._channel.over(pool), pool))
        return found

    def close(self) -> None:
        """Close the connections of all loops."""
        for _, pool in list(self._of.values()):
            pool.close()


def send_on_loop(channel: Channel, call: PreparedCall, sockets: LoopSockets) -> Answer:
    """Send a request once and return its answer; see `blocking.send_once`."""
    require_remaining(call.operation)
    attempt = begin_attempt(channel, call, sockets, wait=True)
    assert attempt is not None  # noqa: S101 - it waits for a connection
    try:
        while True:
            for _, answer in sockets.collect(attempt.left()):
                if isinstance(answer, DynashardError):
                    raise answer
                return answer
            if attempt.left() <= 0:
                raise attempt.timed_out()
    finally:
        attempt.abandon()
