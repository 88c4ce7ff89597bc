"""Copies equal their sources under stream faults, concurrent writers and writers that die."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Annotated, Any

import pytest
from msgspec import structs

from dynashard import Dynashard, Entity, Key, Put, Registry, RetryPolicy, Shards, Unique, updated_at
from dynashard.errors import (
    DeclarationError,
    DynashardError,
    EngineUnavailableError,
    InvalidKeyError,
    InvalidValueError,
    TransactionRefusedError,
)
from dynashard.testing.faults import (
    Fault,
    FaultyTransport,
    Send,
    afterwards,
    lost_answer,
    lost_request,
    meanwhile,
    throttled,
)
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport, Wire
from dynashard_patterns import Attachment, Change, MaterializedCopies
from dynashard_patterns.changes import DeadLetter, Dispatcher
from dynashard_patterns.copies import Drift, Progress
from tests.engine.patterns.stream_world import Streamed, records_of
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.resharding.resharding_world import Moving, moving_world, partition

pytestmark = pytest.mark.engine

_REGISTRY = Registry()
PEOPLE = ["ada", "bob", "cyd", "dan", "eve"]


class Case(Entity, name="copies.v1.Case", key=Key("{tenant}", "{id}"), shards=Shards(4), registry=_REGISTRY):
    tenant: str
    id: str
    title: str = ""
    people: tuple[str, ...] = ()
    note: str = ""


class Part(Entity, name="copies.v1.Part", key=Key("{tenant}:{case}", "{person}"), registry=_REGISTRY):
    tenant: str
    case: str
    person: str
    title: str


def parts(case: Case) -> Iterator[Part]:
    for person in case.people:
        yield Part(tenant=case.tenant, case=case.id, person=person, title=case.title)


PARTS = MaterializedCopies(of=Case, copy=Part, make=parts, partition={"case": "id"})
KEY = {"tenant": "t", "id": "c"}


@dataclass
class World:
    """A table with cases and their parts."""

    wire: Transport
    table: str
    cursor_keys: Sequence[str] = field(default=("0123456789abcdef",))

    def db(self, plan: Sequence[Fault] = ()) -> Dynashard:
        self.faulty = FaultyTransport(self.wire, plan)
        return Dynashard(self.faulty, table=self.table, topology=DeclaredTopology(), cursor_keys=self.cursor_keys)

    def case(self, title: str = "a", *people: str, key: str = "c") -> Case:
        return self.db().collection(Case).replace(Case(tenant="t", id=key, title=title, people=people))

    def stored(self, key: str = "c") -> dict[str, str]:
        found = self.db().collection(Part).list({"tenant": "t", "case": key}, limit=1000, consistent=True)
        return {part.person: part.title for part in found.items}

    def repaired(self, **partition: str) -> Progress:
        *_, last = PARTS.repair(self.db(), partition or None)
        return last

    def truth(self) -> dict[str, dict[str, str]]:
        found = self.db().collection(Case).scan({"tenant": "t"}, consistent=True)
        return {case.id: dict.fromkeys(case.people, case.title) for case in found}


@pytest.fixture
def world(wire: Transport, table: str) -> World:
    return World(wire, table)


@pytest.fixture
def moving(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table) as made:
        yield made


def test_copies_are_created_changed_and_deleted_with_their_source(world: World) -> None:
    carry = PARTS.materializer(world.db()).carry
    world.case("a", "ada", "bob")
    assert carry(KEY) == Drift(missing=2)
    world.case("b", "bob", "cyd")
    assert carry(KEY) == Drift(missing=1, wrong=1, extra=1)
    assert world.stored() == {"bob": "b", "cyd": "b"}
    world.db().collection(Case).delete(KEY)
    assert carry(KEY) == Drift(extra=2)
    assert world.stored() == {}


def test_a_change_that_concerns_no_copy_writes_nothing(world: World) -> None:
    world.case("a", "ada")
    PARTS.materializer(world.db()).carry(KEY)
    world.db().collection(Case).update(KEY, set={"note": "n"})

    assert PARTS.materializer(world.db()).carry(KEY) == Drift()

    assert [call.operation for call in world.faulty.calls] == ["GetItem", "Query"]
    assert all(call.request["ConsistentRead"] for call in world.faulty.calls)


def test_more_copies_than_one_transaction_takes(world: World) -> None:
    people = [f"{number:03d}" for number in range(200)]
    world.case("a", *people)

    assert PARTS.materializer(world.db()).carry(KEY).missing == 200

    assert world.stored() == dict.fromkeys(people, "a")
    assert world.faulty.sent("Query") == 1
    assert world.case("b", *people).title == "b"
    died = meanwhile("TransactWriteItems", lambda: world.case("c", *people[:3]), nth=2)
    # One transaction was done before the source changed.
    assert PARTS.materializer(world.db([died])).carry(KEY) == Drift(wrong=90 + 3, extra=197)
    assert world.stored() == dict.fromkeys(people[:3], "c")


class Member(
    Entity, name="copies.v1.Member", key=Key("{tenant}:{case}", "{person}"), shards=Shards(2), registry=_REGISTRY
):
    tenant: str
    case: str
    person: str


def members(case: Case) -> Iterator[Member]:
    for person in case.people:
        yield Member(tenant=case.tenant, case=case.id, person=person)


MEMBERS = MaterializedCopies(of=Case, copy=Member, make=members, partition={"case": "id"})


def test_more_copies_than_one_transaction_takes_while_they_move(moving: Moving) -> None:
    scope, people = partition(Member, "t:c"), tuple(f"{number:03d}" for number in range(100))
    resharder = moving.new(entities=(Member,))
    moving.of(Case).create(Case(tenant="t", id="c", people=people))
    resharder.start(scope, 8)
    moving.until(scope, "move", resharder)

    assert MEMBERS.materializer(moving.client()).carry(KEY).missing == 100
    assert MEMBERS.materializer(moving.client()).drift(KEY).total == 0


def test_repair_counts_no_relocation_marker(moving: Moving) -> None:
    scope, resharder = partition(Member, "t:c"), moving.new(entities=(Member,))
    moving.of(Case).create(Case(tenant="t", id="c", people=tuple("abcdefgh")))
    *_, made = MEMBERS.repair(moving.client())
    resharder.start(scope, 8)
    moving.until(scope, "settle", resharder)

    *_, checked = MEMBERS.check(moving.client())

    assert moving.marks()
    assert (made.drift.missing, checked.copies, checked.unfit, checked.drift.total) == (8, 8, 0, 0)


class Brief(
    Entity, name="copies.v1.Brief", key=Key("{tenant}:{case}", "{person}"), expires="until", registry=_REGISTRY
):
    tenant: str
    case: str
    person: str
    until: datetime | None = None


def test_a_copy_that_has_expired_already_is_neither_written_nor_missed(world: World) -> None:
    ends = {"ada": datetime(2020, 1, 1, tzinfo=UTC), "bob": datetime(2100, 1, 1, tzinfo=UTC)}

    def briefs(case: Case) -> Iterator[Brief]:
        for person in case.people:
            yield Brief(tenant=case.tenant, case=case.id, person=person, until=ends[person])

    carry = (
        MaterializedCopies(of=Case, copy=Brief, make=briefs, partition={"case": "id"}).materializer(world.db()).carry
    )
    world.case("a", "ada", "bob")

    assert [carry(KEY), carry(KEY)] == [Drift(missing=1), Drift()]


def test_repair_looks_at_no_copy_that_has_expired(world: World) -> None:
    """DynamoDB deletes it later. Until then it is not counted, and not named if it does not fit."""
    briefs = MaterializedCopies(of=Case, copy=Brief, make=lambda _: (), partition={"case": "id"})
    ended = Brief(tenant="t", case="c", person="ada", until=datetime(2020, 1, 1, tzinfo=UTC))
    world.db().collection(Brief).put(ended)
    [row] = world.wire.call("Scan", {"TableName": world.table})["Items"]
    unfit = {**row, "SK": {"S": "bob"}, "person": {"N": "1"}}
    world.wire.call("PutItem", {"TableName": world.table, "Item": unfit})

    *_, checked = briefs.check(world.db())

    assert (checked.copies, checked.unfit) == (0, 0)


class Stamped(Entity, name="copies.v1.Stamped", key=Key("{tenant}:{case}", "{person}"), registry=_REGISTRY):
    tenant: str
    case: str
    person: str
    changed_at: datetime = updated_at()


def test_the_times_that_the_server_sets_make_no_copy_differ(world: World) -> None:
    stamped = MaterializedCopies(
        of=Case,
        copy=Stamped,
        make=lambda case: [Stamped(tenant=case.tenant, case=case.id, person=each) for each in case.people],
        partition={"case": "id"},
    )
    world.case("a", "ada")

    first = stamped.materializer(world.db()).carry(KEY)
    again = stamped.materializer(world.db()).carry(KEY)

    assert (first.missing, again) == (1, Drift())


class Badge(
    Entity,
    name="copies.v1.Badge",
    key=Key("{tenant}:{case}", "{person}"),
    unique=[Unique("code", within="{tenant}")],
    registry=_REGISTRY,
):
    tenant: str
    case: str
    person: str
    code: str


def badges(case: Case) -> Iterator[Badge]:
    for person in case.people:
        yield Badge(tenant=case.tenant, case=case.id, person=person, code=f"{case.title}{person}")


BADGES = MaterializedCopies(of=Case, copy=Badge, make=badges, partition={"case": "id"})


def test_copies_with_unique_fields_fit_their_transactions(world: World) -> None:
    people = [f"{number:03d}" for number in range(100)]
    world.case("a", *people)
    assert BADGES.materializer(world.db()).carry(KEY) == Drift(missing=100)

    world.case("b", *people)
    assert BADGES.materializer(world.db()).carry(KEY) == Drift(wrong=100)


def test_a_copy_whose_unique_value_another_copy_has_is_a_fault_of_its_source(world: World) -> None:
    world.case("a", "ada", key="c")
    world.case("a", "ada", key="d")
    BADGES.materializer(world.db()).carry(KEY)

    with pytest.raises(TransactionRefusedError) as raised:
        BADGES.materializer(world.db()).carry({"tenant": "t", "id": "d"})
    *_, repaired = BADGES.repair(world.db(), {"tenant": "t"})

    assert (raised.value.reason, raised.value.retryable) == ("not_unique", False)
    assert (repaired.sources, repaired.unfit, repaired.drift) == (2, 1, Drift())


@pytest.mark.sampled(4)
@pytest.mark.parametrize("operation", ["GetItem", "Query", "TransactWriteItems"])
@pytest.mark.parametrize("when", [meanwhile, afterwards], ids=["before", "after"])
@pytest.mark.parametrize("fate", ["changed", "gone"])
def test_a_source_that_changes_meanwhile_is_read_again(
    world: World, operation: str, when: Callable[..., Fault], fate: str
) -> None:
    world.case("a", "ada", "bob")

    def change() -> None:
        if fate == "gone":
            world.db().collection(Case).delete(KEY)
        else:
            world.case("b", "bob", "cyd")

    materializer = PARTS.materializer(world.db([when(operation, change)]))
    materializer.carry(KEY)

    assert world.stored() == ({} if fate == "gone" else {"bob": "b", "cyd": "b"})


def test_copies_go_although_their_source_came_and_went_meanwhile(world: World) -> None:
    world.case("a", "ada")
    PARTS.materializer(world.db()).carry(KEY)
    world.db().collection(Case).delete(KEY)
    come = meanwhile("TransactWriteItems", lambda: world.case("b", "bob"))
    go = meanwhile("GetItem", lambda: world.db().collection(Case).delete(KEY), nth=2)

    drift = PARTS.materializer(world.db([come, go])).carry(KEY)

    assert (world.faulty.waiting, world.stored(), drift.extra) == ([], {}, 1)


@pytest.mark.parametrize("fate", ["changed", "gone"])
def test_a_slow_writer_does_not_overwrite_newer_copies(world: World, fate: str) -> None:
    world.case("a", "ada", "bob")
    seen: list[dict[str, str]] = []

    def overtaken(send: Send, request: Mapping[str, Any]) -> Wire:
        if fate == "gone":
            world.db().collection(Case).delete(KEY)
        else:
            world.case("b", "bob")
        PARTS.materializer(world.db()).carry(KEY)
        try:
            return send(request)
        finally:
            # A reader sees this from now on if the slow writer dies here.
            seen.append(world.stored())

    PARTS.materializer(world.db([Fault("TransactWriteItems", overtaken)])).carry(KEY)

    assert seen == [{} if fate == "gone" else {"bob": "b"}]
    assert world.stored() == seen[0]


def test_a_source_that_keeps_changing_is_retried_later(world: World) -> None:
    world.case("a", "ada")
    titles = iter(range(10_000))
    db = world.db([meanwhile("TransactWriteItems", lambda: world.case(str(next(titles)), "ada"), nth=None)])
    db.store = structs.replace(db.store, retry_policy=RetryPolicy(seconds=0.0))

    with pytest.raises(DynashardError) as raised:
        PARTS.materializer(db).carry(KEY)

    assert raised.value.retryable


def test_copies_follow_a_source_that_was_deleted_and_created_again(world: World) -> None:
    world.case("a", "ada")
    PARTS.materializer(world.db()).carry(KEY)
    world.db().collection(Case).delete(KEY)

    stale = meanwhile("TransactWriteItems", lambda: world.case("z", "ada", "eve"))
    PARTS.materializer(world.db([stale])).carry(KEY)

    assert world.stored() == {"ada": "z", "eve": "z"}


FAULTS: list[Callable[[int], Fault]] = [
    lambda nth: lost_answer("TransactWriteItems", nth=nth),
    lambda nth: lost_request("TransactWriteItems", nth=nth),
    lambda nth: throttled("TransactWriteItems", nth=nth),
    lambda nth: throttled("Query", nth=nth),
    lambda nth: lost_request("GetItem", nth=nth),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(3))
def test_copies_are_right_after_random_changes_and_stream_faults(
    world: World, engine_url: str, dynamodb: RawDynamoDB, seed: int
) -> None:
    """Batches come twice and in any order to two consumers, which die between any two requests."""
    random = Random(seed)
    stream = Streamed(engine_url, dynamodb).on(world.table)
    cases = world.db().collection(Case)
    for number in range(60):
        key = f"c{random.randrange(8)}"
        people = tuple(random.sample(PEOPLE, random.randrange(5)))
        if random.random() < 0.2 and cases.exists({"tenant": "t", "id": key}):
            cases.delete({"tenant": "t", "id": key})
        else:
            world.case(str(number), *people, key=key)
        if random.random() < 0.4:
            _deliver(world, random, records_of(stream))
    left: Sequence[Any] = records_of(stream)
    while left:
        left = _deliver(world, random, left)

    truth = world.truth()
    assert {key: world.stored(key) for key in [f"c{n}" for n in range(8)]} == {
        f"c{n}": truth.get(f"c{n}", {}) for n in range(8)
    }
    assert world.repaired(tenant="t").drift == Drift()


def _deliver(world: World, random: Random, records: Sequence[Any]) -> Sequence[Any]:
    """Deliver a batch from anywhere in the stream, and return the records that are still to be delivered."""
    start = random.randrange(len(records)) if random.random() < 0.3 else 0
    batch = list(records[start : start + random.randrange(1, 30)])
    shuffled = random.sample(batch, len(batch))
    plan = [random.choice(FAULTS)(random.randrange(1, 4))] if random.random() < 0.5 else []
    outcome = Dispatcher([PARTS.consumer(world.db(plan))], keep=_never).dispatch(shuffled)
    if outcome.again is None and start == 0:
        return records[len(batch) :]
    return records


def test_repair_corrects_drifted_copies_and_then_finds_nothing(world: World) -> None:
    parts_of = world.db().collection(Part)
    for key in ("c", "d", "e", "gone"):
        world.case("a", "ada", "bob", key=key)
    assert world.repaired(tenant="t").drift == Drift(missing=8)
    parts_of.delete({"tenant": "t", "case": "c", "person": "ada"})
    parts_of.update({"tenant": "t", "case": "d", "person": "bob"}, set={"title": "wrong"})
    parts_of.create(Part(tenant="t", case="e", person="eve", title="a"))
    world.db().collection(Case).delete({"tenant": "t", "id": "gone"})
    parts_of.create(Part(tenant="other", case="c", person="eve", title="of another tenant"))
    drifted = Drift(missing=1, wrong=1, extra=3)

    *_, checked = PARTS.check(world.db(), {"tenant": "t"})
    assert checked.drift == drifted
    assert world.repaired(tenant="t").drift == drifted
    last = world.repaired(tenant="t")
    assert (last.sources, last.copies, last.drift) == (3, 6, Drift())
    assert world.repaired().drift == Drift(extra=1)
    assert world.repaired().drift == Drift()


def test_repair_does_not_judge_rows_without_a_type_under_other_keys(world: World) -> None:
    world.case("a", "ada")
    world.wire.call("PutItem", {"TableName": world.table, "Item": {"PK": {"S": "config"}, "SK": {"S": "v1"}}})

    repaired = world.repaired()

    assert (repaired.sources, repaired.unfit) == (1, 0)


class Foreign(Entity, name="copies.v1.Case", key=Key("{tenant}", "{id}"), shards=Shards(4), registry=Registry()):
    """A case that is written without its copies."""

    tenant: str
    id: str
    people: tuple[str, ...] = ()


def test_a_change_that_cannot_be_copied_becomes_a_dead_letter_and_others_continue(
    world: World, engine_url: str, dynamodb: RawDynamoDB
) -> None:
    stream = Streamed(engine_url, dynamodb).on(world.table)
    foreign = world.db().collection(Foreign)
    world.case("a", "ada")
    foreign.create(Foreign(tenant="t", id="a:b", people=("ada",)))
    world.case("b", "bob", "cyd", key="d")
    letters: list[DeadLetter] = []

    outcome = Dispatcher([PARTS.consumer(world.db())], keep=letters.append).dispatch(records_of(stream))

    assert (outcome.again, outcome.changes, outcome.dead_letters) == (None, 3, 1)
    assert "cannot hold" in letters[0].reason
    assert (world.stored("c"), world.stored("d")) == ({"ada": "a"}, {"bob": "b", "cyd": "b"})


def test_repair_skips_and_names_sources_that_cannot_be_copied(world: World) -> None:
    foreign = world.db().collection(Foreign)
    foreign.create(Foreign(tenant="t", id="a:b", people=("ada",)))
    foreign.create(Foreign(tenant="t", id="e", people=("ada", "")))
    world.case("a", "ada")

    steps = list(PARTS.repair(world.db(), {"tenant": "t"}))

    found, uncopied = steps[-1], {key: reason for step in steps for key, reason in step.uncopied.items()}
    assert (found.sources, found.drift, found.unfit) == (3, Drift(missing=1), 2)
    assert [(key, uncopied[key].partition("Error")[0]) for key in sorted(uncopied)] == [
        ("tenant=t, id=a:b", "InvalidKey"),
        ("tenant=t, id=e", "InvalidKey"),
    ]
    assert {key: drift for step in steps for key, drift in step.differing.items()} == {
        "tenant=t, id=c": Drift(missing=1)
    }
    assert world.stored("c") == {"ada": "a"}
    assert world.stored("e") == {}


def test_a_copy_outside_the_partition_of_its_source_is_not_written(world: World) -> None:
    def careless(case: Case) -> Iterator[Part]:
        yield Part(tenant=case.tenant, case="another", person="ada", title=case.title)

    wrong = MaterializedCopies(of=Case, copy=Part, make=careless, partition={"case": "id"})
    world.case("a", "ada")

    with pytest.raises(InvalidValueError, match="a copy was made for"):
        wrong.materializer(world.db()).carry(KEY)
    assert world.stored("another") == {}


def test_a_source_whose_key_its_copies_cannot_hold_is_refused_where_it_is_written(world: World) -> None:
    db = world.db()
    cases = db.collection(Case)
    bad = Case(tenant="t", id="a:b")

    for write in (cases.create, cases.replace, cases.put, cases.check, lambda case: cases.batch_write(put=[case])):
        with pytest.raises(InvalidKeyError, match="cannot hold") as raised:
            write(bad)
        assert raised.value.field == "id"
    with pytest.raises(InvalidKeyError, match="cannot hold"):
        db.transact(Put(bad))
    assert world.faulty.calls == []
    assert cases.find({"tenant": "t", "id": "a:b"}) is None


class Tick(Entity, name="copies.v1.Tick", key=Key("{tenant}", "{at:%Y-%m-%d}#{id}"), registry=_REGISTRY):
    tenant: str
    id: str
    at: datetime


@pytest.mark.parametrize(("partition", "taken"), [("{at:%Y-%m-%d}", True), ("{at:%Y}", False), ("{at:%Y%m%d}", False)])
def test_copies_format_a_time_as_the_key_of_their_source_does(partition: str, *, taken: bool) -> None:
    class Tock(Entity, name="copies.v1.Tock", key=Key("{tenant}:{id}:" + partition, "x"), registry=Registry()):
        tenant: str
        id: str
        at: datetime

    with nullcontext() if taken else pytest.raises(DeclarationError, match="must format"):
        MaterializedCopies(of=Tick, copy=Tock, make=lambda _: ())


def test_an_unreachable_engine_fails_the_batch_so_that_it_is_retried(world: World) -> None:
    source = world.case("a", "ada")
    consumer = PARTS.consumer(world.db([lost_request("TransactWriteItems", nth=None)]))

    with pytest.raises(EngineUnavailableError):
        consumer.handle([Change("created", Case, KEY, None, source, "1")])


@pytest.mark.parametrize(
    ("partition", "message"),
    [({}, "must identify one"), ({"case": "title"}, "must identify one"), ({"nothing": "id"}, "not a field")],
    ids=["missing", "not a key", "unknown"],
)
def test_a_partition_that_is_not_that_of_one_source_is_refused(partition: dict[str, str], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        MaterializedCopies(of=Case, copy=Part, make=parts, partition=partition)


class Scan(Entity, name="copies.v1.Scan", key=Key("{tenant}:{case}", "{person}"), registry=_REGISTRY):
    tenant: str
    case: str
    person: str
    picture: Annotated[bytes | None, Attachment()] = None


def test_copies_with_attachments_are_refused_where_they_are_declared() -> None:
    with pytest.raises(DeclarationError, match="no attachments"):
        MaterializedCopies(of=Case, copy=Scan, make=lambda _: (), partition={"case": "id"})


def _never(letter: Any) -> None:
    raise AssertionError(letter)
