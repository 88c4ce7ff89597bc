"""`Dynashard.local`, `Dynashard.deployed` and connections to tables by name: none of them guesses shard counts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import orjson
import pytest
from moto import mock_aws

from domain.samples.users import User
from dynashard import Dynashard, declared_counts
from dynashard.errors import ConfigurationError, InvalidCursorError
from dynashard.growth.opening import GrowthOptions
from dynashard.growth.settings import GrowthSettings
from dynashard.locations import CURSOR_KEY_FILE
from dynashard.runtime import Runtime
from dynashard.transport import Transport
from dynashard.transport.direct.transport import DirectTransport
from dynashard.transport.sdk import SdkTransport
from dynashard_local.engine.process import Engine
from dynashard_local.functions.specs import CURSOR_KEY_FILE as KEY_FILE_OF_MAKE_RUN
from tests.engine.resharding.resharding_world import ABC, Moving, Thing, index, moving_world

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

KEYS = ["a secret of 16 bytes"]


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table) as world:
        yield world


def a_user(tenant: str, number: int = 0) -> User:
    return User(tenant_id=tenant, email=f"u{number}@example.com", display_name=f"User {number}")


def test_opening_without_a_topology_table_is_refused(wire: Transport) -> None:
    with pytest.raises(ConfigurationError, match=r'name the table of shard counts, topology_table="..."'):
        Dynashard(wire, table="table", cursor_keys=KEYS)


def test_two_topologies_are_refused(wire: Transport) -> None:
    with pytest.raises(ConfigurationError, match="not both"):
        Dynashard(wire, table="t", topology_table="t2", topology=declared_counts(topology_table=None), cursor_keys=KEYS)


def test_connections_to_named_tables_follow_moved_items(world: Moving) -> None:
    world.fill(Thing, 40)
    world.resize(ABC, 8)

    db = Dynashard(
        world.inner,
        table=world.table,
        topology_table=world.topology,
        cursor_keys=KEYS,
        runtime=Runtime(world.clock),
    )

    assert db.collection(Thing).count({"tenant": "abc"}) == 40


def test_a_resharder_of_its_own_works_on_the_same_tables(world: Moving) -> None:
    world.fill(Thing, 10)
    db = Dynashard(
        world.inner,
        table=world.table,
        topology_table=world.topology,
        cursor_keys=KEYS,
        runtime=Runtime(world.clock),
        growth=GrowthOptions(entities=[Thing]),
    )

    db.resharder().start(ABC, 8)

    assert [(each.key, each.target) for each in world.resharder.busy()] == [(ABC.key, 8)]


def test_a_resharder_of_its_own_waits_for_its_leases_and_operations_and_moves_at_its_share(world: Moving) -> None:
    db = Dynashard(
        world.inner,
        table=world.table,
        topology_table=world.topology,
        cursor_keys=KEYS,
        runtime=Runtime(world.clock),
        lease=130.0,
        operation_seconds=20.0,
        growth=GrowthOptions(settings=GrowthSettings(mover_share=0.1), entities=[Thing]),
    )

    found = db.resharder().estimate(ABC, 8)

    assert found.part == 0.1
    assert found.waiting == pytest.approx(5 * (130.0 + 20.0), abs=20)


def test_without_a_table_of_shard_counts_there_is_nothing_to_change(wire: Transport) -> None:
    db = Dynashard(wire, table="t", topology=declared_counts(topology_table=None), cursor_keys=KEYS)

    with pytest.raises(ConfigurationError, match=r'there is no table of shard counts to change: give topology_table="'):
        db.resharder()


def declared(world: Moving) -> Any:
    topology = declared_counts(topology_table=world.topology)
    db = Dynashard(world.inner, table=world.table, topology=topology, cursor_keys=KEYS, runtime=Runtime(world.clock))
    return db.collection(Thing)


def test_declared_counts_hold_while_the_table_agrees(world: Moving) -> None:
    world.fill(Thing, 10)
    world.resize(ABC, 8)
    world.resize(ABC, 4)

    assert declared(world).count({"tenant": "abc"}) == 10
    assert declared(world).count({"tenant": "other"}) == 0


@pytest.mark.parametrize("stage", ["prepare", "move", "settle", "sweep"])
def test_declared_counts_are_refused_if_the_table_has_others(world: Moving, stage: str) -> None:
    world.fill(Thing, 10)
    world.resharder.start(ABC, 8)
    world.until(ABC, stage)
    things = declared(world)

    for ask in (things.count, things.list, lambda fields: things.create(Thing(**fields, id="new"))):
        with pytest.raises(ConfigurationError, match=r"v1.Thing:abc is declared with 4 shards and has .*: give top"):
            ask({"tenant": "abc"})
    assert things.count({"tenant": "other"}) == 0


def test_declared_counts_are_refused_when_a_lease_after_the_resize_begins(world: Moving) -> None:
    things = declared(world)
    things.count({"tenant": "abc"})
    world.resize(ABC, 8)

    with pytest.raises(ConfigurationError, match="has 8"):
        things.count({"tenant": "abc"})


def test_declared_counts_of_an_index_are_refused_too(world: Moving) -> None:
    world.resize(index(Thing, "by_colour"), 8)

    with pytest.raises(ConfigurationError, match=r"index by_colour of .* is declared with 2"):
        declared(world).list({"tenant": "abc", "colour": "red"}, index="by_colour")


def local(engine_url: str, folder: Path, **more: str) -> Dynashard:
    return Dynashard.local({"DYNAMODB_ENDPOINT": engine_url, "DATA_DIR": str(folder), **more})


def test_the_local_stack_is_found_under_the_names_of_make_run(
    engine: Engine, local_table: str, topology_table: str, tmp_path: Path, wire: Transport
) -> None:
    theirs = Dynashard(wire, table=local_table, topology_table=topology_table, cursor_keys=KEYS).collection(User)
    tenant = uuid4().hex
    (tmp_path / CURSOR_KEY_FILE).write_text(f"{KEYS[0]}\n")

    with local(engine.endpoint, tmp_path) as db:
        users = db.collection(User)
        users.batch_write(put=[a_user(tenant, number) for number in range(30)])
        first = users.list({"tenant_id": tenant}, limit=20)

    assert db.store.table == local_table
    assert CURSOR_KEY_FILE == KEY_FILE_OF_MAKE_RUN
    assert len(theirs.list({"tenant_id": tenant}, limit=20, cursor=first.cursor).items) == 10


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("DYNAMODB_PORT", "0"),
        ("DYNAMODB_PORT", "80000"),
        ("DYNAMODB_PORT", "eight"),
        ("TOPOLOGY_LEASE_SECONDS", "0"),
        ("TOPOLOGY_LEASE_SECONDS", "nan"),
        ("TOPOLOGY_LEASE_SECONDS", "soon"),
    ],
)
def test_an_invalid_variable_is_named(variable: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{variable} is '{value}'"):
        Dynashard.local({variable: value})


def stack(name: str, outputs: dict[str, str]) -> None:
    template = {
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {name: {"Value": value} for name, value in outputs.items()},
    }
    client = boto3.client("cloudformation", region_name="us-east-1")
    client.create_stack(StackName=name, TemplateBody=orjson.dumps(template).decode())


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, engine_url: str) -> Iterator[None]:
    """An account whose DynamoDB is the engine, set by botocore's own variable."""
    with mock_aws():
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", engine_url)
        yield


