"""`dynashard reshard`: requests, output and refusals."""

import signal
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from domain.samples.users import User
from dynashard import definition
from dynashard.resharding import Scope
from dynashard.service import Collection
from tests.engine.command_line import Outcome
from tests.engine.tools.reshard_world import ReshardWorld, reshard_world
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.engine

FAMILY = "user.v1.User"
ENTITY = definition(User)
EVERYTHING = Scope(ENTITY)


def partition(name: str) -> Scope:
    return Scope(ENTITY, partition=f"{FAMILY}:{name}")


@pytest.fixture
def world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[ReshardWorld]:
    with reshard_world(tmp_path, monkeypatch, capsys) as world:
        yield world


def fill(users: Collection[User], tenant: str, count: int) -> set[str]:
    people = [User(tenant_id=tenant, id=f"{n:03}", email=f"u{n}@b", display_name="U") for n in range(count)]
    users.batch_write(put=people)
    return {person.id for person in people}


def ids(users: Collection[User], tenant: str) -> list[str]:
    return sorted(user.id for user in users.scan({"tenant_id": tenant}))


def refused(ended: Outcome) -> str:
    """Return the one line of a refusal."""
    assert (ended.status, ended.out) == (1, "")
    [line] = ended.err.splitlines()
    assert line.startswith("error: ")
    return line


def test_waiting_for_a_resize_ends_when_the_new_count_is_stable(world: ReshardWorld) -> None:
    written = fill(world.layer().collection(User), "abc", 60)

    with world.between_looks(world.go_on):
        ended = world.run("reshard", "start", "users", "abc", "--to", "32", "--wait", "--json")

    assert ended.status == 0
    summary = ended.summary
    assert (summary["key"], summary["phase"], summary["count"], summary["target"]) == (
        f"{FAMILY}:abc",
        "stable",
        32,
        None,
    )
    assert summary["moved"] > 0
    expected, first, *_ = ended.err.splitlines()
    assert expected.startswith(f"{FAMILY} abc: 16 shards -> 32 moves about ")
    assert first == f"{FAMILY} abc: 16 shards -> 32; waits to begin"
    users = world.layer().collection(User)
    assert ids(users, "abc") == sorted(written)
    assert len(users.shards({"tenant_id": "abc"})) == 32


def test_on_a_terminal_waiting_shows_a_bar(world: ReshardWorld) -> None:
    fill(world.layer().collection(User), "abc", 20)

    with world.working():
        status, shown = world.command_line.on_a_terminal(
            "reshard", "start", "users", "abc", "--to", "32", "--wait", "--budget", "1000"
        )

    assert status == 0
    assert f"{FAMILY} abc: 32 shards" in shown
    assert "━" in shown


def test_without_waiting_only_the_request_is_stored(world: ReshardWorld) -> None:
    begun = world.run("reshard", "start", "users", "abc", "--to", "32", "--create")
    shown = world.run("reshard", "status", "users", "abc", "--json")

    assert (begun.status, shown.status) == (0, 0)
    assert begun.out.splitlines() == [
        f"{FAMILY} abc: 16 shards -> 32; waits to begin; waits for a worker to see it",
        f"`dynashard reshard status {FAMILY} abc --watch` watches it",
    ]
    [status] = orjson.loads(shown.out)
    assert (status["stage"], status["count"], status["target"], status["cause"]) == ("pending", 16, 32, "operator")


IMPOSSIBLE = [
    (["users", "abc", "--to", "24"], "24 is not a power of two; use 1, 2, 4, 8, ... (not_power_of_two)"),
    (["users", "abc", "--to", "2048"], "at most 1024 are possible (too_many)"),
    (["users", "abc", "--to", "16", "--create"], "has 16 shards already"),
    (["users", "abc:d", "--to", "32"], "has the form tenant_id, but 'abc:d' has 2 parts"),
    (["users", "", "--to", "32"], "tenant_id"),
    (["people", "--to", "32"], "no entity is called 'people'"),
    (["users", "--index", "by_email", "--to", "32"], "index by_email of user.v1.User is declared without shards"),
    (["users", "--index", "by_name", "--to", "32"], "no index 'by_name'. There are: by_email, by_department"),
    (["users", "abc", "--index", "by_manager", "--to", "32"], "leave PARTITION out"),
    (["users", "abc", "--all", "--to", "32"], "leave PARTITION and --index out"),
    (["users", "abc", "--to", "32", "--budget", "0"], "above 0"),
    (["users", "abc", "--to", "32", "--budget", "inf"], "the budget is inf write units a second"),
]


