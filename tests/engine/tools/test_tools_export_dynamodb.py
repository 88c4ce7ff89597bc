"""`dynashard export` of an export that DynamoDB has written to S3: starting, following and converting it."""

import gzip
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from moto import mock_aws

from domain.samples.pings import Ping
from dynashard import definition
from dynashard.schema import EXPIRES_AT, MOVED_FROM, MOVED_TO, PK, REV, SK, TYPE
from dynashard_tools.export.snapshot import Place, Snapshot
from dynashard_tools.failure import CommandError, CommandInterruptedError
from tests.engine.command_line import CommandLine
from tests.engine.tools.export_world import DATE, DAY, lines, ping, rows_of

pytestmark = pytest.mark.engine

TAKEN: Final = f"{DAY + timedelta(days=2):%Y-%m-%d}T00:00:00.000Z"


def wired(item: Ping, **system: Any) -> dict[str, Any]:
    entity = definition(Ping)
    key = entity.key_of(item)
    system = {PK: {"S": f"{key.partition}:0"}, SK: {"S": key.sort}, TYPE: {"S": entity.name}, REV: {"S": "r"}, **system}
    return {**entity.encode(item.__dict__), **system}


def exported(folder: Path, *files: Sequence[Mapping[str, Any]], taken: str | None = TAKEN) -> Path:
    """Write an export in the layout of DynamoDB."""
    data = folder / "AWSDynamoDB" / "0123-abcd" / "data"
    data.mkdir(parents=True)
    for number, items in enumerate(files):
        with gzip.open(data / f"{number}.json.gz", "wb") as file:
            file.writelines(orjson.dumps({"Item": item}) + b"\n" for item in items)
    if taken is not None:
        (data.parent / "manifest-summary.json").write_text(json.dumps({"version": "2020-06-30", "exportTime": taken}))
    return data.parent


def hidden(tenant: str) -> list[dict[str, Any]]:
    """Return items of an export that are not pings of the day."""
    past = {"N": str(int((DAY + timedelta(days=1)).timestamp()))}
    return [
        {**wired(ping(tenant, 50)), MOVED_TO: {"N": "8"}},
        {PK: {"S": f"ping.v1.Ping:abc:dark.e1:{DATE}:0"}, SK: {"S": "x"}, MOVED_TO: {"N": "8"}},
        wired(ping(tenant, 51), **{EXPIRES_AT: past}),
        wired(ping(tenant, 52), Type={"S": "user.v1.User"}),
        wired(ping("other", 53)),
        wired(ping(tenant, 54, DAY + timedelta(days=1))),
    ]


def test_an_export_of_dynamodb_becomes_the_items_that_readers_see(command_line: CommandLine, tenant: str) -> None:
    items = [ping(tenant, n, DAY + timedelta(hours=n)) for n in range(4)]
    moved = {**wired(items[3]), MOVED_FROM: {"N": "4"}}
    folder = exported(
        command_line.folder, [wired(each) for each in items[:2]], [*hidden(tenant), wired(items[2]), moved]
    )
    path = command_line.folder / "day.jsonl"

    outcome = command_line.run(
        "export", "convert", "pings", folder, "--day", DATE, "--tenant", tenant, "--to", path, "--json"
    )

    assert outcome.status == 0, outcome.err
    assert lines(path) == rows_of(items)
    assert outcome.summary["items"] == 4


def test_an_export_without_its_time_keeps_expired_items(command_line: CommandLine, tenant: str) -> None:
    folder = exported(command_line.folder, hidden(tenant)[2:3], taken=None)
    path = command_line.folder / "day.jsonl"

    command_line.run("export", "convert", "pings", folder, "--to", path)

    assert [row["id"] for row in lines(path)] == ["p51"]


@pytest.mark.parametrize("wrong", [{"seconds": {"S": "many"}}, {EXPIRES_AT: {"S": "soon"}}])
def test_an_item_that_does_not_fit_is_reported_and_left_out(
    command_line: CommandLine, tenant: str, wrong: dict[str, Any]
) -> None:
    good = ping(tenant, 1)
    folder = exported(command_line.folder, [wired(ping(tenant, 2), **wrong), wired(good)])
    path = command_line.folder / "day.jsonl"

    outcome = command_line.run("export", "convert", "pings", folder, "--to", path)

    assert outcome.status == 3
    assert "left out: ping.v1.Ping" in outcome.err
    assert lines(path) == rows_of([good])


