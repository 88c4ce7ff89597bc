"""What the command line says of counts by the time of keys: `reshard`, `topology` and `load`."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.samples.audit import AccessAction, OrderedAccess
from dynashard import RetryPolicy, definition
from dynashard.resharding import Scope
from dynashard.testing.faults import FaultyTransport, throttled
from tests.engine.tools.reshard_world import ReshardWorld, reshard_world

pytestmark = pytest.mark.engine

FILE = "/shared/menu.txt"
PARTITION = Scope(definition(OrderedAccess), f"audit.v1.OrderedAccess:abc:{FILE}")
FIELDS = {"tenant_id": "abc", "path": FILE}
NAMED = ("ordered-accesses", f"abc:{FILE}")


@pytest.fixture
def world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[ReshardWorld]:
    with reshard_world(tmp_path, monkeypatch, capsys) as world:
        yield world


def log(world: ReshardWorld, number: int) -> None:
    """Write accesses to the file, of now."""
    items = world.layer().collection(OrderedAccess)
    for _ in range(number):
        at = datetime.fromtimestamp(world.clock(), UTC)
        items.create(tenant_id="abc", path=FILE, accessed_at=at, action=AccessAction.READ, user_id="ada")


def grow(world: ReshardWorld, to: int) -> None:
    world.resharder().start(PARTITION, to)
    world.bring_to(PARTITION, "stable")


def rows(world: ReshardWorld, *times: datetime, path: str = FILE) -> Path:
    """Write a file of accesses at these times."""
    access = {"path": path, "action": "read", "user_id": "ada"}
    lines = [json.dumps({**access, "accessed_at": at.isoformat()}) for at in times]
    return world.command_line.file("old.jsonl", *lines)


def test_an_epoch_is_requested_and_waited_for_like_any_resize(world: ReshardWorld) -> None:
    log(world, 3)

    with world.between_looks(world.go_on):
        ended = world.run("reshard", "start", *NAMED, "--to", "4", "--wait")

    assert ended.status == 0
    assert ended.err.splitlines()[0].endswith("1 shard -> 4 moves no items, and takes about 70 seconds")
    assert "4 shards; confirmed, and begins soon" in ended.err
    assert ended.out == (
        f"audit.v1.OrderedAccess abc:{FILE}: 4 shards, in force everywhere. Nothing continues in the background.\n"
    )


def test_the_items_of_each_epoch_are_shown_with_its_count_and_since_when(world: ReshardWorld) -> None:
    log(world, 1)
    grow(world, 4)
    since = world.resharder().status(PARTITION).epochs[1].since
    assert since is not None
    world.pass_by(1.0)
    log(world, 5)
    at = datetime.fromtimestamp(since, UTC)

    shown = world.run("topology", *NAMED)
    counts = world.run("topology", "ordered-accesses")
    state = world.run("reshard", "status", *NAMED)

    assert "6 items" in shown.out
    assert "history" not in shown.out
    assert (
        f"epoch: 1 shard from the beginning: 1 item\nepoch: 4 shards for keys since {at:%F %T}Z: 5 items\n" in shown.out
    )
    assert f"{at:%F %T}Z" in counts.out
    assert state.out.splitlines() == [
        f"audit.v1.OrderedAccess abc:{FILE}: 4 shards; stable; 2 epochs, the newest for keys since {at:%F %T}Z",
        "epoch: 1 shard from the beginning",
        f"epoch: 4 shards for keys since {at:%F %T}Z",
    ]


def test_the_status_shows_an_epoch_that_was_taken_back_as_such(world: ReshardWorld) -> None:
    log(world, 1)
    resharder = world.resharder()
    resharder.start(PARTITION, 4)
    resharder.abort(PARTITION)

    shown = world.run("reshard", "status", *NAMED).out.splitlines()
    [found] = json.loads(world.run("reshard", "status", *NAMED, "--json").out)

    assert shown[1] == "epoch: 1 shard from the beginning"
    assert shown[2].startswith("epoch: 4 shards for keys since 20")
    assert shown[2].endswith("Z, void")
    assert [(each["count"], each["state"], each["since"] is None) for each in found["epochs"]] == [
        (1, "confirmed", True),
        (4, "void", False),
    ]


def test_the_topology_shows_an_epoch_that_was_taken_back_as_the_status_does(world: ReshardWorld) -> None:
    log(world, 3)
    resharder = world.resharder()
    resharder.start(PARTITION, 4)
    resharder.abort(PARTITION)

    first, last = world.run("topology", *NAMED).out.splitlines()[-2:]
    found = json.loads(world.run("topology", *NAMED, "--json").out)

    assert first == "epoch: 1 shard from the beginning: 3 items"
    assert last == world.run("reshard", "status", *NAMED).out.splitlines()[-1]
    assert [(each["count"], each["state"], each["items"]) for each in found["epochs"]] == [
        (1, "confirmed", 3),
        (4, "void", None),
    ]


def test_the_epochs_of_a_whole_entity_are_shown_by_its_name(world: ReshardWorld) -> None:
    everything = Scope(definition(OrderedAccess))
    world.resharder().start(everything, 8)
    world.bring_to(everything, "stable")

    shown = world.run("topology", "ordered-accesses")

    assert "epoch: 1 shard from the beginning\nepoch: 8 shards for keys since 20" in shown.out


def test_a_load_of_old_keys_says_once_which_shards_they_go_to(world: ReshardWorld) -> None:
    log(world, 1)
    grow(world, 4)
    old = datetime(2020, 1, 1, tzinfo=UTC)

    loaded = world.run("load", "ordered-accesses", rows(world, old, old + timedelta(days=1)), "--tenant", "abc")

    assert loaded.status == 0
    [warning] = loaded.err.splitlines()
    assert warning.startswith("warning: the key 2020-01-01T00:00:00.000000Z#")
    assert f" of audit.v1.OrderedAccess:abc:{FILE} is from before 20" in warning
    assert "It goes to the 1 shard of its time" in warning
    assert "docs/loading.md#old-keys" in warning
    assert loaded.out.endswith("0 lines refused, 2 in older epochs\n")


def test_a_load_into_partitions_of_one_epoch_warns_of_nothing(world: ReshardWorld) -> None:
    log(world, 1)
    grow(world, 4)
    old = rows(world, datetime(2020, 1, 1, tzinfo=UTC), path="/other.txt")

    loaded = world.run("load", "ordered-accesses", old, "--tenant", "abc", "--json")

    assert (loaded.status, loaded.err) == (0, "")
    assert loaded.summary["in_older_epochs"] == 0


def test_a_load_that_is_throttled_says_what_growth_cannot_do_for_it(
    world: ReshardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = throttled("BatchWriteItem", nth=None)
    monkeypatch.setattr("dynashard_tools.connection.transport_of", lambda _: FaultyTransport(world.wire, [fault]))
    monkeypatch.setattr("dynashard.service.RetryPolicy", lambda **options: RetryPolicy(seconds=0, **options))
    monkeypatch.setenv("GROWTH_MODE", "off")
    notes = world.command_line.file("notes.jsonl", '{"user_id": "ada", "channel": "sms", "text": "Down"}')

    loaded = world.run("load", "notifications", notes, "--tenant", "abc")

    assert loaded.status == 1
    assert "an import of old keys needs its shards from the start" in loaded.err


def test_exports_and_purges_have_the_items_of_all_epochs(world: ReshardWorld, tmp_path: Path) -> None:
    for count in (4, 16):
        log(world, 5)
        grow(world, count)
        world.pass_by(1.0)
    # So many that they are certainly in more shards than the epoch before has.
    log(world, 40)
    of_the_entity, of_the_account = tmp_path / "log.jsonl", tmp_path / "account.jsonl"

    exported = world.run("export", "ordered-accesses", "--to", of_the_entity, "--json")
    account = world.run("account", "export", "abc", "--to", of_the_account, "--json")
    shards = {shard.partition_key for shard in world.layer().collection(OrderedAccess).shards(FIELDS) if shard.items}
    purged = world.run("account", "purge", "abc", "--confirm", "abc", "--json")

    stored = sorted(json.loads(line)["accessed_at"] for line in of_the_entity.read_text().splitlines())
    assert (exported.status, len(set(stored))) == (0, 50)
    assert account.summary["entities"] == {"audit.v1.OrderedAccess": 50}
    assert len(shards) > 4
    assert purged.summary["types"]["audit.v1.OrderedAccess"] == 50
    assert world.layer().collection(OrderedAccess).count(FIELDS) == 0
