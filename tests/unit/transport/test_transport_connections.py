"""Connections of both transports: certificates are verified, and dead connections are replaced in time."""

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from dynashard.errors import ConfigurationError, EngineUnavailableError, OutcomeUnknownError
from dynashard.runtime import Runtime
from dynashard.transport import Call
from dynashard.transport.attempts import Attempts
from dynashard.transport.direct.choice import transport_for
from dynashard.transport.direct.connections import MAX_IDLE_SECONDS
from dynashard.transport.interface import Settings
from dynashard_lab.bench.canned import Reply, canned_server
from tests.unit.transport.certificates import certificate_for, served
from tests.unit.transport.scripted_server import Opened

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _: None))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def transport_to(opened: Opened) -> Callable[[str], Any]:
    return lambda url: opened(Settings(url, "eu-west-1", "local", "local", attempts=1))


def test_a_server_whose_certificate_is_in_the_configured_bundle_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport_to: Callable[[str], Any]
) -> None:
    certificate = certificate_for("localhost", tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))

    with canned_server(lambda _: Reply(b'{"TableNames": []}'), tls=served(certificate)) as url:
        transport = transport_to(url)
        answers = [transport.call("ListTables", {}), *transport.call_all([Call("ListTables", {})] * 3)]
        transport.close()

    assert answers == [{"TableNames": []}] * 4


def test_the_bundle_of_requests_is_used_after_that_of_aws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport_to: Callable[[str], Any]
) -> None:
    certificate = certificate_for("localhost", tmp_path)
    other = certificate_for("elsewhere", tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))

    with canned_server(lambda _: Reply(b'{"TableNames": []}'), tls=served(certificate)) as url:
        transport = transport_to(url)
        assert transport.call("ListTables", {}) == {"TableNames": []}
        transport.close()
        monkeypatch.setenv("AWS_CA_BUNDLE", str(other))
        assert_refused(transport_to(url))


@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
def test_a_missing_bundle_is_named_with_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport_to: Callable[[str], Any], variable: str
) -> None:
    path = str(tmp_path / "none.pem")
    monkeypatch.setenv(variable, path)

    with pytest.raises(ConfigurationError, match=f"{variable} is '{path}', which is not a file"):
        transport_to("https://localhost:1").warm()


def test_a_bundle_without_certificates_is_a_configuration_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport_to: Callable[[str], Any]
) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "empty.pem"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        transport = transport_to(f"https://localhost:{server.getsockname()[1]}")
        with pytest.raises(ConfigurationError, match=r"empty\.pem cannot be used"):
            transport.call("GetItem", {})
        with pytest.raises(ConfigurationError, match=r"empty\.pem cannot be used"):
            transport.call_all([Call("GetItem", {})] * 2)
        transport.close()


@pytest.mark.parametrize("together", [1, 2])
def test_a_request_that_is_taken_slowly_ends_at_the_operations_deadline(together: int) -> None:
    item = {"PK": {"S": "a"}, "large": {"S": "x" * 20_000_000}}
    stop = Event()

    with socket.create_server(("127.0.0.1", 0)) as server:

        def take() -> None:
            taken = [server.accept()[0] for _ in range(together)]
            while not stop.wait(0.02):
                for each in taken:
                    each.recv(20_000)
            for each in taken:
                each.close()

        thread = Thread(target=take)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        settings = Settings(url, "eu-west-1", "local", "local", attempts=1, read_timeout=1000.0, operation_seconds=0.3)
        transport = transport_for(settings, {})
        answers = transport.try_all([Call("PutItem", {"TableName": "t", "Item": item})] * together)
        stop.set()
        thread.join()
        transport.close()

    assert {type(answer) for answer in answers} == {OutcomeUnknownError}


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"


