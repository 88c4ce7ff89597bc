"""Stored items of earlier versions are upgraded when read, and written in the present form when next written."""

from collections.abc import Callable
from typing import Any

import pytest

from dynashard import Check, Create, Delete, Entity, Key, Put, Registry, Shards, Update
from dynashard.errors import NewerItemError, TransactionRefusedError, UndecodableItemError, UnprocessedError
from dynashard.reads import Order
from dynashard.transport import Transport, metered
from tests.api_caller import TENANT
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.versions.two_versions import Version
from tests.engine.versions.upgraded_versions import KEY, First, Place, Second, Third, add_country, divide_name

pytestmark = pytest.mark.engine


@pytest.fixture
def first(transport: Transport, table: str) -> Version:
    return Version(First, transport, table)


@pytest.fixture
def second(transport: Transport, table: str) -> Version:
    return Version(Second, transport, table)


@pytest.fixture
def third(transport: Transport, table: str) -> Version:
    return Version(Third, transport, table)


class Stored:
    """The only stored item, as another program sees it."""

    def __init__(self, dynamodb: RawDynamoDB, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def item(self) -> dict[str, Any]:
        items: list[dict[str, Any]] = self._dynamodb.call("Scan", TableName=self._table, ConsistentRead=True)["Items"]
        [item] = items
        return item

    def give(self, **attributes: Any) -> None:
        self._dynamodb.call("PutItem", TableName=self._table, Item={**self.item(), **attributes})


@pytest.fixture
def stored(dynamodb: RawDynamoDB, table: str) -> Stored:
    return Stored(dynamodb, table)


def an_old_one(first: Version, **more: Any) -> Any:
    return first.tasks.create(First(**KEY, name="Ada Byron", age="36", email="ada@x", **more))


def test_an_item_without_versions_is_stored_as_before(first: Version, stored: Stored) -> None:
    an_old_one(first)

    assert "Ver" not in stored.item()


def test_an_item_of_an_earlier_version_is_upgraded_when_it_is_read(first: Version, third: Version) -> None:
    made = an_old_one(first)

    found = third.tasks.get(KEY)

    assert (found.first, found.last, found.age, found.country) == ("Ada", "Byron", 36, "DE")
    assert found.revision == made.revision
    assert found.changed == made.changed
    assert third.tasks.part(KEY, fields=["last"]).values == {"last": "Byron"}
    for order in Order:
        assert [each.last for each in third.tasks.list({"tenant_id": TENANT}, order=order)] == ["Byron"]
    assert third.tasks.list({"tenant_id": TENANT}, fields=["country"]).items == [{"country": "DE"}]
    assert [each.last for each in third.tasks.scan({"tenant_id": TENANT})] == ["Byron"]
    assert [each.last for each in third.tasks.batch_get([KEY]) if each] == ["Byron"]


@pytest.mark.parametrize(
    "way", ["update", "add", "replace", "put over", "put", "transaction", "upsert", "batch", "once"]
)
def test_the_next_write_stores_the_present_form(way: str, first: Version, third: Version, stored: Stored) -> None:
    an_old_one(first, place=Place(city="Bern"))
    stored.give(other={"S": "program"})
    people = third.tasks
    read = people.get(KEY)
    changed = read.model_copy(update={"age": 37})
    if way == "update":
        people.update(KEY, set={"age": 37})
    elif way == "add":
        people.update(KEY, add={"age": 1})
    elif way == "replace":
        people.replace(changed)
    elif way == "put over":
        people.put(changed, over=read)
    elif way == "put":
        people.put(changed)
    elif way == "transaction":
        third.db.transact(Put(changed, over=read))
    elif way == "upsert":
        third.db.transact(Update(Third, KEY, set={"age": 37}, returns=True))
    elif way == "batch":
        people.batch_write(put=[changed])
    else:
        people.update(KEY, set={"age": 37}, handling="exactly-once")

    item = stored.item()
    assert item["Ver"] == {"N": "3"}
    assert item["age"] == {"N": "37"}
    assert item["country"] == {"S": "DE"}
    assert item["last"] == {"S": "Byron"}
    assert item["GSI2SK"] == {"S": "Byron"}
    assert item["place"]["M"]["city"] == {"S": "Bern"}
    assert item["other"] == {"S": "program"}
    # A write that has read nothing does not know of the attribute.
    assert ("name" in item) == (way in ("put", "replace"))
    assert people.get(KEY).made == read.made


def test_a_patch_over_rest_stores_the_present_form(first: Version, third: Version, stored: Stored) -> None:
    an_old_one(first)

    answer = third.caller.patch("/v1/tasks/1", {"age": 50})

    assert answer.status == 200, answer.content
    assert (answer.json["first"], answer.json["age"], answer.json["country"]) == ("Ada", 50, "DE")
    assert "name" not in stored.item()
    assert stored.item()["Ver"] == {"N": "3"}


def test_members_that_no_version_declares_stay_in_objects(first: Version, second: Version, stored: Stored) -> None:
    an_old_one(first, place=Place(city="Bern"))
    stored.give(place={"M": {"city": {"S": "Bern"}, "street": {"NULL": True}, "floor": {"N": "3"}}})

    second.tasks.update(KEY, set={"age": 37})

    assert stored.item()["place"]["M"]["floor"] == {"N": "3"}


@pytest.mark.parametrize("fields", [None, ["last"]])
@pytest.mark.parametrize("order", list(Order))
def test_a_filter_holds_for_what_an_upgrade_makes(
    order: Order, fields: list[str] | None, first: Version, third: Version
) -> None:
    for number, (name, age) in enumerate([("Ada Byron", "36"), ("Bob Dylan", "80"), ("Cyd Byron", "70")]):
        first.tasks.create(First(tenant_id=TENANT, id=str(number), name=name, age=age))
    third.tasks.create(Third(tenant_id=TENANT, id="8", first="Dan", last="Byron", country="CH", age=90))
    third.tasks.create(Third(tenant_id=TENANT, id="9", first="Eve", last="Dylan", country="CH", age=90))
    partition = {"tenant_id": TENANT}

    found = third.tasks.list(partition, filters={"last": "Byron"}, order=order, fields=fields).items
    older = third.tasks.list(partition, filters=[("age", ">=", 70), ("country", "=", "CH")], order=order).items

    assert len(found) == 3
    assert sorted(each.id for each in older) == ["1", "2", "8", "9"]
    assert third.tasks.count(partition, filters={"last": "Byron"}) == 3


def test_an_index_shows_an_upgraded_item_once_it_is_written(first: Version, third: Version) -> None:
    an_old_one(first)
    by_last = {"tenant_id": TENANT}

    assert third.tasks.list(by_last, index="by_last").items == []
    assert [each.last for each in third.tasks.list(by_last, index="by_email")] == ["Byron"]
    third.tasks.update(KEY, set={"age": 1})
    assert [each.id for each in third.tasks.list(by_last, index="by_last")] == ["1"]


WRITES = {
    "update": lambda version, _: version.tasks.update(KEY, set={"age": "1"}),
    "put": lambda version, read: version.tasks.put(read),
    "replace": lambda version, read: version.tasks.replace(read, if_match=read.revision),
    "guarded": lambda version, read: version.tasks.put(read, handling="guarded"),
    "exactly-once": lambda version, read: version.tasks.put(read, handling="exactly-once"),
    "exactly-once update": lambda version, _: version.tasks.update(KEY, set={"age": "1"}, handling="exactly-once"),
    "create": lambda version, read: version.tasks.create(read),
    "exactly-once create": lambda version, read: version.tasks.create(read, handling="exactly-once"),
    "transaction": lambda version, read: version.db.transact(Put(read)),
    "transaction create": lambda version, read: version.db.transact(Create(read)),
    "transaction update": lambda version, _: version.db.transact(Update(First, KEY, set={"age": "1"})),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_older_code_does_not_write_over_a_newer_item(
    write: Any, first: Version, second: Version, stored: Stored
) -> None:
    read = an_old_one(first)
    second.tasks.update(KEY, set={"age": 37})
    before = stored.item()

    with pytest.raises(NewerItemError) as refused:
        write(first, First(**read.__dict__))

    assert (refused.value.version, refused.value.known) == (2, 1)
    assert stored.item() == before


@pytest.mark.parametrize(
    ("step", "reason"),
    [(Check(First, KEY, revision=None), "already_exists"), (Delete(First, KEY, if_match="other"), "revision_mismatch")],
    ids=["check", "delete"],
)
def test_older_code_judges_a_newer_item_that_it_does_not_write_over(
    step: Check | Delete, reason: str, first: Version, second: Version
) -> None:
    an_old_one(first)
    second.tasks.update(KEY, set={"age": 37})

    with pytest.raises(TransactionRefusedError) as refused:
        first.db.transact(step)

    assert refused.value.reason == reason


def test_older_code_refuses_newer_items_in_a_batch(first: Version, second: Version, stored: Stored) -> None:
    read = an_old_one(first)
    second.tasks.update(KEY, set={"age": 37})
    before = stored.item()

    with pytest.raises(UnprocessedError) as refused:
        first.tasks.batch_write(put=[read])

    assert isinstance(refused.value.__cause__, NewerItemError)
    assert stored.item() == before


def test_older_code_reads_no_newer_item_and_says_so(first: Version, second: Version) -> None:
    an_old_one(first)
    second.tasks.update(KEY, set={"age": 37})

    with pytest.raises(NewerItemError, match=r" / 1 is stored in version 2, and this release declares version 1"):
        first.tasks.get(KEY)
    page = first.tasks.list({"tenant_id": TENANT})
    assert page.items == []
    assert "version 2" in page.undecodable[0].problem
    answer = first.caller.get("/v1/tasks/1")
    assert (answer.status, answer.json["code"]) == (503, "newer_item")
    listed = first.caller.get("/v1/tasks")
    assert (listed.status, listed.json["items"]) == (200, [])
    assert listed.headers["undecodable-items"] == "1"


def test_older_code_reads_no_part_of_a_newer_item(first: Version, second: Version) -> None:
    an_old_one(first)
    second.tasks.update(KEY, set={"age": 37})

    with pytest.raises(NewerItemError, match="stored in version 2"):
        first.tasks.part(KEY, fields=["age"])
    for index in (None, "by_email"):
        page = first.tasks.list({"tenant_id": TENANT}, index=index, fields=["age"])
        assert page.items == []
        assert "version 2" in page.undecodable[0].problem
    assert list(first.tasks.scan({"tenant_id": TENANT}, fields=["age"])) == []


@pytest.mark.parametrize("read", ["page", "scan", "batch"])
def test_a_strict_reader_of_newer_items_gets_the_error_of_a_single_read(
    first: Version, second: Version, read: str
) -> None:
    an_old_one(first)
    second.tasks.update(KEY, set={"age": 37})
    reads: dict[str, Any] = {
        "page": lambda: first.tasks.list({"tenant_id": TENANT}, strict=True),
        "scan": lambda: list(first.tasks.scan({"tenant_id": TENANT}, strict=True)),
        "batch": lambda: first.tasks.batch_get([KEY], strict=True),
    }

    with pytest.raises(NewerItemError) as refused:
        reads[read]()

    assert (refused.value.version, refused.value.known) == (2, 1)
    answer = first.caller.get("/v1/tasks", query="strict=true")
    assert (answer.status, answer.json["code"]) == (503, "newer_item")


def test_older_code_deletes_and_creates_anew(first: Version, second: Version) -> None:
    an_old_one(first)
    second.tasks.update(KEY, set={"age": 37})

    first.tasks.delete(KEY)
    an_old_one(first)

    assert second.tasks.get(KEY).last == "Byron"


def broken(_: dict[str, Any]) -> dict[str, Any]:
    raise LookupError("no such town")


FAULTS: dict[str, tuple[Any, str]] = {
    "raises": (broken, "upgrade of version 1 failed: LookupError('no such town')"),
    "returns nothing": (lambda _: None, "returned NoneType, not a mapping of names"),
    "returns the value of a number": (lambda _: {7: "x"}, "returned dict, not a mapping of names"),
    "returns the value of no name": (lambda _: {"": "x"}, "returned dict, not a mapping of names"),
    "moves it": (lambda values: {**divide_name(values), "id": "2"}, "changes id, which is part of the key"),
    "forgets its key": (lambda _: {"first": "a", "last": "b"}, "changes tenant_id, which is part of the key"),
    "writes what is the layer's": (lambda values: {**divide_name(values), "Rev": "x"}, "returned Rev, which the layer"),
    "cannot be stored": (lambda values: {**divide_name(values), "age": float("nan")}, "cannot be stored"),
    "does not fit": (lambda values: {**divide_name(values), "age": "much"}, "age: "),
}


@pytest.mark.parametrize(("function", "problem"), FAULTS.values(), ids=FAULTS)
def test_an_item_that_cannot_be_upgraded_is_undecodable_and_stays(
    function: Any, problem: str, first: Version, stored: Stored
) -> None:
    class Faulty(
        Entity,
        name=First.__dict__["__dynashard_definition__"].name,
        key=Key(partition="{tenant_id}", sort="{id}"),
        shards=Shards(2),
        version=2,
        upgrade={1: function},
        registry=Registry(),
    ):
        tenant_id: str
        id: str
        first: str
        last: str
        age: int = 30

    faulty = Version(Faulty, first.transport, first.table)
    an_old_one(first)
    before = stored.item()

    with pytest.raises(UndecodableItemError) as refused:
        faulty.tasks.get(KEY)
    with pytest.raises(UndecodableItemError):
        faulty.tasks.update(KEY, set={"age": 1})

    assert problem in str(refused.value)
    assert stored.item() == before


def test_an_item_whose_upgrade_was_removed_is_named(first: Version, transport: Transport, table: str) -> None:
    class Contracted(
        Entity,
        name=First.__dict__["__dynashard_definition__"].name,
        key=Key(partition="{tenant_id}", sort="{id}"),
        shards=Shards(2),
        version=3,
        upgrade={2: add_country},
        registry=Registry(),
    ):
        tenant_id: str
        id: str

    an_old_one(first)

    with pytest.raises(UndecodableItemError, match="of version 1, and no function upgrades version 1: run `dynashard"):
        Version(Contracted, transport, table).tasks.get(KEY)


def test_a_transaction_that_creates_and_adds_upgrades_what_it_adds_to(first: Version, third: Version) -> None:
    an_old_one(first)
    third.db.transact(
        Create(Third(tenant_id=TENANT, id="2", first="a", last="b", country="c")),
        Update(Third, KEY, add={"age": 5}),
    )

    assert third.tasks.get(KEY).age == 41


def cost_of(call: Callable[[], object]) -> tuple[float, float, int]:
    """Return the units that a call consumes, and its requests that were executed: a refused one reports no units."""
    with metered() as meter:
        call()
    used = meter.consumed
    return used.read_units, used.write_units, used.requests


CALLS: dict[str, Callable[[Any, Any], object]] = {
    "get": lambda tasks, _: tasks.get(KEY),
    "part": lambda tasks, _: tasks.part(KEY, fields=["age"]),
    "list": lambda tasks, _: tasks.list({"tenant_id": TENANT}, order="ordered"),
    "count": lambda tasks, _: tasks.count({"tenant_id": TENANT}),
    "put": lambda tasks, item: tasks.put(item),
    "replace": lambda tasks, item: tasks.replace(item, if_match=item.revision),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_item_of_an_earlier_version_costs_what_one_of_the_present_does(
    call: Callable[[Any, Any], object], first: Version, second: Version
) -> None:
    an_old_one(first)
    item = second.tasks.get(KEY)
    old = cost_of(lambda: call(second.tasks, item))
    second.tasks.update(KEY, set={"email": "new@x"})
    item = second.tasks.get(KEY)

    assert cost_of(lambda: call(second.tasks, item)) == old


def test_an_update_of_an_item_of_an_earlier_version_reads_it_once(first: Version, second: Version) -> None:
    an_old_one(first)

    old = cost_of(lambda: second.tasks.update(KEY, set={"age": 37}))
    present = cost_of(lambda: second.tasks.update(KEY, set={"age": 38}))

    assert old == (present[0] + 1, present[1], present[2] + 1)
