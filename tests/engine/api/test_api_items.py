"""Single items over HTTP."""

from datetime import UTC, datetime

import pytest
from ksuid import Ksuid

from domain.samples.users import User
from dynashard import Dynashard, LeasedTopology
from dynashard.testing.faults import FaultyTransport, lost_request, meanwhile, throttled
from dynashard.transport import Transport
from tests.api_caller import JSON, Caller, a_user
from tests.engine.api.api_on_engine import KEYS, TOPOLOGY, caller_on
from tests.recording import RecordingTransport

pytestmark = pytest.mark.engine


def test_created_item_is_answered_with_its_address_and_revision(caller: Caller) -> None:
    created = caller.post("/v1/users", a_user())

    assert created.status == 201
    user = created.json
    assert created.headers["location"] == f"/v1/users/{user['id']}"
    assert created.etag == f'"{user["revision"]}"'
    assert Ksuid.from_base62(user["id"])
    assert user | {"tenant_id": "abc", "email": "ada@example.com", "status": "active", "expires_at": None} == user


def test_health_says_how_far_the_clock_is_off_after_the_first_request(caller: Caller) -> None:
    caller.post("/v1/users", a_user())

    health = caller.get("/v1/health").json

    assert health["status"] == "ok"
    assert abs(health["clock_off_seconds"]) <= 5


def test_created_item_is_read_as_it_was_answered(caller: Caller) -> None:
    created = caller.post("/v1/users", a_user(department="eng", status="disabled"))

    read = caller.get(created.headers["location"], query="consistent=true")

    assert read.status == 200
    assert read.json == created.json
    assert read.etag == created.etag


def test_creating_an_existing_item_is_a_conflict(caller: Caller) -> None:
    caller.post("/v1/users", a_user(id="1"))

    again = caller.post("/v1/users", a_user(id="1", display_name="Other"))

    assert (again.status, again.code) == (409, "already_exists")
    assert caller.get("/v1/users/1").json["display_name"] == "Ada"


def test_reading_a_missing_item_is_404(caller: Caller) -> None:
    answer = caller.get("/v1/users/nobody")

    assert (answer.status, answer.code) == (404, "not_found")
    assert answer.json["request_id"] == "request-1"


def test_reading_with_the_present_revision_is_not_modified(caller: Caller) -> None:
    etag = caller.post("/v1/users", a_user(id="1")).etag

    answer = caller.get("/v1/users/1", headers={"If-None-Match": f'"other", W/{etag}'})

    assert (answer.status, answer.content, answer.etag) == (304, b"", etag)


def test_reading_with_an_older_revision_answers_the_item(caller: Caller) -> None:
    etag = caller.post("/v1/users", a_user(id="1")).etag
    caller.patch("/v1/users/1", {"display_name": "Countess"})

    answer = caller.get("/v1/users/1", headers={"If-None-Match": etag})

    assert (answer.status, answer.json["display_name"]) == (200, "Countess")


def test_put_creates_and_then_replaces(caller: Caller) -> None:
    created = caller.put("/v1/users/1", a_user(department="eng"))
    replaced = caller.put("/v1/users/1", a_user())

    assert (created.status, created.headers["location"]) == (201, "/v1/users/1")
    assert (replaced.status, replaced.json["department"]) == (200, None)
    assert "location" not in replaced.headers
    assert replaced.etag != created.etag


def test_put_keeps_the_creation_stamp(caller: Caller) -> None:
    created = caller.put("/v1/users/1", a_user())

    replaced = caller.put("/v1/users/1", a_user(display_name="Countess"))

    assert replaced.json["created_at"] == created.json["created_at"]
    assert replaced.json["updated_at"] >= created.json["updated_at"]


def test_an_item_can_be_put_as_it_was_read(caller: Caller) -> None:
    read = caller.post("/v1/users", a_user(id="1", department="eng")).json

    answer = caller.put("/v1/users/1", read | {"display_name": "Countess"})

    assert answer.status == 200
    volatile = {"updated_at", "revision", "display_name"}
    assert {k: v for k, v in answer.json.items() if k not in volatile} == {
        k: v for k, v in read.items() if k not in volatile
    }


