"""What commands have in common: finding the backend, wrong arguments and settings, and errors."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from moto import mock_aws

from domain.samples.users import User
from dynashard.service import Collection
from tests.domain_served import ENTITIES
from tests.engine.command_line import CommandLine, emails_of, expected, user
from tests.engine.tools.deployed_stack import deploy

pytestmark = pytest.mark.engine

Users = Collection[User]


def with_environment(command_line: CommandLine, **environment: str) -> CommandLine:
    return replace(command_line, environment={**command_line.environment, **environment})


@contextmanager
def free_port() -> Iterator[int]:
    """A port in use on which nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


@pytest.mark.parametrize("command", ["load", "topology"])
def test_a_stopped_stack_is_reported_in_one_line_with_the_remedy(
    command_line: CommandLine, tenant: str, command: str
) -> None:
    file = command_line.file("users.jsonl", user(0))
    arguments = {
        "load": ["load", "users", str(file), "--tenant", tenant],
        "topology": ["topology", "user.v1.User", tenant],
    }

    with free_port() as port:
        away = with_environment(command_line, DYNAMODB_ENDPOINT="", DYNAMODB_PORT=str(port))
        ended = away.run(*arguments[command])

    assert (ended.status, ended.out) == (1, "")
    [line] = ended.err.splitlines()
    assert f"nothing answers at http://127.0.0.1:{port}" in line
    assert "`make run`" in line
    assert not file.with_name("users.jsonl.load-state").exists()


def test_the_port_of_make_run_is_the_port_of_commands(
    command_line: CommandLine, engine_url: str, users: Users, tenant: str
) -> None:
    port = engine_url.rpartition(":")[2]
    file = command_line.file("users.jsonl", user(0))

    loaded = with_environment(command_line, DYNAMODB_ENDPOINT="", DYNAMODB_PORT=port).run(
        "load", "users", file, "--tenant", tenant
    )

    assert loaded.status == 0
    assert emails_of(users, tenant) == expected(1)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("DYNAMODB_PORT", "0", "DYNAMODB_PORT=0 does not name the engine"),
        ("DYNAMODB_PORT", "many", "DYNAMODB_PORT=many cannot be used"),
        ("DYNAMODB_ENDPOINT", "nowhere", "DYNAMODB_ENDPOINT=nowhere cannot be used"),
    ],
)
def test_a_wrong_variable_is_named(
    command_line: CommandLine, tenant: str, variable: str, value: str, message: str
) -> None:
    wrong = with_environment(command_line, **{"DYNAMODB_ENDPOINT": "", variable: value})

    ended = wrong.run("topology", "user.v1.User", tenant)

    assert (ended.status, len(ended.err.splitlines())) == (1, 1)
    assert message in ended.err


def test_an_impossible_data_folder_is_reported(command_line: CommandLine, tenant: str) -> None:
    blocked = command_line.file("a file", "no folder")

    ended = with_environment(command_line, DATA_DIR=str(blocked / "data")).run("topology", "user.v1.User", tenant)

    assert (ended.status, len(ended.err.splitlines())) == (1, 1)
    assert "set DATA_DIR" in ended.err


def test_a_missing_file_is_reported(command_line: CommandLine, tenant: str) -> None:
    ended = command_line.run("load", "users", command_line.folder / "none.csv", "--tenant", tenant)

    assert ended.status == 1
    assert ended.err.endswith("none.csv cannot be read: No such file or directory\n")


def test_a_folder_in_place_of_a_file_is_refused(command_line: CommandLine, tenant: str) -> None:
    ended = command_line.run("load", "users", command_line.folder, "--tenant", tenant, "--format", "csv")

    assert ended.status == 1
    assert "cannot be read: Is a directory" in ended.err


def test_an_unknown_entity_is_refused_with_the_known_ones(command_line: CommandLine) -> None:
    load = command_line.run("load", "people", "x.csv")
    topology = command_line.run("topology", "people")

    there_are = ", ".join(each.path for each in ENTITIES)
    assert (load.status, load.err) == (1, f"error: no entity is called 'people'. There are: {there_are}\n")
    assert (topology.status, topology.err) == (1, f"error: no entity is called 'people'. There are: {there_are}\n")


