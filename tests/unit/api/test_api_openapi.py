"""The OpenAPI document."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate

from dynashard.reads.operators import RANGE_WORDS
from dynashard_serving.api.app import build_app
from dynashard_serving.api.openapi.document import document_of
from dynashard_serving.domain import declared
from tests.api_caller import Caller
from tests.unit.api.test_api_routes import Unreachable, settings_in

pytestmark = pytest.mark.unit

COMMITTED = Path(__file__).parents[3] / "docs" / "openapi.json"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return document_of(declared())


def test_the_committed_document_is_the_generated_one(document: dict[str, Any]) -> None:
    committed = json.loads(COMMITTED.read_text(encoding="utf-8"))

    assert committed == document, "The API has changed: run `make openapi` and commit docs/openapi.json"


@pytest.mark.deep
def test_document_is_valid_openapi(document: dict[str, Any]) -> None:
    """By default redocly finds what is not, in tests/unit/api/test_openapi_linters.py, except of defaults."""
    validate(document)


def test_document_names_its_version(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")


def _defaults(node: Any) -> Iterator[dict[str, Any]]:
    """Yield the schemas that have a default, wherever they are in a document."""
    if isinstance(node, dict):
        if "default" in node and not isinstance(node["default"], dict):
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _defaults(each)


def test_every_default_is_valid_by_its_schema(document: dict[str, Any]) -> None:
    components = {"components": document["components"]}
    found = list(_defaults(document))

    assert [each for each in found if not OAS31Validator({**each, **components}).is_valid(each["default"])] == []
    assert found


def test_every_component_is_titled_by_its_own_name(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]

    assert {name: schema["title"] for name, schema in schemas.items()} == {name: name for name in schemas}


def _schema(document: dict[str, Any], name: str) -> OAS31Validator:
    components = {"components": document["components"]}
    return OAS31Validator({"$ref": f"#/components/schemas/{name}", **components})


def test_the_create_schema_accepts_the_same_bodies_as_the_api(document: dict[str, Any]) -> None:
    schema = _schema(document, "UserCreate")

    assert schema.is_valid({"email": "a@b.c", "display_name": "Ada"})
    assert not schema.is_valid({"email": "a@b.c"})
    assert not schema.is_valid({"email": "a@b.c", "display_name": "Ada", "created_at": "2026-01-01T00:00:00Z"})
    assert not schema.is_valid({"email": "a@b.c", "display_name": "Ada", "nickname": "A"})


def test_the_patch_schema_accepts_any_fields_and_null(document: dict[str, Any]) -> None:
    schema = _schema(document, "UserPatch")

    assert schema.is_valid({})
    assert schema.is_valid({"department": None, "display_name": "Ada"})
    assert not schema.is_valid({"display_name": 1})


def test_server_fields_are_read_only(document: dict[str, Any]) -> None:
    properties = document["components"]["schemas"]["User"]["properties"]

    assert {name for name, value in properties.items() if value.get("readOnly")} == {
        "created_at",
        "updated_at",
        "revision",
    }


def test_every_operation_except_health_requires_a_token(document: dict[str, Any]) -> None:
    operations = {
        (path, method): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method != "parameters"
    }

    assert document["security"] == [{"bearer": []}]
    assert [place for place, operation in operations.items() if operation.get("security") == []] == [
        ("/v1/health", "get")
    ]


def test_an_operation_names_the_scopes_that_its_callers_need(document: dict[str, Any]) -> None:
    paths = document["paths"]

    assert paths["/v1/users"]["get"]["security"] == [{"bearer": ["users:read"]}]
    # Admins need no scope.
    assert paths["/v1/incidents/{id}"]["delete"]["security"] == [{"bearer": ["incidents:delete"]}, {"bearer": []}]
    assert paths["/v1/on-call"]["get"]["security"] == [{"bearer": ["on-call:read"]}]
    assert paths["/v1/follows"]["post"]["security"] == [{"bearer": ["follows:write"]}]
    assert "security" not in paths["/v1/operations"]["get"]
    on_call = paths["/v1/schedules/{team_id}/{schedule_id}/on-call"]["get"]
    assert on_call["security"] == [{"bearer": ["on-call:read"]}]
    escalations = [each["get"]["security"] for path, each in paths.items() if path.startswith("/v1/incidents/{id}/")]
    assert [{"bearer": ["contacts:all", "incidents:read"]}] in escalations
    assert "Only for items whose `manager_id` names the caller" in paths["/v1/users/{id}"]["get"]["description"]
    known = document["components"]["securitySchemes"]["bearer"]["x-scopes"]
    every = {
        scope
        for methods in paths.values()
        for each in methods.values()
        if isinstance(each, dict)
        for one in each.get("security", ())
        for scope in one["bearer"]
    }
    assert every < set(known)


def test_a_listing_documents_all_of_its_parameters(document: dict[str, Any]) -> None:
    text, ranges = ("ne", "in", "gt", "gte", "lt", "lte", "prefix", "contains", "exists"), RANGE_WORDS

    assert _parameters(document, "/v1/users") == {
        *("limit", "order", "direction", "prefix", "from", "to", "cursor", "fields", "consistent", "strict", "index"),
        *("department", "manager_id", "status", "email", "id", "status[ne]", "status[in]"),
        *(f"{field}[{word}]" for field in ("department", "manager_id") for word in text),
        *(f"{field}[{word}]" for field in ("id", "email") for word in ranges),
    }


def test_a_count_documents_the_parameters_of_a_listing_that_choose_items(document: dict[str, Any]) -> None:
    turning = {"limit", "order", "direction", "cursor", "fields"}

    assert _parameters(document, "/v1/users/count") == _parameters(document, "/v1/users") - turning | {"up_to"}


def _parameters(document: dict[str, Any], path: str) -> set[str]:
    shared = document["components"]["parameters"]
    given = document["paths"][path]["get"]["parameters"]
    return {(shared[each["$ref"].rpartition("/")[2]] if "$ref" in each else each)["name"] for each in given}


@pytest.mark.parametrize(
    ("accepted", "request_body"),
    [
        (True, {"operation": "get", "key": {"id": "ada"}}),
        (True, {"operation": "put", "item": {"id": "a", "email": "a@b.c", "display_name": "A"}, "if_match": "x"}),
        (True, {"operation": "update", "key": {"id": "ada"}, "patch": [{"op": "remove", "path": "/department"}]}),
        (False, {"operation": "get", "key": {"name": "ada"}}),
        (False, {"operation": "drop", "key": {"id": "ada"}}),
        (False, {"operation": "delete"}),
    ],
)
def test_the_schema_of_a_batch_accepts_what_the_api_does(
    document: dict[str, Any], accepted: object, request_body: dict[str, Any]
) -> None:
    assert _schema(document, "UserBatch").is_valid({"requests": [request_body]}) is accepted


def _references(part: Any) -> list[str]:
    if isinstance(part, dict):
        own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
        return own + [ref for value in part.values() for ref in _references(value)]
    return [ref for value in part for ref in _references(value)] if isinstance(part, list) else []


def test_every_reference_has_a_target(document: dict[str, Any]) -> None:
    for reference in set(_references(document)):
        found: Any = document
        for name in reference.removeprefix("#/").split("/"):
            assert name in found, reference
            found = found[name]


def test_the_documented_operations_are_the_served_ones(document: dict[str, Any]) -> None:
    caller = Caller(build_app(settings_in("dev"), Unreachable()))
    for path, methods in document["paths"].items():
        address = re.sub(r"\{[^}]+\}", "1", path)
        documented = {method.upper() for method in methods if method != "parameters"}
        refused = caller.send("BREW", address)
        assert refused.code == "method_not_allowed", path
        assert set(refused.headers["allow"].split(", ")) - {"HEAD"} == documented, path


def test_operations_have_names_of_their_own(document: dict[str, Any]) -> None:
    names = [
        operation["operationId"]
        for methods in document["paths"].values()
        for method, operation in methods.items()
        if method != "parameters"
    ]

    assert len(names) == len(set(names))


def test_one_or_many_pings_are_accepted(document: dict[str, Any]) -> None:
    post = document["paths"]["/v1/pings"]["post"]

    assert "202" in post["responses"]
    assert "201" not in post["responses"]
    one, many = post["requestBody"]["content"]["application/json"]["schema"]["anyOf"]
    assert (many["items"], many["maxItems"]) == (one, 500)


def test_writes_may_be_asynchronous(document: dict[str, Any]) -> None:
    put = document["paths"]["/v1/users/{id}"]["put"]

    assert "Prefer" in [parameter["name"] for parameter in put["parameters"]]
    content = put["responses"]["202"]["content"]["application/json"]
    assert content["schema"] == {"$ref": "#/components/schemas/Operation"}
    assert "202" not in document["paths"]["/v1/incidents/{id}"]["put"]["responses"]


@pytest.mark.parametrize(
    ("name", "accepted", "refused"),
    [
        # The bound of a range of keys need not be a value of the field, nor one that a key can carry.
        ("Incident.id.lte", ["a", "a:b#c", "x" * 200], [""]),
        ("Team.team_id.lte", ["", "a#b"], [7]),
        ("Override.user_id.gt", ["a:b"], ["", "x" * 201]),
        ("Override.user_id.ne", ["a:b"], ["x" * 201]),
        ("Override.user_id.in", [["a:b"]], [["x" * 201], []]),
        ("Access.action.ne", ["read"], ["a:b"]),
        ("Access.accessed_at.gte", ["2026-11-21T08:00:00Z"], [7, None]),
    ],
)
def test_an_operator_takes_the_values_that_the_api_does(
    document: dict[str, Any], name: str, accepted: list[Any], refused: list[Any]
) -> None:
    schema = document["components"]["parameters"][name]["schema"]
    validator = OAS31Validator({**schema, "components": document["components"]})

    assert [each for each in accepted if not validator.is_valid(each)] == []
    assert [each for each in refused if validator.is_valid(each)] == []


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/title", "value": None},
        {"op": "remove", "path": "/title"},
        {"op": "copy", "from": "", "path": "/details"},
        {"op": "test", "path": "", "value": {}},
        {"op": "test", "path": "/a~1b~0c", "value": 1},
    ],
)
def test_the_schema_of_a_json_patch_takes_operations(document: dict[str, Any], operation: dict[str, Any]) -> None:
    assert _schema(document, "JsonPatch").is_valid([operation])


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/title"},
        {"op": "replace", "path": "", "value": {}},
        {"op": "remove", "path": ""},
        {"op": "move", "from": "", "path": "/details"},
        {"op": "move", "path": "/details"},
        {"op": "test", "path": "/a~2", "value": 1},
        {"op": "test", "path": "title", "value": 1},
    ],
)
def test_the_schema_of_a_json_patch_refuses_what_the_api_does(
    document: dict[str, Any], operation: dict[str, Any]
) -> None:
    assert not _schema(document, "JsonPatch").is_valid([operation])


def test_texts_that_no_key_or_url_can_carry_are_not_documented(document: dict[str, Any]) -> None:
    [screening] = document["paths"]["/v1/seats/{screening}"]["parameters"]
    [taken] = document["paths"]["/v1/seats/{screening}/take"]["parameters"]
    follow = _schema(document, "FollowCreate")

    assert OAS31Validator(screening["schema"]).is_valid("premiere")
    assert OAS31Validator(screening["schema"]).is_valid("\x01")
    assert not OAS31Validator(screening["schema"]).is_valid("a:b")
    assert not OAS31Validator(taken["schema"]).is_valid("\x01")
    assert follow.is_valid({"node": "User.9", "other": "User.12"})
    assert not follow.is_valid({"node": "User.9", "other": "User.\x01"})
    assert not follow.is_valid({"node": "User.9", "other": "User.?"})


def test_a_sort_field_behind_a_partition_field_has_no_operators(document: dict[str, Any]) -> None:
    # A ping's day chooses its partition, and no query its very time, behind which its id sorts.
    assert [name for name in document["components"]["parameters"] if name.startswith("Ping.id.")] == []