def test_an_empty_partition_is_refused_unless_its_creation_is_requested(world: ReshardWorld) -> None:
    fill(world.layer().collection(User), "abc", 1)

    mistyped = world.run("reshard", "start", "users", "abd", "--to", "32")
    held = world.run("reshard", "start", "users", "abc", "--to", "32")
    created = world.run("reshard", "start", "users", "abd", "--to", "32", "--create")
    known = world.run("reshard", "start", "users", "abd", "--to", "64")

    assert "user.v1.User:abd holds no items: check the name" in refused(mistyped)
    assert "add --create" in mistyped.err
    assert (held.status, created.status) == (0, 0)
    assert "under way already" in refused(known)


def test_waiting_reports_the_new_count_and_the_remaining_work(world: ReshardWorld) -> None:
    fill(world.layer().collection(User), "abc", 20)

    with world.between_looks(world.go_on):
        ended = world.run("reshard", "start", "users", "abc", "--to", "32", "--wait")

    [line] = ended.out.splitlines()
    assert line.startswith(f"{FAMILY} abc: 32 shards, in force everywhere; ")
    assert "The relocation markers of moved items are being deleted in the background" in line
    assert f"`dynashard reshard status {FAMILY} abc --watch` watches it" in line


def test_a_wrong_argument_is_refused_in_one_line(world: ReshardWorld) -> None:
    for arguments, message in IMPOSSIBLE:
        assert message in refused(world.run("reshard", "start", *arguments))

    assert world.resharder().busy() == []


def test_a_request_during_a_resize_is_refused_in_one_line_with_the_remedy(world: ReshardWorld) -> None:
    world.resharder().start(partition("abc"), 32)
    running = world.run("reshard", "start", "users", "abc", "--to", "64")
    index = world.run("reshard", "start", "users", "--index", "by_manager", "--to", "8")
    world.bring_to(partition("abc"), "sweep")
    not_swept = world.run("reshard", "start", "users", "abc", "--to", "64")
    quiet = world.run("reshard", "abort", "users", "xyz")

    assert "a resize of user.v1.User:abc to 32 is under way already" in refused(running)
    assert "`dynashard reshard status user.v1.User abc --watch` watches it" in running.err
    assert "partitions of user.v1.User are changing" in refused(index)
    assert "not swept yet" in refused(not_swept)
    assert "no resize of user.v1.User:xyz is under way" in refused(quiet)


def test_an_abort_before_anything_moves_ends_the_resize_at_once(world: ReshardWorld) -> None:
    world.resharder().start(partition("abc"), 32)
    world.bring_to(partition("abc"), "prepare")

    ended = world.run("reshard", "abort", "users", "abc")

    assert (ended.status, ended.out) == (0, f"{FAMILY} abc: called off; 16 shards as before\n")
    assert not world.resharder().status(partition("abc")).busy


@pytest.mark.sampled(3)
@pytest.mark.parametrize("stage", ["move", "settle", "sweep"])
def test_a_later_abort_finishes_the_resize_and_reverts_it(world: ReshardWorld, stage: str) -> None:
    users = world.layer().collection(User)
    written = fill(users, "abc", 30)
    world.resharder().start(partition("abc"), 32)
    world.bring_to(partition("abc"), stage)

    ended = world.run("reshard", "abort", "users", "abc")
    with world.between_looks(world.go_on):
        watched = world.run("reshard", "status", "users", "abc", "--watch")

    assert ended.status == 0
    assert "It is completed, swept, and then changed back to 16 shards" in ended.out
    assert watched.status == 0
    status = world.resharder().status(partition("abc"))
    assert (status.count, status.busy) == (16, False)
    assert ids(world.layer().collection(User), "abc") == sorted(written)


