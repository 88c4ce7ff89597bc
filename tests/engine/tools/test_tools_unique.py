"""`dynashard unique build`, and `dynashard verify` of unique values, over tables that other programs have written."""

from typing import Any, Final

import orjson
import pytest

from domain.samples.contacts import Channel, ContactMethod
from dynashard.entity.uniqueness import kinds_of
from dynashard.schema import EXPIRES_AT
from dynashard.transactions.reservation_repair import ReservationRepair
from dynashard.transport.interface import Wire
from tests.engine.tools.reshard_world import ReshardWorld
from tests.engine.tools.verify_world import delete, put, report, stored

pytestmark = pytest.mark.engine

RESERVATION: Final = "contact.v1.ContactMethod~unique~channel+address"


def method(identity: str, address: str = "a@b.c") -> ContactMethod:
    return ContactMethod(tenant_id="abc", user_id="ada", method_id=identity, channel=Channel.EMAIL, address=address)


def rows(world: ReshardWorld, kind: str) -> list[Wire]:
    found = world.wire.call("Scan", {"TableName": world.table, "ConsistentRead": True})["Items"]
    return [row for row in found if row.get("Type", {}).get("S") == kind]


def written_before(world: ReshardWorld, *methods: ContactMethod) -> None:
    """Store items as they were before their fields were declared unique."""
    for each in methods:
        world.layer().collection(ContactMethod).create(each.model_copy(update={"address": f"x{each.method_id}"}))
        item = stored(world, lambda row, each=each: row["SK"]["S"] == f"cm_{each.method_id}")  # type: ignore[misc]
        put(world, {**item, "address": {"S": each.address}})
    for row in rows(world, RESERVATION):
        delete(world, row)


def build(world: ReshardWorld, *options: str) -> tuple[int, dict[str, Any]]:
    outcome = world.run("unique", "build", "contact-methods", *options, "--json")
    return outcome.status, orjson.loads(outcome.out)


def kinds(found: dict[str, Any]) -> dict[str, int]:
    return dict(found["found"])


def test_build_reserves_the_values_of_items_that_exist(world: ReshardWorld) -> None:
    written_before(world, *(method(str(n), f"{n}@b.c") for n in range(5)))

    status, done = build(world, "--read-units", "500", "--write-units", "500")

    assert (status, done["items"], done["reserved"], done["duplicates"]) == (0, 5, 5, [])
    assert len(rows(world, RESERVATION)) == 5
    assert build(world)[1]["reserved"] == 0
    assert report(world, "contact-methods")[0] == 0


def test_build_lists_duplicates_first_and_reserves_nothing(world: ReshardWorld) -> None:
    written_before(world, method("1"), method("2"), method("3", "free@b.c"))

    status, done = build(world)

    assert (status, done["reserved"]) == (4, 0)
    [duplicate] = done["duplicates"]
    assert duplicate["fields"] == ["channel", "address"]
    assert duplicate["items"] == ["contact.v1:abc:ada / cm_1", "contact.v1:abc:ada / cm_2"]
    assert rows(world, RESERVATION) == []
    status, done = build(world, "--despite-duplicates")
    assert (status, done["reserved"], len(done["left"])) == (4, 2, 1)


def test_build_names_ten_items_of_a_value_and_says_how_many_more_have_it(world: ReshardWorld) -> None:
    written_before(world, *(method(f"{n:02d}") for n in range(12)))

    [duplicate] = build(world)[1]["duplicates"]
    printed = world.run("unique", "build", "contact-methods").out

    assert (len(duplicate["items"]), duplicate["more"]) == (10, 2)
    assert "/ cm_09; and 2 more\n" in printed


def test_build_names_an_item_that_does_not_fit_and_reserves_for_the_others(world: ReshardWorld) -> None:
    written_before(world, method("good", "1@b.c"), method("unfit", "2@b.c"))
    item = stored(world, lambda row: row["SK"]["S"] == "cm_unfit")
    put(world, {**item, "address": {"L": []}})

    outcome = world.run("unique", "build", "contact-methods", "--json")

    assert (outcome.status, orjson.loads(outcome.out)["reserved"]) == (3, 1)
    assert "left out: contact.v1:abc:ada / cm_unfit" in outcome.err


def test_build_of_an_entity_without_unique_fields_is_refused(world: ReshardWorld) -> None:
    outcome = world.run("unique", "build", "users")

    assert outcome.status == 1
    assert "Entities that do: contact.v1.ContactMethod" in outcome.err


def test_dry_run_writes_nothing(world: ReshardWorld) -> None:
    written_before(world, method("1"))

    assert build(world, "--dry-run")[0] == 0
    assert rows(world, RESERVATION) == []


def test_verification_finds_and_mends_what_does_not_agree(world: ReshardWorld) -> None:
    methods = world.layer().collection(ContactMethod)
    written_before(world, method("unreserved", "1@b.c"))
    methods.create(method("deleted", "2@b.c"))
    methods.create(method("right", "3@b.c"))
    delete(world, stored(world, lambda row: row["SK"]["S"] == "cm_deleted"))

    status, found = report(world, "--only", "unique")

    assert (status, kinds(found)) == (4, {"unreserved": 1, "reservation": 1})
    status, found = report(world, "--only", "unique", "--mend")
    assert (status, found["mended"]) == (0, {"unreserved": 1, "reservation": 1})
    status, found = report(world)
    assert (status, found["others"], kinds(found)) == (0, 0, {})
    assert len(rows(world, RESERVATION)) == 2


