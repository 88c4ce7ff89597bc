"""What most tests of direct invocation start from."""

import pytest

from dynashard.transport import Transport
from tests.engine.commands.commands_on_engine import Service, commands_on


@pytest.fixture
def service(transport: Transport, table: str, records: str) -> Service:
    """A service that invokes the function on an empty table."""
    return Service(commands_on(transport, table, records))
