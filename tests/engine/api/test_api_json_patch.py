"""JSON Patch (RFC 6902) over HTTP: what it changes, what it refuses, and that hostile patches stay small."""

import json
from typing import Any

import pytest

from dynashard.codec import encode_value
from dynashard.schema import PK, SK
from dynashard.transport import Transport
from dynashard_serving.limits import MAX_PATCH_OPERATIONS
from tests.api_caller import Answer, Caller, a_user
from tests.engine.commands.commands_on_engine import Service, commands_on

pytestmark = pytest.mark.engine

JSON_PATCH = "application/json-patch+json"


def an_incident(**fields: Any) -> dict[str, Any]:
    return {"id": "one", "number": 1, "title": "Disk full", "participants": ["user_ada", "user_bob"], **fields}


@pytest.fixture
def caller(caller: Caller) -> Caller:
    caller.post("/v1/incidents", an_incident())
    return caller


def patched(caller: Caller, *operations: Any, path: str = "/v1/incidents/one", **headers: str) -> Answer:
    return caller.patch(path, list(operations), headers={"content-type": JSON_PATCH, **headers})


def op(name: str, path: str, value: Any = ..., **more: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **({} if value is ... else {"value": value}), **more}


def test_a_patch_edits_the_members_of_a_list(caller: Caller) -> None:
    answer = patched(
        caller,
        op("test", "/participants/0", "user_ada"),
        op("add", "/participants/-", "user_eve"),
        op("remove", "/participants/0"),
        op("replace", "/title", "Disk was full"),
        op("add", "/team", "team_ops"),
    )

    assert answer.status == 200
    assert answer.json["participants"] == ["user_bob", "user_eve"]
    assert (answer.json["title"], answer.json["team"]) == ("Disk was full", "team_ops")
    assert answer.json == caller.get("/v1/incidents/one").json


def test_a_removed_field_has_its_default(caller: Caller) -> None:
    answer = patched(caller, op("replace", "/status", "SEEN"), op("remove", "/status"), op("remove", "/participants"))

    assert (answer.json["status"], answer.json["participants"]) == ("TRIGGERED", [])


@pytest.mark.parametrize("source", [5, None, "title", "~2", "/nothing", "/details"])
def test_members_that_an_operation_does_not_have_are_ignored(caller: Caller, source: object) -> None:
    answer = patched(
        caller,
        op("test", "/title", "Disk full", **{"from": source}),
        op("replace", "/title", "A", **{"from": source}),
        op("add", "/team", "team_ops", **{"from": source}),
        op("remove", "/team", **{"from": source}),
    )

    assert (answer.status, answer.json.get("title"), answer.json.get("team")) == (200, "A", None)


def test_a_patch_may_demand_the_revision_that_it_was_made_for(caller: Caller) -> None:
    revision = caller.get("/v1/incidents/one").json["revision"]

    first, second = (
        patched(caller, op("test", "/revision", revision), op("replace", "/title", title)) for title in ("A", "B")
    )

    assert (first.status, second.status, second.code) == (200, 409, "patch_conflict")
    assert caller.get("/v1/incidents/one").json["title"] == "A"


def test_nothing_of_a_patch_is_done_if_one_operation_fails(caller: Caller) -> None:
    before = caller.get("/v1/incidents/one").json

    for last in (
        op("test", "/number", value=True),
        op("remove", "/closed_at/x"),
        op("add", "/participants/9", "user_x"),
        {"op": "copy", "from": "/participants/-", "path": "/team"},
        {"op": "move", "from": "/participants/-", "path": "/team"},
    ):
        answer = patched(caller, op("replace", "/title", "Changed"), last)
        assert (answer.status, answer.code) == (409, "patch_conflict")
        assert "Operation 1" in answer.json["detail"]

    assert caller.get("/v1/incidents/one").json == before


@pytest.mark.parametrize(
    ("operation", "place"),
    [
        ({"op": "copy", "from": "/nothing", "path": "/title"}, "/nothing"),
        ({"op": "move", "from": "/title", "path": "/participants/9"}, "/participants/9"),
        (op("remove", "/title/0"), "/title/0"),
        (op("add", "/participants/x", "user_x"), "/participants/x"),
    ],
)
def test_a_conflict_names_the_path_and_shows_nothing_of_the_item(
    caller: Caller, operation: dict[str, Any], place: str
) -> None:
    detail = patched(caller, operation).json["detail"]

    assert detail == f"Operation 0 does not fit the item, which has no place {place}."


