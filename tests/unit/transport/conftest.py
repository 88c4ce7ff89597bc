"""Transports to a server with scripted answers. Every test that uses `opened` or `scripted` runs on each of them."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from dynashard.runtime import SYSTEM, Runtime
from dynashard.transport.attempts import Attempts
from dynashard.transport.direct.choice import transport_for
from dynashard.transport.interface import Settings
from dynashard.transport.sdk import SdkTransport
from dynashard_lab.bench.canned import Asked, Reply, canned_server
from tests.unit.transport.scripted_server import Opened, Script


@pytest.fixture
def waits() -> list[float]:
    """Record the waits between attempts, in seconds, instead of waiting."""
    return []


@pytest.fixture
def asked() -> list[Asked]:
    """Collect the requests that arrived."""
    return []


@pytest.fixture(params=["botocore", "direct"])
def opened(request: pytest.FixtureRequest) -> Opened:
    """Return a function that opens a transport."""

    def opened(settings: Settings, attempts: Attempts | None = None) -> Any:
        if request.param == "botocore":
            return SdkTransport(settings, attempts)
        return transport_for(settings, os.environ, attempts)

    return opened


@pytest.fixture
def scripted(asked: list[Asked], waits: list[float], opened: Opened) -> Iterator[Script]:
    """Return a function that connects to a server with these `replies` in turn. The last one is repeated."""
    with ExitStack() as stack:

        def start(
            *replies: Reply, attempts: int = 4, pauses: Any = None, random: Any = SYSTEM.random, **options: Any
        ) -> Any:
            def answer(request: Asked) -> Reply:
                asked.append(request)
                return replies[min(len(asked), len(replies)) - 1]

            url = stack.enter_context(canned_server(answer))
            settings = Settings(url, "eu-west-1", "local", "local", **options)
            runtime = Runtime(sleep=waits.append, random=random)
            transport = opened(settings, Attempts(attempts, runtime=runtime, **(pauses or {})))
            stack.callback(transport.close)
            return transport

        yield start
