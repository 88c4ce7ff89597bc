"""An interrupted load continues: after any end every row is stored exactly once, with and without ids."""

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from domain.samples.users import User
from dynashard import Dynashard, Entity, Key, Registry, RetryPolicy, Shards, new_id
from dynashard.runtime import Runtime
from dynashard.service import Collection
from dynashard.testing.faults import (
    Fault,
    FaultyTransport,
    lost_answer,
    lost_request,
    throttled,
    unprocessed,
    unreachable,
)
from dynashard.topology import DeclaredTopology, TopologyTable
from dynashard.transport import Transport, metered
from dynashard.transport.interface import Wire
from dynashard_tools.failure import CommandError, CommandInterruptedError
from dynashard_tools.load.checkpoint import Checkpoint, CheckpointFile
from dynashard_tools.load.loader import BATCH, BATCH_BYTES, LineError, Load
from dynashard_tools.load.old_keys import OldKeys
from dynashard_tools.load.rows import Lines, rows
from tests.engine.command_line import CURSOR_KEYS, CommandLine, Outcome, emails_of, expected, line_of, text, user

pytestmark = pytest.mark.engine

Users = Collection[User]


@pytest.fixture
def command_line(command_line: CommandLine) -> CommandLine:
    return command_line.with_long_operations()


@pytest.fixture
def state(command_line: CommandLine) -> Path:
    return command_line.folder / "state"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_every_row_is_there_once_after_a_signal_in_the_middle(
    command_line: CommandLine, users: Users, tenant: str, state: Path, number: signal.Signals
) -> None:
    lines = [text(user(each)) for each in range(1200)]
    options = ["--tenant", tenant, "--format", "jsonl"]

    ended = command_line.end_in_the_middle(lines[:700], state, number, *options)

    assert line_of(state) == BATCH
    assert emails_of(users, tenant) == sorted(orjson.loads(line)["email"] for line in lines[:BATCH])
    assert "Traceback" not in ended.err
    if number == signal.SIGINT:
        assert (ended.status, ended.out) == (130, "")
        assert ended.err == f"error: interrupted; at least {BATCH} items are written; --resume continues from here\n"
    else:
        assert ended.status == -number

    file = command_line.file("users.jsonl", *lines)
    resumed = command_line.run("load", "users", file, *options, "--state", state, "--resume", "--json")

    assert (resumed.status, resumed.summary["items"]) == (0, 1200 - BATCH)
    assert emails_of(users, tenant) == expected(1200)
    assert not state.exists()


def test_only_the_corrected_line_may_differ(command_line: CommandLine, users: Users, tenant: str) -> None:
    rows = [user(each) for each in range(600)]
    file = command_line.file("users.jsonl", *rows[:550], "{}", *rows[551:])
    stopped = command_line.run("load", "users", file, "--tenant", tenant)
    command_line.file("users.jsonl", *rows[:550], "", rows[550], *rows[551:])

    resumed = command_line.run("load", "users", file, "--tenant", tenant, "--resume", "--json")

    assert stopped.status == 1
    assert (resumed.status, resumed.summary["items"]) == (0, 50)
    assert emails_of(users, tenant) == expected(600)


def test_a_bad_line_that_is_still_bad_stops_the_load_again(
    command_line: CommandLine, users: Users, tenant: str
) -> None:
    file = command_line.file("users.jsonl", user(0), "{}", user(1))
    options: list[str | Path] = ["load", "users", file, "--tenant", tenant]
    command_line.run(*options)

    again = command_line.run(*options, "--resume")
    left_out = command_line.run(*options, "--resume", "--on-error", "skip", "--json")

    assert (again.status, left_out.status) == (1, 3)
    assert "stopped at line 2; 1 item is written" in again.err
    assert (left_out.summary["items"], left_out.summary["refused"]) == (1, 1)
    assert emails_of(users, tenant) == expected(2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "change",
    [
        lambda lines: ["", *lines],
        lambda lines: lines[1:],
        lambda lines: [lines[1], lines[0], *lines[2:]],
        lambda lines: [text(user(9999)), *lines[1:]],
        lambda lines: lines[:2],
        lambda _lines: [],
    ],
    ids=["a line more", "a line less", "lines swapped", "a line changed", "cut short", "emptied"],
)
def test_a_file_that_changed_before_the_checkpoint_is_refused(
    command_line: CommandLine, users: Users, tenant: str, change: Callable[[list[str]], list[str]]
) -> None:
    lines = [text(user(each)) for each in range(3)]
    file = command_line.file("users.jsonl", *lines, "{}", user(3))
    command_line.run("load", "users", file, "--tenant", tenant)
    command_line.file("users.jsonl", *change(lines), *([user(3)] if change(lines) else []))

    resumed = command_line.run("load", "users", file, "--tenant", tenant, "--resume")

    assert resumed.status == 1
    assert "the file has changed above line 3" in resumed.err
    assert emails_of(users, tenant) == expected(3)


