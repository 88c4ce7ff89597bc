"""Incidents over REST: small summaries in listings, details of several MB on request."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from dynashard.transport import Transport
from tests.api_caller import JSON, Caller
from tests.engine.api.api_on_engine import caller_on, idempotency_table
from tests.engine.patterns.attachment_world import large
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine

DETAILS = {"alerts": [{"metric": "errors", "value": 1.5}], "runbook": {"steps": ["look", "mend"]}}


@pytest.fixture
def api(transport: Transport, table: str, dynamodb: RawDynamoDB) -> Iterator[Caller]:
    with idempotency_table(dynamodb) as idempotency:
        yield caller_on(transport, table, idempotency)


GZIPPED = {"content-type": "application/gzip"}


def incident(**fields: Any) -> dict[str, Any]:
    return {"id": "i1", "number": 1, "title": "Errors above 1%", "participants": ["user_ada", "team_red"], **fields}


def details_of(api: Caller) -> Any:
    answer = api.get("/v1/incidents/i1", query="include=details")
    assert answer.status == 200, answer.content
    return answer.json["details"]


def test_details_are_answered_only_on_request(api: Caller) -> None:
    made = api.post("/v1/incidents", incident(details=DETAILS))
    plain = api.get("/v1/incidents/i1")
    whole = api.get("/v1/incidents/i1", query="include=details&consistent=true")
    listed = api.get("/v1/incidents")
    by_state = api.get("/v1/incidents", query="index=by_state&state=OPEN")

    assert (made.status, plain.status, whole.status) == (201, 200, 200)
    assert made.json == plain.json == listed.json["items"][0] == by_state.json["items"][0]
    assert "details" not in plain.json
    assert whole.json == {**plain.json, "details": DETAILS}
    assert made.etag == plain.etag == whole.etag


def test_an_incident_without_details_says_so_on_request(api: Caller) -> None:
    api.post("/v1/incidents", incident())

    assert details_of(api) is None


def test_a_required_field_that_another_version_has_not_stored_is_null_beside_details(
    api: Caller, table: str, dynamodb: RawDynamoDB
) -> None:
    api.post("/v1/incidents", incident(details=DETAILS))
    [stored] = [
        item for item in dynamodb.call("Scan", TableName=table, ConsistentRead=True)["Items"] if "title" in item
    ]
    del stored["title"]
    dynamodb.call("PutItem", TableName=table, Item=stored)

    alone, beside = (api.get("/v1/incidents/i1", query=f"fields=title{more}") for more in ("", "&include=details"))

    assert (alone.status, alone.json) == (200, {"title": None})
    assert (beside.status, beside.json) == (200, {"title": None, "details": DETAILS})


def test_a_put_that_omits_details_leaves_them_unchanged(api: Caller) -> None:
    api.put("/v1/incidents/i1", incident(details=DETAILS))

    kept = api.put("/v1/incidents/i1", incident(title="new"))
    assert (kept.status, details_of(api)) == (200, DETAILS)
    assert "details" not in kept.json
    api.put("/v1/incidents/i1", incident(details=[1]))
    assert details_of(api) == [1]
    api.put("/v1/incidents/i1", incident(details=None))
    assert details_of(api) is None


def test_patch_merges_into_details(api: Caller) -> None:
    api.post("/v1/incidents", incident(details=DETAILS))

    closed = api.patch("/v1/incidents/i1", {"state": "CLOSED", "closed_at": "2026-11-21T12:00:00Z"})
    assert (closed.status, details_of(api)) == (200, DETAILS)
    merged = api.patch("/v1/incidents/i1", {"details": {"runbook": {"owner": "ada", "steps": None}}})
    assert (merged.status, merged.json["state"]) == (200, "CLOSED")
    assert details_of(api) == {"alerts": DETAILS["alerts"], "runbook": {"owner": "ada"}}
    api.patch("/v1/incidents/i1", {"details": ["another"]})
    assert details_of(api) == ["another"]
    api.patch("/v1/incidents/i1", {"details": None, "title": "bare"})
    assert details_of(api) is None


def test_conditions_cover_details(api: Caller) -> None:
    made = api.post("/v1/incidents", incident(details=DETAILS))
    changed = api.patch("/v1/incidents/i1", {"details": [1]}, headers={"if-match": made.etag})
    stale = api.patch("/v1/incidents/i1", {"details": [2]}, headers={"if-match": made.etag})
    fresh = api.get("/v1/incidents/i1", query="include=details", headers={"if-none-match": changed.etag})

    assert (changed.status, stale.status, fresh.status) == (200, 412, 304)
    assert details_of(api) == [1]


def test_a_repeated_create_answers_as_the_first_did(api: Caller) -> None:
    body = {key: value for key, value in incident(details=DETAILS).items() if key != "id"}
    first, again = (api.post("/v1/incidents", body, headers={"idempotency-key": "k1"}) for _ in range(2))

    assert (first.status, again.status, again.headers["idempotency-replayed"]) == (201, 201, "true")
    assert first.json == again.json
    assert "details" not in first.json


def test_some_fields_are_answered_with_the_attachments_that_are_included(api: Caller) -> None:
    made = api.post("/v1/incidents", incident(details=DETAILS))

    part = api.get("/v1/incidents/i1", query="fields=title&include=details")

    assert (part.json, part.etag) == ({"title": "Errors above 1%", "details": DETAILS}, made.etag)
    assert api.get("/v1/incidents/i1", query="fields=title").json == {"title": "Errors above 1%"}
    unchanged = api.get("/v1/incidents/i1", query="fields=title&include=details", headers={"if-none-match": made.etag})
    assert unchanged.status == 304
    assert api.get("/v1/incidents/i1", query="fields=details").fields == {"fields": "enum"}


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("include=title", {"include": "enum"}),
        ("include=", {"include": "enum"}),
        ("include=details,none", {"include": "enum"}),
        ("include=details&include=details", {"include": "repeated_parameter"}),
        ("includes=details", {"includes": "unknown_parameter"}),
    ],
)
def test_including_another_field_is_refused(api: Caller, query: str, fields: dict[str, str]) -> None:
    api.post("/v1/incidents", incident())

    assert api.get("/v1/incidents/i1", query=query).fields == fields


@pytest.mark.parametrize("name", ["a:b", "a b", "a/b", "ä", "", "x" * 65])
def test_an_id_that_does_not_fit_the_keys_of_copies_is_refused(api: Caller, name: str) -> None:
    refused = api.post("/v1/incidents", incident(id=name))

    assert (refused.status, list(refused.fields)) == (422, ["id"])
    assert api.get("/v1/incidents").json["items"] == []


def test_a_put_to_an_impossible_address_is_refused(api: Caller) -> None:
    body = {key: value for key, value in incident().items() if key != "id"}

    assert api.put("/v1/incidents/a:b", body).status == 422
    assert api.get("/v1/incidents/a:b").status == 404


def test_listings_and_other_resources_refuse_include(api: Caller) -> None:
    assert api.get("/v1/incidents", query="include=details").fields == {"include": "unknown_parameter"}
    assert api.get("/v1/users/u1", query="include=details").fields == {"include": "unknown_parameter"}
    assert api.get("/v1/incidents", query="fields=id,details").status == 422


def test_another_tenant_finds_neither_the_incident_nor_its_details(api: Caller) -> None:
    api.post("/v1/incidents", incident(details=DETAILS))

    assert api.of("other").get("/v1/incidents/i1", query="include=details").status == 404
    assert api.of("other").delete("/v1/incidents/i1").status == 404
    assert details_of(api) == DETAILS


def test_deleting_an_incident_deletes_all_of_it(api: Caller, dynamodb: RawDynamoDB, table: str) -> None:
    api.post("/v1/incidents", incident(details=large(1)))
    assert api.delete("/v1/incidents/i1").status == 204

    # The counter of their numbers stays.
    left = [item["Type"]["S"] for item in dynamodb.call("Scan", TableName=table)["Items"]]
    assert left == ["sequence.v1.Sequence"]


def test_five_megabytes_are_stored_and_read_back(api: Caller) -> None:
    details = large(1, 5000)
    sent = api.put("/v1/incidents/i1", incident(details=details))
    plain = api.get("/v1/incidents/i1", query="include=details")
    squeezed = api.get("/v1/incidents/i1", query="include=details", headers={"accept-encoding": "br, gzip"})

    assert sent.status == 201
    assert plain.json["details"] == details
    assert (squeezed.headers["content-encoding"], squeezed.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert json.loads(gzip.decompress(squeezed.content)) == plain.json


def test_bodies_may_be_compressed_and_large_answers_are_compressed(api: Caller) -> None:
    details = ["a line of a log that is like the others"] * 180_000
    body = gzip.compress(json.dumps(incident(details=details)).encode())
    sent = api.send("PUT", "/v1/incidents/i1", body=body, headers=GZIPPED)
    refused = api.get("/v1/incidents/i1", query="include=details")
    answered = api.get("/v1/incidents/i1", query="include=details", headers={"accept-encoding": "gzip"})

    assert sent.status == 201
    assert (refused.status, refused.code) == (406, "answer_too_large")
    assert json.loads(gzip.decompress(answered.content))["details"] == details


def test_oversized_and_mislabelled_bodies_are_refused(api: Caller) -> None:
    bomb = gzip.compress(b" " * 64 * 1024 * 1024)

    assert api.send("PUT", "/v1/incidents/i1", body=bomb, headers=GZIPPED).code == "body_too_large"
    assert api.send("PUT", "/v1/users/u1", body=gzip.compress(b" " * 500_000), headers=GZIPPED).code == "body_too_large"
    for broken in (b"{}", gzip.compress(b"{}")[:-4], gzip.compress(b"{}") + b"more"):
        assert api.send("PUT", "/v1/incidents/i1", body=broken, headers=GZIPPED).code == "malformed_body"
    other = api.send("PUT", "/v1/incidents/i1", body=b"{}", headers={"content-type": JSON, "content-encoding": "br"})
    assert (other.status, other.code) == (415, "unsupported_media_type")


def test_details_that_are_too_large_are_refused_with_their_size(api: Caller) -> None:
    details = "x" * (16 * 1024 * 1024)
    body = gzip.compress(json.dumps(incident(details=details)).encode())
    refused = api.send("PUT", "/v1/incidents/i1", body=body, headers=GZIPPED)

    assert (refused.status, refused.code) == (413, "item_too_large")
    assert refused.json["details"] == {"size": len(details) + 2, "limit": len(details)}


@pytest.mark.parametrize(
    ("accepted", "taken"),
    [("gzip", True), ("br;q=1, GZIP;q=0.5", True), ("*", True), ("", False), ("br", False), ("gzip;q=0", False)],
)
def test_answers_are_compressed_for_callers_that_accept_gzip(api: Caller, accepted: str, *, taken: bool) -> None:
    api.post("/v1/incidents", incident(details=large(1, 70)))

    answered = api.get("/v1/incidents/i1", query="include=details", headers={"accept-encoding": accepted})

    assert answered.headers["vary"] == "Accept-Encoding"
    assert (answered.headers.get("content-encoding") == "gzip") is taken