@pytest.mark.parametrize(
    ("operations", "fields"),
    [
        ([7], {"0": "object_type"}),
        ([op("erase", "/title")], {"0.op": "enum"}),
        ([op("add", "/title")], {"0.value": "missing"}),
        ([{"op": "move", "path": "/title"}], {"0.from": "missing"}),
        ([op("remove", "title")], {"0.path": "string_pattern_mismatch"}),
        ([op("remove", "/a~2")], {"0.path": "string_pattern_mismatch"}),
        ([op("remove", "/" + "a" * 2000)], {"0.path": "string_pattern_mismatch"}),
        ([op("replace", "", {})], {"0.path": "immutable"}),
        ([op("replace", "/created_at", "2026-01-01T00:00:00Z")], {"0.path": "read_only"}),
        ([{"op": "move", "from": "/revision", "path": "/title"}], {"0.from": "read_only"}),
        ([op("replace", "/id", "two")], {"id": "immutable"}),
        ([op("replace", "/number", "one")], {"number": "int_type"}),
        ([op("add", "/unknown", 1)], {"unknown": "extra_forbidden"}),
        ([op("remove", "/title")], {"title": "missing"}),
        ([op("test", "/title", "x")] * (MAX_PATCH_OPERATIONS + 1), {"": "out_of_range"}),
    ],
)
def test_a_wrong_patch_names_the_operation_or_the_field(
    caller: Caller, operations: list[Any], fields: dict[str, str]
) -> None:
    assert patched(caller, *operations).fields == fields


@pytest.mark.parametrize("kind", ["object", "text"])
def test_a_json_patch_is_a_list(caller: Caller, kind: str) -> None:
    body = b'{"title": "x"}' if kind == "object" else b'"x"'

    answer = caller.patch("/v1/incidents/one", body=body, headers={"content-type": JSON_PATCH})

    assert answer.fields == {"": "list_type"}
    assert caller.patch("/v1/incidents/one", ["x"]).fields == {"": "object_type"}


def test_a_patch_that_copies_what_it_has_copied_stays_small(caller: Caller) -> None:
    bomb = [op("add", "/details", ["0123456789" * 10])]
    bomb += [{"op": "copy", "from": "/details", "path": "/details/-"} for _ in range(MAX_PATCH_OPERATIONS - 1)]

    answer = patched(caller, *bomb)

    assert answer.status == 422
    assert set(answer.fields.values()) <= {"out_of_range", "too_deep"}


def test_a_patch_that_nests_what_it_has_nested_is_refused(caller: Caller) -> None:
    deeper = [op("add", "/details", {})]
    deeper += [op("add", "/details" + "/x" * level, {}) for level in range(1, 60)]

    assert set(patched(caller, *deeper).fields.values()) == {"too_deep"}


def test_attachments_are_read_for_the_patches_that_name_them(caller: Caller) -> None:
    caller.patch("/v1/incidents/one", {"details": {"steps": ["a"]}})

    answer = patched(caller, op("add", "/details/steps/-", "b"))
    kept = patched(caller, op("replace", "/title", "Other"))
    shown = caller.get("/v1/incidents/one", query="include=details").json["details"]
    removed = patched(caller, op("remove", "/details"))

    assert (answer.status, kept.status, removed.status) == (200, 200, 200)
    assert shown == {"steps": ["a", "b"]}
    assert caller.get("/v1/incidents/one", query="include=details").json["details"] is None


def test_a_patch_keeps_what_the_running_version_does_not_declare(
    caller: Caller, transport: Transport, table: str
) -> None:
    caller.post("/v1/users", a_user(id="ada"))
    [stored] = [
        item
        for item in transport.call("Scan", {"TableName": table})["Items"]
        if item[SK]["S"] == "ada" and item[PK]["S"].startswith("user.v1.User:")
    ]
    later = {**stored, "later_field": {"S": "kept"}, "later_object": encode_value({"x": [1]})}
    transport.call("PutItem", {"TableName": table, "Item": later})

    answer = patched(caller, op("replace", "/display_name", "Ada L."), path="/v1/users/ada")

    key = {name: stored[name] for name in (PK, SK)}
    now = transport.call("GetItem", {"TableName": table, "Key": key, "ConsistentRead": True})["Item"]
    assert answer.json["display_name"] == "Ada L."
    assert (now["later_field"], now["later_object"]) == (later["later_field"], later["later_object"])


@pytest.mark.usefixtures("caller")
def test_direct_invocation_and_batches_take_the_same_patch(transport: Transport, table: str) -> None:
    service = Service(commands_on(transport, table), entity="incidents")
    patch = [op("add", "/participants/-", "user_eve")]

    direct = service.result("update", key={"id": "one"}, patch=patch)
    [batched] = service.result("batch", requests=[{"operation": "update", "key": {"id": "one"}, "patch": patch}])

    assert direct["participants"] == ["user_ada", "user_bob", "user_eve"]
    assert batched["result"]["participants"] == ["user_ada", "user_bob", "user_eve", "user_eve"]


def test_the_refusal_of_another_media_type_names_both_kinds(caller: Caller) -> None:
    answer = caller.patch("/v1/incidents/one", body=json.dumps([]).encode(), headers={"content-type": "text/plain"})

    assert answer.status == 415
    assert JSON_PATCH in answer.headers["accept-patch"]
