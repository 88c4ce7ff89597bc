"""`dynashard account`: exports and purges of all data of one account and of no other."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec import structs

from domain.samples.articles import Article
from domain.samples.audit import Access, AccessAction, TimedAccess
from domain.samples.contacts import Channel, ContactMethod
from domain.samples.follows import FOLLOWS
from domain.samples.incidents import Incident
from domain.samples.participations import participations
from domain.samples.pings import Ping
from domain.samples.seats import Seats
from domain.samples.teams import Team
from domain.samples.users import User
from dynashard import Dynashard, Entity, Key, Registry, Shards, Unique, definition
from dynashard.schema import MOVED_TO, PK, SK, TYPE
from dynashard.testing.faults import Fault, FaultyTransport, meanwhile, throttled, unprocessed
from dynashard.topology import DeclaredTopology, partition_key
from dynashard.topology.records import first_record
from dynashard.transport import Transport, Wire
from dynashard_patterns import Attachment, CounterStore, EdgeStore
from dynashard_tools.account.cost import described_reading
from dynashard_tools.account.purging import found, purge
from dynashard_tools.account.tenant_data import TenantData
from dynashard_tools.connection import Backend, open_backend
from dynashard_tools.entities import models
from dynashard_tools.failure import CommandError
from dynashard_tools.topology.facts import largest_count
from tests.engine.command_line import CURSOR_KEYS, CommandLine
from tests.engine.patterns.attachment_world import Dying, Killed, large

pytestmark = pytest.mark.engine

LIVE = {
    "user.v1.User": 3,
    "team.v1.Team": 1,
    "contact.v1.ContactMethod": 1,
    "article.v1.Article": 2,
    "ping.v1.Ping": 1,
    "incident.v1.Incident": 2,
    "participation.v1.Participation": 2,
    "audit.v1.Access": 1,
    "audit.v1.TimedAccess": 1,
    "follow.v1.Follow": 2,
    "follow.v1.Count": 2,
    "screening.v1.Seats": 1,
}
DETAILS = large(7, 530)


@pytest.fixture
def db(wire: Transport, local_table: str) -> Dynashard:
    return Dynashard(wire, table=local_table, topology=DeclaredTopology(), cursor_keys=CURSOR_KEYS)


@pytest.fixture
def filled(db: Dynashard, tenant: str, backend: Backend) -> Iterator[tuple[str, str]]:
    """An account with items of every entity, an account with a similar name, and leftovers of a move."""
    like = f"{tenant}2"
    for name in (tenant, like):
        fill(db, name)
    mark = {PK: {"S": f"user.v1.User:{tenant}:3"}, SK: {"S": "moved"}, MOVED_TO: {"N": "32"}}
    backend.transport.call("PutItem", {"TableName": backend.table, "Item": mark})
    yield tenant, like
    for name in (tenant, like):
        for item in list_of(backend, name):
            remove(backend, item)


def fill(db: Dynashard, tenant: str) -> None:
    gone = datetime.now(UTC) - timedelta(seconds=1)
    for number in range(4):
        expires = {"expires_at": gone} if number == 3 else {}
        user = User(tenant_id=tenant, id=f"u{number}", email="a@b.c", display_name="Ada", **expires)
        db.collection(User).create(user)
    db.collection(Team).create(Team(tenant_id=tenant, team_id="t1", name="Red"))
    method = ContactMethod(tenant_id=tenant, user_id="u1", method_id="m1", channel=Channel.EMAIL, address="a@b.c")
    db.collection(ContactMethod).create(method)
    for year in (2016, 2017):
        published = datetime(year, 5, 1, tzinfo=UTC)
        db.collection(Article).create(Article(tenant_id=tenant, author="ada", title="Notes", published_at=published))
    ping = Ping(tenant_id=tenant, series="s1", episode="e1", at=datetime.now(UTC), id="p1", session_id="x")
    db.collection(Ping).create(ping)
    incidents = db.collection(Incident)
    stored = incidents.create(
        Incident(tenant_id=tenant, id="i1", number=1, title="Big", participants=["user_a", "team_r"], details=DETAILS)
    )
    incidents.create(Incident(tenant_id=tenant, id="i2", number=2, title="Bare"))
    for each in participations(stored):
        db.collection(type(each)).create(each)
    accessed = datetime(2026, 11, 21, 12, tzinfo=UTC)
    for kind in (Access, TimedAccess):
        touched = kind(tenant_id=tenant, path="/a", accessed_at=accessed, action=AccessAction.READ, user_id="u1")
        db.collection(kind).create(touched)
    EdgeStore.on(db, FOLLOWS).add(tenant, "User.9", "Actor.5")
    CounterStore.on(db, Seats).add({"tenant_id": tenant, "screening": "premiere"}, 3)


def tenant_data(backend: Backend) -> TenantData:
    return TenantData(backend.transport, backend.table, models())


def list_of(backend: Backend, tenant: str) -> list[Any]:
    """Return the keys of all stored items of an account."""
    return [held.key for some in tenant_data(backend).stored(tenant, lambda _: None) for held in some]


def remove(backend: Backend, item: Wire) -> None:
    key = {PK: item[PK], SK: item[SK]}
    backend.transport.call("DeleteItem", {"TableName": backend.table, "Key": key})


@pytest.fixture
def backend(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Backend:
    for name, value in command_line.environment.items():
        monkeypatch.setenv(name, value)
    return open_backend(None)


def test_an_export_has_every_live_item_once_with_its_details(
    command_line: CommandLine, filled: tuple[str, str], tmp_path: Path
) -> None:
    tenant, _ = filled
    file = tmp_path / "account.jsonl"

    done = command_line.run("account", "export", tenant, "--to", file, "--json")

    assert done.status == 0, done.err
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert Counter(line["entity"] for line in lines) == LIVE == done.summary["entities"]
    assert {line["item"]["tenant_id"] for line in lines} == {tenant}
    details = {
        line["item"]["id"]: line["item"]["details"] for line in lines if line["entity"] == "incident.v1.Incident"
    }
    assert details == {"i1": DETAILS, "i2": None}
    assert file.stat().st_mode & 0o077 == 0
    assert [each.name for each in tmp_path.iterdir() if "account" in each.name] == ["account.jsonl"]


def test_one_item_is_counted_in_the_singular(command_line: CommandLine, db: Dynashard, tenant: str) -> None:
    db.collection(Team).create(Team(tenant_id=tenant, team_id="t1", name="Red"))
    path = command_line.folder / "teams.jsonl"

    looked = command_line.run("account", "purge", tenant)
    kept = command_line.run("export", "teams", "--tenant", tenant, "--to", path)

    assert f" 1 item of {tenant} would be removed" in looked.out
    assert "exported 1 item of team.v1.Team" in kept.out


def test_a_purge_needs_the_name_twice_and_removes_only_that_account(
    command_line: CommandLine, filled: tuple[str, str], backend: Backend, tmp_path: Path
) -> None:
    tenant, like = filled
    other = len(list_of(backend, like))
    stored = len(list_of(backend, tenant))

    looked = command_line.run("account", "purge", tenant)
    wrong = command_line.run("account", "purge", tenant, "--confirm", like)
    assert (looked.status, wrong.status) == (0, 1)
    assert f"{stored} items of {tenant} would be removed" in looked.out
    assert len(list_of(backend, tenant)) == stored > sum(LIVE.values()) + 3
    assert sum("~unique~" in key[PK]["S"] for key in list_of(backend, tenant)) == 1

    done = command_line.run("account", "purge", f"tenant_id={tenant}", "--confirm", tenant, "--json").summary
    again = command_line.run("account", "purge", tenant, "--confirm", tenant, "--json").summary

    assert (done["items"], again["items"]) == (stored, 0)
    assert done["types"]["incident.v1.Incident~details"] == 3
    assert list_of(backend, tenant) == []
    assert len(list_of(backend, like)) == other
    assert (
        command_line.run("account", "export", f"tenant_id={like}", "--to", tmp_path / "b", "--json").summary["entities"]
        == LIVE
    )


def test_a_purge_killed_at_any_request_is_finished_by_the_next(filled: tuple[str, str], backend: Backend) -> None:
    tenant, like = filled
    other = len(list_of(backend, like))
    for requests in range(40):
        dying = replace(backend, transport=Dying(backend.transport, before=requests))
        try:
            done = purge(tenant_data(dying), tenant, scanned=lambda _: None, removed=lambda _: None)
        except Killed:
            continue
        break
    assert done.passes == 1
    assert list_of(backend, tenant) == []
    assert len(list_of(backend, like)) == other


def test_a_purge_retries_throttles_and_unprocessed_deletes(filled: tuple[str, str], backend: Backend) -> None:
    tenant, _ = filled
    plan = [throttled("Scan"), throttled("BatchWriteItem"), unprocessed("BatchWriteItem", keep=1, nth=2)]
    faulty = FaultyTransport(backend.transport, plan)

    done = purge(
        tenant_data(replace(backend, transport=faulty)), tenant, scanned=lambda _: None, removed=lambda _: None
    )

    assert faulty.waiting == []
    assert done.passes == 2
    assert not found(tenant_data(backend), tenant, lambda _: None)


def test_a_purge_reports_concurrent_writes(filled: tuple[str, str], backend: Backend, db: Dynashard) -> None:
    tenant, _ = filled

    def back() -> None:
        db.collection(User).replace(User(tenant_id=tenant, id="u1", email="a@b.c", display_name="Ada"))

    contested = replace(backend, transport=FaultyTransport(backend.transport, [meanwhile("Scan", back, nth=None)]))

    with pytest.raises(CommandError, match="new ones are being written: revoke its tokens"):
        purge(tenant_data(contested), tenant, scanned=lambda _: None, removed=lambda _: None)


@pytest.mark.parametrize("name", ["", "a:b"])
def test_an_invalid_account_name_is_refused(command_line: CommandLine, name: str, tmp_path: Path) -> None:
    refused = [
        command_line.run("account", "export", name, "--to", tmp_path / "a"),
        command_line.run("account", "purge", name, "--confirm", name),
    ]

    assert [(each.status, "names no account" in each.err) for each in refused] == [(1, True), (1, True)]
    assert name not in [each["tenant"] for each in command_line.run("account", "purges", "--json").summary["purges"]]


def test_an_export_that_cannot_be_written_or_fails_leaves_no_file(
    command_line: CommandLine, filled: tuple[str, str], tmp_path: Path, backend: Backend
) -> None:
    tenant, _ = filled
    nowhere = command_line.run("account", "export", tenant, "--to", tmp_path / "none" / "file")
    assert (nowhere.status, "cannot be written" in nowhere.err) == (1, True)

    [piece, *_] = [item for item in list_of(backend, tenant) if item[SK]["S"].startswith("p#")]
    remove(backend, piece)
    failed = command_line.run("account", "export", tenant, "--to", tmp_path / "file")

    assert (failed.status, "pieces of details are gone" in failed.err) == (1, True)
    assert not list(tmp_path.glob("file*"))


class Task(Entity, name="task.v1.Task", key=Key("{tenant_id}", "{id}"), shards=Shards(2), registry=Registry()):
    """An entity whose logical partitions are whole tenants."""

    tenant_id: str
    id: str


class Old(
    Entity,
    name="old.v1.Old",
    key=Key("{tenant_id}", "{id}"),
    shards=Shards(2, adopt="unsharded"),
    registry=Registry(),
):
    """An entity whose items another program has written, without a type."""

    tenant_id: str
    id: str


def test_an_export_reads_only_the_partitions_of_a_tenant_if_they_are_known(backend: Backend, tenant: str) -> None:
    wire = FaultyTransport(backend.transport)
    for number in range(40):
        # At homes of counts that the partition once had, and unsharded.
        places = (f"task.v1.Task:{tenant}:{number % 8}", f"task.v1.Task:{tenant}")
        key = {PK: {"S": places[number % 2]}, SK: {"S": f"{number:03d}"}, TYPE: {"S": "task.v1.Task"}}
        item = {**key, "tenant_id": {"S": tenant}, "id": key[SK]}
        backend.transport.call("PutItem", {"TableName": backend.table, "Item": item})
    data = TenantData(wire, backend.table, [Task], largest_count=lambda *_: 8)

    partitions = data.partitions(tenant, 0, lambda _: None)
    sent = (wire.sent("Scan"), wire.sent("Query"))
    held = [each.key[SK]["S"] for some in data.stored(tenant, lambda _: None) for each in some]
    others = [each for some in data.stored(f"{tenant}x", lambda _: None) for each in some]

    assert sorted(held) == [f"{number:03d}" for number in range(40)]
    assert [dict(each.fields) for each in partitions] == [{"tenant_id": tenant}]
    assert others == []
    assert sent == (0, 9)
    # Rows of fields that are not declared any more may be anywhere.
    assert wire.sent("Scan") > 0


class Member(
    Entity,
    name="member.v1.Member",
    key=Key("{tenant_id}", "{id}"),
    shards=Shards(2),
    unique=("email", Unique("badge", within="")),
    registry=Registry(),
):
    """An entity whose logical partitions are whole tenants, and whose reservations have partitions of their own."""

    tenant_id: str
    id: str
    email: str
    badge: str


class Report(Entity, name="report.v1.Report", key=Key("{tenant_id}", "{id}"), shards=Shards(2), registry=Registry()):
    """An entity whose logical partitions are whole tenants, and whose attachments have partitions of their own."""

    tenant_id: str
    id: str
    text: Annotated[str | None, Attachment()] = None


def test_a_purge_also_finds_the_reservations_that_no_item_names_any_more(
    backend: Backend, db: Dynashard, tenant: str
) -> None:
    members = db.collection(Member)
    # Badges are unique in the whole table, so the keys of their reservations do not name the tenant.
    badges = [f"{tenant[::-1]}{number}" for number in range(3)]
    for number, badge in enumerate(badges):
        members.create(tenant_id=tenant, id=f"m{number}", email=f"{number}@example.com", badge=badge)
    data = TenantData(backend.transport, backend.table, [Member], largest_count=lambda *_: 2)
    [gone] = [each for some in data.stored(tenant, lambda _: None) for each in some if each.key[SK]["S"] == "m1"]
    remove(backend, gone.key)

    done = purge(data, tenant, scanned=lambda _: None, removed=lambda _: None)

    assert done.removed == {
        "member.v1.Member": 2, "member.v1.Member~unique~email": 3, "member.v1.Member~unique~badge": 3
    }  # fmt: skip
    members.create(tenant_id=f"{tenant}2", id="x", email="x@example.com", badge=badges[1])


class Former(
    Entity,
    name="former.v1.Note",
    key=Key("{tenant_id}", "{id}"),
    unique=("code", Unique("badge", within="")),
    registry=Registry(),
):
    """An entity of an earlier release."""

    tenant_id: str
    id: str
    code: str
    badge: str


class FormerFile(Entity, name="former.v1.File", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    """An entity of an earlier release."""

    tenant_id: str
    id: str
    text: Annotated[str | None, Attachment()] = None


class Note(Entity, name="former.v1.Note", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    """The same entity without its unique fields."""

    tenant_id: str
    id: str
    code: str
    badge: str


class File(Entity, name="former.v1.File", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    """The same entity without its attachment."""

    tenant_id: str
    id: str


def test_a_purge_finds_a_reservation_that_names_no_owner(db: Dynashard, backend: Backend, tenant: str) -> None:
    method = ContactMethod(tenant_id=tenant, user_id="u1", method_id="m1", channel=Channel.EMAIL, address="a@b.c")
    db.collection(ContactMethod).create(method)
    scanned = backend.transport.call("Scan", {"TableName": backend.table, "ConsistentRead": True})["Items"]
    [row] = [row for row in scanned if tenant in row.get("OwnerPartition", {}).get("S", "")]
    backend.transport.call("PutItem", {"TableName": backend.table, "Item": {**row, "OwnerPartition": {"N": "5"}}})

    done = purge(tenant_data(backend), tenant, scanned=lambda _: None, removed=lambda _: None)

    assert done.total == 2
    assert list_of(backend, tenant) == []


def test_a_purge_removes_what_fields_have_left_that_are_not_declared_any_more(
    backend: Backend, db: Dynashard, tenant: str
) -> None:
    for name in (tenant, f"{tenant}2"):
        db.collection(FormerFile).create(tenant_id=name, id="kept", text="a text")
        db.collection(FormerFile).create(tenant_id=name, id="gone", text="another text")
        db.collection(File).delete({"tenant_id": name, "id": "gone"})
        db.collection(Former).create(tenant_id=name, id="n1", code="c", badge=name[::-1])
    data = TenantData(backend.transport, backend.table, [File, Note], largest_count=lambda *_: 1)

    done = purge(data, tenant, scanned=lambda _: None, removed=lambda _: None)

    # A manifest and a piece of each text.
    assert done.removed == {
        "former.v1.File": 1, "former.v1.File~text": 4,
        "former.v1.Note": 1, "former.v1.Note~unique~code": 1, "former.v1.Note~unique~badge": 1,
    }  # fmt: skip
    other = db.collection(FormerFile).get({"tenant_id": f"{tenant}2", "id": "kept"}, include=("text",))
    assert other.text == "a text"
    assert found(data, f"{tenant}2", lambda _: None).total() == 8


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"ItemCount": 40_000_000, "TableSizeBytes": 8_192_000_000}, "about 4,000,000 read units ($0.50 on demand)"),
        ({"ItemCount": 1, "TableSizeBytes": 9}, "1 stored item of all accounts, 0.000 GB. It consumes about 1 read"),
        ({"ItemCount": 40, "TableSizeBytes": 0}, "at least twice, whose size DynamoDB has not measured yet"),
        (None, "what that takes is unknown (DescribeTable was throttled"),
    ],
)
def test_the_cost_of_reading_the_table_is_that_of_its_size(
    backend: Backend, answer: dict[str, Any] | None, said: str
) -> None:
    def describe(send: Any, request: Any) -> Wire:
        del send, request
        return {"Table": answer}

    fault = throttled("DescribeTable", nth=None) if answer is None else Fault("DescribeTable", describe)

    line = described_reading(FaultyTransport(backend.transport, [fault]), backend.table, readings=2)

    assert line.startswith("this reads the whole table")
    assert said in line


def test_rows_of_other_programs_are_the_tenants_by_their_keys_alone(backend: Backend, tenant: str) -> None:
    rows = [
        (f"task.v1.Task:{tenant}:0", "task.v1.Task~text"),
        ("task.v1.Task:other:0", "task.v1.Task~text"),
        (f"gone.v1.Gone~text:{tenant}:1", "gone.v1.Gone~text"),
    ]
    for key, kind in rows:
        item = {PK: {"S": key}, SK: {"S": tenant}, TYPE: {"S": kind}}
        backend.transport.call("PutItem", {"TableName": backend.table, "Item": item})
    data = TenantData(backend.transport, backend.table, [Task])

    held = [each for some in data.stored(tenant, lambda _: None) for each in some]

    assert [each.key[PK]["S"] for each in held] == [f"task.v1.Task:{tenant}:0"]


def test_partitions_of_rows_without_a_type_belong_to_the_entity_that_adopts_them(backend: Backend, tenant: str) -> None:
    for place in (f"old.v1.Old:{tenant}", f"task.v1.Task:{tenant}"):
        item = {PK: {"S": place}, SK: {"S": "1"}, "tenant_id": {"S": tenant}, "id": {"S": "1"}}
        backend.transport.call("PutItem", {"TableName": backend.table, "Item": item})

    found = TenantData(backend.transport, backend.table, [Task, Old]).partitions(tenant, 0, lambda _: None)

    assert [(each.entity.name, each.fields) for each in found] == [("old.v1.Old", {"tenant_id": tenant})]


def test_an_export_reads_no_other_partitions_for_attachments_and_unique_fields(
    backend: Backend, db: Dynashard, tenant: str
) -> None:
    db.collection(Member).create(tenant_id=tenant, id="m1", email="m@example.com", badge=tenant)
    db.collection(Report).create(tenant_id=tenant, id="r1", text=large(3, 20)["noise"])
    wire = FaultyTransport(backend.transport)
    data = TenantData(wire, backend.table, [Member, Report], largest_count=lambda *_: 2)

    found_partitions = [dict(each.fields) for each in data.partitions(tenant, 0, lambda _: None)]
    scans_of_export = wire.sent("Scan")
    stored = [each for some in data.stored(tenant, lambda _: None) for each in some]

    assert found_partitions == [{"tenant_id": tenant}, {"tenant_id": tenant}]
    assert (scans_of_export, wire.sent("Scan") > 0) == (0, True)
    assert {each.kind for each in stored} >= {"member.v1.Member~unique~email", "report.v1.Report~text"}


def test_a_scan_for_a_tenant_transfers_no_keys_of_others(backend: Backend, tenant: str) -> None:
    wire = FaultyTransport(backend.transport)
    answers: list[Wire] = []
    send = wire.call

    def kept(operation: str, request: Any, **more: Any) -> Wire:
        answers.append(send(operation, request, **more))
        return answers[-1]

    wire.call = kept  # type: ignore[method-assign]
    for of in (tenant, "other"):
        key = {PK: {"S": f"task.v1.Task:{of}:0"}, SK: {"S": f"{tenant}-1"}, TYPE: {"S": "task.v1.Task"}}
        backend.transport.call("PutItem", {"TableName": backend.table, "Item": key})

    held = [each for some in TenantData(wire, backend.table, [Task]).stored(tenant, lambda _: None) for each in some]

    assert [each.key[PK]["S"] for each in held] == [f"task.v1.Task:{tenant}:0"]
    assert sum(len(answer["Items"]) for answer in answers) == 1


def test_the_largest_count_of_a_partition_includes_those_of_its_past(backend: Backend, tenant: str) -> None:
    entity = definition(User)
    partition = f"user.v1.User:{tenant}"
    key = partition_key(entity, partition)
    record = structs.replace(
        first_record(key, 4, now=5.0, lease=30.0), history=frozenset({"1:128", "2:4"}), target=None
    )
    before = largest_count(backend.topology, entity, partition)
    backend.topology.create(record)

    assert (before, largest_count(backend.topology, entity, partition)) == (16, 128)
