"""Every command goes on at stored items that do not fit their declaration, gives the others, and names these."""

import json
import re
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import uuid4

import pytest

from domain.samples.incidents import Incident
from domain.samples.participations import participations
from domain.samples.pings import Ping
from domain.samples.plays import PLAYS
from domain.samples.users import User
from dynashard import Dynashard
from dynashard.runtime import Runtime
from dynashard.schema import PK, SK
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_patterns.rollups import ItemCounter
from dynashard_tools.account.purging import purge
from dynashard_tools.account.tenant_data import TenantData
from dynashard_tools.entities import models
from tests.engine.command_line import CURSOR_KEYS, ROOT, CommandLine, Outcome
from tests.engine.unfit_rows import UnfitRows

pytestmark = pytest.mark.engine

NOON: Final = (datetime.now(UTC) - timedelta(days=2)).replace(hour=12, minute=0, second=0, microsecond=0)
"""Two days ago, because pings of a fixed day would expire."""
SIZE: Final = 300


class Stored:
    """300 users, incidents with copies, and counted pings of a tenant; 5 of each do not fit, in 3 ways."""

    def __init__(self, wire: Transport, table: str) -> None:
        self.wire, self.table, self.tenant = wire, table, uuid4().hex
        self.db = Dynashard(wire, table=table, topology=DeclaredTopology(), cursor_keys=CURSOR_KEYS)
        of = {"tenant_id": self.tenant}
        users = [User(**of, id=f"u{n:03}", email=f"u{n}@b", display_name="U", department="eng") for n in range(SIZE)]
        incidents = [
            Incident(**of, id=f"i{n:03}", number=n + 1, title="Fire", participants=["user_ada"]) for n in range(SIZE)
        ]
        pings = [
            Ping(**of, series="s", episode="e", at=NOON + timedelta(seconds=n), id=f"p{n:03}", session_id="x")
            for n in range(SIZE)
        ]
        self._put(users)
        self._put(incidents)
        self._put(pings)
        self._put([copy for item in self.db.collection(Incident).scan(of) for copy in participations(item)])
        ItemCounter(self.db, PLAYS).count(pings)
        self.unfit = UnfitRows(wire, table)
        self.odd: dict[str, list[str]] = {
            "users": self.unfit.spoil(users, "email"),
            "incidents": self.unfit.spoil(incidents, "title"),
            "pings": self.unfit.spoil(pings, "session_id"),
        }

    def _put(self, items: Sequence[Any]) -> None:
        self.db.collection(type(items[0])).batch_write(put=items)


@pytest.fixture(scope="module")
def stored(wire: Transport, local_table: str) -> Iterator[Stored]:
    made = Stored(wire, local_table)
    yield made
    purge(TenantData(wire, local_table, models()), made.tenant, scanned=lambda _: None, removed=lambda _: None)


def names(outcome: Outcome, keys: Sequence[str]) -> bool:
    """Whether a command names rows with these sort keys on standard error, each once, and nothing else."""
    lines = [line for line in outcome.err.splitlines() if line.startswith("left out: ")]
    return len(lines) == len(keys) and all(any(key in line for line in lines) for key in keys)


def test_a_list_has_the_others(command_line: CommandLine, stored: Stored) -> None:
    run = command_line.run("list", "users", f"tenant_id={stored.tenant}", "--limit", "1000")

    assert (run.status, len(run.summary["items"])) == (3, SIZE - 5)
    assert names(run, stored.odd["users"])
    assert ": email: Input should be a valid string" in run.err


@pytest.mark.parametrize("entity", ["users", "incidents", "pings"])
def test_an_export_has_the_others(command_line: CommandLine, stored: Stored, entity: str) -> None:
    path = command_line.folder / "items.jsonl"

    run = command_line.run("export", "run", entity, "--tenant", stored.tenant, "--to", path, "--json")

    assert (run.status, run.summary["items"], len(path.read_bytes().splitlines())) == (3, SIZE - 5, SIZE - 5)
    assert names(run, stored.odd[entity])


