"""What the log says of direct invocations and of records of the stream, whatever they are."""

from typing import Any

import pytest

from dynashard import Entity, Key, Registry
from dynashard_serving.changes.lines import Described
from dynashard_serving.commands.lines import described
from dynashard_serving.declare import Exposed
from dynashard_serving.operations.described import described_item
from dynashard_serving.operations.outcomes import done
from dynashard_serving.operations.served import Served, served_by_name
from tests.domain_served import ENTITIES

pytestmark = pytest.mark.engine

SERVED = served_by_name(ENTITIES)
ADA = {"PK": {"S": "user.v1.User:abc:3"}, "SK": {"S": "ada"}, "Type": {"S": "user.v1.User"}, "Rev": {"S": "new"}}
FIELDS = {"tenant_id": {"S": "abc"}, "id": {"S": "ada"}}


def record(number: str, **images: Any) -> dict[str, Any]:
    return {"dynamodb": {"SequenceNumber": number, **images}}


def lines_of(*records: dict[str, Any], again: str | None = None) -> list[dict[str, Any]]:
    lines = Described([Served(each) for each in ENTITIES]).records(records, again)
    return [{name: value for name, value in line.items() if value is not None} for line in lines]


def test_a_record_names_the_item_and_both_revisions() -> None:
    old = {**ADA, **FIELDS, "Rev": {"S": "old"}}

    [line] = lines_of(record("1", OldImage=old, NewImage={**ADA, **FIELDS}))

    assert line == {
        "operation": "updated",
        "sequence": "1",
        "entity": "user.v1.User",
        "tenant": "abc",
        "item": "users/ada",
        "revision": "new",
        "before": "old",
    }


def test_a_time_in_a_key_is_written_as_in_the_items_address() -> None:
    fields = {
        "tenant_id": "abc",
        "user_id": "u",
        "path": "/a b",
        "id": "1",
        "accessed_at": "2026-11-20T10:00:00.000000Z",
    }
    image = {"PK": {"S": "x"}, "SK": {"S": "y"}, "Type": {"S": "access.v1.Access"}, "Rev": {"S": "r"}}
    entity = SERVED["accesses"]
    image |= {"Type": {"S": entity.name}, **{name: {"S": value} for name, value in fields.items()}}

    [line] = lines_of(record("1", NewImage=image))

    assert line["item"] == entity.item_name({**fields, "accessed_at": "2026-11-20T10:00:00Z"})


def test_moves_are_left_out_and_so_are_records_that_come_again() -> None:
    marker = {**ADA, "MovedTo": {"S": "user.v1.User:abc:9"}}
    moved = record("1", OldImage={**ADA, **FIELDS}, NewImage=marker)

    assert lines_of(
        moved, record("2", OldImage={**ADA, **FIELDS}), record("3", NewImage={**ADA, **FIELDS}), again="3"
    ) == [
        {
            "operation": "deleted",
            "sequence": "2",
            "entity": "user.v1.User",
            "tenant": "abc",
            "item": "users/ada",
            "before": "new",
        }
    ]


@pytest.mark.parametrize(
    "image",
    [
        {**ADA, "id": {"N": "1"}},
        {"PK": {"S": "CONFIG"}, "SK": {"S": "v1"}},
        {"PK": {"S": "CONFIG"}, "SK": {"S": "v1"}, "Type": {"N": "1"}, "ExpiresAt": {"S": "2026-11-20"}},
        {"PK": {"N": "1"}, "SK": {"B": "eA=="}},
    ],
    ids=["undecodable", "of another program", "with other attributes of ours", "no keys of ours"],
)
def test_a_record_that_fits_no_declaration_is_reported_without_its_key(image: dict[str, Any]) -> None:
    at = {"ApproximateCreationDateTime": 1_800_000_000}

    created, deleted = lines_of(record("1", NewImage=image, **at), record("2", OldImage=image, **at))

    assert "item" not in {**created, **deleted}
    assert (created["operation"], deleted["operation"]) == ("created", "deleted")


