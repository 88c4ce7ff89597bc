"""`dynashard export`: the content of the file in each format, also while items move, and refused exports."""

import csv
import json
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pydantic import JsonValue

from domain.samples.contacts import ContactMethod
from domain.samples.pings import Ping
from dynashard import Dynashard, Entity, Key, Registry
from dynashard.runtime import Runtime
from dynashard.schema import MOVED_TO, PK, SK
from dynashard.service import Collection
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_patterns import Attachment
from dynashard_tools.export.choice import choose
from dynashard_tools.export.files import new_file
from dynashard_tools.failure import CommandError
from tests.engine.command_line import CURSOR_KEYS, CommandLine
from tests.engine.tools.export_world import DATE, DAY, lines, ping, rows_of

pytestmark = pytest.mark.engine


@pytest.fixture
def pings(wire: Transport, local_table: str) -> Collection[Ping]:
    # A process of a later day than all pings, whatever day it is.
    later = Runtime((DAY + timedelta(days=30)).timestamp)
    db = Dynashard(wire, table=local_table, topology=DeclaredTopology(), cursor_keys=CURSOR_KEYS, runtime=later)
    return db.collection(Ping)


@pytest.fixture
def stored(pings: Collection[Ping], tenant: str) -> list[Ping]:
    """Store pings of three days around midnight. Those of the day are in the middle."""
    times = [DAY - timedelta(microseconds=1), *(DAY + timedelta(hours=n) for n in range(24)), DAY + timedelta(days=1)]
    items = [ping(tenant, number, at) for number, at in enumerate(times)]
    pings.batch_write(put=items)
    return items


def test_a_day_is_exported_as_json_lines(command_line: CommandLine, stored: list[Ping], tenant: str) -> None:
    path = command_line.folder / "day.jsonl"

    outcome = command_line.run("export", "pings", "--day", DATE, "--tenant", tenant, "--to", path, "--json")

    assert outcome.status == 0, outcome.err
    assert lines(path) == rows_of(stored[1:-1])
    assert outcome.summary["items"] == 24
    assert outcome.summary["bytes"] == path.stat().st_size
    assert outcome.summary["read_units"] > 0


def test_reservations_of_unique_values_are_not_exported_with_their_items(
    command_line: CommandLine, wire: Transport, local_table: str, tenant: str
) -> None:
    db = Dynashard(wire, table=local_table, topology=DeclaredTopology(), cursor_keys=CURSOR_KEYS)
    for number in range(3):
        db.collection(ContactMethod).create(
            tenant_id=tenant, user_id="ada", method_id=f"m{number}", channel="email", address=f"{number}@x.org"
        )
    path = command_line.folder / "methods.jsonl"

    outcome = command_line.run("export", "contact-methods", "--to", path, "--json")

    assert outcome.status == 0, outcome.err
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(row["tenant_id"] and row["channel"] for row in rows)
    own = [row for row in rows if row["tenant_id"] == tenant]
    assert sorted(row["method_id"] for row in own) == ["m0", "m1", "m2"]
    assert {row["channel"] for row in own} == {"email"}


def test_a_month_and_everything_are_exported(
    command_line: CommandLine, stored: list[Ping], pings: Collection[Ping]
) -> None:
    tenant = stored[0].tenant_id
    later = ping(tenant, 99, DAY + timedelta(days=12))
    pings.create(later)
    month, everything = (command_line.folder / name for name in ("month.jsonl", "all.jsonl"))

    command_line.run("export", "pings", "--month", f"{DAY:%Y-%m}", "--tenant", f"tenant_id={tenant}", "--to", month)
    command_line.run("export", "ping.v1.Ping", "--to", everything)

    assert lines(month) == rows_of(stored)
    assert [row for row in lines(everything) if row["tenant_id"] == tenant] == rows_of([*stored, later])


def test_a_day_is_exported_as_parquet(command_line: CommandLine, stored: list[Ping], tenant: str) -> None:
    path = command_line.folder / "day.parquet"

    outcome = command_line.run("export", "pings", "--day", DATE, "--tenant", tenant, "--to", path)

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
    mark = {PK: f"ping.v1.Ping:{tenant}:dark.e9:{DATE}:0", SK: f"{DATE}T01:00:00.000000Z#p1"}
    wire.call(
        "PutItem",
        {"TableName": local_table, "Item": {**{n: {"S": v} for n, v in mark.items()}, MOVED_TO: {"N": "8"}}},
    )

    command_line.run("export", "pings", "--day", DATE, "--tenant", tenant, "--to", path)

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
        at = datetime(2026, 11, 20, tzinfo=UTC)
        add([Wide(tenant="a", id="1", at=at, on=True, big=2**70, nested={"a": ["ä", None]}, note="5")])
        add([Wide(tenant="a", id="2")])

    assert path.read_bytes().decode() == (
        "tenant,id,note,at,on,big,nested\r\n"
        'a,1,5,2026-11-20T00:00:00Z,true,1180591620717411303424,"{""a"":[""ä"",null]}"\r\n'
        "a,2,,,false,0,{}\r\n"
    )


def test_attachments_are_not_exported_as_nulls_which_a_load_would_store(tmp_path: Path) -> None:
    for suffix in ("jsonl", "csv", "parquet"):
        with new_file(tmp_path / f"wide.{suffix}", Wide) as add:
            add([Wide(tenant="a", id="1")])

    [row] = lines(tmp_path / "wide.jsonl")
    columns = ["tenant", "id", "note", "at", "on", "big", "nested"]
    assert list(row) == columns
    assert (tmp_path / "wide.csv").read_text().splitlines()[0] == ",".join(columns)
    assert parquet.read_table(tmp_path / "wide.parquet").column_names == columns


def test_an_export_whose_package_is_not_installed_names_it(
    command_line: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    refused = command_line.run("export", "pings", "--to", tmp_path / "pings.parquet")

    assert (refused.status, list(tmp_path.glob("*.parquet"))) == (1, [])
    assert refused.err == (
        'error: this needs pyarrow, which is not installed: pip install "dynashard-tools[parquet]"\n'
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

    outcome = command_line.run("export", "pings", "--day", DATE, "--tenant", tenant, "--to", path, "--format", "csv")

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