def test_server_fields_in_a_put_are_ignored(caller: Caller) -> None:
    stamp = caller.post("/v1/users", a_user(id="1")).json["created_at"]

    answer = caller.put("/v1/users/1", a_user(created_at="1815-12-10T00:00:00Z", revision="mine"))

    assert answer.json["created_at"] == stamp
    assert answer.json["revision"] != "mine"


@pytest.mark.parametrize("name", ["created_at", "updated_at", "revision"])
def test_server_fields_in_a_create_are_refused(caller: Caller, name: str) -> None:
    answer = caller.post("/v1/users", a_user(**{name: "2026-01-01T00:00:00Z"}))

    assert answer.fields == {name: "read_only"}


@pytest.mark.parametrize("field", ["id", "tenant_id"])
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_key_fields_cannot_change(caller: Caller, method: str, field: str) -> None:
    caller.post("/v1/users", a_user(id="1"))

    answer = caller.send(method, "/v1/users/1", a_user(**{field: "2"}))

    assert answer.fields == {field: "immutable"}


def test_put_with_the_present_revision_replaces(caller: Caller) -> None:
    etag = caller.post("/v1/users", a_user(id="1")).etag

    answer = caller.put("/v1/users/1", a_user(display_name="Countess"), headers={"If-Match": etag})

    assert (answer.status, answer.json["display_name"]) == (200, "Countess")


@pytest.mark.parametrize("wanted", ['"older"', '"older", "oldest"', "W/{etag}"])
def test_put_with_other_revisions_is_refused(caller: Caller, wanted: str) -> None:
    etag = caller.post("/v1/users", a_user(id="1")).etag

    answer = caller.put("/v1/users/1", a_user(), headers={"If-Match": wanted.format(etag=etag)})

    assert (answer.status, answer.code) == (412, "revision_mismatch")


@pytest.mark.parametrize("wanted", ['"older", {etag}', "*"])
def test_put_with_a_list_that_holds_the_revision_replaces(caller: Caller, wanted: str) -> None:
    etag = caller.post("/v1/users", a_user(id="1")).etag

    answer = caller.put("/v1/users/1", a_user(), headers={"If-Match": wanted.format(etag=etag)})

    assert answer.status == 200


@pytest.mark.parametrize("wanted", ["*", '"any"', '"any", "other"'])
def test_a_put_with_if_match_does_not_create_an_item(caller: Caller, wanted: str) -> None:
    answer = caller.put("/v1/users/1", a_user(), headers={"If-Match": wanted})

    assert (answer.status, answer.code) == (412, "revision_mismatch")
    assert caller.get("/v1/users/1").status == 404


def test_a_put_with_if_none_match_creates_once(caller: Caller) -> None:
    first = caller.put("/v1/users/1", a_user(), headers={"If-None-Match": "*"})
    second = caller.put("/v1/users/1", a_user(), headers={"If-None-Match": "*"})

    assert first.status == 201
    assert (second.status, second.code) == (412, "precondition_failed")


def test_a_put_that_excludes_revisions_creates_a_missing_item(caller: Caller) -> None:
    answer = caller.put("/v1/users/1", a_user(), headers={"If-None-Match": '"a", "b"'})

    assert answer.status == 201


def test_patch_merges_and_keeps_the_rest(caller: Caller) -> None:
    created = caller.post("/v1/users", a_user(id="1", department="eng", manager_id="2")).json

    patched = caller.patch("/v1/users/1", {"display_name": "Countess", "department": None})

    assert patched.status == 200
    volatile = {"updated_at": patched.json["updated_at"], "revision": patched.json["revision"]}
    assert patched.json == created | {"display_name": "Countess", "department": None} | volatile
    assert caller.get("/v1/users/1").json == patched.json


