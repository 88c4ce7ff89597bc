"""Which requests the sender of botocore's client sends, and which it leaves to botocore."""

from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
import urllib3

from dynashard.transport.client import open_client
from dynashard.transport.direct.sdk_sender import PooledSender
from dynashard.transport.interface import Settings
from dynashard.transport.sdk import SdkTransport
from dynashard_lab.bench.canned import Reply, canned_server

pytestmark = pytest.mark.unit


def test_botocore_sends_requests_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    client = open_client(Settings(None, "eu-west-1", "local", "local"))

    assert client.sender(SimpleNamespace(url="https://dynamodb.eu-west-1.amazonaws.com/"), "before-send") is None


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("eu-west-1", "dynamodb-fips.eu-west-1.amazonaws.com"),
        # Botocore's client first names `dynamodb-fips.us-gov-west-1`, and then sends to another host.
        ("us-gov-west-1", "dynamodb.us-gov-west-1.amazonaws.com"),
    ],
)
def test_requests_to_fips_endpoints_are_sent_by_the_pool(
    monkeypatch: pytest.MonkeyPatch, region: str, host: str
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")
    urls: list[str] = []

    with canned_server(lambda _: Reply(b'{"TableNames": []}')) as server:

        def opened(_: PooledSender, url: str) -> urllib3.HTTPConnectionPool:
            urls.append(url)
            return urllib3.HTTPConnectionPool("127.0.0.1", urlsplit(server).port)

        monkeypatch.setattr(PooledSender, "_opened", opened)
        transport = SdkTransport(Settings(None, region, "local", "local", attempts=1))
        answers = [transport.call("ListTables", {}) for _ in range(2)]
        transport.close()

    assert answers == [{"TableNames": []}] * 2
    assert urls == [f"https://{host}/"]
