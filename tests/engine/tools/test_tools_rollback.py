"""`dynashard rollback` lists the shard counts that the earlier release does not understand, and does not ignore them.

The functions are made here, because no engine has Lambda; the topology is that of the local engine.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynashard.schema import TOPOLOGY_EPOCHS, TOPOLOGY_FORMER_COUNTS, TOPOLOGY_KEY, TOPOLOGY_UNDERSTOOD
from dynashard.topology import TopologyTable
from dynashard.topology.records import first_record
from dynashard.transport import Transport
from dynashard_tools.rollback import command
from dynashard_tools.rollback.records import unknown_records
from dynashard_tools.rollback.releases import Function, Move, Version
from tests.engine.command_line import CommandLine

pytestmark = pytest.mark.engine

NOW = 1_790_000_000.0
BEGAN = datetime(2026, 11, 23, 12, tzinfo=UTC)
ALL = frozenset(TOPOLOGY_UNDERSTOOD)


class Functions:
    """Two functions of an environment, and what a rollback does with them."""

    def __init__(self, older: frozenset[str] = frozenset()) -> None:
        self.older = older
        self.moved: list[str] = []

    def of(self, _: Any) -> list[Function]:
        return [self._function(name) for name in ("api", "writer")]

    def move(self, _: Any, step: Move) -> None:
        self.moved.append(f"{step.function.name} to {step.to.release}")

    def _function(self, name: str) -> Function:
        versions = [
            Version(1, "older", BEGAN, self.older if name == "writer" else ALL),
            Version(2, "newer", BEGAN + timedelta(hours=1), ALL),
        ]
        return Function("Api", name, 2, "revision", versions)


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> Functions:
    made = Functions()
    monkeypatch.setattr(command, "functions_of", made.of)
    monkeypatch.setattr(command, "move", made.move)
    return made


@pytest.fixture
def grown(wire: Transport, topology_table: str, tenant: str) -> Iterator[list[str]]:
    """Keys of records that have grown by epochs and for new entries alone, and one that has done neither."""
    table = TopologyTable(wire, topology_table)
    keys = [f"ping.v1.Ping:{tenant}", f"z{tenant}|GSI1", f"user.v1.User:{tenant}"]
    epochs, index, plain = (first_record(key, 4, now=NOW, lease=30.0) for key in keys)
    table.create(epochs.publishing(NOW, "2026-11-20", 8))
    table.create(index.revised(NOW, count=8, former=frozenset({4})))
    table.create(plain)
    yield keys
    for key in keys:
        wire.call("DeleteItem", {"TableName": topology_table, "Key": {TOPOLOGY_KEY: {"S": key}}})


def test_records_are_named_by_what_the_release_does_not_understand(
    wire: Transport, topology_table: str, grown: list[str]
) -> None:
    def found(*understood: str) -> list[tuple[str, str]]:
        records = unknown_records(wire, topology_table, understood)
        return [(each.key, each.attribute) for each in records if each.key in grown]

    by_epochs, index, _ = grown
    assert found() == [(by_epochs, TOPOLOGY_EPOCHS), (index, TOPOLOGY_FORMER_COUNTS)]
    assert found(TOPOLOGY_EPOCHS) == [(index, TOPOLOGY_FORMER_COUNTS)]
    assert found(*TOPOLOGY_UNDERSTOOD) == []


def test_a_rollback_that_strands_counts_lists_them_and_needs_more_than_yes(
    deployed: CommandLine, functions: Functions, grown: list[str]
) -> None:
    rollback = ("rollback", "--env", "staging")

    looked = deployed.run(*rollback, "--dry-run", "--json")
    refused = deployed.run(*rollback, "--yes")
    unmoved = list(functions.moved)
    confirmed = deployed.run(*rollback, "--yes", "--despite-records")

    assert (looked.status, refused.status, confirmed.status) == (0, 1, 0)
    assert {"key": grown[0], "attribute": "epochs"} in looked.summary["not_understood"]
    for outcome in (looked, refused):
        assert f"{grown[0]} has grown by epochs: that release answers 500 to all requests for it" in outcome.err
        assert f"{grown[1]} has grown for new entries alone" in outcome.err
        assert grown[2] not in outcome.err
    assert "release older does not understand stored shard counts" in refused.err
    assert "add --despite-records. Nothing was changed" in refused.err
    assert unmoved == []
    assert functions.moved == ["api to older", "writer to older"]


def test_a_release_that_understands_all_records_is_returned_to_as_before(
    deployed: CommandLine, functions: Functions, grown: list[str]
) -> None:
    assert grown
    functions.older = ALL

    done = deployed.run("rollback", "--env", "staging", "--yes", "--json")

    assert (done.status, done.summary["not_understood"]) == (0, [])
    assert "understand" not in done.err
    assert functions.moved == ["api to older", "writer to older"]


def test_a_rollback_names_the_account_before_its_question(deployed: CommandLine, functions: Functions) -> None:
    functions.older = ALL

    refused = deployed.run("rollback", "--env", "staging")
    named = deployed.run("rollback", "--env", "prod")

    assert (refused.status, named.status, functions.moved) == (1, 1, [])
    assert "cdk.json names no account for staging" in refused.err
    assert "so nobody can confirm account" in refused.err
    assert "cdk.json names no account" not in named.err
    assert "nobody can confirm: add --yes" in named.err
