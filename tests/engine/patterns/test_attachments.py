"""Attachments are written and deleted with their items, and read on request."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from dynashard import Dynashard, Filter
from dynashard.errors import (
    AlreadyExistsError,
    InvalidKeyError,
    InvalidQueryError,
    InvalidValueError,
    ItemTooLargeError,
    NotFoundError,
    RevisionMismatchError,
)
from dynashard.topology import DeclaredTopology
from dynashard.transport.interface import metered
from tests.engine.patterns.attachment_world import (
    FIELDS,
    KEY,
    Place,
    Report,
    Visit,
    everything,
    large,
    pointed,
    reports,
    stored,
    versions,
)
from tests.engine.stored_things import NOON, World

pytestmark = pytest.mark.engine
NEXT_DAY = NOON + timedelta(days=1)


def test_an_attachment_is_read_only_on_request(world: World) -> None:
    made = reports(world).create(Report(title="first", details=large(1), trace=b"\x00raw"))
    plain = reports(world).get(KEY)
    whole = reports(world).get(KEY, include=FIELDS)

    assert (made.details, plain.details) == (None, None)
    assert {"details", "trace"}.isdisjoint(made.model_fields_set | plain.model_fields_set)
    assert (whole.title, whole.details, whole.trace) == ("first", large(1), b"\x00raw")
    assert whole.revision == plain.revision == made.revision


@pytest.mark.parametrize("way", ["included", "assigned"])
def test_an_attachment_of_one_item_is_not_named_by_others_that_have_every_field(world: World, way: str) -> None:
    reports(world).create(Report(until=NEXT_DAY, details={"a": 1}, trace=b"t"))
    if way == "included":
        reports(world).get(KEY, include=FIELDS)
    else:
        reports(world).get(KEY).details = ["never stored"]

    plain = reports(world).get(KEY)
    reports(world).replace(plain)

    assert {"details", "trace"}.isdisjoint(plain.model_fields_set)
    whole = reports(world).get(KEY, include=FIELDS)
    assert (whole.details, whole.trace) == ({"a": 1}, b"t")


def test_the_item_stays_small_and_its_pieces_are_in_no_listing_and_no_index(world: World) -> None:
    db = Dynashard(world.inner, table=world.table, topology=DeclaredTopology(), cursor_keys=["k" * 32])
    found = db.collection(Report)

    found.create(Report(details=large(1), trace=b"x"))

    [item] = [item for item in everything(world) if item["Type"] == {"S": "test.v1.Report"}]
    assert len(str(item)) < 1000
    [listed] = found.list({"tenant": "abc"}).items
    assert listed.details is None
    assert [each.id for each in found.list({"tenant": "abc", "state": "open"}, index="by_state").items] == ["1"]
    assert found.count({"tenant": "abc"}) == 1
    kept = stored(world)
    assert sorted(key[:2] for key in kept["test.v1.Report~details"]) == ["m#", "p#", "p#"]
    assert [item for item in everything(world) if item["SK"]["S"].startswith("p#") and "GSI3PK" in item] == []


def test_a_listing_refuses_attachments_and_can_filter_by_their_existence(world: World) -> None:
    found = Dynashard(world.inner, table=world.table, topology=DeclaredTopology(), cursor_keys=["k" * 32]).collection(
        Report
    )
    found.create(Report(details=[1]))
    found.create(Report(id="2"))

    with pytest.raises(InvalidQueryError, match="details is an attachment, which only a get of its item reads"):
        found.list({"tenant": "abc"}, fields=["id", "details"])
    with pytest.raises(InvalidQueryError, match="details is an attachment: a listing only knows whether it exists"):
        found.list({"tenant": "abc"}, filters=[Filter("details", "=", [1])])
    assert [
        each.id for each in found.list({"tenant": "abc"}, filters=[Filter("details", "exists", value=True)]).items
    ] == ["1"]


def test_a_write_that_omits_a_field_leaves_it_unchanged(world: World) -> None:
    reports(world).create(Report(details={"a": 1}, trace=b"t"))

    reports(world).update(KEY, set={"title": "second"})
    replaced = reports(world).replace(Report(title="third", trace=b"u"))
    again = reports(world).replace(reports(world).get(KEY))

    assert replaced.revision != again.revision
    whole = reports(world).get(KEY, include=FIELDS)
    assert (whole.title, whole.details, whole.trace) == ("third", {"a": 1}, b"u")
    assert versions(world) == pointed(world)


@pytest.mark.parametrize(
    "write",
    [
        lambda on, item: on.put(item),
        lambda on, item: on.put(item, if_match=on.get(KEY).revision),
        lambda on, item: on.put(item, over=on.get(KEY)),
        lambda on, item: on.batch_write([item]),
        lambda on, item: on.update(KEY, set={"place": item.place, "details": item.details}),
    ],
    ids=["put", "put on a revision", "put over", "batch", "update"],
)
def test_a_write_keeps_members_of_objects_that_another_version_has_stored(
    world: World, write: Callable[[Any, Visit], object]
) -> None:
    visits = world.of(Visit)
    visits.create(Visit(place=Place(street="old"), details=[1]))
    [item] = [item for item in everything(world) if item["Type"] == {"S": "test.v1.Visit"}]
    item["place"]["M"]["zip"] = {"S": "12345"}
    world.adopt({**item, "colour": {"S": "red"}})

    write(visits, Visit(place=Place(street="new"), details=[2]))

    [item] = [item for item in everything(world) if item["Type"] == {"S": "test.v1.Visit"}]
    assert item["place"]["M"] == {"street": {"S": "new"}, "city": {"NULL": True}, "zip": {"S": "12345"}}
    assert item["colour"] == {"S": "red"}
    assert visits.get(KEY, include=["details"]).details == [2]
    assert versions(world) == pointed(world)


def test_none_removes_a_field(world: World) -> None:
    reports(world).create(Report(details={"a": 1}, trace=b"t"))

    reports(world).replace(Report(details=None))
    assert reports(world).get(KEY, include=["details"]).details is None
    reports(world).update(KEY, remove=["trace"])

    whole = reports(world).get(KEY, include=FIELDS)
    assert (whole.details, whole.trace) == (None, None)
    assert {"details", "trace"} <= whole.model_fields_set
    assert stored(world) == {}


def test_an_update_carries_a_field_and_the_rest_in_one_write(world: World) -> None:
    made = reports(world).create(Report(details=large(1)))

    changed = reports(world).update(KEY, set={"details": large(2), "title": "new", "state": "closed"})

    whole = reports(world).get(KEY, include=["details"])
    assert (changed.title, changed.details, changed.made) == ("new", None, made.made)
    assert (whole.title, whole.details) == ("new", large(2))
    assert world.entries("GSI1") == [("test.v1.Report:abc:closed", "1")]
    assert versions(world) == pointed(world)


def test_a_revision_covers_the_attachments_too(world: World) -> None:
    made = reports(world).create(Report(details=[1]))
    reports(world).update(KEY, set={"details": [2]}, if_match=made.revision)

    for stale in (
        lambda: reports(world).update(KEY, set={"details": [3]}, if_match=made.revision),
        lambda: reports(world).replace(Report(details=[3]), if_match=made.revision),
        lambda: reports(world).delete(KEY, if_match=made.revision),
        lambda: reports(world).replace(Report(id="none", details=[3]), if_match=made.revision),
    ):
        with pytest.raises(RevisionMismatchError):
            stale()

    assert reports(world).get(KEY, include=["details"]).details == [2]
    assert versions(world) == pointed(world)


def test_a_refused_write_leaves_nothing_behind(world: World) -> None:
    reports(world).create(Report(details=[1]))
    before = everything(world)

    with pytest.raises(AlreadyExistsError):
        reports(world).create(Report(details=[2]))
    with pytest.raises(NotFoundError):
        reports(world).update({"tenant": "abc", "id": "none"}, set={"details": [2]})
    with pytest.raises(InvalidValueError, match="details is an attachment: nothing can be added"):
        reports(world).update(KEY, add={"details": 1})
    with pytest.raises(ItemTooLargeError, match="it takes at most 2000000"):
        reports(world).update(KEY, set={"trace": b"x" * 2_000_000})
    with pytest.raises(ItemTooLargeError):
        reports(world).create(Report(id="2", title="x" * 400 * 1024, details=[2]))
    with pytest.raises(InvalidKeyError, match="at most 960 bytes"):
        reports(world).create(Report(id="x" * 990, details=[2]))
    with pytest.raises(InvalidQueryError, match="has no attachment title"):
        reports(world).get(KEY, include=["title"])
    with pytest.raises(InvalidQueryError, match=r"test.v1.Person has no attachment details"):
        world.people.find({"tenant": "abc", "id": "1"}, include=["details"])

    assert everything(world) == before


def test_a_put_reports_whether_it_created_and_keeps_the_creation_stamp(world: World) -> None:
    first = reports(world).put(Report(details=[1]))
    world.clock.at += 60
    second = reports(world).put(Report(details=[2]))

    assert (first.created, second.created) == (True, False)
    assert second.item.made == first.item.made == NOON
    assert second.item.changed == NOON + timedelta(seconds=60)


def test_deleting_an_item_deletes_its_attachments(world: World) -> None:
    reports(world).create(Report(details=large(1), trace=b"t"))

    reports(world).delete(KEY)

    assert everything(world) == []


def test_items_stored_before_a_field_became_an_attachment_can_be_read_overwritten_and_deleted(world: World) -> None:
    reports(world).batch_write(put=[Report(), Report(id="2")])
    for item in everything(world):
        values = {"Key": {name: item[name] for name in ("PK", "SK")}, "ExpressionAttributeNames": {"#d": "details"}}
        inline = {":old": {"M": {"a": {"N": "1"}, "b": {"L": [{"N": "1.5"}, {"NULL": True}]}}}}
        world.dynamodb.call(
            "UpdateItem",
            TableName=world.table,
            UpdateExpression="SET #d = :old",
            ExpressionAttributeValues=inline,
            **values,
        )
    old = {"a": 1, "b": [1.5, None]}
    assert reports(world).get(KEY, include=FIELDS).details == old
    assert reports(world).get(KEY).details is None
    reports(world).update(KEY, set={"title": "new"})
    assert reports(world).put(Report(title="newer")).item.title == "newer"
    assert reports(world).get(KEY, include=FIELDS).details == old

    reports(world).update(KEY, set={"details": {"b": 2}})
    reports(world).delete({"tenant": "abc", "id": "2"})

    assert reports(world).get(KEY, include=FIELDS).details == {"b": 2}
    assert reports(world).find({"tenant": "abc", "id": "2"}) is None


def test_an_expired_item_is_replaced_with_its_attachments(world: World) -> None:
    reports(world).create(Report(details=[1], until=NOON + timedelta(minutes=1)))
    world.clock.at += 61

    assert reports(world).find(KEY, include=["details"]) is None
    reports(world).create(Report(details=[2]))

    assert reports(world).get(KEY, include=["details"]).details == [2]
    assert versions(world) == pointed(world)
    reports(world).update(KEY, set={"until": NOON + timedelta(minutes=2)})
    world.clock.at += 61
    assert reports(world).put(Report(trace=b"t")).created
    assert reports(world).get(KEY, include=FIELDS).details is None
    assert versions(world) == pointed(world)


def test_batches_write_and_delete_items_with_their_fields(world: World) -> None:
    many = [Report(id=str(number), details=[number]) for number in range(5)]
    reports(world).batch_write(put=many)
    reports(world).batch_write(put=[Report(id="0", title="kept")], delete=[many[1], Report(id="none")])

    found = reports(world).batch_get(many)
    assert [None if each is None else each.id for each in found] == ["0", None, "2", "3", "4"]
    assert [reports(world).get(many[at], include=["details"]).details for at in (0, 2, 3, 4)] == [[0], [2], [3], [4]]
    assert versions(world) == pointed(world)
    with pytest.raises(InvalidKeyError, match="appears twice"):
        reports(world).batch_write(put=[Report(), Report()])


def test_a_batch_with_an_attachment_that_cannot_be_stored_sends_nothing(world: World) -> None:
    sent = world.faults()

    with pytest.raises(ItemTooLargeError):
        reports(world).batch_write(put=[Report(details=[1]), Report(id="2", trace=b"t" * 2_000_001)])
    with pytest.raises(InvalidKeyError, match="at most 960 bytes"):
        reports(world).batch_write(put=[Report(details=[1]), Report(id="x" * 990, details=[2])])

    assert sent.calls == []


def test_entities_without_attachments_send_no_additional_requests(world: World) -> None:
    sent = world.faults()

    world.people.create(person := world.people.entity.model(tenant="abc", id="9", mail="a@b.c"))
    world.people.get(person)
    world.people.delete(person)

    assert [call.operation for call in sent.calls] == ["PutItem", "GetItem", "DeleteItem"]


def test_five_megabytes_cost_what_is_documented(world: World) -> None:
    """5,000 KB of JSON compress to three quarters. Each piece is billed when it is written, and again when removed."""
    document = large(1, 5000)
    with metered() as made:
        reports(world).create(Report(details=document))
    with metered() as plain:
        reports(world).get(KEY)
    with metered() as whole:
        reports(world).get(KEY, include=["details"])
    with metered() as gone:
        reports(world).delete(KEY)

    compressed = 3750
    assert compressed < made.consumed.write_units < compressed * 1.03
    assert plain.consumed.read_units == 0.5
    assert compressed / 8 < whole.consumed.read_units < compressed / 8 * 1.03
    assert compressed < gone.consumed.write_units < compressed * 1.03
