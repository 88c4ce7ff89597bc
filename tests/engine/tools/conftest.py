"""What tests of commands start from: deployed environments, and counts of users that no other test has changed.

The stacks of environments are on moto, their tables on the session's engine.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID

from domain.samples.users import User
from dynashard import definition
from dynashard.schema import TOPOLOGY_KEY
from dynashard.topology import TopologyTable
from dynashard.transport import Transport
from tests.engine.command_line import ROOT, CommandLine
from tests.engine.tools.deployed_stack import deploy
from tests.engine.tools.reshard_world import ReshardWorld, reshard_world


@pytest.fixture
def tables(local_table: str, topology_table: str, records: str) -> dict[str, str]:
    """Outputs of a data stack that name the tables of `make run` in the session's engine."""
    return {"TableName": local_table, "TopologyName": topology_table, "IdempotencyName": records}


@pytest.fixture
def deployed(
    command_line: CommandLine, engine_url: str, tables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[CommandLine]:
    """The command line in the folder of a backend with the environments `prod` and `staging`.

    `cdk.json` names the account of `prod`, and none for `staging`.
    """
    dev = json.loads((ROOT / "cdk.json").read_text())["context"]["environments"]["dev"]
    environments = {"prod": {**dev, "account": DEFAULT_ACCOUNT_ID}, "staging": dev}
    (command_line.folder / "cdk.json").write_text(json.dumps({"context": {"environments": environments}}))
    monkeypatch.chdir(command_line.folder)
    with mock_aws():
        keys = {name: os.environ[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
        variables = {"AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL_DYNAMODB": engine_url}
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        for environment in environments:
            deploy(environment, tables)
        yield replace(command_line, environment={**keys, **variables})


@pytest.fixture
def topology(wire: Transport, topology_table: str) -> Iterator[TopologyTable]:
    """The topology table of `make run` without records of users. Its records are restored afterwards."""

    def forget() -> None:
        for key in keys:
            wire.call("DeleteItem", {"TableName": topology_table, "Key": {TOPOLOGY_KEY: {"S": key}}})

    family = definition(User).name
    keys = [family, f"{family}|GSI2", f"{family}|GSI3"]
    table = TopologyTable(wire, topology_table)
    before = table.read(keys)
    forget()
    yield table
    forget()
    for record in before.values():
        table.create(record)


@pytest.fixture
def world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[ReshardWorld]:
    """A backend on an engine of its own, with the clock of the test."""
    with reshard_world(tmp_path, monkeypatch, capsys) as made:
        yield made