def test_patch_also_accepts_plain_json(caller: Caller) -> None:
    caller.post("/v1/users", a_user(id="1"))

    answer = caller.patch("/v1/users/1", {"display_name": "Countess"}, headers={"content-type": JSON})

    assert answer.json["display_name"] == "Countess"


def test_patch_validates_the_whole_item(caller: Caller) -> None:
    caller.post("/v1/users", a_user(id="1"))

    answer = caller.patch("/v1/users/1", {"email": "nowhere", "status": "gone", "nickname": "A", "display_name": None})

    assert answer.fields == {
        "email": "string_pattern_mismatch",
        "status": "enum",
        "nickname": "extra_forbidden",
        "display_name": "missing",
    }


def test_a_patch_of_a_missing_item_is_404_under_any_condition(caller: Caller) -> None:
    answer = caller.patch("/v1/users/1", {}, headers={"If-Match": '"any"'})

    assert answer.status == 404


def test_patch_with_another_revision_is_refused(caller: Caller) -> None:
    caller.post("/v1/users", a_user(id="1"))

    answer = caller.patch("/v1/users/1", {"display_name": "B"}, headers={"If-Match": '"older"'})

    assert (answer.status, answer.code) == (412, "revision_mismatch")


def test_patch_retries_after_a_concurrent_write(caller: Caller, transport: Transport, table: str) -> None:
    caller.post("/v1/users", a_user(id="1"))
    other = meanwhile("UpdateItem", lambda: caller.patch("/v1/users/1", {"department": "math"}))
    faulty = FaultyTransport(transport, [other])

    answer = caller_on(faulty, table).patch("/v1/users/1", {"display_name": "Countess"})

    assert not faulty.waiting
    assert answer.status == 200
    assert (answer.json["display_name"], answer.json["department"]) == ("Countess", "math")


def test_patch_at_a_revision_does_not_retry(caller: Caller, transport: Transport, table: str) -> None:
    etag = caller.post("/v1/users", a_user(id="1")).etag
    other = meanwhile("UpdateItem", lambda: caller.patch("/v1/users/1", {"department": "math"}))
    faulty = FaultyTransport(transport, [other])

    answer = caller_on(faulty, table).patch("/v1/users/1", {"display_name": "Countess"}, headers={"If-Match": etag})

    assert (answer.status, answer.code) == (412, "revision_mismatch")


def test_patch_gives_up_after_repeated_concurrent_writes(caller: Caller, transport: Transport, table: str) -> None:
    caller.post("/v1/users", a_user(id="1"))
    other = meanwhile("UpdateItem", lambda: caller.patch("/v1/users/1", {"department": "math"}), nth=None)
    faulty = FaultyTransport(transport, [other])

    answer = caller_on(faulty, table).patch("/v1/users/1", {"display_name": "Countess"})

    assert (answer.status, answer.code, answer.headers["retry-after"]) == (409, "write_contended", "1")


def test_deleted_item_is_gone(caller: Caller) -> None:
    caller.post("/v1/users", a_user(id="1"))

    answer = caller.delete("/v1/users/1")

    assert (answer.status, answer.content) == (204, b"")
    assert caller.get("/v1/users/1").status == 404
    assert caller.delete("/v1/users/1").status == 404


def test_delete_honours_the_revision(caller: Caller) -> None:
    etag = caller.post("/v1/users", a_user(id="1")).etag

    refused = caller.delete("/v1/users/1", headers={"If-Match": '"older"'})
    done = caller.delete("/v1/users/1", headers={"If-Match": etag})

    assert (refused.status, refused.code, done.status) == (412, "revision_mismatch", 204)


def test_a_delete_of_a_missing_item_is_404_under_any_condition(caller: Caller) -> None:
    assert caller.delete("/v1/users/1", headers={"If-Match": '"any"'}).status == 404


@pytest.mark.parametrize("identifier", ["a/b", "ünïcödé", "😀", "a b", "a+b", "100%", "a%2Fb", "a:0", "#1", "'"])
def test_any_identifier_is_addressed_by_its_location(caller: Caller, identifier: str) -> None:
    created = caller.post("/v1/users", a_user(id=identifier))

    read = caller.get(created.headers["location"])

    assert read.status == 200
    assert read.json["id"] == identifier