def secret(*keys: str) -> str:
    client = boto3.client("secretsmanager", region_name="us-east-1")
    return str(client.create_secret(Name="keys", SecretString=orjson.dumps({"keys": keys}).decode())["ARN"])


def test_an_environment_is_found_by_the_outputs_of_its_stacks(
    account: None, local_table: str, topology_table: str, wire: Transport, tenant: str
) -> None:
    del account
    stack("Dynashard-dev-Data", {"TableName": local_table, "TopologyName": topology_table})
    stack("Dynashard-dev-Api", {"CursorSecretArn": secret(KEYS[0])})
    theirs = Dynashard(wire, table=local_table, topology_table=topology_table, cursor_keys=KEYS).collection(User)

    with Dynashard.deployed("dev", region="us-east-1", growth="off") as db:
        assert isinstance(db.store.transport, DirectTransport)
        users = db.collection(User)
        users.batch_write(put=[a_user(tenant, number) for number in range(30)])
        first = theirs.list({"tenant_id": tenant}, limit=20)
        second = users.list({"tenant_id": tenant}, limit=20, cursor=first.cursor)
        with pytest.raises(InvalidCursorError):
            users.list({"tenant_id": tenant}, limit=20, cursor=f"{first.cursor}x")

    assert len({user.id for user in [*first.items, *second.items]}) == 30


def test_an_environment_is_opened_by_a_session_of_boto3(
    account: None, local_table: str, topology_table: str, tenant: str
) -> None:
    del account
    stack("Dynashard-dev-Data", {"TableName": local_table, "TopologyName": topology_table})
    stack("Dynashard-dev-Api", {"CursorSecretArn": secret(KEYS[0])})

    with Dynashard.deployed("dev", session=boto3.Session(region_name="us-east-1")) as db:
        users = db.collection(User)
        users.batch_write(put=[a_user(tenant, number) for number in range(3)])
        page = users.list(tenant_id=tenant, limit=2)

    assert (len(page), page.cursor is None) == (2, False)


def test_single_items_need_no_cursor_secret(
    account: None, local_table: str, topology_table: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del account
    monkeypatch.setenv("TRANSPORT", "botocore")
    stack("Dynashard-dev-Data", {"TableName": local_table, "TopologyName": topology_table})

    with Dynashard.deployed("dev", growth="off") as db:
        assert isinstance(db.store.transport, SdkTransport)
        users = db.collection(User)
        ada = users.create(a_user(tenant))
        assert users.get({"tenant_id": tenant, "id": ada.id}) == ada
        users.create(a_user(tenant, 1))
        with pytest.raises(ConfigurationError, match="the stack Dynashard-dev-Api cannot be read"):
            users.list({"tenant_id": tenant}, limit=1)


@pytest.mark.parametrize("missing", ["TableName", "TopologyName"])
def test_an_environment_without_a_table_name_is_refused(account: None, missing: str) -> None:
    del account
    stack("Dynashard-old-Data", {name: "x" for name in ("TableName", "TopologyName", "Other") if name != missing})

    with pytest.raises(ConfigurationError, match=f"Dynashard-old-Data has no output {missing}: deploy it again"):
        Dynashard.deployed("old")


def test_an_unknown_environment_or_profile_is_refused(account: None) -> None:
    del account
    with pytest.raises(ConfigurationError, match="the stack Dynashard-nowhere-Data cannot be read"):
        Dynashard.deployed("nowhere")
    with pytest.raises(ConfigurationError, match="nobody"):
        Dynashard.deployed("dev", profile="nobody")
