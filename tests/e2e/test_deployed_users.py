"""Single users through the deployed gateway, function, layers and table."""

import json
import re
from typing import Any

import httpx
import pytest

from dynashard_serving.limits import MAX_BODY_BYTES
from tests.e2e.deployment import Deployment

pytestmark = pytest.mark.e2e

ADA = {"email": "ada@example.com", "display_name": "Ada"}
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


@pytest.fixture(scope="module")
def tenant(deployment: Deployment) -> httpx.Client:
    return deployment.tenant("users")


def problem(answered: httpx.Response) -> tuple[int, str]:
    """Check that an answer is a complete problem document, and return its status and code."""
    document = answered.json()
    assert answered.headers["content-type"] == "application/problem+json"
    assert document["status"] == answered.status_code
    assert document["type"] == f"urn:dynashard:problem:{document['code']}"
    assert document["title"]
    assert document["detail"]
    assert document["request_id"] == answered.headers["x-request-id"]
    return answered.status_code, document["code"]


def test_a_user_is_created_read_replaced_changed_and_deleted(tenant: httpx.Client) -> None:
    created = tenant.post("/v1/users", json=ADA)
    location = created.headers["location"]
    read = tenant.get(location)
    replaced = tenant.put(location, json={**ADA, "department": "math"})
    patched = tenant.patch(location, content=b'{"display_name": "Ada L.", "department": null}', headers=MERGE_PATCH)
    deleted = tenant.delete(location)
    gone = tenant.get(location)

    assert [each.status_code for each in (created, read, replaced, patched, deleted)] == [201, 200, 200, 200, 204]
    assert re.fullmatch(r"/v1/users/[0-9A-Za-z]{27}", location)
    assert read.json() == created.json()
    assert read.headers["etag"] == created.headers["etag"] == f'"{read.json()["revision"]}"'
    assert replaced.json()["department"] == "math"
    assert (patched.json()["display_name"], patched.json()["department"]) == ("Ada L.", None)
    assert patched.json()["created_at"] == created.json()["created_at"]
    assert len({each.headers["etag"] for each in (created, replaced, patched)}) == 3
    assert deleted.content == b""
    assert problem(gone) == (404, "not_found")


def test_a_second_create_of_an_id_is_409(tenant: httpx.Client) -> None:
    first = tenant.post("/v1/users", json={**ADA, "id": "twice"})
    second = tenant.post("/v1/users", json={**ADA, "id": "twice", "display_name": "Other"})

    assert first.status_code == 201
    assert problem(second) == (409, "already_exists")
    assert tenant.get("/v1/users/twice").json()["display_name"] == "Ada"


@pytest.mark.parametrize("user_id", ["a b+c", "a/b", "ä€🙂", "100%25", "x:y"])
def test_an_id_is_the_same_in_the_body_and_in_the_path(tenant: httpx.Client, user_id: str) -> None:
    location = tenant.post("/v1/users", json={**ADA, "id": user_id}).headers["location"]

    assert tenant.get(location).json()["id"] == user_id
    assert tenant.delete(location).status_code == 204


def test_conditional_headers_apply_to_writes_and_reads(tenant: httpx.Client) -> None:
    first = tenant.put("/v1/users/conditional", json=ADA, headers={"If-None-Match": "*"})
    again = tenant.put("/v1/users/conditional", json=ADA, headers={"If-None-Match": "*"})
    old = first.headers["etag"]
    second = tenant.put("/v1/users/conditional", json=ADA, headers={"If-Match": old})
    lost = {
        "put": tenant.put("/v1/users/conditional", json=ADA, headers={"If-Match": old}),
        "patch": tenant.patch("/v1/users/conditional", json={}, headers={"If-Match": old}),
        "delete": tenant.delete("/v1/users/conditional", headers={"If-Match": old}),
    }
    unchanged = tenant.get("/v1/users/conditional", headers={"If-None-Match": second.headers["etag"]})
    deleted = tenant.delete("/v1/users/conditional", headers={"If-Match": second.headers["etag"]})

    assert (first.status_code, second.status_code) == (201, 200)
    assert problem(again) == (412, "precondition_failed")
    assert {name: problem(each) for name, each in lost.items()} == dict.fromkeys(lost, (412, "revision_mismatch"))
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert deleted.status_code == 204


def test_a_create_with_an_idempotency_key_is_done_once(tenant: httpx.Client) -> None:
    user = {**ADA, "department": "idempotent"}
    key = {"Idempotency-Key": "order 66"}

    first = tenant.post("/v1/users", json=user, headers=key)
    tenant.patch(first.headers["location"], json={"display_name": "Changed"})
    repeated = tenant.post("/v1/users", json=user, headers=key)
    other = tenant.post("/v1/users", json={**user, "display_name": "Other"}, headers=key)
    listed = tenant.get("/v1/users", params={"index": "by_department", "department": "idempotent"})

    assert (first.status_code, repeated.status_code) == (201, 201)
    assert repeated.json() == first.json()
    assert repeated.headers["etag"] == first.headers["etag"]
    assert "idempotency-replayed" not in first.headers
    assert repeated.headers["idempotency-replayed"] == "true"
    assert problem(other) == (422, "idempotency_key_reused")
    assert [item["id"] for item in listed.json()["items"]] == [first.json()["id"]]


