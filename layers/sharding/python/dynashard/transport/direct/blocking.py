"""One attempt on the calling thread: write the request, wait for the answer."""

import ssl
from typing import Final

from dynashard.errors import DynashardError
from dynashard.transport.classification import unreached
from dynashard.transport.deadline import remaining
from dynashard.transport.direct.connections import Connection
from dynashard.transport.direct.exchange import TIMED_OUT, Exchange
from dynashard.transport.direct.http1 import Answer
from dynashard.transport.direct.sending import Channel, PreparedCall
from dynashard.transport.wire_format import require_remaining

RECEIVED: Final = 64 * 1024
"""Bytes that one read takes at most."""


def send_once(channel: Channel, call: PreparedCall) -> Answer:
    """Send a request once and return its answer.

    Raises:
        EngineUnavailableError: the request was not sent, or was not answered.
        OutcomeUnknownError: the request is a write that was not answered.

    Cost: 1 round trip; 1 more to open a connection, and 1 or 2 for TLS.
    """
    left = require_remaining(call.operation)
    connection = channel.acquire(call.operation)
    try:
        if connection is None:
            connection = _opened(channel, call.operation)
            left = remaining()
        exchange = channel.exchange(call)
        answer = _converse(channel, connection, exchange, left)
    except BaseException:
        channel.pool.discard(connection)
        raise
    channel.finish(connection, exchange, answer)
    return answer


def _opened(channel: Channel, operation: str) -> Connection:
    try:
        opened = channel.dialer.open(channel.connect_bound)
    except OSError as error:
        raise connection_failure(operation, error) from error
    return Connection(opened, channel.clock(), None)


def connection_failure(operation: str, error: OSError) -> DynashardError:
    """Return the error of an attempt for which no connection could be opened."""
    kind = "EndpointConnectionError"
    if isinstance(error, ssl.SSLError):
        kind = "HandshakeError"
    elif isinstance(error, TimeoutError):
        kind = "ConnectTimeoutError"
    return unreached(operation, kind, str(error) or kind)


def _converse(channel: Channel, connection: Connection, exchange: Exchange, left: float) -> Answer:
    """Write a request and wait for its answer, with so many seconds `left` until the deadline in force."""
    try:
        connection.set_timeout(channel.read_bound(left))
        exchange.wrote(connection.socket.send(exchange.unsent()))
        while unsent := exchange.unsent():
            if (left := remaining()) <= 0:
                raise exchange.failed(TIMED_OUT, "the request was not written by the operation's deadline")
            connection.set_timeout(channel.read_bound(left))
            exchange.wrote(connection.socket.send(unsent))
        while (answer := exchange.received(connection.socket.recv(RECEIVED))) is None:
            if (left := remaining()) <= 0:
                raise exchange.failed(TIMED_OUT, "the answer was not complete at the operation's deadline")
            connection.set_timeout(channel.read_bound(left))
    except OSError as error:
        raise exchange.broken(error) from error
    return answer
