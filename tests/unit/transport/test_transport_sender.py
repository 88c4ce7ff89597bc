"""Which requests the sender of botocore's client leaves to botocore."""

import pytest

from dynashard.transport.client import open_client
from dynashard.transport.interface import Settings

pytestmark = pytest.mark.unit


def test_botocore_sends_requests_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    straight = open_client(Settings(None, "eu-west-1", "local", "local"))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    proxied = open_client(Settings(None, "eu-west-1", "local", "local"))

    assert straight.sender is not None
    assert proxied.sender is None