def test_tenants_see_nothing_of_each_other(deployment: Deployment) -> None:
    mine, theirs = deployment.tenant("mine"), deployment.tenant("theirs")
    created = mine.post("/v1/users", json={**ADA, "id": "one"})
    key = {"Idempotency-Key": "same"}

    seen = {
        "read": theirs.get("/v1/users/one"),
        "patch": theirs.patch("/v1/users/one", json={"display_name": "Stolen"}),
        "delete": theirs.delete("/v1/users/one"),
        "read as": theirs.get("/v1/users/one", headers={"X-Tenant-Id": "mine"}),
    }
    claimed = theirs.post("/v1/users", json={**ADA, "tenant_id": "mine"})
    same_id = theirs.put("/v1/users/one", json={**ADA, "display_name": "Theirs"})
    keyed = [each.post("/v1/users", json=ADA, headers=key) for each in (mine, theirs)]

    assert created.json()["tenant_id"] == "mine"
    assert {name: problem(each) for name, each in seen.items()} == dict.fromkeys(seen, (404, "not_found"))
    assert problem(claimed) == (422, "validation_failed")
    assert same_id.status_code == 201
    assert mine.get("/v1/users/one").json() == created.json()
    assert [each.json()["tenant_id"] for each in keyed] == ["mine", "theirs"]
    assert len(mine.get("/v1/users").json()["items"]) == len(theirs.get("/v1/users").json()["items"]) == 2


def test_a_body_over_400_kilobytes_is_413_and_one_of_400_is_read(tenant: httpx.Client) -> None:
    frame = len(json.dumps({**ADA, "x": ""}).encode())
    largest, larger = (json.dumps({**ADA, "x": "x" * (MAX_BODY_BYTES - frame + more)}).encode() for more in (0, 1))
    header = {"Content-Type": "application/json"}

    read = tenant.post("/v1/users", content=largest, headers=header)
    refused = tenant.post("/v1/users", content=larger, headers=header)

    assert problem(read) == (422, "validation_failed")
    assert problem(refused) == (413, "body_too_large")


def test_errors_of_a_body_are_named_field_by_field(tenant: httpx.Client) -> None:
    refused = tenant.post("/v1/users", json={"email": "no address", "revision": "x", "surprise": 1})
    unknown = tenant.post("/v1/users", json={"email": "no address", "surprise": 1})

    assert problem(refused) == problem(unknown) == (422, "validation_failed")
    assert {error["field"]: error["code"] for error in refused.json()["errors"]} == {"revision": "read_only"}
    assert {error["field"]: error["code"] for error in unknown.json()["errors"]} == {
        "email": "string_pattern_mismatch",
        "display_name": "missing",
        "surprise": "extra_forbidden",
    }


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"method": "POST", "url": "/v1/users", "content": b"{", "headers": {"Content-Type": "application/json"}}, 400),
        ({"method": "POST", "url": "/v1/users", "content": b"a=1", "headers": {"Content-Type": "text/plain"}}, 415),
        ({"method": "POST", "url": "/v1/users", "content": b"\xff\x00", "headers": {"Content-Type": "image/png"}}, 415),
        ({"method": "POST", "url": "/v1/users", "json": ADA, "headers": {"Idempotency-Key": ""}}, 400),
        ({"method": "PUT", "url": "/v1/users/1", "json": ADA, "headers": {"If-Match": "no tag"}}, 400),
        ({"method": "GET", "url": "/v1/users?limit=1001"}, 422),
        ({"method": "GET", "url": "/v1/users?unknown=1"}, 422),
        ({"method": "GET", "url": "/v1/unknown"}, 404),
        ({"method": "DELETE", "url": "/v1/users"}, 405),
    ],
    ids=lambda value: f"{value['method']} {value['url']}" if isinstance(value, dict) else str(value),
)
def test_errors_of_a_request_are_answered_as_a_problem(
    tenant: httpx.Client, request_: dict[str, Any], expected: int
) -> None:
    status, code = problem(tenant.request(**request_))

    assert status == expected
    assert code


def test_an_unsupported_method_is_refused_with_the_allowed_ones(tenant: httpx.Client) -> None:
    assert tenant.delete("/v1/users").headers["allow"] == "GET, POST, HEAD"


def test_unknown_routes_are_answered_by_the_gateway(tenant: httpx.Client) -> None:
    elsewhere = tenant.get("/v2/users")

    assert (elsewhere.status_code, elsewhere.json()) == (404, {"message": "Not Found"})
    assert "x-request-id" not in elsewhere.headers
