"""An older consumer makes copies and roll-ups of items that a newer version wrote, and no dead letters."""

from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import ValidationError

from dynashard import Dynashard, Entity, Key, Registry, created_at
from dynashard.entity import definition
from dynashard.errors import UndecodableItemError
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_patterns import Level, MaterializedCopies, RollUps, copy_of
from dynashard_patterns.changes import DeadLetter, Dispatcher
from dynashard_patterns.copies import Drift
from tests.engine.patterns.stream_world import Streamed, records_of
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine

AT = datetime(2026, 11, 20, tzinfo=UTC)
OLD, NEW = Registry(), Registry()


class OldKind(StrEnum):
    BUG = "bug"


class NewKind(StrEnum):
    BUG = "bug"
    QUESTION = "question"


class OldTask(Entity, name="derived.v1.Task", key=Key("{tenant}", "{id}"), registry=OLD):
    tenant: str
    id: str
    owner: str
    people: tuple[str, ...] = ()
    kind: OldKind = OldKind.BUG
    level: Literal["low"] = "low"
    at: datetime = AT
    seconds: int = 1


class NewTask(Entity, name="derived.v1.Task", key=Key("{tenant}", "{id}"), registry=NEW):
    tenant: str
    id: str
    owner: str | None = None
    people: tuple[str, ...] = ()
    kind: NewKind = NewKind.BUG
    level: Literal["low", "high"] = "low"
    at: datetime = AT
    seconds: int = 1


class OldShare(Entity, name="derived.v1.Share", key=Key("{tenant}:{task}", "{kind}#{person}"), registry=OLD):
    tenant: str
    task: str
    person: str
    owner: str
    kind: OldKind
    level: Literal["low"]


class NewShare(Entity, name="derived.v1.Share", key=Key("{tenant}:{task}", "{kind}#{person}"), registry=NEW):
    tenant: str
    task: str
    person: str
    owner: str | None = None
    kind: NewKind
    level: Literal["low", "high"]


class OldSum(Entity, name="derived.v1.Sum", key=Key("{tenant}", "{kind}#{level}#{start}#{slot:02d}"), registry=OLD):
    tenant: str
    kind: OldKind
    level: Level
    start: datetime
    slot: int = 0
    seconds: int = 0


def shares(task: OldTask) -> Iterator[OldShare]:
    for person in task.people:
        yield copy_of(OldShare, task, task=task.id, person=person)


SHARES = MaterializedCopies(of=OldTask, copy=OldShare, make=shares, partition={"task": "id"})
SUMS = RollUps(name="sums", of=OldTask, at="at", into={OldSum: ("day",)}, add=lambda task: {"seconds": task.seconds})
NEWER = NewTask(tenant="t", id="new", people=("ada", "bob"), kind=NewKind.QUESTION, level="high", seconds=7, owner=None)
KEY = {"tenant": "t", "id": "new"}


@pytest.fixture
def db(wire: Transport, table: str) -> Dynashard:
    return Dynashard(wire, table=table, topology=DeclaredTopology(), cursor_keys=("0123456789abcdef",))


def test_an_older_consumer_copies_and_counts_what_a_newer_version_wrote(
    db: Dynashard, table: str, engine_url: str, dynamodb: RawDynamoDB
) -> None:
    stream = Streamed(engine_url, dynamodb).on(table)
    db.collection(NewTask).create(NEWER)
    db.collection(OldTask).create(OldTask(tenant="t", id="old", people=("cyd",), owner="ann"))
    letters: list[DeadLetter] = []

    consumers = [SHARES.consumer(db), SUMS.consumer(db)]
    outcome = Dispatcher(consumers, keep=letters.append).dispatch(records_of(stream))

    assert (outcome.again, [letter.reason for letter in letters]) == (None, [])
    found = db.collection(NewShare).list({"tenant": "t", "task": "new"}, consistent=True).items
    assert [(each.person, each.kind, each.level, each.owner) for each in found] == [
        ("ada", NewKind.QUESTION, "high", None),
        ("bob", NewKind.QUESTION, "high", None),
    ]
    rows: Any = db.collection(OldSum).scan({"tenant": "t"}, consistent=True)
    assert {(str(row.kind), row.seconds) for row in rows} == {("bug", 1), ("question", 7)}
    *_, checked = SHARES.check(db, {"tenant": "t"})
    assert (checked.drift, checked.unfit) == (Drift(), 0)


def test_copies_of_a_newer_version_change_and_end_with_their_source(db: Dynashard) -> None:
    tasks, carry = db.collection(NewTask), SHARES.materializer(db).carry
    tasks.create(NEWER)
    assert carry(KEY) == Drift(missing=2)
    tasks.update(KEY, set={"people": ("bob",), "owner": "eve"})
    assert carry(KEY) == Drift(wrong=1, extra=1)
    tasks.delete(KEY)
    assert carry(KEY) == Drift(extra=1)


def test_a_value_that_make_gives_itself_is_validated_strictly(db: Dynashard) -> None:
    db.collection(NewTask).create(NEWER)
    read = db.collection(OldTask).get(KEY)

    with pytest.raises(ValidationError, match="kind"):
        copy_of(OldShare, read, task="new", person="ada", kind="question")
    with pytest.raises(ValidationError, match="person"):
        copy_of(OldShare, read, task="new")
    with pytest.raises(ValidationError, match="person"):
        copy_of(OldShare, read, task="new", person=3)
    copied = copy_of(OldShare, read, task="new", person="ada", kind="bug", level="low", owner="eve")
    assert copied == OldShare(tenant="t", task="new", person="ada", kind=OldKind.BUG, level="low", owner="eve")


class Note(Entity, name="derived.v1.Note", key=Key("{tenant}", "{id}"), registry=OLD):
    tenant: str
    id: str
    text: str | None = None
    made: datetime = created_at()


class NoteCopy(Entity, name="derived.v1.NoteCopy", key=Key("{tenant}", "{id}"), registry=OLD):
    tenant: str
    id: str
    text: str | None = "nothing"
    made: datetime = created_at()


def test_a_copy_takes_over_what_was_given_and_has_stamps_of_its_own() -> None:
    def copied(**fields: Any) -> NoteCopy:
        return copy_of(NoteCopy, Note(tenant="t", id="n", **fields))

    assert [copied(text="a").text, copied(text=None).text, copied().text] == ["a", None, "nothing"]
    assert copied(made=AT).made != AT


def test_a_misfit_of_another_kind_is_no_copy() -> None:
    """A value of another type was written by no version."""
    entity = definition(OldShare)
    source = OldTask(tenant="t", id="c", owner="ann").model_copy(update={"owner": 3})

    with pytest.raises(ValidationError, match="owner"):
        copy_of(OldShare, source, task="c", person="ada")
    with pytest.raises(UndecodableItemError):
        entity.decode(entity.encode({"tenant": "t", "task": "c", "person": "ada", "kind": "question", "owner": 3}))