def test_a_row_that_grew_over_the_checkpoint_counts_as_a_change(
    command_line: CommandLine, users: Users, tenant: str
) -> None:
    header = "email,display_name"
    file = command_line.file("users.csv", header, "u0@example.com,A", "bad")
    command_line.run("load", "users", file, "--tenant", tenant)
    command_line.file("users.csv", header, 'u0@example.com,"A', 'B"', "u1@example.com,C")

    resumed = command_line.run("load", "users", file, "--tenant", tenant, "--resume")

    assert resumed.status == 1
    assert "the file has changed above line 2" in resumed.err
    assert emails_of(users, tenant) == expected(1)


def test_an_unfinished_load_is_neither_begun_again_nor_resumed_as_another(
    command_line: CommandLine, users: Users, tenant: str
) -> None:
    file = command_line.file("users.jsonl", user(0), "{}")
    command_line.run("load", "users", file, "--tenant", tenant)

    again = command_line.run("load", "users", file, "--tenant", tenant)
    foreign = command_line.run("load", "users", file, "--tenant", "another", "--resume")

    assert (again.status, foreign.status) == (1, 1)
    assert "continue with --resume" in again.err
    assert f"is of a load of User for tenant {tenant} into the local stack on http" in foreign.err
    assert emails_of(users, tenant) == expected(1)


def test_a_damaged_checkpoint_is_reported_in_one_line(command_line: CommandLine, tenant: str, state: Path) -> None:
    state.write_text("{")
    file = command_line.file("users.jsonl", user(0))

    resumed = command_line.run("load", "users", file, "--tenant", tenant, "--state", state, "--resume")

    assert (resumed.status, len(resumed.err.splitlines())) == (1, 1)
    assert "is damaged" in resumed.err


def test_errors_of_a_resumed_load_are_added_to_those_before(command_line: CommandLine, tenant: str) -> None:
    errors = command_line.folder / "errors.jsonl"
    file = command_line.file("users.jsonl", user(0), "{", user(1), "[]")
    options: list[str | Path] = ["load", "users", file, "--tenant", tenant, "--errors", errors]
    command_line.run(*options)

    command_line.run(*options)
    command_line.run(*options, "--resume", "--on-error", "skip")

    assert [orjson.loads(line)["line"] for line in errors.read_bytes().splitlines()] == [2, 2, 4]


def test_lines_that_an_earlier_attempt_has_left_out_decide_the_status(command_line: CommandLine, tenant: str) -> None:
    def load(last: str, *more: str) -> Outcome:
        rows = ["id,email,display_name", "1,a@b.c,A", "2,none,B", *(f"{n},u{n}@b.c,U" for n in range(3, 403)), last]
        file = command_line.file("users.csv", *rows)
        return command_line.run("load", "users", file, "--tenant", tenant, "--on-error", "skip", *more)

    ended = load('403,"a"b@b.c,C')
    resumed = load("403,b@b.c,C", "--resume")

    assert (ended.status, resumed.status) == (1, 3)
    assert "0 lines refused, 1 before it was resumed" in resumed.out


class Document(Entity, name="tools.v1.Document", key=Key("{tenant_id}", "{id}"), shards=Shards(4), registry=Registry()):
    tenant_id: str
    id: str = new_id()
    ticket: str = new_id()
    text: str = ""


class Scattered(
    Entity,
    name="tools.v1.Scattered",
    key=Key("{tenant_id}", "{id}"),
    shards=Shards(16, placement="random"),
    registry=Registry(),
):
    tenant_id: str
    id: str = new_id()
    text: str = ""


