"""Copies, attachments and edges of entities placed by epochs, before and after their counts have grown."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated

import pytest
from pydantic import JsonValue

from dynashard import Entity, Key, Registry, Shards, definition, new_id
from dynashard.errors import DeclarationError, KeyTooFarAheadError
from dynashard.resharding import Scope
from dynashard.schema import PK, SK
from dynashard_patterns import EDGE_KEY, Attachment, Edge, MaterializedCopies
from dynashard_patterns.copies import Drift
from tests.engine.epochs.epochs_world import CLOCKS, Epochs

pytestmark = pytest.mark.engine

REGISTRY = Registry()
EPOCHS = Shards(start=1, max=64, placement="epochs")


class Case(Entity, name="timed.v1.Case", key=Key("{tenant}", "{id}"), shards=EPOCHS, registry=REGISTRY):
    tenant: str
    id: str = new_id()
    title: str = ""
    opened: datetime
    people: tuple[str, ...] = ()
    details: Annotated[JsonValue | None, Attachment()] = None


class Share(
    Entity, name="timed.v1.Share", key=Key("{tenant}:{case}", "{opened}#{person}"), shards=EPOCHS, registry=REGISTRY
):
    """A copy of a case for a person, placed by the time of the case, which is past when it is copied."""

    tenant: str
    case: str
    opened: datetime
    person: str
    title: str


def shares(case: Case) -> Iterator[Share]:
    for person in case.people:
        yield Share(tenant=case.tenant, case=case.id, opened=case.opened, person=person, title=case.title)


SHARES = MaterializedCopies(of=Case, copy=Share, make=shares, partition={"case": "id"})
MODELS: tuple[type[Entity], ...] = (Case, Share)
PEOPLE = tuple(f"person {number}" for number in range(8))


def opened(world: Epochs) -> Case:
    """Open a case now, with many people and details."""
    at = datetime.fromtimestamp(int(world.clock()), UTC)
    case = Case(tenant="abc", id=world.id(), opened=at, people=PEOPLE, title="new", details={"at": str(at)})
    return world.process().collection(Case).create(case)


def grow(world: Epochs, model: type[Entity]) -> None:
    """Let the count of all partitions of an entity grow to 16."""
    scope = Scope(definition(model))
    resharder = world.resharder(entities=MODELS)
    world.grow(16, scope, resharder)
    world.clock.now += 1


def used(world: Epochs, case: Case) -> int:
    """Return how many shards hold shares of a case."""
    loads = world.process().collection(Share).shards({"tenant": "abc", "case": case.id})
    return sum(1 for each in loads if each.items)


def misplaced(world: Epochs) -> list[str]:
    """Return the sort keys of the items that stand away from home, by a process that has read the counts anew."""
    router, wrong = world.process().store.router, []
    for item in world.inner.call("Scan", {"TableName": world.table, "ConsistentRead": True})["Items"]:
        entity = next((each for each in map(definition, MODELS) if each.name == item["Type"]["S"]), None)
        if entity is not None:
            fields = entity.decode(item)
            if router.stored_key(entity, entity.key_of(fields))[PK] != item[PK]:
                wrong.append(item[SK]["S"])
    return wrong


def test_copies_are_carried_before_and_after_both_counts_have_grown(world: Epochs) -> None:
    first = opened(world)
    carry = SHARES.materializer(world.process()).carry
    assert carry({"tenant": "abc", "id": first.id}) == Drift(missing=8)
    grow(world, Case)
    grow(world, Share)
    second = opened(world)
    db = world.process()
    carry = SHARES.materializer(db).carry
    assert carry({"tenant": "abc", "id": second.id}) == Drift(missing=8)
    db.collection(Case).update({"tenant": "abc", "id": first.id}, set={"title": "changed", "people": PEOPLE[1:]})

    assert carry({"tenant": "abc", "id": first.id}) == Drift(wrong=7, extra=1)
    assert carry({"tenant": "abc", "id": first.id}) == Drift()

    listed = db.collection(Share).list({"tenant": "abc", "case": first.id}, limit=100, consistent=True).items
    assert {(each.person, each.title) for each in listed} == {(person, "changed") for person in PEOPLE[1:]}
    assert len(list(db.collection(Share).items({"tenant": "abc", "case": second.id}, order="ordered", limit=3))) == 8
    assert used(world, first) == 1 < used(world, second)
    assert misplaced(world) == []
    *_, found = SHARES.check(db)
    assert (found.sources, found.drift) == (2, Drift())


def test_an_attachment_is_read_replaced_and_deleted_after_a_count_has_grown(world: Epochs) -> None:
    cases = [opened(world)]
    grow(world, Case)
    cases += [opened(world) for _ in range(5)]
    found = world.process().collection(Case)

    for case in cases:
        key = {"tenant": "abc", "id": case.id}
        assert found.get(key, include=["details"]).details == {"at": str(case.opened)}
        found.update(key, set={"details": "replaced"})
        assert found.get(key, include=["details"]).details == "replaced"

    assert misplaced(world) == []
    found.delete({"tenant": "abc", "id": cases[0].id})
    world.clock.now += timedelta(days=1).total_seconds()
    assert found.find({"tenant": "abc", "id": cases[0].id}) is None
    assert len(list(world.process().collection(Case).scan({"tenant": "abc"}))) == 5


def test_edges_cannot_be_placed_by_epochs_because_their_keys_carry_no_time() -> None:
    with pytest.raises(DeclarationError, match="begins with way, which carries no time"):

        class Fan(Edge, name="timed.v1.Fan", key=EDGE_KEY, shards=EPOCHS, registry=REGISTRY):
            pass


def test_a_batch_with_attachments_and_a_key_too_far_ahead_sends_nothing(world: Epochs) -> None:
    cases = world.process().collection(Case)
    kept = Case(tenant="abc", id=world.id(), opened=datetime.fromtimestamp(int(world.clock()), UTC), details=[1])
    ahead = {"tenant": "abc", "id": world.id(world.clock.now + CLOCKS.ahead + 1)}

    with pytest.raises(KeyTooFarAheadError):
        cases.batch_write([kept], delete=[ahead])
    assert cases.find(kept) is None
    outcomes = cases.try_batch_write([kept], delete=[ahead])

    assert [type(each) for each in outcomes] == [type(None), KeyTooFarAheadError]
