"""One attempt on the calling thread: write the request, wait for the answer."""

import ssl
from socket import socket
from typing import Final

from dynashard.errors import DynashardError
from dynashard.transport.classification import unreached
from dynashard.transport.deadline import remaining
from dynashard.transport.wire_format import require_remaining
from dynashard_direct.connections import Connection
from dynashard_direct.exchange import TIMED_OUT, Exchange
from dynashard_direct.http1 import Answer
from dynashard_direct.sending import Line, Prepared

RECEIVED: Final = 64 * 1024
"""Bytes that one read takes at most."""


def attempted(line: Line, call: Prepared) -> Answer:
    """Send a request once and return its answer.

    Raises:
        EngineUnavailableError: the request was not sent, or was not answered.
        OutcomeUnknownError: the request is a write that was not answered.

    Cost: 1 round trip; 1 more to open a connection, and 1 or 2 for TLS.
    """
    require_remaining(call.operation)
    connection = line.acquire(call.operation, max(0.0, min(remaining(), line.connect_timeout + line.read_timeout)))
    try:
        if connection is None:
            connection = _opened(line, call.operation)
        answer = _converse(line, connection, line.exchange(call))
    except BaseException:
        line.pool.discard(connection)
        raise
    line.finish(connection, answer)
    return answer


def _opened(line: Line, operation: str) -> Connection:
    seconds = line.connect_bound()
    try:
        opened = line.dialer.open(seconds)
    except OSError as error:
        raise not_opened(operation, error) from error
    return Connection(opened, line.clock(), seconds)


def not_opened(operation: str, error: OSError) -> DynashardError:
    """Return the error of an attempt for which no connection could be opened."""
    kind = "EndpointConnectionError"
    if isinstance(error, ssl.SSLError):
        kind = "HandshakeError"
    elif isinstance(error, TimeoutError):
        kind = "ConnectTimeoutError"
    return unreached(operation, kind, str(error) or kind)


def _converse(line: Line, connection: Connection, exchange: Exchange) -> Answer:
    try:
        connection.set_timeout(line.read_bound())
        while unsent := exchange.unsent():
            exchange.wrote(connection.socket.send(unsent))
        return _answer(line, connection, exchange, connection.socket)
    except OSError as error:
        raise exchange.broken(error) from error


def _answer(line: Line, connection: Connection, exchange: Exchange, opened: socket) -> Answer:
    while (answer := exchange.received(opened.recv(RECEIVED))) is None:
        if remaining() <= 0:
            raise exchange.failed(TIMED_OUT, "the answer was not complete at the operation's deadline")
        connection.set_timeout(line.read_bound())
    return answer