@pytest.mark.parametrize(
    "event",
    [None, [], "text", {}, {"operation": 1, "entity": [], "tenant_id": {}}, {"entity": "users", "key": "ada"}],
    ids=repr,
)
def test_any_event_has_one_line(event: Any) -> None:
    [line] = described(event, {"ok": False, "error": {"code": "invalid"}}, SERVED)

    assert line["code"] == "invalid"
    assert "item" not in line


def test_the_result_names_an_item_whose_id_the_server_made() -> None:
    event = {"operation": "create", "entity": "users", "tenant_id": "abc", "item": {"email": "a@example.com"}}

    [line] = described(event, done({"id": "made", "revision": "R"}), SERVED)

    assert (line["item"], line["revision"], line["entity"]) == ("users/made", "R", "user.v1.User")


def test_each_item_of_a_batch_has_its_line() -> None:
    event = {
        "operation": "batch_write",
        "entity": "users",
        "tenant_id": "abc",
        "put": [{"id": "1"}],
        "delete": [{"id": "2"}],
    }
    failed = {"ok": False, "error": {"code": "throttled"}}

    lines = list(described(event, done({"put": [done({"id": "1", "revision": "R"})], "delete": [failed]}), SERVED))

    assert [(line.get("item"), line["operation"], line["code"]) for line in lines] == [
        ("users/1", "put", None),
        ("users/2", "delete", "throttled"),
        (None, "batch_write", None),
    ]


def test_each_request_of_a_mixed_batch_has_its_line() -> None:
    requests = [
        {"operation": "create", "item": {"email": "a@example.com"}},
        {"operation": "put", "item": {"id": "1"}},
        {"operation": "update", "key": {"id": "2"}, "patch": {}},
        {"operation": "delete", "key": {"id": "3"}},
    ]
    caller = {"subject": "eve", "scopes": []}
    event = {"operation": "batch", "entity": "users", "tenant_id": "abc", "caller": caller, "requests": requests}
    results = [{"id": "made", "revision": "R"}, {"item": {"id": "1", "revision": "S"}, "created": False}]
    outcomes = [*map(done, results), {"ok": False, "error": {"code": "throttled"}}, done(None)]

    lines = list(described(event, done(outcomes), SERVED))

    assert [(line.get("item"), line["operation"], line.get("revision"), line["code"]) for line in lines] == [
        ("users/made", "create", "R", None),
        ("users/1", "put", "S", None),
        ("users/2", "update", None, "throttled"),
        ("users/3", "delete", None, None),
        (None, "batch", None, None),
    ]
    assert {(line["tenant"], line["entity"], line["caller"]) for line in lines} == {("abc", "user.v1.User", "eve")}


@pytest.mark.parametrize("operation", ["batch", "batch_write"])
def test_a_batch_that_was_refused_has_one_line(operation: str) -> None:
    event = {"operation": operation, "entity": "users", "requests": 1, "put": 1, "caller": "eve"}

    [line] = described(event, {"ok": False, "error": {"code": "invalid"}}, SERVED)

    assert (line["operation"], line["code"], line.get("caller")) == (operation, "invalid", None)


class Box(Entity, name="test.v1.Box", key=Key("{tenant_id}", "{id}"), registry=Registry()):
    """An item with a field that is called as the member of a put's result."""

    tenant_id: str
    id: str
    item: dict[str, str]


def test_an_item_with_a_field_of_the_name_item_is_named_by_its_own_key() -> None:
    served = Served(Exposed(Box, path="boxes", operations=("create",)))
    stored = {"id": "b1", "revision": "R", "item": {"id": "inside"}}

    assert described_item(served, None, done(stored)) == {"item": "boxes/b1", "revision": "R"}
    assert described_item(served, None, done({"item": stored, "created": True})) == {
        "item": "boxes/b1",
        "revision": "R",
    }