@pytest.mark.parametrize("identifier", ["what?", ".", ".."])
def test_an_identifier_that_does_not_fit_a_path_is_refused(caller: Caller, identifier: str) -> None:
    answer = caller.post("/v1/users", a_user(id=identifier))

    assert answer.fields == {"id": "unaddressable"}


def test_an_expired_item_is_gone_before_dynamodb_deletes_it(caller: Caller, transport: Transport, table: str) -> None:
    database = Dynashard(transport, table=table, cursor_keys=KEYS, topology=LeasedTopology(transport, TOPOLOGY))
    expired = User(tenant_id="abc", **a_user(id="1", expires_at=datetime(2020, 1, 1, tzinfo=UTC)))
    assert database.collection(User).create(expired).revision

    assert caller.get("/v1/users/1").status == 404
    assert caller.post("/v1/users", a_user(id="1")).status == 201


def test_key_that_is_too_long_is_refused_with_its_field(caller: Caller) -> None:
    answer = caller.post("/v1/users", a_user(id="x" * 1025))

    assert answer.status == 422
    assert answer.json["errors"][0]["code"] == "invalid_key"


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
def test_throttling_that_outlasts_retries_answers_with_retry_after(
    transport: Transport, table: str, method: str
) -> None:
    caller_on(transport, table).post("/v1/users", a_user(id="1"))
    operations = ("GetItem", "UpdateItem", "DeleteItem")
    faulty = FaultyTransport(transport, [throttled(operation, nth=None) for operation in operations])

    body = a_user() if method in {"PUT", "PATCH"} else None
    answer = caller_on(faulty, table).send(method, "/v1/users/1", body)

    assert (answer.status, answer.code) == (429, "key_range_throttled")
    assert int(answer.headers["retry-after"]) >= 1


def test_an_unreachable_engine_answers_with_retry_after(transport: Transport, table: str) -> None:
    faulty = FaultyTransport(transport, [lost_request("GetItem")])

    answer = caller_on(faulty, table).get("/v1/users/1")

    assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "engine_unavailable", "1")


def test_an_item_stored_before_its_adoption_has_an_etag_that_holds_until_it_is_written(
    caller: Caller, transport: Transport, table: str
) -> None:
    path = caller.post("/v1/users", a_user()).headers["location"]
    [stored] = transport.call("Scan", {"TableName": table})["Items"]
    key = {name: stored[name] for name in ("PK", "SK")}
    transport.call("UpdateItem", {"TableName": table, "Key": key, "UpdateExpression": "REMOVE Rev"})

    read = caller.get(path)
    condition = {"If-Match": read.etag}
    changed = caller.patch(path, {"department": "eng"}, headers=condition)
    late = caller.patch(path, {"department": "ops"}, headers=condition)

    assert (read.status, read.etag) == (200, '""')
    assert (changed.status, changed.json["department"]) == (200, "eng")
    assert changed.etag not in ('""', None)
    assert (late.status, late.code) == (412, "revision_mismatch")


@pytest.mark.parametrize("level", ["plain", "guarded", "exactly-once"])
def test_a_preferred_handling_is_applied_to_every_write_and_named_in_the_answer(caller: Caller, level: str) -> None:
    prefer = {"prefer": f"handling={level}"}

    made = caller.post("/v1/users", a_user(), headers=prefer)
    path = made.headers["location"]
    answers = [
        made,
        caller.put(path, a_user(department="put"), headers=prefer),
        caller.patch(path, {"department": "patched"}, headers=prefer),
        caller.delete(path, headers=prefer),
    ]

    assert [answer.status for answer in answers] == [201, 200, 200, 204]
    assert {answer.headers["preference-applied"] for answer in answers} == {f"handling={level}"}
    assert caller.get(path).status == 404


