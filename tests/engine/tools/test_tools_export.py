"""`dynashard export`: what is in the file, whatever moves meanwhile, and what becomes of an export that fails."""

import csv
import gzip
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import orjson
import pyarrow as pa
import pytest
from moto import mock_aws
from pyarrow import parquet
from pydantic import JsonValue

from domain import Ping
from dynashard import Dynashard, Entity, Key, Registry, definition
from dynashard.schema import EXPIRES_AT, MOVED_FROM, MOVED_TO, PK, REV, SK, TYPE
from dynashard.service import Collection
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_patterns import Attachment
from tests.engine.command_line import CURSOR_KEYS, CommandLine
from tools.export.choice import choose
from tools.export.files import new_file
from tools.export.snapshot import Place, Snapshot
from tools.failure import CommandError, CommandInterruptedError

pytestmark = pytest.mark.engine

DAY = datetime(2026, 11, 20, tzinfo=UTC)


def ping(tenant: str, number: int, at: datetime = DAY, **more: Any) -> Ping:
    return Ping(
        tenant_id=tenant, series="dark", episode=f"e{number % 3}", at=at, id=f"p{number}", session_id="s", **more
    )


@pytest.fixture
def pings(wire: Transport, local_table: str) -> Collection[Ping]:
    return Dynashard(wire, table=local_table, topology=DeclaredTopology(), cursor_keys=CURSOR_KEYS).collection(Ping)


@pytest.fixture
def stored(pings: Collection[Ping], tenant: str) -> list[Ping]:
    """Pings of three days around midnight; those of the day are the middle ones."""
    times = [DAY - timedelta(microseconds=1), *(DAY + timedelta(hours=n) for n in range(24)), DAY + timedelta(days=1)]
    items = [ping(tenant, number, at) for number, at in enumerate(times)]
    pings.batch_write(put=items)
    return items


def lines(path: Path) -> list[dict[str, Any]]:
    return sorted((orjson.loads(line) for line in path.read_bytes().splitlines()), key=lambda row: str(row["at"]))


def rows_of(items: Sequence[Ping]) -> list[dict[str, Any]]:
    return [json.loads(item.model_dump_json()) for item in items]


def test_a_day_is_exported_as_json_lines(command_line: CommandLine, stored: list[Ping], tenant: str) -> None:
    path = command_line.folder / "day.jsonl"

    outcome = command_line.run("export", "pings", "--day", "2026-11-20", "--tenant", tenant, "--to", path, "--json")

    assert outcome.status == 0, outcome.err
    assert lines(path) == rows_of(stored[1:-1])
    assert outcome.summary["items"] == 24
    assert outcome.summary["bytes"] == path.stat().st_size
    assert outcome.summary["read_units"] > 0


def test_a_month_and_everything_are_exported(
    command_line: CommandLine, stored: list[Ping], pings: Collection[Ping]
) -> None:
    tenant = stored[0].tenant_id
    later = ping(tenant, 99, DAY + timedelta(days=11))
    pings.create(later)
    month, everything = (command_line.folder / name for name in ("month.jsonl", "all.jsonl"))

    command_line.run("export", "pings", "--month", "2026-11", "--tenant", tenant, "--to", month)
    command_line.run("export", "ping.v1.Ping", "--to", everything)

    assert lines(month) == rows_of(stored)
    assert [row for row in lines(everything) if row["tenant_id"] == tenant] == rows_of([*stored, later])


def test_a_day_is_exported_as_parquet(command_line: CommandLine, stored: list[Ping], tenant: str) -> None:
    path = command_line.folder / "day.parquet"

    outcome = command_line.run("export", "pings", "--day", "2026-11-20", "--tenant", tenant, "--to", path)

    table = parquet.read_table(path).sort_by("at")
    assert outcome.status == 0, outcome.err
    assert "exported 24 items of ping.v1.Ping" in outcome.out
    assert table.schema.field("at").type == pa.timestamp("us", tz="UTC")
    assert table.schema.field("seconds").type == pa.int64()
    assert table.to_pylist() == [item.model_dump() for item in stored[1:-1]]


