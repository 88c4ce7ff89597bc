"""Answers as bytes, for both transports: a well-formed one is returned, and any other leaves a write unknown."""

import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread

import orjson
import pytest

from dynashard.errors import DynashardError, EngineUnavailableError, OutcomeUnknownError
from dynashard.transport import Call
from dynashard.transport.attempts import Attempts
from dynashard.transport.interface import Settings
from dynashard_checks.answers import BODY, chunked, counted
from tests.unit.transport.scripted_server import Opened
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.unit

PUT = {"TableName": "users", "Item": {"PK": {"S": "a"}}}


def read_request(connection: socket.socket) -> bool:
    """Read a whole request; False if the other side closed."""
    received = b""
    while True:
        head, end, body = received.partition(b"\r\n\r\n")
        if end and len(body) >= int(re.findall(rb"(?i)content-length: (\d+)", head)[0]):
            return True
        more = connection.recv(65536)
        if not more:
            return False
        received += more


@contextmanager
def raw_server(pieces: Sequence[bytes], *, closes: bool) -> Iterator[str]:
    """Serve the same bytes, piece by piece, after every request; then close the connection or stay silent."""
    ended = Event()
    kept: list[socket.socket] = []

    def serve() -> None:
        while True:
            connection, _ = listening.accept()
            if ended.is_set():
                return
            kept.append(connection)
            Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while read_request(connection):
                for piece in pieces:
                    connection.sendall(piece)
                if closes:
                    connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    listening = socket.create_server(("127.0.0.1", 0))
    thread = Thread(target=serve, daemon=True)
    thread.start()
    port = listening.getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        ended.set()
        socket.create_connection(("127.0.0.1", port)).close()
        thread.join()
        for connection in [*kept, listening]:
            connection.close()


def outcomes(
    opened: Opened, pieces: Sequence[bytes], *, closes: bool = True, read_timeout: float = HANG_SECONDS
) -> list[object]:
    """Return what a write becomes, alone and among several: its answer or its error."""
    with raw_server(pieces, closes=closes) as url:
        transport = opened(Settings(url, "eu-west-1", "a", "b", read_timeout=read_timeout), Attempts(1))
        found: list[object] = []
        try:
            found.append(transport.call("PutItem", PUT))
        except DynashardError as error:
            found.append(error)
        found += transport.try_all([Call("PutItem", PUT)] * 2)
        transport.close()
    return found


@pytest.mark.parametrize(
    "pieces",
    [
        [counted()],
        [counted()[at : at + 1] for at in range(len(counted()))],
        [chunked()],
        [chunked(sizes=[1] * 9, extension=";a=b", trailer="X-Sum: 1\r\n")],
        [b"HTTP/1.1 100 Continue\r\n\r\n", counted()],
        [counted(BODY, "Connection: close")],
    ],
    ids=["at once", "byte by byte", "chunked", "chunked with extras", "continue", "connection close"],
)
def test_a_well_formed_answer_is_returned(opened: Opened, pieces: Sequence[bytes]) -> None:
    assert outcomes(opened, pieces, closes=b"close" in pieces[0]) == [orjson.loads(BODY)] * 3


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        counted()[:-1],
        chunked()[:-5],
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x28",
        b"HTTP/1.1 999999 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 15 + b"\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 40 + b"\r\n{}\r\n0\r\n\r\n",
        counted(b"<html>It works!</html>"),
    ],
    ids=[
        "nothing",
        "half a head",
        "half a body",
        "half a chunk",
        "not HTTP",
        "TLS",
        "status",
        "chunk size",
        "negative chunk",
        "huge chunk",
        "absurd chunk",
        "no JSON",
    ],
)
def test_a_malformed_or_truncated_answer_leaves_a_write_unknown(opened: Opened, answer: bytes) -> None:
    assert [type(each) for each in outcomes(opened, [answer])] == [OutcomeUnknownError] * 3


def test_an_answer_that_stops_leaves_a_write_unknown_in_time(opened: Opened) -> None:
    found = outcomes(opened, [counted()[:-1]], closes=False, read_timeout=0.05)

    assert [type(each) for each in found] == [OutcomeUnknownError] * 3
    assert {each.aws_code for each in found if isinstance(each, EngineUnavailableError)} == {"ReadTimeoutError"}


def test_an_answer_that_nobody_asked_for_is_never_the_answer_to_the_next_request(opened: Opened) -> None:
    stray = counted(orjson.dumps({"Item": {"PK": {"S": "stray"}}}))

    assert outcomes(opened, [counted() + stray], closes=False) == [orjson.loads(BODY)] * 3
