"""Unique fields under stable counts: what each kind of write takes and leaves, what it costs, and who is refused."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from dynashard import Create, Delete, Entity, Key, Put, Registry, Unique, Update
from dynashard.entity.uniqueness import RESERVATION
from dynashard.errors import (
    AlreadyExistsError,
    InvalidKeyError,
    InvalidQueryError,
    NotFoundError,
    NotUniqueError,
    OutcomeUnknownError,
    RevisionMismatchError,
    TransactionRefusedError,
    UnprocessedError,
)
from dynashard.repository.reservations import reservation
from dynashard.routing import wire_key
from dynashard.testing.faults import conflict, lost_answer, lost_request, meanwhile, repeated
from dynashard.transactions.reservation_repair import ReservationRepair
from dynashard.transport import metered
from tests.engine.repository.unique_things import MEMBER, Member, agree, due, member, reservations
from tests.engine.stored_things import NOON, World

pytestmark = pytest.mark.engine


class Seat(
    Entity,
    name="test.v1.Seat",
    key=Key(partition="{tenant}", sort="{id}"),
    unique=(Unique("number", within="{room}"),),
    registry=Registry(),
):
    tenant: str = "abc"
    id: str
    room: str | None = None
    number: int | None = None


def test_second_item_with_a_value_is_refused_and_the_answer_names_the_field_alone(world: World) -> None:
    members = world.of(Member)
    members.create(member("secret-id", mail="ada@x.org"))

    with pytest.raises(NotUniqueError) as refused:
        members.create(member("2", mail="ada@x.org"))

    assert (refused.value.code, refused.value.status, refused.value.details) == (
        "not_unique",
        409,
        {"fields": ["mail"]},
    )
    assert "secret-id" not in str(refused.value)
    assert not members.exists(id="2", tenant="abc")
    agree(world)


def test_values_are_unique_within_what_is_declared(world: World) -> None:
    members = world.of(Member)
    members.create(member("1", mail="ada@x.org", team="blue", number=1, badge="7"))
    members.create(member("2", tenant="xyz", mail="ada@x.org", team="blue", number=1))
    members.create(member("3", team="blue", number=2))
    members.create(member("4", team="red", number=1))
    members.create(member("5", team="red"))
    members.create(member("6", team="red"))

    with pytest.raises(NotUniqueError) as of_both:
        members.create(member("7", team="blue", number=1))
    with pytest.raises(NotUniqueError) as of_the_table:
        members.create(member("7", tenant="xyz", badge="7"))

    assert (of_both.value.fields, of_the_table.value.fields) == (("team", "number"), ("badge",))
    agree(world)


def test_every_write_takes_what_it_stores_and_leaves_what_it_replaces(world: World) -> None:
    members = world.of(Member)
    stored = members.create(member(mail="a@x.org", team="blue", number=1))
    agree(world)
    members.update(stored, mail="b@x.org")
    agree(world)
    members.create(member("2", mail="a@x.org"))
    agree(world)
    members.put(member(mail="c@x.org"))
    agree(world)
    current = members.get(id="1", tenant="abc")
    members.put(current.model_copy(update={"mail": "d@x.org"}), over=current)
    agree(world)
    members.update(tenant="abc", id="1", set={"mail": None})
    agree(world)
    members.update(tenant="abc", id="1", set={"mail": "e@x.org"}, add={"visits": 1})
    agree(world)
    members.delete(tenant="abc", id="1")
    members.delete(tenant="abc", id="2")
    agree(world)
    assert world.raw() == []


@pytest.mark.parametrize("write", ["create", "put", "over", "update"])
def test_refused_write_changes_nothing(world: World, write: str) -> None:
    members = world.of(Member)
    members.create(member("1", mail="ada@x.org"))
    other = members.create(member("2", mail="bob@x.org"))
    before = world.raw()

    writes: dict[str, Any] = {
        "create": lambda: members.create(member("3", mail="ada@x.org")),
        "put": lambda: members.put(member("2", mail="ada@x.org")),
        "over": lambda: members.put(other.model_copy(update={"mail": "ada@x.org"}), over=other),
        "update": lambda: members.update(other, mail="ada@x.org"),
    }
    with pytest.raises(NotUniqueError):
        writes[write]()

    assert world.raw() == before


def test_values_are_compared_as_readers_get_them(world: World) -> None:
    """Pydantic does not validate what `model_copy` changes, so its validators see the text first when it is read."""
    members = world.of(Member)
    members.create(member("1", mail="ada@x.org"))
    other = members.create(member("2", mail="bob@x.org"))
    copied = {"mail": "ADA@X.ORG"}

    writes: list[Any] = [
        lambda: members.create(member("3").model_copy(update=copied)),
        lambda: members.put(member("2").model_copy(update=copied)),
        lambda: members.put(other.model_copy(update=copied), over=other),
    ]
    for write in writes:
        with pytest.raises(NotUniqueError):
            write()
    members.put(other.model_copy(update={"mail": "EVE@X.ORG"}), over=other)

    assert members.get(tenant="abc", mail="eve@x.org").id == "2"
    agree(world)


def test_refused_step_refuses_the_transaction(world: World) -> None:
    world.of(Member).create(member("1", mail="ada@x.org"))
    before = world.raw()

    with pytest.raises(TransactionRefusedError) as refused:
        world.transact(Create(member("4", mail="free@x.org")), Create(member("5", mail="ada@x.org")))

    assert (refused.value.step, refused.value.reason) == (1, "not_unique")
    assert world.raw() == before


def test_writes_that_touch_no_unique_field_are_what_they_were(world: World) -> None:
    members = world.of(Member)
    stored = members.create(member(mail="ada@x.org"))
    sent = world.faults()

    world.of(Member).update(stored, visits=3)

    assert [call.operation for call in sent.calls] == ["UpdateItem"]
    agree(world)


def create_another(world: World, **values: Any) -> None:
    with pytest.raises(NotUniqueError):
        world.of(Member).create(member("2", **values))


def test_costs_are_those_of_the_page(world: World) -> None:
    def units(do: Any) -> tuple[float, float, int]:
        sent = world.faults()
        with metered() as meter:
            do()
        return meter.consumed.read_units, meter.consumed.write_units, len(sent.calls)

    members = world.of(Member)
    one = {"mail": "ada@x.org"}
    made = units(lambda: world.of(Member).create(member(**one)))
    refused = units(lambda: create_another(world, **one))
    found = units(lambda: world.of(Member).get(tenant="abc", mail="ada@x.org"))
    missed = units(lambda: world.of(Member).find(tenant="abc", mail="bob@x.org"))
    changed = units(lambda: world.of(Member).update(tenant="abc", id="1", mail="bob@x.org"))
    same = units(lambda: world.of(Member).put(member(mail="bob@x.org", visits=2)))
    gone = units(lambda: world.of(Member).delete(tenant="abc", id="1"))

    assert members.find(tenant="abc", id="1") is None
    # The item is in an index, whose entry the engine counts as 1 unit, and 2 if it moves.
    assert made == (0.0, 5.0, 1)
    assert (refused[0], refused[2]) == (1.0, 2)
    assert found == (2.0, 0.0, 2)
    assert missed == (1.0, 0.0, 1)
    assert changed == (1.0, 8.0, 2)
    assert same == (1.0, 3.0, 2)
    assert gone == (1.0, 5.0, 2)


def test_item_is_found_by_its_unique_fields_as_its_validators_write_them(world: World) -> None:
    members = world.of(Member)
    ada = members.create(member(mail="ada@x.org", team="blue", number=1, badge="7"))

    assert members.get(mail="ADA@x.org", tenant="abc") == ada
    assert members.find(team="blue", number=1, tenant="abc") == ada
    assert members.find(badge="7") == ada
    assert members.exists(badge="7")
    assert members.find(mail="bob@x.org", tenant="abc") is None
    assert members.find(mail="ada@x.org", tenant="xyz") is None
    with pytest.raises(NotFoundError, match=r"tenant='abc', mail='bob@x.org' does not exist"):
        members.get(mail="bob@x.org", tenant="abc")
    with pytest.raises(InvalidQueryError, match=r"No listing of .* is by badge; .*write find\(badge=\.\.\.\)"):
        members.list(badge="7")
    with pytest.raises(InvalidKeyError, match="or name tenant, mail"):
        members.get(mail="ada@x.org")


def test_items_of_one_transaction_may_exchange_their_values(world: World) -> None:
    members = world.of(Member)
    ada, bob = members.create(member("1", mail="a@x.org")), members.create(member("2", mail="b@x.org"))

    world.transact(Update(Member, ada, set={"mail": "b@x.org"}), Update(Member, bob, set={"mail": "a@x.org"}))
    agree(world)
    world.transact(Delete(Member, ada), Create(member("3", mail="b@x.org")))
    agree(world)

    assert members.get(mail="a@x.org", tenant="abc").id == "2"
    assert members.get(mail="b@x.org", tenant="abc").id == "3"
    with pytest.raises(TransactionRefusedError) as refused:
        world.transact(Create(member("4", mail="c@x.org")), Put(member("5", mail="c@x.org")))
    assert (refused.value.step, refused.value.reason) == (1, "not_unique")
    agree(world)


def test_key_decides_before_unique_fields(world: World) -> None:
    members = world.of(Member)
    members.create(member("1", mail="ada@x.org"))

    with pytest.raises(AlreadyExistsError):
        members.create(member("1", mail="ada@x.org"))
    with pytest.raises(RevisionMismatchError):
        members.update(tenant="abc", id="1", set={"mail": "b@x.org"}, if_match="other")
    with pytest.raises(RevisionMismatchError):
        members.delete(tenant="abc", id="1", if_match="other")
    with pytest.raises(NotFoundError):
        members.delete(tenant="abc", id="2")
    agree(world)


def test_expired_item_frees_its_values_before_dynamodb_deletes_either(world: World) -> None:
    members = world.of(Member)
    members.create(member("1", mail="ada@x.org", until=NOON + timedelta(minutes=1)))
    with pytest.raises(NotUniqueError):
        members.create(member("2", mail="ada@x.org"))

    world.clock.at += 61
    assert members.find(mail="ada@x.org", tenant="abc") is None
    members.create(member("2", mail="ada@x.org"))

    assert members.get(mail="ada@x.org", tenant="abc").id == "2"


def test_reservation_expires_when_its_item_does(world: World) -> None:
    members = world.of(Member)
    stored = members.create(member(mail="ada@x.org", until=NOON + timedelta(hours=1)))
    members.update(stored, until=NOON + timedelta(hours=2))

    rows = world.raw()

    assert len(rows) == 2
    assert {row["ExpiresAt"]["N"] for row in rows} == {str(int(NOON.timestamp()) + 7200)}
    members.update(tenant="abc", id="1", set={"until": None})
    assert not any("ExpiresAt" in row for row in world.raw())


@pytest.mark.parametrize("item", ["gone", "changed"])
def test_reservation_that_is_left_over_blocks_nobody(world: World, item: str) -> None:
    members = world.of(Member)
    stored = members.create(member("1", mail="ada@x.org"))
    [row] = [each for each in world.raw() if each["SK"]["S"] == "1"]
    if item == "gone":
        world.dynamodb.call("DeleteItem", TableName=world.table, Key={"PK": row["PK"], "SK": row["SK"]})
    else:
        world.adopt({**row, "mail": {"S": "other@x.org"}})

    assert members.find(mail="ada@x.org", tenant="abc") is None
    members.create(member("2", mail="ada@x.org"))

    assert members.get(mail="ada@x.org", tenant="abc").id == "2"
    assert stored.id == "1"


def test_an_item_whose_value_cannot_be_read_keeps_its_reservation(world: World) -> None:
    members = world.of(Member)
    members.create(member("1", mail="ada@x.org"))
    [row] = [each for each in world.raw() if each["SK"]["S"] == "1"]
    world.adopt({**row, "mail": {"N": "7"}})

    with pytest.raises(NotUniqueError):
        members.create(member("2", mail="ada@x.org"))


def test_unique_fields_in_a_mapping_are_refused_with_the_cure(world: World) -> None:
    with pytest.raises(InvalidKeyError, match="which is tenant, id; write unique fields by keyword"):
        world.of(Member).get({"tenant": "abc", "mail": "ada@x.org"})


@pytest.mark.parametrize("verb", ["get", "find", "exists"])
def test_a_look_up_refuses_a_flag_that_is_neither_true_nor_false(world: World, verb: str) -> None:
    look_up = getattr(world.of(Member), verb)

    with pytest.raises(InvalidQueryError, match="consistent is 'no'; it must be True or False"):
        look_up(mail="ada@x.org", tenant="abc", consistent="no")


def test_a_look_up_waits_for_a_transaction_that_holds_the_item(world: World) -> None:
    world.of(Member).create(member("1", mail="ada@x.org"))
    [row] = [each for each in world.raw() if each["SK"]["S"] == "1"]
    # The reservation is visible already, and the item is not yet.
    world.adopt({**row, "mail": {"S": "former@x.org"}})
    world.faults(conflict("TransactGetItems"), meanwhile("TransactGetItems", lambda: world.adopt(row), nth=2))

    assert world.of(Member).get(mail="ada@x.org", tenant="abc").id == "1"


def test_left_over_reservation_is_not_taken_from_an_owner_that_comes_back_meanwhile(world: World) -> None:
    members = world.of(Member)
    members.create(member("1", mail="ada@x.org"))
    [row] = [each for each in world.raw() if each["SK"]["S"] == "1"]
    world.dynamodb.call("DeleteItem", TableName=world.table, Key={"PK": row["PK"], "SK": row["SK"]})
    # The first request meets the reservation, and the second takes it over.
    world.faults(meanwhile("TransactWriteItems", lambda: world.adopt(row), nth=2))

    with pytest.raises(NotUniqueError):
        world.of(Member).create(member("2", mail="ada@x.org"))

    assert world.of(Member).get(mail="ada@x.org", tenant="abc").id == "1"
    agree(world)


def test_a_repair_says_how_many_values_it_reserved_for_an_item_that_changes_meanwhile(world: World) -> None:
    world.of(Member).create(member("2", mail="ada@x.org"))
    world.of(Member).create(member("1", team="red", number=7, badge="b"))
    for place, owner in reservations(world).items():
        if owner == "1":
            world.dynamodb.call("DeleteItem", TableName=world.table, Key=wire_key((place, RESERVATION)))
    [row] = [each for each in world.raw() if each["SK"]["S"] == "1"]
    world.adopt({**row, "mail": {"S": "ada@x.org"}})
    key = MEMBER.key_of(member("1"))
    visit = partial(world.of(Member).update, tenant="abc", id="1", add={"visits": 1})
    world.faults(meanwhile("TransactWriteItems", visit, nth=3))
    repair = ReservationRepair(world.store, MEMBER)
    item = repair.current(key) or {}

    done = repair.reserve(key, item, repair.lacking({key: item})[key])

    assert (done.reserved, [each.unique.fields for each in done.left]) == (2, [("mail",)])


def test_delete_leaves_the_reservation_of_another_alone(world: World) -> None:
    members = world.of(Member)
    members.create(member("1", mail="ada@x.org"))
    [place] = reservations(world)
    [unique] = [each for each in MEMBER.unique if each.fields == ("mail",)]
    other = MEMBER.key_of(member("2"))
    world.adopt(reservation(place, unique, other, None))

    members.delete(tenant="abc", id="1")

    assert reservations(world) == {place: "2"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fault", [lost_answer, lost_request, repeated, conflict])
@pytest.mark.parametrize("nth", [1, 2])
def test_lost_answer_does_not_leave_the_outcome_open(world: World, fault: Any, nth: int) -> None:
    world.of(Member).create(member("1", mail="ada@x.org"))
    world.faults(fault("TransactWriteItems", nth=nth))

    world.of(Member).create(member("2", mail="bob@x.org"))
    world.of(Member).update(tenant="abc", id="2", mail="eve@x.org")
    with pytest.raises(NotUniqueError):
        world.of(Member).update(tenant="abc", id="2", mail="ada@x.org")
    agree(world)
    world.of(Member).delete(tenant="abc", id="2")

    agree(world)
    assert list(due(world).values()) == ["1"]


@pytest.mark.parametrize(
    ("how", "revision"), [("create", {"revision": "rev-1"}), ("delete", {}), ("batch", {"revision": "rev-2"})]
)
def test_unknown_outcome_names_the_item_and_the_revision_to_look_for(
    world: World, how: str, revision: dict[str, str]
) -> None:
    at = {"tenant": "abc", "id": "1"}
    if how == "delete":
        world.of(Member).create(member("1", mail="ada@x.org"))
    world.faults(lost_request("TransactWriteItems", nth=None))
    members = world.of(Member)

    if how == "batch":
        [unknown] = members.try_batch_write([member("1", mail="ada@x.org")])
    else:
        with pytest.raises(OutcomeUnknownError) as raised:
            members.create(member("1", mail="ada@x.org")) if how == "create" else members.delete(at)
        unknown = raised.value

    assert isinstance(unknown, OutcomeUnknownError)
    assert unknown.details == {"resend": False, "key": at, **revision}
    assert unknown.revision == revision.get("revision")


def test_unknown_outcome_of_several_steps_names_none(world: World) -> None:
    world.faults(lost_request("TransactWriteItems", nth=None))

    with pytest.raises(OutcomeUnknownError) as raised:
        world.transact(Create(member("1")), Create(member("2")))

    assert raised.value.details == {"resend": False}


def test_batch_writes_each_item_with_an_outcome_of_its_own(world: World) -> None:
    members = world.of(Member)
    members.create(member("1", mail="ada@x.org"))
    members.create(member("2", mail="bob@x.org"))

    outcomes = members.try_batch_write(
        [member("3", mail="ada@x.org"), member("4", mail="eve@x.org"), member("2", mail="rob@x.org")],
        delete=[{"tenant": "abc", "id": "5"}],
    )

    assert [type(each) for each in outcomes] == [NotUniqueError, type(None), type(None), type(None)]
    agree(world)
    with pytest.raises(UnprocessedError, match="another item has this mail") as together:
        members.batch_write([member("6", mail="ada@x.org"), member("7")], delete=[{"tenant": "abc", "id": "4"}])
    assert not together.value.retryable
    assert members.exists(tenant="abc", id="7")
    assert not members.exists(tenant="abc", id="4")
    agree(world)


def test_what_a_batch_cannot_write_does_not_stop_the_others(world: World) -> None:
    members = world.of(Member)

    outcomes = members.try_batch_write([member("1", mail="ada@x.org"), member("1", mail="eve@x.org")])

    assert [type(each) for each in outcomes] == [type(None), InvalidKeyError]
    assert members.get(tenant="abc", id="1").mail == "ada@x.org"
    agree(world)


def test_an_item_whose_fields_contradict_its_key_keeps_no_value_of_another_tenant(world: World) -> None:
    """Another program has changed its tenant, and its reservation was written for that."""
    world.of(Member).create(member("1", mail="ada@x.org"))
    world.of(Member).create(member("1", tenant="xyz", mail="ada@x.org"))
    [kept] = [row for row in world.raw() if row.get("OwnerPartition", {}).get("S", "").endswith("xyz")]
    [row] = [row for row in world.raw() if row.get("Type", {}).get("S") == MEMBER.name and row["tenant"]["S"] == "abc"]
    world.of(Member).delete(tenant="xyz", id="1")
    world.adopt({**row, "tenant": {"S": "xyz"}})
    world.adopt({**kept, "OwnerPartition": {"S": "test.v1.Member:abc"}})

    made = world.of(Member).create(member("2", tenant="xyz", mail="ada@x.org"))

    assert world.of(Member).get(tenant="xyz", mail="ada@x.org") == made


def test_check_refuses_a_value_that_cannot_be_reserved(world: World) -> None:
    seats = world.of(Seat)
    seat = Seat(id="1", room="west:2", number=4)

    for store in (seats.check, seats.create):
        with pytest.raises(InvalidKeyError, match="room"):
            store(seat)
    assert world.raw() == []