def test_items_that_move_are_exported_once(
    command_line: CommandLine, stored: list[Ping], wire: Transport, local_table: str, tenant: str
) -> None:
    path = command_line.folder / "day.jsonl"
    mark = {PK: f"ping.v1.Ping:{tenant}:dark.e9:2026-11-20:0", SK: "2026-11-20T01:00:00.000000Z#p1"}
    wire.call(
        "PutItem",
        {"TableName": local_table, "Item": {**{n: {"S": v} for n, v in mark.items()}, MOVED_TO: {"N": "8"}}},
    )

    command_line.run("export", "pings", "--day", "2026-11-20", "--tenant", tenant, "--to", path)

    assert lines(path) == rows_of(stored[1:-1])


class Odd(Entity, name="test.v1.Odd", key=Key("{tenant}", "{id}"), registry=Registry()):
    tenant: str
    id: str
    credit: Decimal = Decimal(0)
    tags: list[str] = []  # noqa: RUF012 - pydantic copies it
    raw: bytes = b""
    weight: float | None = None
    big: int = 0


def test_values_without_a_parquet_type_are_exported_as_text(tmp_path: Path) -> None:
    items = [Odd(tenant="a", id=str(n), credit=Decimal("1.50"), tags=["x", "y"], raw=b"\0", weight=0.5) for n in (1, 2)]

    with new_file(tmp_path / "odd.parquet", Odd) as add:
        for item in items:
            add([item])

    table = parquet.read_table(tmp_path / "odd.parquet")
    assert table.column("tags").to_pylist() == ['["x","y"]'] * 2
    assert table.column("credit").to_pylist() == ["1.5"] * 2
    assert table.column("raw").to_pylist() == [b"\0"] * 2
    assert table.column("weight").to_pylist() == [0.5] * 2


class Wide(Entity, name="test.v1.Wide", key=Key("{tenant}", "{id}"), registry=Registry()):
    tenant: str
    id: str
    note: str | None = None
    at: datetime | None = None
    on: bool = False
    big: int = 0
    nested: dict[str, Any] = {}  # noqa: RUF012 - pydantic copies it
    picture: Annotated[JsonValue | None, Attachment()] = None


def test_csv_names_its_columns_in_the_order_of_the_declaration(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"

    with new_file(path, Wide) as add:
        add([Wide(tenant="a", id="1", at=DAY, on=True, big=2**70, nested={"a": ["ä", None]}, note="5")])
        add([Wide(tenant="a", id="2")])

    assert path.read_bytes().decode() == (
        "tenant,id,note,at,on,big,nested\r\n"
        'a,1,5,2026-11-20T00:00:00Z,true,1180591620717411303424,"{""a"":[""ä"",null]}"\r\n'
        "a,2,,,false,0,{}\r\n"
    )


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_whole_numbers_of_any_size_are_exported(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"wide.{suffix}"

    with new_file(path, Wide) as add:
        add([Wide(tenant="a", id="1", big=2**70, nested={"n": 2**70})])

    assert path.read_text().count("1180591620717411303424") == 2


@pytest.mark.parametrize("text", ['"', "a,b", "a\nb", "a\rb", "a\r\nb", " a ", "'", ";", "\t", "=1+1", "\\"])
def test_csv_keeps_every_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "wide.csv"

    with new_file(path, Wide) as add:
        add([Wide(tenant=text, id="1")])

    with path.open(newline="") as file:
        assert [row["tenant"] for row in csv.DictReader(file)] == [text]


@pytest.mark.parametrize("name", ["day.csv", "day"])
def test_a_day_is_exported_as_csv(command_line: CommandLine, stored: list[Ping], tenant: str, name: str) -> None:
    path = command_line.folder / name

    outcome = command_line.run(
        "export", "pings", "--day", "2026-11-20", "--tenant", tenant, "--to", path, "--format", "csv"
    )

    assert outcome.status == 0, outcome.err
    with path.open(newline="") as file:
        found = sorted(csv.DictReader(file), key=lambda row: row["at"])
    plain = [
        {name: "" if value is None else str(value) for name, value in row.items()} for row in rows_of(stored[1:-1])
    ]
    assert found == plain


def test_an_unfinished_export_keeps_the_existing_file(tmp_path: Path) -> None:
    path = tmp_path / "odd.parquet"
    path.write_text("before")

    with pytest.raises(CommandError, match="does not fit its Parquet column"), new_file(path, Odd) as add:
        add([Odd(tenant="a", id="1", big=2**70)])

    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nobodies", "--to", "x.jsonl"], "no entity is called 'nobodies'"),
        (["pings", "--to", "x.txt"], "end the name in .csv, .jsonl, .parquet, or give --format"),
        (["pings", "--to", "s3://bucket/prefix", "--format", "csv"], "leave --format out"),
        (["pings", "--to", "no/such/folder/x.jsonl"], "cannot be written"),
        (["pings", "--day", "20.11.2026", "--to", "x.jsonl"], "write it like 2026-11-20"),
        (["pings", "--day", "2026-11-20", "--month", "2026-11", "--to", "x.jsonl"], "not both"),
        (["pings", "--time", "at", "--to", "x.jsonl"], "give one of them"),
        (["pings", "--day", "2026-11-20", "--time", "expires_at", "--to", "x.jsonl"], "time of expiry"),
        (["licences", "--day", "2026-11-20", "--to", "x.jsonl"], "has no time to choose a day or month by"),
        (["pings", "--to", "s3://bucket/prefix"], "the local engine cannot export to S3"),
        (["pings", "--to", "s3:///prefix", "--env", "dev"], "like s3://bucket/prefix"),
        (["convert", "pings", "nowhere", "--to", "x.jsonl"], "is not a folder"),
    ],
)
def test_a_wrong_argument_is_refused_in_one_line(command_line: CommandLine, arguments: list[str], said: str) -> None:
    arguments = [str(command_line.folder / each) if each.startswith(("x.", "no/")) else each for each in arguments]

    outcome = command_line.run("export", *arguments)

    assert outcome.status == 1
    assert said in outcome.err
    assert list(command_line.folder.glob("*x.*")) == []


