"""A transport to a server with scripted answers."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from bench.canned import Asked, Reply, canned_server
from dynashard.runtime import SYSTEM, Runtime
from dynashard.transport.attempts import Attempts
from dynashard.transport.interface import Settings
from dynashard.transport.sdk import SdkTransport
from tests.unit.transport.scripted_server import Script


@pytest.fixture
def waits() -> list[float]:
    """Record the waits between attempts, in seconds, instead of waiting."""
    return []


@pytest.fixture
def asked() -> list[Asked]:
    """Collect the requests that arrived."""
    return []


@pytest.fixture
def scripted(asked: list[Asked], waits: list[float]) -> Iterator[Script]:
    """Return a function that connects to a server with these `replies` in turn. The last one is repeated."""
    with ExitStack() as stack:

        def start(
            *replies: Reply, attempts: int = 4, pauses: Any = None, random: Any = SYSTEM.random, **options: Any
        ) -> SdkTransport:
            def answer(request: Asked) -> Reply:
                asked.append(request)
                return replies[min(len(asked), len(replies)) - 1]

            url = stack.enter_context(canned_server(answer))
            settings = Settings(url, "eu-west-1", "local", "local", **options)
            runtime = Runtime(sleep=waits.append, random=random)
            transport = SdkTransport(settings, Attempts(attempts, runtime=runtime, **(pauses or {})))
            stack.callback(transport.close)
            return transport

        yield start