def test_waiting_for_an_aborted_resize_fails(world: ReshardWorld) -> None:
    with world.between_looks(lambda: world.resharder().abort(partition("abc"))):
        ended = world.run("reshard", "start", "users", "abc", "--to", "32", "--create", "--wait")

    assert (ended.status, ended.out) == (1, "")
    assert "the resize to 32 shards was called off; it ends with 16 shards" in ended.err


def test_ctrl_c_ends_the_wait_and_not_the_resize(world: ReshardWorld) -> None:
    process = world.command_line.start("reshard", "start", "users", "abc", "--to", "32", "--create", "--wait")
    assert process.stderr is not None
    assert "moves no items" in process.stderr.readline()
    assert "waits to begin" in process.stderr.readline()

    process.send_signal(signal.SIGINT)

    _, errors = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 130
    assert "the resizes continue" in errors
    assert "Traceback" not in errors
    assert world.resharder().status(partition("abc")).target == 32


def test_a_paused_resize_does_nothing_until_it_is_resumed(world: ReshardWorld) -> None:
    world.resharder().start(partition("abc"), 32)
    world.bring_to(partition("abc"), "move")

    paused = world.run("reshard", "pause", "users", "abc")
    still = world.resharder().advance(f"{FAMILY}:abc")
    resumed = world.run("reshard", "resume", "users", "abc", "--json")

    assert (paused.status, resumed.status) == (0, 0)
    assert "moves, paused" in paused.out
    assert still.kind == "done"
    assert resumed.summary["paused"] is False
    assert world.bring_to(partition("abc"), "stable").count == 32


def test_waiting_for_a_failed_resize_ends_with_its_error(world: ReshardWorld) -> None:
    with world.between_looks(lambda: world.resharder().pause(partition("abc"), error="two items have one key")):
        ended = world.run("reshard", "start", "users", "abc", "--to", "32", "--create", "--wait")

    assert (ended.status, ended.out) == (1, "")
    assert "two items have one key. When the cause is fixed: `dynashard reshard resume user.v1.User abc`" in ended.err


def test_all_includes_partitions_with_their_own_count(world: ReshardWorld) -> None:
    users = world.layer().collection(User)
    written = {tenant: fill(users, tenant, 20) for tenant in ("abc", "def", "ghi")}
    for tenant, count in (("abc", 8), ("def", 32)):
        world.resharder().start(partition(tenant), count)
        world.bring_to(partition(tenant), "stable")

    with world.between_looks(world.go_on):
        ended = world.run("reshard", "start", "users", "--all", "--to", "32", "--wait", "--json")

    assert ended.status == 0
    counts = {each["key"]: each["count"] for each in orjson.loads(ended.out)}
    assert counts == {FAMILY: 32, f"{FAMILY}:abc": 32, f"{FAMILY}:def": 32}
    after = world.layer().collection(User)
    for tenant, expected in written.items():
        assert ids(after, tenant) == sorted(expected)
        assert len(after.shards({"tenant_id": tenant})) == 32


def test_without_all_partitions_with_their_own_count_are_kept_and_reported(world: ReshardWorld) -> None:
    world.resharder().start(partition("abc"), 8)
    world.bring_to(partition("abc"), "stable")

    ended = world.run("reshard", "start", "users", "--to", "32")

    assert ended.status == 0
    assert "1 partition with a count of its own stays as it is: --all changes every partition" in ended.err


def test_several_partitions_with_their_own_count_are_reported_in_one_line(world: ReshardWorld) -> None:
    for tenant in ("abc", "def"):
        world.resharder().start(partition(tenant), 8)
        world.bring_to(partition(tenant), "stable")

    ended = world.run("reshard", "start", "users", "--to", "32")

    assert "2 partitions with counts of their own stay as they are: --all changes every partition" in ended.err