@pytest.fixture
def dripping() -> Iterator[str]:
    """The URL of a server that answers by a byte every few milliseconds: of the headers if ListTables asks."""
    stop = Event()

    def drip(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.sendall(b"" if b"ListTables" in connection.recv(65536) else HEAD)
            while not stop.wait(0.005):
                connection.sendall(b"H")

    def serve() -> None:
        with suppress(OSError):
            while True:
                Thread(target=drip, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        stop.set()


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        ("GetItem", EngineUnavailableError),
        ("PutItem", OutcomeUnknownError),
        ("ListTables", EngineUnavailableError),
    ],
)
def test_an_answer_that_drips_ends_at_the_operations_deadline(
    opened: Opened, dripping: str, operation: str, error: type[Exception]
) -> None:
    """Each byte comes within the time for a wait. Of ListTables not even the headers are complete."""
    settings = Settings(dripping, "eu-west-1", "a", "b", attempts=4, read_timeout=1000.0, operation_seconds=0.2)
    transport = opened(settings)

    with pytest.raises(EngineUnavailableError) as caught:
        transport.call(operation, {})
    together = transport.try_all([Call(operation, {})] * 3)
    transport.close()

    assert [type(each) for each in (caught.value, *together)] == [error] * 4


def test_a_server_with_an_untrusted_certificate_is_refused(tmp_path: Path, transport_to: Callable[[str], Any]) -> None:
    with canned_server(lambda _: Reply(), tls=served(certificate_for("localhost", tmp_path))) as url:
        assert_refused(transport_to(url))


@pytest.mark.parametrize(("host", "expired"), [("elsewhere", False), ("localhost", True)])
def test_a_server_whose_certificate_is_for_another_host_or_has_expired_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport_to: Callable[[str], Any], *, host: str, expired: bool
) -> None:
    certificate = certificate_for(host, tmp_path, expired=expired)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))

    with canned_server(lambda _: Reply(), tls=served(certificate)) as url:
        assert_refused(transport_to(url))


def assert_refused(transport: Any) -> None:
    """No way of sending gets past the handshake, so the write is certainly not executed."""
    with pytest.raises(EngineUnavailableError, match=r"certificate|SSL") as caught:
        transport.call("PutItem", {})
    [together] = transport.try_all([Call("PutItem", {})])
    transport.close()

    for error in (caught.value, together):
        assert type(error) is EngineUnavailableError
        assert error.aws_code == "HandshakeError"


class _OneAnswer:
    """A server that answers one request on each connection, and then closes it or stays silent."""

    def __init__(self, *, closes: bool) -> None:
        self.closes = closes
        self.connections = 0
        self.requests = 0
        self.closed = Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._kept: list[socket.socket] = []
        Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            self.connections += 1
            connection.recv(65536)
            self.requests += 1
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            if self.closes:
                connection.close()
                self.closed.set()
            else:
                self._kept.append(connection)


def test_a_closed_idle_connection_is_replaced_before_a_byte_is_written(transport_to: Callable[[str], Any]) -> None:
    server = _OneAnswer(closes=True)
    transport = transport_to(server.url)
    transport.call("PutItem", {"TableName": "t", "Item": {}})
    assert server.closed.wait(60)

    transport.call("PutItem", {"TableName": "t", "Item": {}})

    assert (server.connections, server.requests) == (2, 2)
    transport.close()


def test_a_connection_of_the_direct_transport_that_was_idle_for_long_by_the_wall_clock_is_replaced() -> None:
    """A frozen Lambda does not notice that the other side has closed the connection."""
    now = [1_000_000.0]
    server = _OneAnswer(closes=False)
    settings = Settings(server.url, "eu-west-1", "local", "local")
    transport = transport_for(settings, {}, Attempts(1, runtime=Runtime(clock=lambda: now[0])))
    transport.call("PutItem", {"TableName": "t", "Item": {}})
    now[0] += MAX_IDLE_SECONDS + 1

    transport.call("PutItem", {"TableName": "t", "Item": {}})

    assert (server.connections, server.requests) == (2, 2)
    transport.close()
