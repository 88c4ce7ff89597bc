"""`dynashard topology`: counts, changes, single partitions and shards."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import orjson
import pytest
from msgspec import structs

from domain.samples.users import User
from dynashard import definition
from dynashard.service import Collection
from dynashard.topology import Phase, Record, TopologyTable, partition_key
from dynashard.topology.records import first_record
from tests.engine.command_line import CommandLine

pytestmark = pytest.mark.engine

Users = Collection[User]
FAMILY = definition(User).name
PNG = b"\x89PNG\r\n\x1a\n"


def put(table: TopologyTable, record: Record) -> None:
    table.save((table.find(record.key), record))


def fill(users: Users, tenant: str, count: int) -> None:
    users.batch_write(put=[User(tenant_id=tenant, id=str(n), email=f"u{n}@b", display_name="U") for n in range(count)])


@pytest.mark.usefixtures("topology")
def test_counts_without_a_record_are_those_declared(command_line: CommandLine) -> None:
    shown = command_line.run("topology", "--json")

    assert shown.status == 0
    user = next(each for each in orjson.loads(shown.out) if each["entity"] == FAMILY)
    assert (user["entity"], user["placement"], user["declared"], user["count"]) == (FAMILY, "calculated", 16, 16)
    assert (user["phase"], user["target"], user["history"], user["partitions"]) == ("stable", None, [], {})
    assert {name: (index["declared"], index["count"]) for name, index in user["indexes"].items()} == {
        "by_email": (None, 0), "by_department": (4, 4), "by_manager": (4, 4)
    }  # fmt: skip


def test_counts_are_those_of_the_topology_table_with_their_history(
    command_line: CommandLine, topology: TopologyTable
) -> None:
    first = first_record(FAMILY, 16, now=1_000_000.0, lease=30.0)
    changed = first.revised(2_000_000.0, count=32)
    put(topology, changed.revised(3_000_000.0, phase=Phase.MOVE, target=64, active=frozenset({FAMILY})))
    put(topology, first_record(f"{FAMILY}|GSI2", 8, now=1.0, lease=30.0))

    shown = command_line.run("topology", FAMILY, "--json")
    table = command_line.run("topology", FAMILY)

    user = next(each for each in orjson.loads(shown.out) if each["entity"] == FAMILY)
    assert (user["declared"], user["count"], user["phase"], user["target"], user["marks"]) == (16, 32, "move", 64, True)
    assert user["history"] == [{"at": 1_000_000, "count": 16}, {"at": 2_000_000, "count": 32}]
    assert user["indexes"]["by_department"]["count"] == 8
    assert table.status == 0
    assert "move: to 64" in table.out
    assert "history: 16 since 1970-01-12 13:46:40Z, 32 since 1970-01-24 03:33:20Z" in table.out
    assert "relocation markers may be stored" in table.out


def test_partitions_with_a_count_of_their_own_are_listed(
    command_line: CommandLine, topology: TopologyTable, tenant: str
) -> None:
    put(topology, structs.replace(first_record(FAMILY, 16, now=5.0, lease=30.0), differ_since=6.0))
    put(topology, first_record(f"{FAMILY}:{tenant}", 128, now=7.0, lease=30.0))

    shown = command_line.run("topology", FAMILY, "--json")
    table = command_line.run("topology", FAMILY)

    user = next(each for each in orjson.loads(shown.out) if each["entity"] == FAMILY)
    assert user["partitions"][tenant]["count"] == 128
    assert "GSI2" not in user["partitions"]
    assert [line for line in table.out.splitlines() if tenant in line and "128" in line]


def test_a_partition_shows_the_items_of_each_shard(command_line: CommandLine, users: Users, tenant: str) -> None:
    fill(users, tenant, 200)

    shown = command_line.run("topology", FAMILY, tenant, "--json").summary
    table = command_line.run("topology", FAMILY, tenant)

    shards = shown["shards"]
    assert (shown["partition"], shown["key"], shown["count"]) == (tenant, f"{FAMILY}:{tenant}", 16)
    assert (shown["own"], shown["phase"], shown["marks"]) == (False, "stable", False)
    assert [shard["partition_key"] for shard in shards] == [f"{FAMILY}:{tenant}:{n}" for n in range(16)]
    assert sum(shard["items"] for shard in shards) == 200
    assert all(shard["bytes"] > 100 * shard["items"] > 0 for shard in shards)
    assert table.status == 0
    # Keys are folded where a terminal is narrow.
    whole = "".join(line[2:].partition(" │")[0].strip() for line in table.out.splitlines() if line.startswith("│"))
    assert all(f"{FAMILY}:{tenant}:{n}" in whole for n in range(16))
    assert "200 items" in table.out


def test_an_empty_partition_shows_its_empty_shards(command_line: CommandLine, tenant: str) -> None:
    shown = command_line.run("topology", FAMILY, tenant, "--json")
    table = command_line.run("topology", FAMILY, tenant)

    assert {shard["items"] for shard in shown.summary["shards"]} == {0}
    assert (shown.status, table.status) == (0, 0)


def test_a_partition_with_a_count_of_its_own_is_listed_under_that(
    command_line: CommandLine, topology: TopologyTable, users: Users, tenant: str
) -> None:
    assert partition_key(definition(User), f"{FAMILY}:{tenant}") == f"{FAMILY}:{tenant}"
    put(topology, structs.replace(first_record(FAMILY, 16, now=5.0, lease=30.0), differ_since=6.0))
    put(topology, first_record(f"{FAMILY}:{tenant}", 2, now=7.0, lease=30.0))

    shown = command_line.run("topology", FAMILY, tenant, "--json").summary

    assert (shown["own"], shown["count"], len(shown["shards"])) == (True, 2, 2)
    assert users.count({"tenant_id": tenant}) == 0


@pytest.mark.usefixtures("topology")
def test_a_narrow_terminal_has_the_keys_and_not_the_bars(command_line: CommandLine, users: Users, tenant: str) -> None:
    fill(users, tenant, 1)
    last = f"{FAMILY}:{tenant}:15"

    shown = [
        replace(command_line, environment={**command_line.environment, "COLUMNS": str(len(last) + more)})
        .run("topology", FAMILY, tenant)
        .out
        for more in (60, 25)
    ]

    assert [f"│ {last} │" in each for each in shown] == [True, True]
    assert ["█" in each or "#" in each for each in shown] == [True, False]


def test_one_shard_is_called_so(command_line: CommandLine, topology: TopologyTable, tenant: str) -> None:
    put(topology, structs.replace(first_record(FAMILY, 16, now=5.0, lease=30.0), differ_since=6.0))
    put(topology, first_record(f"{FAMILY}:{tenant}", 1, now=7.0, lease=30.0))

    shown = command_line.run("topology", FAMILY, tenant)
    refused = command_line.run("topology", "articles", tenant)

    assert "0 items, 0 bytes; 1 shard, a count of its own" in shown.out
    assert f"{tenant!r} has 1 part\n" in refused.err


@pytest.mark.parametrize("suffix", ["png", "SVG"])
def test_a_picture_is_drawn_into_the_named_file(
    command_line: CommandLine, users: Users, tenant: str, suffix: str
) -> None:
    fill(users, tenant, 40)
    path = command_line.folder / f"shards.{suffix}"

    ended = command_line.run("topology", FAMILY, tenant, "--plot", path)

    assert ended.status == 0
    drawn = path.read_bytes()
    if suffix == "png":
        assert drawn.startswith(PNG)
    else:
        assert ET.fromstring(drawn).tag.endswith("svg")  # noqa: S314 - our own file
        command_line.run("topology", FAMILY, tenant, "--plot", path)
        assert path.read_bytes() == drawn


@pytest.mark.parametrize(
    ("file", "message"),
    [("shards.pdf", "ends in .png or .svg"), ("none/shards.png", "does not exist")],
)
def test_an_impossible_picture_is_refused_before_anything_is_read(
    command_line: CommandLine, tenant: str, file: str, message: str
) -> None:
    nowhere = replace(command_line, environment={**command_line.environment, "DYNAMODB_ENDPOINT": "http://127.0.0.1:9"})

    ended = nowhere.run("topology", FAMILY, tenant, "--plot", command_line.folder / file)

    assert (ended.status, len(ended.err.splitlines())) == (1, 1)
    assert message in ended.err


def test_a_picture_needs_a_partition(command_line: CommandLine) -> None:
    ended = command_line.run("topology", FAMILY, "--plot", command_line.folder / "a.png")

    assert (ended.status, ended.out) == (1, "")
    assert "name ENTITY and PARTITION" in ended.err


def test_an_unwritable_picture_is_reported(command_line: CommandLine, tenant: str) -> None:
    taken = command_line.folder / "taken.png"
    Path(taken).mkdir()

    ended = command_line.run("topology", FAMILY, tenant, "--plot", taken)

    assert (ended.status, len(ended.err.splitlines())) == (1, 1)
    assert "cannot be written: Is a directory" in ended.err