def wired(item: Ping, **system: Any) -> dict[str, Any]:
    entity = definition(Ping)
    key = entity.key_of(item)
    system = {PK: {"S": f"{key.partition}:0"}, SK: {"S": key.sort}, TYPE: {"S": entity.name}, REV: {"S": "r"}, **system}
    return {**entity.encode(item.__dict__), **system}


def exported(folder: Path, *files: Sequence[Mapping[str, Any]], taken: str | None = "2026-11-22T00:00:00.000Z") -> Path:
    """An export as DynamoDB lays it out."""
    data = folder / "AWSDynamoDB" / "0123-abcd" / "data"
    data.mkdir(parents=True)
    for number, items in enumerate(files):
        with gzip.open(data / f"{number}.json.gz", "wb") as file:
            file.writelines(orjson.dumps({"Item": item}) + b"\n" for item in items)
    if taken is not None:
        (data.parent / "manifest-summary.json").write_text(json.dumps({"version": "2020-06-30", "exportTime": taken}))
    return data.parent


def hidden(tenant: str) -> list[dict[str, Any]]:
    """What an export holds besides the day's pings."""
    past = {"N": str(int(datetime(2026, 11, 21, tzinfo=UTC).timestamp()))}
    return [
        {**wired(ping(tenant, 50)), MOVED_TO: {"N": "8"}},
        {PK: {"S": "ping.v1.Ping:abc:dark.e1:2026-11-20:0"}, SK: {"S": "x"}, MOVED_TO: {"N": "8"}},
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
        "export", "convert", "pings", folder, "--day", "2026-11-20", "--tenant", tenant, "--to", path, "--json"
    )

    assert outcome.status == 0, outcome.err
    assert lines(path) == rows_of(items)
    assert outcome.summary["items"] == 4


def test_an_export_without_its_time_keeps_expired_items(command_line: CommandLine, tenant: str) -> None:
    folder = exported(command_line.folder, hidden(tenant)[2:3], taken=None)
    path = command_line.folder / "day.jsonl"

    command_line.run("export", "convert", "pings", folder, "--to", path)

    assert [row["id"] for row in lines(path)] == ["p51"]


def test_an_item_that_does_not_fit_is_reported_and_left_out(command_line: CommandLine, tenant: str) -> None:
    good = ping(tenant, 1)
    folder = exported(command_line.folder, [wired(ping(tenant, 2), seconds={"S": "many"}), wired(good)])
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
    """Answers as DynamoDB does while it exports."""

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


def test_an_export_that_fails_says_why() -> None:
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


def test_a_range_is_named_by_its_bounds() -> None:
    choice = choose(Ping, day=None, month="2026-12", time=None, tenant=None)

    assert SimpleNamespace(**choice.as_dict()) == SimpleNamespace(
        **{
            "entity": "ping.v1.Ping",
            "tenant": None,
            "from": "2026-12-01T00:00:00+00:00",
            "to": "2027-01-01T00:00:00+00:00",
        }
    )
