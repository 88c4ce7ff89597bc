"""The direct transport on event loops: what it has for each of them, and one request on a connection that is kept.

What called the transport is suspended meanwhile, as `dynashard.waiting` describes. The answer is read in a callback of
the loop. All that is not a request on a kept connection, such as opening one or a fan-out, is done by `nonblocking`.
"""

import asyncio
import ssl
import time
from functools import partial
from typing import Final, NamedTuple

from dynashard.errors import DynashardError
from dynashard.transport.direct.blocking import RECEIVED
from dynashard.transport.direct.connections import Connection
from dynashard.transport.direct.exchange import TIMED_OUT, Exchange
from dynashard.transport.direct.http1 import Answer
from dynashard.transport.direct.loop_sockets import LoopConnections, LoopSockets
from dynashard.transport.direct.nonblocking import PendingAttempt, begin_attempt
from dynashard.transport.direct.sending import Channel, PreparedCall, Send
from dynashard.transport.wire_format import require_remaining
from dynashard.waiting import Waiter

_NOT_NOW: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class OnLoop(NamedTuple):
    """What a transport has for an event loop: a channel of its own, over connections of its own."""

    channel: Channel
    connections: LoopConnections


class EventLoops:
    """The event loops on which calls of a transport wait. They share no connection."""

    def __init__(self, channel: Channel, most: int) -> None:
        self._channel = channel
        self._most = most
        self._of: dict[asyncio.AbstractEventLoop, OnLoop] = {}

    def sender(self, waiter: Waiter) -> Send:
        """Return what sends single requests of a call that waits on a loop."""
        return partial(_send, self._here(waiter.loop), waiter)

    def sockets(self, waiter: Waiter) -> tuple[Channel, LoopSockets]:
        """Return what a fan-out of a call sends on, and waits with."""
        here = self._here(waiter.loop)
        return here.channel, LoopSockets(waiter, here.connections.readers)

    def close(self) -> None:
        """Close the connections of all loops."""
        for here in list(self._of.values()):
            here.connections.close()

    def _here(self, loop: asyncio.AbstractEventLoop) -> OnLoop:
        found = self._of.get(loop)
        if found is None:
            for ended in [each for each in list(self._of) if each.is_closed()]:
                # Another thread's loop may have done so.
                if (left := self._of.pop(ended, None)) is not None:
                    left.connections.close()
            connections = LoopConnections(self._most, self._channel.clock, loop)
            found = self._of.setdefault(loop, OnLoop(self._channel.over(connections), connections))
        return found


def _send(here: OnLoop, waiter: Waiter, call: PreparedCall) -> Answer:
    """Send a request once and return its answer; see `blocking.send_once`."""
    left = require_remaining(call.operation)
    channel = here.channel
    kept = channel.pool.kept()
    if kept is None:
        sockets = LoopSockets(waiter, here.connections.readers)
        attempt = begin_attempt(channel, call, sockets, wait=True)
        assert attempt is not None  # noqa: S101 - it waits for a connection
        return _answer_of(attempt, sockets)
    try:
        exchange = channel.exchange(call)
        written = _written(kept, exchange)
        if written:
            answer = _Answering(here, kept, exchange, left).wait(waiter)
    except BaseException:
        channel.pool.discard(kept)
        raise
    if not written:
        sockets = LoopSockets(waiter, here.connections.readers)
        attempt = PendingAttempt(channel, call, sockets, kept)
        attempt.go_on(exchange)
        return _answer_of(attempt, sockets)
    channel.finish(kept, exchange, answer)
    return answer


def _written(connection: Connection, exchange: Exchange) -> bool:
    """Write as much of a request as the socket takes; return whether that is all of it."""
    request = exchange.unsent()
    try:
        sent = connection.socket.send(request)
    except _NOT_NOW:
        return False
    except OSError as error:
        raise exchange.broken(error) from error
    exchange.wrote(sent)
    return sent == len(request)


def _answer_of(attempt: PendingAttempt, sockets: LoopSockets) -> Answer:
    try:
        while True:
            for _, answer in sockets.collect(attempt.left()):
                if isinstance(answer, DynashardError):
                    raise answer
                return answer
            if not attempt.left():
                attempt.time_out()
    finally:
        attempt.abandon()


class _Answering:
    """A request that is written to a kept connection, and will be answered."""

    __slots__ = ("_connection", "_end", "_exchange", "_future", "_here", "expires")

    def __init__(self, here: OnLoop, connection: Connection, exchange: Exchange, left: float) -> None:
        self._here = here
        self._connection = connection
        self._exchange = exchange
        now = time.monotonic()
        self._end = now + left
        self.expires = now + min(left, here.channel.read_timeout)
        self._future: asyncio.Future[Answer] = here.connections.loop.create_future()

    def wait(self, waiter: Waiter) -> Answer:
        """Return the answer; raises as `Exchange.received`."""
        number = self._connection.socket.fileno()
        connections = self._here.connections
        connections.readers.watch(number, self.read)
        connections.alarm.add(self)
        try:
            return waiter.suspend(self._future)
        finally:
            connections.readers.rest(number)
            connections.alarm.remove(self)

    def read(self) -> None:
        """Read what has arrived."""
        connection, answer = self._connection, None
        try:
            while answer is None:
                answer = self._exchange.received(connection.socket.recv(RECEIVED))
                if not (connection.secure and connection.pending()):
                    break
        except _NOT_NOW:
            return
        except OSError as error:
            self._fail(self._exchange.broken(error))
        except Exception as error:  # noqa: BLE001 - raised in the call that waits, as it would be without a loop
            self._fail(error)
        else:
            if answer is None:
                self.expires = min(self._end, time.monotonic() + self._here.channel.read_timeout)
            elif not self._future.done():
                self._future.set_result(answer)

    def time_out(self) -> None:
        """End it without an answer."""
        self._fail(self._exchange.failed(TIMED_OUT, "no answer came in time"))

    def _fail(self, error: Exception) -> None:
        if not self._future.done():
            self._future.set_exception(error)