class Loading:
    """Loads a file of documents several times, each on a transport with its own faults."""

    def __init__(
        self, wire: Transport, table: str, folder: Path, model: type[Document] | type[Scattered] = Document
    ) -> None:
        self._wire, self._table, self._folder, self._model = wire, table, folder, model
        self.reported: list[LineError] = []
        self.path = folder / "state"

    def collection(self, transport: Transport) -> Collection[Any]:
        waited = iter(range(1000))
        retry_policy = RetryPolicy(
            seconds=5, runtime=Runtime(monotonic=lambda: float(next(waited)), sleep=lambda _: None)
        )
        return Dynashard(
            transport,
            table=self._table,
            topology=DeclaredTopology(),
            cursor_keys=CURSOR_KEYS,
            retry_policy=retry_policy,
        ).collection(self._model)

    def load(
        self, lines: list[dict[str, Any]], *plan: Fault, resume: bool = False, batch_bytes: int = BATCH_BYTES
    ) -> Checkpoint:
        transport = FaultyTransport(self._wire, plan)
        state = CheckpointFile(self.path)
        checkpoint = state.open("here", "Document", "abc", resume=resume)
        file = self._folder / "documents.jsonl"
        file.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
        with file.open("rb") as stream:
            source = Lines(stream)
            items = self.collection(transport)
            task = Load(
                items,
                state,
                checkpoint,
                stop_on_error=True,
                dry_run=False,
                report=self.reported.append,
                advance=lambda *_: None,
                old=OldKeys(items.entity, TopologyTable(transport, "unused"), pytest.fail),
                batch_bytes=batch_bytes,
            )
            try:
                return task.run(source, rows(source, "jsonl", frozenset()))
            finally:
                assert not transport.waiting

    def texts(self) -> list[str]:
        return sorted(item.text for item in self.collection(self._wire).scan({"tenant_id": "abc"}))


@pytest.fixture
def loading(wire: Transport, table: str, tmp_path: Path) -> Loading:
    return Loading(wire, table, tmp_path)


def documents(count: int) -> list[dict[str, Any]]:
    return [{"text": f"{number:04d}"} for number in range(count)]


@pytest.mark.parametrize(
    "faults",
    [
        [lost_answer("BatchWriteItem", nth=1), unreachable("BatchGetItem", nth=None)],
        [lost_answer("BatchWriteItem", nth=23), unreachable("BatchGetItem", nth=None)],
        [lost_request("BatchWriteItem", nth=3)],
        [throttled("BatchWriteItem", nth=None)],
        [unprocessed("BatchWriteItem", keep=3, nth=None)],
    ],
    ids=["first answer lost", "later answer lost", "request lost", "throttled", "left unprocessed"],
)
def test_every_row_is_there_once_after_the_table_has_refused(loading: Loading, faults: Sequence[Fault]) -> None:
    with pytest.raises(CommandError, match=rf"; at least (0|{BATCH}) items are written; --resume continues from here"):
        loading.load(documents(600), *faults)

    done = loading.load(documents(600), resume=True)

    assert done.written == 600
    assert loading.texts() == [f"{number:04d}" for number in range(600)]
    assert not loading.path.exists()


@pytest.mark.parametrize("nth", [1, 23])
def test_a_batch_whose_answer_is_lost_needs_no_second_load(loading: Loading, nth: int) -> None:
    """The stored items show that the batch was written."""
    done = loading.load(documents(600), lost_answer("BatchWriteItem", nth=nth))

    assert done.written == 600
    assert loading.texts() == [f"{number:04d}" for number in range(600)]
    assert not loading.path.exists()


def test_rows_unprocessed_for_a_while_need_no_second_load(loading: Loading) -> None:
    loading.load(documents(100), unprocessed("BatchWriteItem", keep=20), throttled("BatchWriteItem", nth=5))

    assert loading.texts() == [f"{number:04d}" for number in range(100)]


def _interrupted(*_: object) -> Any:
    raise KeyboardInterrupt


def stored_rows(wire: Transport, table: str) -> list[Wire]:
    found: list[Wire] = wire.call("Scan", {"TableName": table, "ConsistentRead": True})["Items"]
    return found


def test_ctrl_c_during_a_batch_keeps_the_checkpoint(loading: Loading) -> None:
    with pytest.raises(CommandInterruptedError, match=f"at least {BATCH} items are written; --resume continues"):
        loading.load(documents(600), Fault("BatchWriteItem", _interrupted, nth=22))
    loading.load(documents(600), resume=True)

    assert loading.texts() == [f"{number:04d}" for number in range(600)]