def test_an_export_of_an_account_has_the_others_of_every_entity(command_line: CommandLine, stored: Stored) -> None:
    path = command_line.folder / "account.jsonl"

    run = command_line.run("account", "export", stored.tenant, "--to", path, "--json")

    found = Tally(json.loads(line)["entity"] for line in path.read_text().splitlines())
    assert run.status == 3
    assert [found[each] for each in ("user.v1.User", "incident.v1.Incident", "ping.v1.Ping")] == [SIZE - 5] * 3
    assert found["participation.v1.Participation"] == SIZE
    assert names(run, [key for keys in stored.odd.values() for key in keys])


def test_a_purge_finds_all_rows_by_their_keys_alone(command_line: CommandLine, stored: Stored) -> None:
    run = command_line.run("account", "purge", stored.tenant, "--json")

    types = run.summary["types"]
    assert run.status == 0
    assert re.fullmatch(r"this reads the whole table once[:,] .*\n", run.err)
    # A row without a type is counted with the markers.
    assert [types[each] for each in ("user.v1.User", "incident.v1.Incident", "ping.v1.Ping")] == [SIZE - 1] * 3
    assert (types["markers and others"], types["participation.v1.Participation"]) == (3, SIZE)


@pytest.mark.parametrize("order", ["ordered", "round_robin", "shard"])
def test_a_picture_of_a_listing_has_the_others(command_line: CommandLine, stored: Stored, order: str) -> None:
    path = command_line.folder / "order.svg"

    run = command_line.run("plot", "order", "users", stored.tenant, path, "--order", order, "--page", "50")

    assert (run.status, path.exists()) == (3, True)
    assert f"{SIZE - 5:,} items" in run.out
    assert names(run, stored.odd["users"])


def test_a_map_is_applied_to_the_others(command_line: CommandLine, stored: Stored) -> None:
    run = command_line.run("etl", "users", stored.tenant, ROOT / "examples/etl/departments.py", "--json")

    assert (run.status, run.summary["read"], run.summary["changed"]) == (3, SIZE - 5, SIZE - 5)
    assert names(run, stored.odd["users"])
    assert stored.unfit.unharmed


def test_a_map_that_fails_names_the_others_too(command_line: CommandLine, stored: Stored) -> None:
    path = command_line.folder / "fails.py"
    path.write_text(
        f"from itertools import count\n\ncalls = count(1)\n\n\ndef change(item):\n    if next(calls) == {SIZE - 5}:\n"
        '        raise ValueError("the last")\n    return {}\n'
    )

    run = command_line.run("etl", "users", stored.tenant, path)

    assert (run.status, "the last" in run.err) == (1, True)
    assert names(run, stored.odd["users"])