def test_all_can_be_aborted_at_once(world: ReshardWorld) -> None:
    world.resharder().start(partition("abc"), 8)
    world.resharder().start(partition("def"), 8)

    ended = world.run("reshard", "abort", "users", "--all")
    again = world.run("reshard", "abort", "users", "--all")

    assert ended.status == 0
    assert ended.out.count("called off; 16 shards as before") == 2
    assert "no resize of user.v1.User is under way" in refused(again)


def test_an_index_changes_by_its_name(world: ReshardWorld) -> None:
    users = world.layer().collection(User)
    users.batch_write(
        put=[User(tenant_id="abc", id=f"{n}", email=f"u{n}@b", display_name="U", department="legal") for n in range(20)]
    )

    with world.between_looks(world.go_on):
        ended = world.run("reshard", "start", "users", "--index", "by_department", "--to", "16", "--wait")

    assert ended.status == 0
    assert f"{FAMILY} --index by_department: 16 shards" in ended.out
    listed = world.layer().collection(User).list({"tenant_id": "abc", "department": "legal"}, index="by_department")
    assert len(listed.items) == 20


def test_a_resize_resumed_after_a_long_pause_is_not_overdue(world: ReshardWorld) -> None:
    world.behind = 1000.0
    world.resharder().start(partition("abc"), 32)
    world.resharder().pause(partition("abc"))
    world.behind = 0.0

    resumed = world.run("reshard", "resume", "users", "abc")
    status = world.run("reshard", "status", "users", "abc")

    assert (resumed.status, status.status) == (0, 0)
    assert resumed.err == status.err == ""


def test_status_shows_everything_that_is_changing(world: ReshardWorld) -> None:
    quiet = world.run("reshard", "status")
    world.resharder().start(partition("abc"), 32)
    world.resharder().start(partition("def"), 8)

    everything = world.run("reshard", "status")
    entity = world.run("reshard", "status", "users", "--json")
    one = world.run("reshard", "status", "users", "xyz", "--json")

    assert (quiet.status, quiet.out) == (0, "nothing is changing\n")
    assert [line.partition(";")[0] for line in everything.out.splitlines()] == [
        f"{FAMILY} abc: 16 shards -> 32",
        f"{FAMILY} def: 16 shards -> 8",
    ]
    assert [each["key"] for each in orjson.loads(entity.out)] == [FAMILY, f"{FAMILY}:abc", f"{FAMILY}:def"]
    assert [(each["count"], each["stage"]) for each in orjson.loads(one.out)] == [(16, "stable")]


def test_a_resize_without_a_worker_is_reported(world: ReshardWorld) -> None:
    fresh = world.run("reshard", "start", "users", "def", "--to", "32", "--create")
    world.behind = 1000.0
    world.resharder().start(partition("abc"), 32)

    overdue = world.run("reshard", "status", "users", "abc")
    due = world.run("reshard", "status", "users", "def")

    assert fresh.status == overdue.status == due.status == 0
    assert "no worker seems to run: the next step is overdue" in overdue.err
    assert "reshard.log" in overdue.err
    assert due.err == ""


def test_watching_ends_when_no_resize_is_left(world: ReshardWorld) -> None:
    world.resharder().start(partition("abc"), 32)

    with world.between_looks(world.go_on):
        ended = world.run("reshard", "status", "--watch", "--json")

    assert (ended.status, ended.err) == (0, "")
    first, *_, last = map(orjson.loads, ended.out.splitlines())
    assert (first[0]["count"], first[0]["target"], last) == (16, 32, [])


@pytest.mark.parametrize("command", ["start", "status", "abort", "pause", "resume"])
def test_help_is_given(world: ReshardWorld, command: str) -> None:
    ended = world.run("reshard", command, "--help")

    assert (ended.status, ended.err) == (0, "")
    assert f"Usage: dynashard reshard {command}" in ended.out
