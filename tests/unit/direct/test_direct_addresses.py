"""An endpoint's name with several addresses: each is tried, whatever becomes of those before it."""

import asyncio
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from threading import Event
from typing import Any, NoReturn

import orjson
import pytest

from dynashard.awaiting.bridge import require_greenlet, run
from dynashard.errors import EngineUnavailableError
from dynashard.transport import Call
from dynashard.transport.attempts import Attempts
from dynashard.transport.direct.choice import transport_for
from dynashard.transport.direct.transport import DirectTransport
from dynashard.transport.interface import Settings
from dynashard_lab.bench.canned import canned_server
from tests.unit.transport.scripted_server import FOUND, GET

pytestmark = pytest.mark.unit

Address = tuple[int, tuple[object, ...]]
Send = Callable[[DirectTransport], Any]
UNSUPPORTED: Address = (socket.AF_APPLETALK, ("127.0.0.1", 1))
CLOSED: Address = (socket.AF_INET, ("127.0.0.1", 1))


def alone(transport: DirectTransport) -> Any:
    return transport.call("GetItem", GET)


def together(transport: DirectTransport) -> Any:
    first, second = transport.try_all([Call("GetItem", GET)] * 2)
    assert type(first) is type(second)
    if isinstance(first, EngineUnavailableError):
        raise first
    return first


def awaited(send: Send) -> Send:
    async def sent(transport: DirectTransport) -> Any:
        require_greenlet()
        return await run(send, transport)

    return lambda transport: asyncio.run(sent(transport))


FACES = {
    "alone": alone,
    "together": together,
    "alone on a loop": awaited(alone),
    "together on a loop": awaited(together),
}


@pytest.fixture
def silent() -> Iterator[Address]:
    """An address at which nobody answers: its queue of connections is full."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        stack.enter_context(socket.create_connection(listening.getsockname()))
        yield socket.AF_INET, listening.getsockname()


def sent_to(addresses: Sequence[Address], send: Send, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Send requests to a name with these addresses before that of a server."""
    with canned_server(lambda _: FOUND) as url:
        settings = Settings(url, "eu-west-1", "a", "b", connect_timeout=0.05)
        transport = transport_for(settings, {}, Attempts(1))
        assert isinstance(transport, DirectTransport)
        served = transport._channel.dialer.addresses()
        monkeypatch.setattr(transport._channel.dialer, "addresses", lambda: [*addresses, *served])
        with closing(transport):
            return send(transport)


@pytest.mark.parametrize("send", FACES.values(), ids=FACES)
def test_an_address_follows_one_at_which_nobody_answers(
    send: Send, silent: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sent_to([silent, silent], send, monkeypatch) == orjson.loads(FOUND.body)


@pytest.mark.parametrize("send", FACES.values(), ids=FACES)
def test_an_address_follows_one_of_a_family_that_this_machine_does_not_have(
    send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sent_to([UNSUPPORTED, CLOSED, UNSUPPORTED], send, monkeypatch) == orjson.loads(FOUND.body)


@pytest.mark.parametrize("send", FACES.values(), ids=FACES)
def test_a_name_that_is_looked_up_for_long_ends_at_the_deadline(send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    ended = Event()

    def look_up(host: object, *_: object, **__: object) -> NoReturn:
        asked.append(host)
        ended.wait(5)
        raise socket.gaierror("no such name")

    settings = Settings("http://slow.example", "eu-west-1", "a", "b", operation_seconds=0.1)
    with closing(transport_for(settings, {}, Attempts(4))) as transport, monkeypatch.context() as slow:
        assert isinstance(transport, DirectTransport)
        slow.setattr(socket, "getaddrinfo", look_up)
        with pytest.raises(EngineUnavailableError, match="did not arrive by the operation's deadline"):
            send(transport)
        ended.set()

    # What is under way serves the requests after it.
    assert asked == [b"slow.example"]


@pytest.mark.parametrize("send", FACES.values(), ids=FACES)
def test_the_failure_of_the_last_address_is_that_of_the_request(send: Send, silent: Address) -> None:
    settings = Settings("http://127.0.0.1:1", "eu-west-1", "a", "b", connect_timeout=0.05)
    transport = transport_for(settings, {}, Attempts(1))
    assert isinstance(transport, DirectTransport)
    transport._channel.dialer.addresses = lambda: [silent, UNSUPPORTED, silent]  # type: ignore[list-item, method-assign]

    with closing(transport), pytest.raises(EngineUnavailableError, match="was not sent") as caught:
        send(transport)

    assert caught.value.aws_code == "ConnectTimeoutError"
