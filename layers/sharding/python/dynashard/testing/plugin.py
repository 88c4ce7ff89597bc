"""The plug-in of pytest; see `dynashard.testing`."""

import os
from collections.abc import Iterator

import pytest

from dynashard.awaiting import AsyncDynashard
from dynashard.errors import ConfigurationError
from dynashard.service import Dynashard
from dynashard.testing.engine import engine_endpoint
from dynashard.testing.sandbox import Sandbox, open_sandbox


@pytest.fixture(scope="session")
def dynashard_endpoint(pytestconfig: pytest.Config) -> Iterator[str]:
    """The URL of a DynamoDB engine: that in `DYNAMODB_ENDPOINT`, or a local one with its data in memory.

    The program of the local one is `DYNOXIDE_BIN`, or that of the npm package `@dynoxide/<platform>`. Without any,
    tests that need an engine fail with a message that says how to get one.
    """
    try:
        with engine_endpoint(os.environ, pytestconfig.rootpath) as endpoint:
            yield endpoint
            return
    except ConfigurationError as error:
        missing = str(error)
    # Each test of the suite says it, without a traceback, and without that of the error.
    pytest.fail(missing, pytrace=False)


@pytest.fixture
def dynashard_sandbox(dynashard_endpoint: str) -> Iterator[Sandbox]:
    """Empty tables of the test's own, with faults, time in the test's hands, and resizes on demand."""
    with open_sandbox(dynashard_endpoint) as sandbox:
        yield sandbox


@pytest.fixture
def dynashard_db(dynashard_sandbox: Sandbox) -> Dynashard:
    """A `Dynashard` on empty tables of the test's own."""
    return dynashard_sandbox.db


@pytest.fixture
def dynashard_async_db(dynashard_sandbox: Sandbox) -> AsyncDynashard:
    """An `AsyncDynashard` on the tables of `dynashard_sandbox`, for the event loop of the test, whichever runs it."""
    return dynashard_sandbox.async_db
