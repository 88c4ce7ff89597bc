"""The sockets and connections of an event loop: what the loop watches for the calls that wait on it."""

import asyncio
import selectors
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from typing import Final, Protocol

from dynashard.errors import DynashardError
from dynashard.transport.direct.connections import Connection, ConnectionPool
from dynashard.transport.direct.http1 import Answer
from dynashard.transport.direct.nonblocking import PendingAttempt
from dynashard.waiting import Waiter, Wakeup

_READ: Final = selectors.EVENT_READ


class Expiring(Protocol):
    """What ends at a time, unless it has ended before; `expires` is by the monotonic clock and may be put off."""

    expires: float

    def time_out(self) -> None:
        """End it."""
        ...


class Alarm:
    """One timer of the loop for all requests under way, because a timer for each would cost more than its answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watched: set[Expiring] = set()
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, watched: Expiring) -> None:
        """End something once its time is over; `remove` it if it has ended before."""
        self._watched.add(watched)
        if self._timer is None or watched.expires < self._due:
            self._set(watched.expires)

    def remove(self, watched: Expiring) -> None:
        """Leave something alone from now on."""
        self._watched.discard(watched)

    def _set(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._loop.call_later(max(0.0, due - time.monotonic()), self._ring)

    def _ring(self) -> None:
        self._timer = None
        now = time.monotonic()
        for over in [each for each in self._watched if each.expires <= now]:
            self._watched.discard(over)
            over.time_out()
        if self._watched:
            self._set(min(each.expires for each in self._watched))


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
        # None is a resting socket, so another object has to stand for an unknown one.
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
        self.alarm = Alarm(loop)
        self._thread = get_ident()
        super().__init__(most, clock)

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