def test_standard_input_needs_a_format(command_line: CommandLine) -> None:
    ended = command_line.run("load", "users", "-")

    assert (ended.status, ended.err) == (
        1,
        "error: the format of '-' is not known: give --format csv or --format jsonl\n",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["load"],
        ["load", "users"],
        ["load", "users", "x.csv", "--format", "xml"],
        ["load", "users", "x.csv", "--on-error", "ignore"],
        ["load", "users", "x.csv", "--nonsense"],
        ["nonsense"],
        ["topology", "user.v1.User", "abc", "more"],
    ],
)
def test_a_wrong_use_exits_with_2(command_line: CommandLine, arguments: list[str]) -> None:
    ended = command_line.run(*arguments)

    assert (ended.status, ended.out) == (2, "")
    assert "Usage: " in ended.err


@pytest.mark.parametrize("arguments", [["--help"], ["load", "--help"], ["topology", "--help"]])
def test_help_is_given(command_line: CommandLine, arguments: list[str]) -> None:
    ended = command_line.run(*arguments)

    assert (ended.status, ended.err) == (0, "")
    assert "Usage: dynashard" in ended.out


def test_an_unwritable_errors_file_is_reported_before_anything_is_loaded(
    command_line: CommandLine, users: Users, tenant: str
) -> None:
    file = command_line.file("users.jsonl", user(0))

    ended = command_line.run("load", "users", file, "--tenant", tenant, "--errors", command_line.folder / "no" / "e")

    assert (ended.status, len(ended.err.splitlines())) == (1, 1)
    assert emails_of(users, tenant) == []


def test_an_unwritable_checkpoint_is_reported_before_anything_is_loaded(
    command_line: CommandLine, users: Users, tenant: str
) -> None:
    file = command_line.file("users.jsonl", user(0))

    ended = command_line.run("load", "users", file, "--tenant", tenant, "--state", command_line.folder / "no" / "s")

    assert (ended.status, len(ended.err.splitlines())) == (1, 1)
    assert "name another file with --state" in ended.err
    assert emails_of(users, tenant) == []