def test_an_unknown_handling_is_refused_and_one_of_other_standards_is_ignored(caller: Caller) -> None:
    refused = caller.post("/v1/users", a_user(), headers={"prefer": "handling=twice"})
    made = caller.post("/v1/users", a_user(), headers={"prefer": "handling=strict, return=representation"})

    assert (refused.status, refused.code) == (400, "malformed_header")
    assert made.status == 201
    assert "preference-applied" not in made.headers


def test_a_write_whose_caller_prefers_no_item_is_answered_without_one(caller: Caller) -> None:
    minimal = {"prefer": 'return="minimal"'}
    answers = [
        caller.post("/v1/users", a_user(id="1"), headers=minimal),
        caller.put("/v1/users/2", a_user(), headers=minimal),
        caller.put("/v1/users/1", a_user(), headers=minimal),
    ]
    patched = caller.patch("/v1/users/1", {"department": "maths"}, headers=minimal)

    assert [answer.status for answer in answers] == [201, 201, 204]
    assert [answer.headers.get("location") for answer in answers] == ["/v1/users/1", "/v1/users/2", None]
    assert (patched.status, patched.etag) == (204, caller.get("/v1/users/1").etag)
    for answer in (*answers, patched):
        assert (answer.content, answer.headers["preference-applied"]) == (b"", "return=minimal")
        assert answer.etag


def test_two_preferences_are_followed_at_once_and_the_first_of_two_returns_counts(caller: Caller) -> None:
    both = caller.post("/v1/users", a_user(), headers={"prefer": "return=minimal, handling=guarded"})
    whole = caller.post("/v1/users", a_user(), headers={"prefer": "return=representation, return=minimal"})
    deleted = caller.delete(whole.headers["location"], headers={"prefer": "return=minimal"})

    assert both.headers["preference-applied"] == "handling=guarded, return=minimal"
    assert whole.json["display_name"] == "Ada"
    assert (deleted.status, "preference-applied" in deleted.headers) == (204, False)


def test_only_the_wanted_fields_of_an_item_are_answered_with_its_revision(caller: Caller) -> None:
    created = caller.post("/v1/users", a_user(id="1", department="maths"))

    part = caller.get("/v1/users/1", query="fields=status,id,status,manager_id&consistent=true")

    assert (part.status, part.etag) == (200, created.etag)
    assert part.json == {"status": "active", "id": "1", "manager_id": None}
    assert caller.get("/v1/users/2", query="fields=id").status == 404


def test_conditions_of_a_part_are_about_the_whole_item(caller: Caller) -> None:
    etag = caller.post("/v1/users", a_user(id="1")).etag
    read = {"query": "fields=id"}

    unchanged = caller.get("/v1/users/1", headers={"if-none-match": etag}, **read)
    caller.patch("/v1/users/1", {"department": "maths"})

    assert (unchanged.status, unchanged.content, unchanged.etag) == (304, b"", etag)
    assert caller.get("/v1/users/1", headers={"if-none-match": etag}, **read).json == {"id": "1"}
    assert caller.get("/v1/users/1", headers={"if-match": etag}, **read).status == 412


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("fields=id,shoe", {"fields": "enum"}),
        ("fields=", {"fields": "enum"}),
        ("fields=id&fields=status", {"fields": "repeated_parameter"}),
        ("field=id", {"field": "unknown_parameter"}),
    ],
)
def test_wanted_fields_of_an_item_that_do_not_exist_are_refused(
    caller: Caller, query: str, fields: dict[str, str]
) -> None:
    assert caller.get("/v1/users/1", query=query).fields == fields


def test_a_part_is_read_as_a_part(transport: Transport, table: str) -> None:
    recording = RecordingTransport(transport)
    caller = caller_on(recording, table)
    caller.post("/v1/users", a_user(id="1", display_name="A" * 100))
    recording.clear()

    assert caller.get("/v1/users/1", query="fields=email").json == {"email": "ada@example.com"}

    [sent] = [answer["Item"].keys() for answer in recording.answers if "Item" in answer]
    assert "email" in sent
    assert not {"display_name", "status", "GSI1PK"} & sent
