"""`dynashard restore`: its steps on moto's tables and functions, and repeated purges on the local engine.

Neither engine has point-in-time recovery: moto copies a table as it is now, whatever the moment.
"""

import io
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zipfile import ZipFile

import botocore.session
import pytest
from moto import mock_aws

from domain.samples.users import User
from dynashard.service import Collection
from dynashard.transport import Transport
from dynashard_tools.account.purging import purge
from dynashard_tools.account.records import PurgeRecords
from dynashard_tools.account.tenant_data import TenantData
from dynashard_tools.entities import models
from dynashard_tools.failure import CommandError, CommandInterruptedError
from dynashard_tools.restore.command import moment_of, run
from dynashard_tools.restore.steps import Restore, pair_of
from dynashard_tools.restore.tables import Tables
from dynashard_tools.restore.writers import Writers

pytestmark = pytest.mark.engine

REGION = "eu-west-1"


class Moto:
    """Moto's client of DynamoDB, with contributor insights, which moto lacks, and a window of 35 days."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.insights: set[tuple[str, str | None]] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def describe_continuous_backups(self, TableName: str) -> Mapping[str, Any]:  # noqa: N803
        answer: Mapping[str, Any] = self._client.describe_continuous_backups(TableName=TableName)
        recovery = answer["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
        now = datetime.now(UTC)
        ends = {"EarliestRestorableDateTime": now - timedelta(35), "LatestRestorableDateTime": now + timedelta(1)}
        recovery.update(ends if recovery["PointInTimeRecoveryStatus"] == "ENABLED" else {})
        return answer

    def describe_contributor_insights(self, TableName: str, IndexName: str | None = None) -> Mapping[str, Any]:  # noqa: N803
        on = TableName == "Items" or (TableName, IndexName) in self.insights
        status = "ENABLED" if on else "DISABLED"
        return {"ContributorInsightsStatus": status, "ContributorInsightsMode": "THROTTLED_KEYS"}

    def update_contributor_insights(self, TableName: str, IndexName: str | None = None, **_: Any) -> None:  # noqa: N803
        self.insights.add((TableName, IndexName))


@dataclass
class World:
    """An environment on moto, whose items are on the engine."""

    client: Moto
    functions: Any
    wire: Transport
    table: str
    purges: PurgeRecords
    moment: datetime = field(default_factory=lambda: datetime.now(UTC) - timedelta(minutes=10))
    in_use: str = "Items"
    agrees: bool = True
    verified: int = 0
    halted: int = 0

    def restore(self) -> Restore:
        pairs = [pair_of(self.in_use, self.moment), pair_of("Topology", self.moment)]
        return Restore(
            environment="prod",
            moment=self.moment,
            tables=Tables(self.client, pairs, lambda _: None),
            writers=Writers(self.functions, {"api": "api", "writer": "writer"}, {"api": 7}),
            purges=self.purges,
            purge=lambda tenant: self.purge(tenant, pairs[0].target),
            verify=self._verify,
            in_use=lambda: self.in_use,
            busy=list,
            halt=self._halt,
        )

    def purge(self, tenant: str, table: str) -> None:
        record = self.purges.begin(tenant, table)
        data = TenantData(self.wire, self.table, models())
        done = purge(data, tenant, scanned=lambda _: None, removed=lambda _: None)
        self.purges.end(record, done.total)

    def reserved(self) -> list[int | None]:
        asked = (self.functions.get_function_concurrency(FunctionName=name) for name in ("api", "writer"))
        return [each.get("ReservedConcurrentExecutions") for each in asked]

    def _verify(self) -> bool:
        self.verified += 1
        return self.agrees

    def _halt(self) -> None:
        self.halted += 1


@pytest.fixture
def world(
    transport: Transport, wire: Transport, local_table: str, records: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        session = botocore.session.get_session()
        services = ("dynamodb", "lambda", "iam")
        dynamodb, functions, iam = (session.create_client(each, region_name=REGION) for each in services)
        for table in ("Items", "Topology"):
            create_table(dynamodb, table)
        trust = iam.create_role(RoleName="role-of-tests", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        for name in ("api", "writer"):
            functions.create_function(
                FunctionName=name, Runtime="python3.13", Role=trust, Handler="a.b", Code={"ZipFile": an_archive()}
            )
        clock = lambda: datetime.now(UTC).timestamp()  # noqa: E731
        yield World(Moto(dynamodb), functions, wire, local_table, PurgeRecords(transport, records, clock))


def create_table(client: Any, name: str) -> None:
    keys = ("PK", "SK")
    index = {
        "IndexName": "GSI1",
        "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
        KeySchema=[{"AttributeName": k, "KeyType": t} for k, t in zip(keys, ("HASH", "RANGE"), strict=True)],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        GlobalSecondaryIndexes=[index],
        DeletionProtectionEnabled=True,
    )
    specification = {"PointInTimeRecoveryEnabled": True}
    client.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=specification)
    if name == "Items":
        expiry = {"Enabled": True, "AttributeName": "ExpiresAt"}
        client.update_time_to_live(TableName=name, TimeToLiveSpecification=expiry)


def an_archive() -> bytes:
    content = io.BytesIO()
    with ZipFile(content, "w") as archive:
        archive.writestr("a.py", "")
    return content.getvalue()


def answering(monkeypatch: pytest.MonkeyPatch, answers: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{each}\n" for each in answers)))


def test_every_step_is_done_after_a_yes_and_none_of_them_twice(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = pair_of("Items", world.moment).target
    # Until the deployment: stop, restore, verify, settings, and the question whether it is deployed.
    answering(monkeypatch, "yyyyy")
    with pytest.raises(CommandError, match="prod still uses Items: deploy it with the setting `restored`"):
        run(world.restore())
    shown = capsys.readouterr().out
    stopped = world.reserved()
    world.in_use = target
    answering(monkeypatch, "y")
    run(world.restore())

    assert stopped == [0, 0]
    assert world.reserved() == [7, None]
    assert (world.verified, world.halted) == (1, 1)
    described = world.client.describe_table(TableName=target)["Table"]
    assert described["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert described["DeletionProtectionEnabled"] is True
    assert (
        world.client.describe_time_to_live(TableName=target)["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED"
    )
    backups = world.client.describe_continuous_backups(TableName=target)["ContinuousBackupsDescription"]
    assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
    assert world.client.insights == {(target, None), (target, "GSI1")}
    assert described["LatestStreamArn"] in shown
    assert "cdk deploy -c env=prod --all" in shown
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.endswith(": done") for line in lines) == 7
    assert lines[-1].strip() == "dynashard verify --mend --env prod"


def test_purges_after_the_moment_are_repeated_before_and_after_the_switch(
    world: World, users: Collection[User], tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after, meanwhile, kept = (f"{tenant}{name}" for name in ("before", "after", "meanwhile", "kept"))
    world.purge(before, "Items")
    world.moment = datetime.now(UTC) + timedelta(minutes=6)
    for name in (after, meanwhile, kept):
        users.create(User(tenant_id=name, id="1", email="a@example.com", display_name="A"))
    ended = world.moment.timestamp() + 60
    world.purges._clock = lambda: ended
    world.purges.end(world.purges.begin(after, "Items"), 1)

    answering(monkeypatch, "nynyyn")
    with pytest.raises(CommandError, match="stopped before this step"):
        run(world.restore())
    first = {name: users.find({"tenant_id": name, "id": "1"}) is not None for name in (after, meanwhile, kept)}
    world.purges.end(world.purges.begin(meanwhile, "Items"), 1)
    world.in_use = pair_of("Items", world.moment).target
    answering(monkeypatch, "y")
    run(world.restore())

    assert first == {after: False, meanwhile: True, kept: True}
    assert users.find({"tenant_id": meanwhile, "id": "1"}) is None
    assert users.find({"tenant_id": kept, "id": "1"}) is not None
    assert before not in {each.tenant for each in world.purges.all() if each.table != "Items"}


@pytest.mark.parametrize("answers", ["n", ""], ids=["no", "nobody answers"])
def test_a_step_that_is_refused_ends_the_command_with_nothing_done(
    world: World, answers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, f"n{answers}")

    with pytest.raises(CommandError, match="run the command again with the same --to"):
        run(world.restore())

    assert world.client.list_tables()["TableNames"] == ["Items", "Topology"]
    assert world.reserved() == [None, None]


def test_an_interrupted_step_does_not_say_that_nothing_was_done(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: World) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(World, "_halt", interrupted)
    answering(monkeypatch, "y")

    with pytest.raises(CommandInterruptedError, match="this step may be done in part: run the command again"):
        run(world.restore())

    assert world.reserved() == [0, 0]


def test_tables_that_do_not_agree_are_not_used(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.agrees = False
    answering(monkeypatch, "nyy")

    with pytest.raises(CommandError, match=r"RESTORED_TABLE=Items-\S+ RESTORED_TOPOLOGY=Topology-\S+ dynashard verify"):
        run(world.restore())

    target = pair_of("Items", world.moment).target
    assert "LatestStreamArn" not in world.client.describe_table(TableName=target)["Table"]


def test_a_moment_outside_of_the_recovery_is_refused_before_any_question(world: World) -> None:
    world.moment -= timedelta(days=36)

    with pytest.raises(CommandError, match=r"Items can be restored to \S+ until \S+, not to 2"):
        run(world.restore())


def test_a_table_without_recovery_is_refused_before_any_question(world: World) -> None:
    off = {"PointInTimeRecoveryEnabled": False}
    world.client.update_continuous_backups(TableName="Topology", PointInTimeRecoverySpecification=off)

    with pytest.raises(CommandError, match="Topology has no point-in-time recovery"):
        run(world.restore())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("yesterday", "it must be a time such as"),
        ("2026-11-20T10:15:00", "without a time zone; add Z"),
        ("2999-01-01T00:00:00Z", "in the future"),
    ],
)
def test_a_moment_that_cannot_be_meant_is_refused(text: str, problem: str) -> None:
    with pytest.raises(CommandError, match=problem):
        moment_of(text)


def test_the_names_of_new_tables_contain_the_moment() -> None:
    moment = moment_of("2026-11-20T11:15:00+01:00")

    first = pair_of("Items", moment)

    assert first.target == "Items-20261120T101500Z"
    assert pair_of(first.target, moment) == first
    assert pair_of(first.target, moment_of("2026-11-21T00:00:00Z")).source == first.target
