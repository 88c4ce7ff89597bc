"""A throttled load makes counts grow as the settings of its environment say."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from domain.samples.pings import Ping
from dynashard import Dynashard, RetryPolicy
from dynashard.growth.settings import GrowthSettings
from dynashard.schema import TOPOLOGY_KEY
from dynashard.testing.faults import FaultyTransport, throttled
from dynashard.topology import DeclaredTopology, Record
from dynashard.transport import Transport
from dynashard_tools.connection import _deployed_growth
from tests.engine.command_line import CURSOR_KEYS, CommandLine, user
from tests.engine.topology.topology_world import put_by_hand

pytestmark = pytest.mark.engine

HOUR = 3600.0


@pytest.fixture
def key(wire: Transport, topology_table: str, tenant: str) -> Iterator[str]:
    """Store the record of a partition whose count is one hour old."""
    name = f"user.v1.User:{tenant}"
    put_by_hand(wire, topology_table, Record(name, 16, Decimal(int(time.time() - HOUR)), 30.0))
    yield name
    wire.call("DeleteItem", {"TableName": topology_table, "Key": {TOPOLOGY_KEY: {"S": name}}})


@pytest.mark.parametrize("mode", ["dry_run", "off"])
def test_a_throttled_load_names_the_remedy(
    command_line: CommandLine, wire: Transport, tenant: str, key: str, mode: str
) -> None:
    fault = throttled("BatchWriteItem", nth=None)
    command_line.monkeypatch.setattr(
        "dynashard_tools.connection.transport_of", lambda _: FaultyTransport(wire, [fault])
    )
    command_line.monkeypatch.setattr(
        "dynashard.service.RetryPolicy", lambda **options: RetryPolicy(seconds=0, **options)
    )
    command_line.monkeypatch.setenv("GROWTH_MODE", mode)
    file = command_line.file("users.jsonl", *(user(number) for number in range(30)))

    outcome = command_line.run("load", "users", file, "--tenant", tenant)

    assert outcome.status == 1
    advice = f"growth: would_ask: dry run: {key} to 32 shards: a key range is hot"
    assert (advice in outcome.err) == (mode == "dry_run")


def test_a_throttled_repair_names_the_remedy(
    command_line: CommandLine, wire: Transport, local_table: str, topology_table: str, tenant: str
) -> None:
    key = f"plays.v1.Episode:{tenant}:dark.e1"
    put_by_hand(wire, topology_table, Record(key, 1, Decimal(int(time.time() - HOUR)), 30.0))
    ping = Ping(tenant_id=tenant, series="dark", episode="e1", at=datetime.now(UTC), id="p", session_id="s")
    db = Dynashard(wire, table=local_table, topology=DeclaredTopology(), cursor_keys=CURSOR_KEYS)
    db.collection(Ping).create(ping)
    fault = throttled("TransactWriteItems", nth=None)
    command_line.monkeypatch.setattr(
        "dynashard_tools.connection.transport_of", lambda _: FaultyTransport(wire, [fault])
    )
    command_line.monkeypatch.setattr(
        "dynashard.service.RetryPolicy", lambda **options: RetryPolicy(seconds=0, **options)
    )
    command_line.monkeypatch.setenv("GROWTH_MODE", "dry_run")

    outcome = command_line.run("verify", "pings", tenant, "--day", f"{ping.at:%Y-%m-%d}", "--mend")

    assert outcome.status == 1
    assert f"growth: would_ask: dry run: {key} to 2 shards: a key range is hot" in outcome.err


def test_a_deployed_environment_follows_its_settings_and_an_unknown_one_is_left_alone() -> None:
    assert _deployed_growth("prod") == GrowthSettings("on", 300, 86_400)
    assert _deployed_growth("elsewhere").mode == "off"
