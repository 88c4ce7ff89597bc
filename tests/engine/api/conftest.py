"""What most tests of the API start from: a caller, and an API whose queues the test drains."""

from pathlib import Path

import pytest

from dynashard import Dynashard
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import KEYS, caller_on
from tests.engine.writer.queue_world import QueueWorld
from tests.recording import RecordingTransport


@pytest.fixture
def caller(transport: Transport, table: str) -> Caller:
    """A caller of an API on an empty table."""
    return caller_on(transport, table)


@pytest.fixture
def database(transport: Transport, table: str) -> Dynashard:
    """The table of the API, as a program opens it."""
    return Dynashard(transport, table=table, topology=DeclaredTopology(), cursor_keys=KEYS)


@pytest.fixture
def recording(transport: Transport) -> RecordingTransport:
    """The connection to the engine, with a record of its requests."""
    return RecordingTransport(transport)


@pytest.fixture
def world(transport: Transport, table: str, tmp_path: Path) -> QueueWorld:
    """An API on an empty table, with queues whose messages the test has written."""
    return QueueWorld(transport, table, tmp_path)