def test_a_reservation_that_has_expired_is_not_left_over(world: ReshardWorld) -> None:
    world.layer().collection(ContactMethod).create(method("deleted"))
    delete(world, stored(world, lambda row: row["SK"]["S"] == "cm_deleted"))
    [row] = rows(world, RESERVATION)
    put(world, {**row, EXPIRES_AT: {"N": "1"}})

    status, found = report(world, "--only", "unique")

    assert (status, kinds(found)) == (0, {})


def test_a_reservation_of_a_value_that_another_program_has_replaced_is_freed(world: ReshardWorld) -> None:
    world.layer().collection(ContactMethod).create(method("1", "old@b.c"))
    put(world, {**stored(world, lambda row: row["SK"]["S"] == "cm_1"), "address": {"S": "new@b.c"}})

    found = report(world, "--only", "unique", "--mend")[1]

    assert found["mended"] == {"unreserved": 1, "reservation": 1}


def test_a_reservation_whose_owner_has_come_back_is_not_freed(world: ReshardWorld) -> None:
    methods = world.layer().collection(ContactMethod)
    methods.create(method("back"))
    delete(world, stored(world, lambda row: row["SK"]["S"] == "cm_back"))
    repair = ReservationRepair(world.layer().store, methods.entity)
    [(place, owner)] = repair.left_over(rows(world, RESERVATION)).items()
    methods.create(method("back"))

    freed = repair.free(place, kinds_of(methods.entity)[RESERVATION], owner)

    assert not freed
    assert len(rows(world, RESERVATION)) == 1


def test_many_reservations_without_items_are_all_found(world: ReshardWorld) -> None:
    world.layer().collection(ContactMethod).create(method("deleted"))
    delete(world, stored(world, lambda row: row["SK"]["S"] == "cm_deleted"))
    [row] = rows(world, RESERVATION)
    for number in range(149):
        put(world, {**row, "PK": {"S": f"{row['PK']['S']}{number}"}})

    assert kinds(report(world, "--only", "unique")[1]) == {"reservation": 150}


def test_many_items_without_reservations_are_all_found(world: ReshardWorld) -> None:
    written_before(world, method("1"))
    item = stored(world, lambda row: row["SK"]["S"] == "cm_1")
    for n in range(2, 151):
        own = {"SK": {"S": f"cm_{n}"}, "method_id": {"S": str(n)}, "address": {"S": f"{n}@b.c"}}
        put(world, {**item, **own})

    assert kinds(report(world, "--only", "unique")[1]) == {"unreserved": 150}


def test_verification_names_items_that_have_the_same_value(world: ReshardWorld) -> None:
    written_before(world, method("1"), method("2"))
    build(world, "--despite-duplicates")

    status, found = report(world, "--only", "unique", "--mend")

    assert (status, kinds(found)) == (4, {"not_unique": 1})
    assert "has the same channel, address" in found["findings"][0]["detail"]


NAMELESS: Final = {
    "none": {"OwnerPartition": None},
    "no text": {"OwnerSort": {"N": "5"}},
    "an empty text": {"OwnerSort": {"S": ""}},
}


@pytest.mark.parametrize("damage", NAMELESS.values(), ids=NAMELESS)
def test_a_reservation_that_names_no_owner_is_found_and_refuses_nobody(
    world: ReshardWorld, damage: dict[str, Wire | None]
) -> None:
    methods = world.layer().collection(ContactMethod)
    methods.create(method("1"))
    [row] = rows(world, RESERVATION)
    damaged = {name: value for name, value in {**row, **damage}.items() if value is not None}
    methods.delete(method("1"))
    put(world, damaged)

    methods.create(method("2"))
    taken = report(world, "--only", "unique")
    methods.delete(method("2"))
    put(world, damaged)
    status, found = report(world, "--only", "unique")
    mended = report(world, "--only", "unique", "--mend")

    assert (taken[0], taken[1]["found"]) == (0, {})
    assert (status, kinds(found)) == (4, {"reservation": 1})
    assert (mended[0], mended[1]["mended"]) == (0, {"reservation": 1})
    assert rows(world, RESERVATION) == []


def test_the_values_of_an_item_are_reserved_in_place_of_a_reservation_that_names_no_owner(world: ReshardWorld) -> None:
    world.layer().collection(ContactMethod).create(method("1"))
    [row] = rows(world, RESERVATION)
    put(world, {name: value for name, value in row.items() if name != "OwnerSort"})

    status, found = report(world, "--only", "unique", "--mend")

    assert (status, found["mended"]) == (0, {"unreserved": 1})
    assert rows(world, RESERVATION) == [{**row, "OwnerRev": rows(world, RESERVATION)[0]["OwnerRev"]}]