@pytest.fixture
def account(command_line: CommandLine, engine_url: str) -> Iterator[CommandLine]:
    """The command line with an account whose DynamoDB is the engine, set by botocore's own variable."""
    variables = {"AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL_DYNAMODB": engine_url}
    with mock_aws():
        keys = {name: os.environ[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
        yield replace(command_line, environment={**keys, **variables})


def test_a_deployed_environment_is_found_by_the_outputs_of_its_stack(
    account: CommandLine, local_table: str, topology_table: str, users: Users, tenant: str
) -> None:
    deploy("staging", {"TableName": local_table, "TopologyName": topology_table})
    file = account.file("users.jsonl", user(0), user(1))

    loaded = account.run("load", "users", file, "--tenant", tenant, "--env", "staging")
    shown = account.run("topology", "user.v1.User", tenant, "--env", "staging", "--json")

    assert (loaded.status, shown.status) == (0, 0)
    assert emails_of(users, tenant) == expected(2)
    assert sum(shard["items"] for shard in shown.summary["shards"]) == 2


def test_commands_send_over_the_transport_that_the_setting_names(
    account: CommandLine, local_table: str, topology_table: str, tenant: str
) -> None:
    deploy("staging", {"TableName": local_table, "TopologyName": topology_table})
    command = ("topology", "user.v1.User", tenant, "--env", "staging", "--json")

    direct, unknown = (
        replace(account, environment={**account.environment, "TRANSPORT": name}).run(*command)
        for name in ("direct", "pigeon")
    )

    assert direct.status == 0
    assert (unknown.status, unknown.err.strip()) == (1, "error: TRANSPORT is 'pigeon': use botocore or direct")


def test_a_load_into_one_environment_is_not_resumed_into_another(
    account: CommandLine, local_table: str, topology_table: str, tenant: str
) -> None:
    deploy("staging", {"TableName": local_table, "TopologyName": topology_table})
    deploy("prod", {"TableName": local_table, "TopologyName": topology_table})
    file = account.file("users.jsonl", user(0), "{}")
    account.run("load", "users", file, "--tenant", tenant, "--env", "staging")

    resumed = account.run("load", "users", file, "--tenant", tenant, "--env", "prod", "--resume")

    assert resumed.status == 1
    assert "into the environment staging" in resumed.err


def test_an_environment_that_is_not_deployed_is_reported(account: CommandLine, tenant: str) -> None:
    ended = account.run("topology", "user.v1.User", tenant, "--env", "nowhere")

    assert (ended.status, len(ended.err.splitlines())) == (1, 1)
    assert "the stack Dynashard-nowhere-Data cannot be read: " in ended.err
    assert "does not exist; cdk.json has no environment nowhere, but local, dev, prod" in ended.err


def test_nothing_is_halted_in_an_environment_that_nobody_knows(account: CommandLine) -> None:
    ended = account.run("reshard", "halt", "--env", "nowhere")

    assert (ended.status, ended.out) == (1, "")
    assert "there is no stack Dynashard-nowhere-Reshard, so nothing was stopped; cdk.json has no" in ended.err


@pytest.mark.parametrize("missing", ["RESTORED_TABLE", "RESTORED_TOPOLOGY"])
def test_a_restored_table_that_does_not_exist_is_named(
    account: CommandLine, local_table: str, topology_table: str, tenant: str, missing: str
) -> None:
    deploy("staging", {"TableName": local_table, "TopologyName": topology_table})
    restored = {"RESTORED_TABLE": local_table, "RESTORED_TOPOLOGY": topology_table, missing: "Mistyped-1"}

    ended = with_environment(account, **restored).run("topology", "user.v1.User", tenant, "--env", "staging")

    assert (ended.status, ended.out) == (1, "")
    assert ended.err == f"error: {missing} is Mistyped-1, and there is no such table in us-east-1\n"


def test_an_interrupted_halt_does_not_say_that_nothing_was_done(
    account: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr("dynashard_tools.reshard.command.halt", interrupted)

    ended = account.run("reshard", "halt", "--env", "dev")

    assert (ended.status, ended.out) == (130, "")
    assert ended.err == "error: interrupted; some executions may be stopped: run it again for the others\n"


@pytest.mark.parametrize("missing", ["TableName", "TopologyName"])
def test_a_stack_without_a_table_name_is_reported(account: CommandLine, tenant: str, missing: str) -> None:
    deploy("old", {name: "x" for name in ("TableName", "TopologyName", "Other") if name != missing})

    ended = account.run("topology", "user.v1.User", tenant, "--env", "old")

    assert ended.status == 1
    assert f"has no output {missing}" in ended.err


def test_a_missing_region_is_reported(command_line: CommandLine, tenant: str) -> None:
    nowhere = {"AWS_CONFIG_FILE": os.devnull, "AWS_REGION": "", "AWS_DEFAULT_REGION": ""}

    ended = replace(command_line, environment=nowhere).run("topology", "user.v1.User", tenant, "--env", "prod")

    assert (ended.status, len(ended.err.splitlines())) == (1, 1)
    assert "the environment prod has no region: set environments.prod.region in cdk.json" in ended.err


def test_an_endpoint_that_is_not_a_url_is_reported(account: CommandLine, tenant: str) -> None:
    wrong = with_environment(account, AWS_ENDPOINT_URL_CLOUDFORMATION="nonsense")

    ended = wrong.run("topology", "user.v1.User", tenant, "--env", "prod")

    assert (ended.status, len(ended.err.splitlines())) == (1, 1)
    assert "nonsense" in ended.err


def test_missing_credentials_are_reported(command_line: CommandLine, tenant: str) -> None:
    unknown = {
        "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
    }  # fmt: skip

    ended = replace(command_line, environment=unknown).run("topology", "user.v1.User", tenant, "--env", "prod")

    assert (ended.status, len(ended.err.splitlines())) == (1, 1)
    assert "Unable to locate credentials" in ended.err


@pytest.mark.parametrize(("partition", "parts"), [("abc:d", 2), (":", 2), ("user.v1.User:abc:11", 3)])
def test_a_partition_with_too_many_fields_is_refused(command_line: CommandLine, partition: str, parts: int) -> None:
    ended = command_line.run("topology", "user.v1.User", partition)

    assert (ended.status, ended.out) == (1, "")
    form = "a partition of user.v1.User has the form tenant_id"
    assert ended.err == f"error: {form}, but '{partition}' has {parts} parts\n"


def test_an_empty_partition_name_is_refused(command_line: CommandLine) -> None:
    ended = command_line.run("topology", "user.v1.User", "")

    assert (ended.status, len(ended.err.splitlines())) == (1, 1)
    assert "tenant_id" in ended.err