def test_long_lines_are_written_in_smaller_batches_also_after_a_resume(loading: Loading) -> None:
    """A line has 16 bytes, so three fill a batch."""
    with pytest.raises(CommandInterruptedError, match="at least 6 items are written; --resume continues"):
        loading.load(documents(12), Fault("BatchWriteItem", _interrupted, nth=3), batch_bytes=45)

    done = loading.load(documents(12), resume=True, batch_bytes=45)

    assert done.written == 12
    assert loading.texts() == [f"{number:04d}" for number in range(12)]


def test_an_item_that_is_too_large_is_reported_with_its_line(loading: Loading) -> None:
    with pytest.raises(CommandError, match="stopped at line 3; 2 items are written"):
        loading.load([*documents(2), {"text": "x" * 500_000}, *documents(1)])

    [error] = loading.reported
    assert error.line == 3
    assert error.reason.startswith("The item has 500")
    assert loading.texts() == ["0000", "0001"]


def test_nothing_is_kept_of_a_load_whose_first_line_is_bad(loading: Loading) -> None:
    with pytest.raises(CommandError, match=r"stopped at line 1; 0 items are written$"):
        loading.load([{"nonsense": 1}])
    done = loading.load(documents(2))

    assert done.written == 2


def test_rows_loaded_again_create_no_second_items_under_random_placement(
    wire: Transport, table: str, tmp_path: Path
) -> None:
    loading = Loading(wire, table, tmp_path, Scattered)
    rows = [{"id": str(number), "text": f"{number:02d}"} for number in range(20)]
    loading.load(rows[:15])

    loading.load([*rows[:19], {**rows[19], "text": "new"}])
    loading.load([{**rows[0], "text": "changed"}])

    assert loading.texts() == [*(f"{number:02d}" for number in range(1, 19)), "changed", "new"]


@pytest.mark.parametrize("model", [Document, Scattered])
def test_a_resumed_load_replaces_rows_that_do_not_fit_and_makes_no_second_items(
    wire: Transport, table: str, tmp_path: Path, model: type[Document] | type[Scattered]
) -> None:
    """The rows after the checkpoint are stored, spoilt by another program, and written again."""
    loading = Loading(wire, table, tmp_path, model)
    lines = [{"id": f"{number:03d}", "text": f"{number:03d}"} for number in range(600)]
    with pytest.raises(CommandInterruptedError):
        loading.load(lines, Fault("BatchWriteItem", _interrupted, nth=22))
    after = [row for row in stored_rows(wire, table) if row["SK"]["S"] >= f"{BATCH}"][:6]
    for row in after[:2]:
        wire.call("PutItem", {"TableName": table, "Item": {**row, "text": {"M": {}}}})
    for row in after[2:4]:
        wire.call("PutItem", {"TableName": table, "Item": {**row, "tenant_id": {"S": "another"}}})
    for row in after[4:]:
        wire.call("PutItem", {"TableName": table, "Item": {name: row[name] for name in ("PK", "SK")}})

    loading.load(lines, resume=True)

    assert loading.texts() == [line["text"] for line in lines]
    assert len(after) == 6
    assert len(stored_rows(wire, table)) == len(lines)


def test_a_load_reads_the_items_that_it_replaces_and_keeps_what_it_does_not_declare(
    loading: Loading, wire: Transport, table: str
) -> None:
    rows_with_ids = [{"id": f"{number:04d}", **document} for number, document in enumerate(documents(3))]
    loading.load(rows_with_ids)
    [first, *_] = wire.call("Scan", {"TableName": table})["Items"]
    wire.call("PutItem", {"TableName": table, "Item": {**first, "Newer": {"S": "field"}}})

    loading.load(rows_with_ids)

    stored = wire.call("Scan", {"TableName": table})["Items"]
    assert [item["Newer"] for item in stored if "Newer" in item] == [{"S": "field"}]


def test_a_resumed_load_keeps_what_was_added_to_the_items_whose_keys_it_makes_again(
    loading: Loading, wire: Transport, table: str
) -> None:
    with pytest.raises(CommandError):
        loading.load(documents(3), lost_answer("BatchWriteItem"), unreachable("BatchGetItem", nth=None))
    [first, *_] = stored_rows(wire, table)
    wire.call("PutItem", {"TableName": table, "Item": {**first, "Newer": {"S": "field"}}})

    loading.load(documents(3), resume=True)

    assert [item["Newer"] for item in stored_rows(wire, table) if "Newer" in item] == [{"S": "field"}]


def test_a_load_that_makes_its_keys_reads_nothing(loading: Loading) -> None:
    with metered() as load:
        loading.load(documents(30))

    assert load.consumed.read_units == 0
