"""Botocore's transport sends as botocore does: through a proxy, and to FIPS endpoints."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from dynashard.errors import EngineUnavailableError
from dynashard.transport.interface import Settings
from dynashard.transport.sdk import SdkTransport

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("eu-west-1", "dynamodb-fips.eu-west-1.amazonaws.com"),
        # Botocore's client first names `dynamodb-fips.us-gov-west-1`, and then sends to another host.
        ("us-gov-west-1", "dynamodb.us-gov-west-1.amazonaws.com"),
    ],
)
def test_requests_to_fips_endpoints_go_through_the_proxy(
    monkeypatch: pytest.MonkeyPatch, region: str, host: str
) -> None:
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")
    with socket.create_server(("127.0.0.1", 0)) as proxy, ThreadPoolExecutor(1) as pool:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        asked = pool.submit(refuse_one, proxy)
        transport = SdkTransport(Settings(None, region, "local", "local", attempts=1))
        with pytest.raises(EngineUnavailableError):
            transport.call("ListTables", {})
        transport.close()

    assert asked.result().startswith(f"CONNECT {host}:443 ")


def refuse_one(proxy: socket.socket) -> str:
    """Refuse one connection through a proxy, and return what was asked for."""
    connection, _ = proxy.accept()
    with connection:
        asked = connection.recv(65536).decode()
        connection.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
    return asked