def test_an_interrupted_export_names_what_it_has_left_out(
    command_line: CommandLine, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def interrupted(*_: object) -> Iterator[Callable[[object], None]]:
        def add(_: object) -> None:
            raise KeyboardInterrupt

        yield add

    monkeypatch.setattr("dynashard_tools.export.command.new_file", interrupted)

    run = command_line.run("export", "run", "users", "--tenant", stored.tenant, "--to", command_line.folder / "a.jsonl")

    assert run.status == 130
    assert names(run, stored.odd["users"])


def left_out(run: Outcome, keys: Sequence[str], kinds: Sequence[str] = ("unreadable", "uncopied")) -> bool:
    """Whether a verification names rows with these sort keys, each once, and nothing else that does not fit."""
    found = [f"{each['where']} {each['detail']}" for each in run.summary["findings"] if each["kind"] in kinds]
    return len(found) == len(keys) and all(any(key in each for each in found) for key in keys)


@pytest.mark.parametrize("options", [[], ["--mend"]])
def test_copies_of_the_others_are_compared_and_those_of_undecodable_items_stay(
    command_line: CommandLine, stored: Stored, options: list[str]
) -> None:
    run = command_line.run("verify", "incidents", stored.tenant, "--only", "copies", "--json", *options)

    assert (run.status, sum(run.summary["found"].values())) == (3, 5)
    assert run.summary["compared"] == {"copies": 2 * SIZE}
    assert left_out(run, stored.odd["incidents"])
    assert stored.unfit.unharmed


def test_copies_of_the_whole_table_are_compared_with_the_others(command_line: CommandLine, stored: Stored) -> None:
    run = command_line.run("verify", "participations", "--only", "copies", "--json")

    # The table has rows of other tests.
    assert run.status in {3, 4}
    assert run.summary["compared"]["copies"] >= 2 * SIZE
    ours = " ".join(f"{each['where']} {each['detail']}" for each in run.summary["findings"])
    assert all(key in ours for key in stored.odd["incidents"])


@pytest.mark.parametrize("options", [["--strict"], ["--mend", "--lower"]])
def test_roll_ups_of_the_others_are_compared_and_nothing_is_lowered(
    command_line: CommandLine, stored: Stored, options: list[str]
) -> None:
    run = command_line.run("verify", "pings", stored.tenant, "--day", f"{NOON:%Y-%m-%d}", "--json", *options)

    # Five minutes, an hour and a day say more than the items.
    assert (run.status, run.summary["mended"]) == (4, {})
    assert run.summary["found"] == {"roll_up_above": 7, "unreadable": 5}
    assert left_out(run, stored.odd["pings"])
    assert stored.unfit.unharmed


def test_a_topology_counts_what_is_stored(command_line: CommandLine, stored: Stored) -> None:
    run = command_line.run("topology", "users", stored.tenant, "--json")

    assert (run.status, sum(shard["items"] for shard in run.summary["shards"])) == (0, SIZE)


@pytest.mark.parametrize("entity", ["users", "incidents"])
def test_a_verification_reports_them_among_the_others(command_line: CommandLine, stored: Stored, entity: str) -> None:
    run = command_line.run("verify", entity, stored.tenant, "--mend", "--json")

    found = [each for each in run.summary["findings"] if each["kind"] == "unreadable"]
    assert (run.status, run.summary["items"], len(found)) == (3, SIZE, 5)
    assert all(any(key in each["where"] for each in found) for key in stored.odd[entity])
    assert stored.unfit.unharmed


def test_a_row_that_several_parts_cannot_read_is_one_finding(command_line: CommandLine, stored: Stored) -> None:
    run = command_line.run("verify", "incidents", stored.tenant, "--only", "items,copies", "--json")

    # A row whose key can be read is found by the copies too, as a source that has none.
    assert (run.status, run.summary["found"]) == (3, {"unreadable": 5, "uncopied": 2})


def test_a_sweep_keeps_the_details_of_an_item_that_does_not_fit(
    command_line: CommandLine, wire: Transport, local_table: str, stored: Stored
) -> None:
    layer = Dynashard(
        wire,
        table=local_table,
        topology=DeclaredTopology(),
        cursor_keys=CURSOR_KEYS,
        runtime=Runtime(lambda: time.time() - 2 * 24 * 60 * 60),
    )
    tenant = f"{stored.tenant}-details"
    made = [
        layer.collection(Incident).create(Incident(tenant_id=tenant, id=f"i{n}", number=1, title="T", details=[n]))
        for n in range(3)
    ]
    rows = [stored.unfit.row(item) for item in made]
    odd: list[dict[str, Any]] = [{"title": {"M": {}}}, {"tenant_id": {"S": "x"}}, {"Rev": {"N": "1"}}]
    for row, wrong in zip(rows, odd, strict=True):
        stored.unfit.put({**row, **wrong})

    run = command_line.run("verify", "incidents", "--only", "leftovers", "--mend", "--json")

    # Other tests may have left some in this table.
    assert (run.status, [each for each in run.summary["findings"] if tenant in each["where"]]) == (0, [])
    for row in rows:
        stored.unfit.put(row)
    items = [layer.collection(Incident).get(item, include=["details"]) for item in made]
    for item in items:
        layer.collection(Incident).delete(item)
    assert [item.details for item in items] == [[0], [1], [2]]


def test_a_load_replaces_what_does_not_fit_under_the_keys_of_its_rows(
    command_line: CommandLine, wire: Transport, local_table: str, stored: Stored
) -> None:
    tenant = f"{stored.tenant}-load"
    made = [
        stored.db.collection(User).create(User(tenant_id=tenant, id=f"u{n}", email=f"u{n}@b", display_name="U"))
        for n in range(3)
    ]
    rows = [stored.unfit.row(item) for item in made]
    stored.unfit.put({**rows[0], "email": {"M": {}}})
    stored.unfit.put({**rows[1], "tenant_id": {"S": "x"}})
    stored.unfit.put({PK: rows[2][PK], SK: rows[2][SK]})
    lines = [{"id": f"u{n}", "email": f"new{n}@b", "display_name": "N"} for n in range(3)]

    run = command_line.run("load", "users", command_line.file("u.jsonl", *lines), "--tenant", tenant, "--json")

    found = stored.db.collection(User).list({"tenant_id": tenant})
    for row in rows:
        wire.call("DeleteItem", {"TableName": local_table, "Key": {PK: row[PK], SK: row[SK]}})
    assert (run.status, run.summary["items"]) == (0, 3)
    assert sorted(each.email for each in found.items) == ["new0@b", "new1@b", "new2@b"]
    assert not found.undecodable


def test_a_load_leaves_out_lines_whose_rows_cannot_be_replaced(
    command_line: CommandLine, wire: Transport, local_table: str, stored: Stored
) -> None:
    tenant = f"{stored.tenant}-load"
    users = stored.db.collection(User)
    made = [users.create(User(tenant_id=tenant, id=f"u{n}", email=f"u{n}@b", display_name="U")) for n in range(4)]
    rows = [stored.unfit.row(item) for item in made]
    odd: list[dict[str, Any]] = [{"Ver": {"N": "7"}}, {"Ver": {"S": "x"}}, {"MovedTo": {"S": "x"}}]
    for row, wrong in zip(rows, odd, strict=False):
        stored.unfit.put({**row, **wrong})
    lines = [{"id": f"u{n}", "email": f"new{n}@b", "display_name": "N"} for n in range(4)]

    file = command_line.file("u.jsonl", *lines)
    run = command_line.run("load", "users", file, "--tenant", tenant, "--on-error", "skip", "--json")

    after = [stored.unfit.at(row)["email"]["S"] for row in rows]
    for row in rows:
        wire.call("DeleteItem", {"TableName": local_table, "Key": {PK: row[PK], SK: row[SK]}})
    assert (run.status, run.summary["items"], run.summary["refused"]) == (3, 1, 3)
    assert all(f"line {line}: " in run.err for line in (1, 2, 3))
    assert after == ["u0@b", "u1@b", "u2@b", "new3@b"]


def test_a_load_replaces_what_does_not_fit_of_an_entity_with_attachments(
    command_line: CommandLine, stored: Stored
) -> None:
    tenant = f"{stored.tenant}-attached"
    incidents = stored.db.collection(Incident)
    made = [
        incidents.create(Incident(tenant_id=tenant, id=f"i{n}", number=1, title="t", details={"n": n}))
        for n in range(4)
    ]
    rows = [stored.unfit.row(item) for item in made]
    stored.unfit.put({**rows[0], "title": {"M": {}}})
    stored.unfit.put({**rows[1], "tenant_id": {"S": "x"}})
    stored.unfit.put({PK: rows[2][PK], SK: rows[2][SK]})
    stored.unfit.put({**rows[3], "details": {"S": "no pointer"}})
    lines = [{"id": f"i{n}", "number": 2, "title": f"new{n}", "details": {"new": n}} for n in range(4)]

    run = command_line.run("load", "incidents", command_line.file("i.jsonl", *lines), "--tenant", tenant, "--json")

    found = incidents.list({"tenant_id": tenant})
    details = [incidents.get({"tenant_id": tenant, "id": f"i{n}"}, include=["details"]).details for n in range(4)]
    assert (run.status, run.summary["items"]) == (0, 4), run.err
    assert sorted(each.title for each in found.items) == ["new0", "new1", "new2", "new3"]
    assert details == [{"new": n} for n in range(4)]
    assert not found.undecodable