@pytest.mark.parametrize(
    "damage",
    [b"", b"no gzip", gzip.compress(b'{"Item": {}}\n' * 99, mtime=0)[:-12], gzip.compress(b"{", mtime=0)],
    ids=["empty", "no gzip", "cut off", "no JSON"],
)
def test_a_damaged_export_is_refused(command_line: CommandLine, damage: bytes) -> None:
    folder = exported(command_line.folder, [wired(ping("abc", 1))])
    (folder / "data" / "1.json.gz").write_bytes(damage)
    path = command_line.folder / "day.jsonl"

    outcome = command_line.run("export", "convert", "pings", folder, "--to", path)

    assert (outcome.status, path.exists()) == ((0, True) if not damage else (1, False))
    assert ("is damaged" in outcome.err) == bool(damage)


class Exporting:
    """Answers like DynamoDB during an export."""

    def __init__(self, *statuses: str, **more: Any) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._statuses = list(statuses)
        self._more = more

    def describe_table(self, **request: Any) -> Any:
        self.asked.append(("describe_table", request))
        return {"Table": {"TableArn": "arn:aws:dynamodb:eu-west-1:1:table/items"}}

    def export_table_to_point_in_time(self, **request: Any) -> Any:
        self.asked.append(("export_table_to_point_in_time", request))
        return {
            "ExportDescription": {"ExportArn": "arn:aws:dynamodb:eu-west-1:1:table/items/export/01-ab", **self._next()}
        }

    def describe_export(self, **request: Any) -> Any:
        self.asked.append(("describe_export", request))
        return {"ExportDescription": self._next()}

    def _next(self) -> dict[str, Any]:
        status = self._statuses.pop(0)
        return {"ExportStatus": status, **(self._more if status != "IN_PROGRESS" else {})}


def test_an_export_to_s3_is_started_and_followed() -> None:
    client = Exporting("IN_PROGRESS", "IN_PROGRESS", "COMPLETED", ItemCount=7, BilledSizeBytes=70)
    said: list[str] = []
    pauses: list[float] = []

    made = Snapshot(client, pauses.append, lambda: "once").run("items", Place.of("s3://archive/pings/"), said.append)

    assert made["place"] == "s3://archive/pings/AWSDynamoDB/01-ab"
    assert (made["items"], made["bytes"]) == (7, 70)
    assert client.asked[1] == (
        "export_table_to_point_in_time",
        {
            "TableArn": "arn:aws:dynamodb:eu-west-1:1:table/items",
            "S3Bucket": "archive",
            "S3Prefix": "pings",
            "ExportFormat": "DYNAMODB_JSON",
            "ClientToken": "once",
        },
    )
    assert pauses == [20.0, 20.0]
    assert said == ["started arn:aws:dynamodb:eu-west-1:1:table/items/export/01-ab"]


def test_a_failed_export_is_reported_with_its_reason() -> None:
    client = Exporting("IN_PROGRESS", "FAILED", FailureCode="S3NoSuchBucket", FailureMessage="The bucket is gone.")

    with pytest.raises(CommandError, match="has failed: S3NoSuchBucket The bucket is gone"):
        Snapshot(client, lambda _: None).run("items", Place.of("s3://archive"), lambda _: None)


def test_an_interrupted_export_is_resumed() -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(CommandInterruptedError, match="DynamoDB continues arn"):
        Snapshot(Exporting("IN_PROGRESS"), interrupt).run("items", Place.of("s3://archive"), lambda _: None)


def test_the_calls_match_the_service_model_of_aws(
    monkeypatch: pytest.MonkeyPatch, command_line: CommandLine, tenant: str
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with mock_aws():
        import boto3  # noqa: PLC0415 - only under the mock

        dynamodb, s3 = boto3.client("dynamodb"), boto3.client("s3")
        s3.create_bucket(Bucket="archive", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
        dynamodb.create_table(
            TableName="items",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": n, "AttributeType": "S"} for n in (PK, SK)],
            KeySchema=[{"AttributeName": PK, "KeyType": "HASH"}, {"AttributeName": SK, "KeyType": "RANGE"}],
        )
        snapshot = Snapshot(dynamodb, lambda _: None)
        with pytest.raises(CommandError, match=r"export table to point in time: .*PointInTimeRecovery"):
            snapshot.run("items", Place.of("s3://archive/pings"), lambda _: None)
        dynamodb.update_continuous_backups(
            TableName="items", PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )
        dynamodb.put_item(TableName="items", Item=wired(ping(tenant, 1)))

        made = snapshot.run("items", Place.of("s3://archive/pings"), lambda _: None)
        path = command_line.folder / "pings.jsonl"
        folder = exported(command_line.folder, [wired(ping(tenant, 1))])
        for file in (folder / "data" / "0.json.gz", folder / "manifest-summary.json"):
            s3.upload_file(str(file), "archive", f"mine/{file.relative_to(folder)}")
        outcome = command_line.run("export", "convert", "pings", "s3://archive/mine", "--to", path)

    assert made["place"].startswith("s3://archive/pings/AWSDynamoDB/")
    assert outcome.status == 0, outcome.err
    assert lines(path) == rows_of([ping(tenant, 1)])
