"""`Prefer: respond-async`: a write is accepted, recorded, done once and in order, and its record shows the outcome."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.samples.users import User
from dynashard.testing.faults import Fault, lost_answer, lost_request, meanwhile, throttled
from dynashard.transport.interface import Wire
from dynashard_serving.writer.writer import MOST_UNEXPECTED
from tests.api_caller import TENANT, Answer, a_user
from tests.depth import examples
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.writer.queue_world import OPERATIONS, KilledError, QueueWorld

pytestmark = pytest.mark.engine

LATER = {"prefer": "respond-async"}


def record_of(world: QueueWorld, accepted: Answer) -> dict[str, Any]:
    """Return the record of an accepted request: its status resource."""
    answer = world.caller.get(accepted.headers["location"], query="consistent=true")
    assert answer.status == 200
    document: dict[str, Any] = answer.json
    return document


def ended(world: QueueWorld, accepted: Answer) -> tuple[str, int | None, str | None]:
    """Return the state, the status and the problem's code of a record."""
    document = record_of(world, accepted)
    return document["state"], document["status"], (document["problem"] or {}).get("code")


def user(world: QueueWorld, name: str = "1") -> dict[str, Any] | None:
    answer = world.caller.get(f"/v1/users/{name}", query="consistent=true")
    document: dict[str, Any] = answer.json
    return document if answer.status == 200 else None


def killed_after(operation: str) -> Fault:
    def strike(send: Any, request: Mapping[str, Any]) -> Wire:
        send(request)
        raise KilledError

    return Fault(operation, strike)


def test_a_create_is_accepted_then_done(world: QueueWorld) -> None:
    accepted = world.caller.post("/v1/users", a_user(id="1"), headers=LATER)

    assert accepted.status == 202
    assert accepted.headers["preference-applied"] == "respond-async"
    assert accepted.headers["location"] == f"/v1/operations/{accepted.json['id']}"
    assert ended(world, accepted) == ("pending", None, None)
    assert user(world) is None
    world.drain(OPERATIONS)
    assert ended(world, accepted) == ("done", 201, None)
    assert record_of(world, accepted)["target"] == "/v1/users/1"
    stored = user(world)
    assert stored is not None
    assert (world.recorded[-1]["outcome"], world.recorded[-1]["revision"]) == ("stored", stored["revision"])
    assert world.tallies[0].stored == 1


def test_put_patch_and_delete_follow_each_other(world: QueueWorld) -> None:
    answers = [
        world.caller.put("/v1/users/1", a_user(display_name="One"), headers=LATER),
        world.caller.put("/v1/users/1", a_user(display_name="Two", department="old"), headers=LATER),
        world.caller.patch("/v1/users/1", {"department": None}, headers=LATER),
    ]
    world.drain(OPERATIONS)

    assert [ended(world, each)[1] for each in answers] == [201, 200, 200]
    found = user(world)
    assert found is not None
    assert (found["display_name"], found["department"]) == ("Two", None)
    assert found["created_at"] <= found["updated_at"]
    gone = world.caller.delete("/v1/users/1", headers=LATER)
    world.drain(OPERATIONS)
    assert (ended(world, gone), user(world)) == (("done", 204, None), None)


def test_a_write_that_was_accepted_by_a_clock_ahead_of_the_writers_waits_for_its_time(world: QueueWorld) -> None:
    at = datetime.fromtimestamp(world.clock() + 4.9, UTC).isoformat()
    access = {"path": "/a.txt", "accessed_at": at, "action": "read", "user_id": "ada"}
    accepted = world.caller.post("/v1/ordered-accesses", access, headers=LATER)
    assert accepted.status == 202

    world.writer_off = -4.5
    world.drain(OPERATIONS)
    assert ended(world, accepted) == ("pending", None, None)
    # It is not one that the table does not keep up with.
    assert world.tallies[-1].left == 0
    world.later(4.0)
    assert world.poll(OPERATIONS) == 0
    world.later(1.5)
    world.drain(OPERATIONS)

    assert ended(world, accepted) == ("done", 201, None)
    assert world.caller.get(record_of(world, accepted)["target"]).status == 200


@pytest.mark.parametrize(
    ("method", "body", "fields"),
    [
        ("POST", {"id": "1"}, {"email", "display_name"}),
        ("POST", a_user(id="1", revision="x"), {"revision"}),
        ("POST", a_user(id="1", tenant_id="other"), {"tenant_id"}),
        ("PUT", a_user(id="2"), {"id"}),
        ("PATCH", {"email": "none"}, {"email"}),
        ("PATCH", {"email": None}, {"email"}),
        ("PATCH", {"nothing": 1}, {"nothing"}),
        ("PATCH", {"id": "2"}, {"id"}),
        ("PATCH", {"tenant_id": "other"}, {"tenant_id"}),
    ],
)
def test_invalid_requests_are_refused_at_once(
    world: QueueWorld, method: str, body: dict[str, Any], fields: set[str]
) -> None:
    answer = world.caller.send(method, "/v1/users" if method == "POST" else "/v1/users/1", body, headers=LATER)

    assert set(answer.fields) == fields
    assert world.sqs.sent == []
    assert list(world.operations.scan({"tenant_id": TENANT})) == []


@pytest.mark.parametrize(
    ("method", "headers", "problem"),
    [
        ("POST", {}, "already_exists"),
        ("PUT", {"if-match": '"stale"'}, "revision_mismatch"),
        ("PUT", {"if-none-match": "*"}, "precondition_failed"),
        ("PATCH", {"if-match": '"stale"'}, "revision_mismatch"),
        ("DELETE", {"if-match": '"stale", W/"weak"'}, "revision_mismatch"),
    ],
)
def test_a_later_failure_is_recorded_as_a_problem(
    world: QueueWorld, method: str, headers: dict[str, str], problem: str
) -> None:
    before = world.caller.post("/v1/users", a_user(id="1")).json
    path, body = ("/v1/users", a_user(id="1")) if method == "POST" else ("/v1/users/1", a_user(id="1"))

    accepted = world.caller.send(method, path, None if method == "DELETE" else body, headers=LATER | headers)
    world.drain(OPERATIONS)

    document = record_of(world, accepted)
    assert (document["state"], document["problem"]["code"]) == ("failed", problem)
    assert document["status"] == document["problem"]["status"]
    assert document["problem"]["type"] == f"urn:dynashard:problem:{problem}"
    assert user(world) == before
    line = world.recorded[-1]
    assert (line["outcome"], line["code"], line["revision"], line["error"]) == ("refused", problem, None, None)
    assert (world.tallies[0].stored, world.tallies[0].failed) == (0, 0)


@pytest.mark.parametrize(
    ("method", "headers"), [("PUT", {"if-match": '"a", "b"'}), ("PATCH", {}), ("DELETE", {"if-match": '"a", "b"'})]
)
def test_a_write_that_fails_because_the_stored_item_cannot_be_read_is_counted_and_logged_with_its_error(
    world: QueueWorld, dynamodb: RawDynamoDB, method: str, headers: dict[str, str]
) -> None:
    world.caller.post("/v1/users", a_user(id="1"))
    [row] = [each for each in dynamodb.call("Scan", TableName=world.table)["Items"] if each["SK"]["S"] == "1"]
    dynamodb.call("PutItem", TableName=world.table, Item={**row, "display_name": {"BOOL": True}})

    body = None if method == "DELETE" else a_user(id="1") if method == "PUT" else {"department": "new"}
    accepted = world.caller.send(method, "/v1/users/1", body, headers=LATER | headers)
    world.drain(OPERATIONS)

    assert ended(world, accepted) == ("failed", 500, "undecodable_item")
    assert [tally.failed for tally in world.tallies] == [1]
    line = world.recorded[-1]
    assert (line["outcome"], line["code"]) == ("refused", "undecodable_item")
    assert line["error"].startswith("UndecodableItemError: ")
    assert "display_name" in line["error"]


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_missing_item_cannot_be_changed(world: QueueWorld, method: str) -> None:
    accepted = world.caller.send(method, "/v1/users/1", {} if method == "PATCH" else None, headers=LATER)
    world.drain(OPERATIONS)

    assert ended(world, accepted) == ("failed", 404, "not_found")


def test_the_right_revision_is_accepted(world: QueueWorld) -> None:
    etag = world.caller.post("/v1/users", a_user(id="1")).etag

    accepted = world.caller.patch("/v1/users/1", {"department": "new"}, headers={**LATER, "if-match": etag})
    world.drain(OPERATIONS)

    assert ended(world, accepted) == ("done", 200, None)


FAULTS = [
    pytest.param(throttled("TransactWriteItems"), id="throttled"),
    pytest.param(lost_request("TransactWriteItems"), id="request lost"),
    pytest.param(lost_answer("TransactWriteItems"), id="answer lost"),
    pytest.param(lost_request("GetItem"), id="read lost"),
    pytest.param(killed_after("TransactWriteItems"), id="killed after the transaction"),
    pytest.param(killed_after("GetItem"), id="killed before it"),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_each_write_is_done_once_and_recorded_correctly_under_any_fault(
    world: QueueWorld, method: str, fault: Fault
) -> None:
    if method != "POST":
        world.caller.post("/v1/users", a_user(id="1"))
    body = {"department": "new"} if method == "PATCH" else a_user(id="1", department="new")
    path = "/v1/users" if method == "POST" else "/v1/users/1"
    accepted = world.caller.send(method, path, None if method == "DELETE" else body, headers=LATER)

    with suppress(KilledError):
        world.poll(OPERATIONS, [fault])
    world.later()
    world.drain(OPERATIONS)

    assert ended(world, accepted) == ("done", {"POST": 201, "PUT": 200, "PATCH": 200, "DELETE": 204}[method], None)
    found = user(world)
    assert (found is None) if method == "DELETE" else (found is not None and found["department"] == "new")


def test_a_redelivered_message_does_not_undo_later_writes(world: QueueWorld) -> None:
    world.caller.post("/v1/users", a_user(id="1"))
    accepted = world.caller.put("/v1/users/1", a_user(department="async"), headers=LATER)
    with suppress(KilledError):
        world.poll(OPERATIONS, [killed_after("TransactWriteItems")])
    world.caller.patch("/v1/users/1", {"department": "sync"})

    world.later()
    world.drain(OPERATIONS)

    found = user(world)
    assert found is not None
    assert found["department"] == "sync"
    assert ended(world, accepted) == ("done", 200, None)


def test_of_two_deliveries_at_once_one_is_a_duplicate(world: QueueWorld) -> None:
    accepted = world.caller.put("/v1/users/1", a_user(department="new"), headers=LATER)

    def other() -> None:
        world.later()
        world.poll(OPERATIONS)

    world.poll(OPERATIONS, [meanwhile("TransactWriteItems", other)])

    assert [(tally.stored, tally.duplicates, tally.left) for tally in world.tallies] == [(1, 0, 0), (0, 1, 0)]
    assert ended(world, accepted) == ("done", 201, None)


def test_a_failing_operation_delays_only_those_of_the_same_item(world: QueueWorld) -> None:
    first = world.caller.put("/v1/users/1", a_user(department="first"), headers=LATER)
    second = world.caller.put("/v1/users/1", a_user(department="second"), headers=LATER)
    other = world.caller.put("/v1/users/2", a_user(), headers=LATER)

    def strike(send: Any, request: Mapping[str, Any]) -> Wire:
        return (throttled("").strike if "first" in str(request) else lambda send, asked: send(asked))(send, request)

    world.poll(OPERATIONS, [Fault("TransactWriteItems", strike, None)])

    assert [ended(world, each)[0] for each in (first, second, other)] == ["pending", "pending", "done"]
    world.later()
    world.drain(OPERATIONS)
    assert [ended(world, each)[1] for each in (first, second)] == [201, 200]


def test_another_writer_in_between_does_not_fail_the_operation(world: QueueWorld) -> None:
    world.caller.post("/v1/users", a_user(id="1"))
    accepted = world.caller.patch("/v1/users/1", {"department": "new"}, headers=LATER)

    def other() -> None:
        world.database().collection(User).update({"tenant_id": TENANT, "id": "1"}, set={"display_name": "Other"})

    world.poll(OPERATIONS, [meanwhile("TransactWriteItems", other)])

    found = user(world)
    assert found is not None
    assert (found["department"], found["display_name"]) == ("new", "Other")
    assert ended(world, accepted) == ("done", 200, None)


def test_an_operation_that_keeps_failing_ends_as_failed(world: QueueWorld) -> None:
    accepted = world.caller.put("/v1/users/1", a_user(), headers=LATER)
    for _ in range(40):
        world.poll(OPERATIONS, [throttled("TransactWriteItems", nth=None)])
        world.later(900)

    assert ended(world, accepted) == ("failed", 429, "key_range_throttled")
    assert [tally.failed for tally in world.tallies] == [0] * 39 + [1]
    assert world.recorded[-1]["error"].startswith("KeyRangeThrottledError: ")
    assert world.dead_letters(OPERATIONS) == []


def test_an_operation_whose_record_cannot_be_read_for_a_while_is_done_later(world: QueueWorld) -> None:
    accepted = world.caller.put("/v1/users/1", a_user(), headers=LATER)
    for _ in range(MOST_UNEXPECTED + 1):
        world.poll(OPERATIONS, [throttled("GetItem", nth=None)])
        world.later(900)
    world.drain(OPERATIONS)

    assert ended(world, accepted) == ("done", 201, None)
    assert world.dead_letters(OPERATIONS) == []


def test_a_redriven_operation_is_not_done_out_of_order(world: QueueWorld) -> None:
    accepted = world.caller.put("/v1/users/1", a_user(), headers=LATER)
    (delivery,) = world.store.receive(OPERATIONS, 1)
    world.store.delete([delivery.receipt])
    world.send(OPERATIONS, delivery.body[:-1] + ',"redriven":true}', group="g")
    world.drain(OPERATIONS)

    assert ended(world, accepted) == ("failed", 409, "write_contended")
    # Its dead letter had an alarm.
    assert world.tallies[0].failed == 0
    assert user(world) is None


def test_a_request_that_the_queue_refuses_leaves_no_record(world: QueueWorld) -> None:
    world.sqs.refusing = [["0"]] * 3

    answer = world.caller.put("/v1/users/1", a_user(), headers=LATER)

    assert (answer.status, answer.code) == (503, "queue_unavailable")
    assert list(world.operations.scan({"tenant_id": TENANT})) == []


def test_a_repeat_that_the_queue_refuses_leaves_the_record_of_the_accepted_request(world: QueueWorld) -> None:
    headers = {**LATER, "idempotency-key": "k"}
    accepted = world.caller.put("/v1/users/1", a_user(), headers=headers)
    world.sqs.refusing = [["0"]] * 3

    again = world.caller.put("/v1/users/1", a_user(), headers=headers)
    world.drain(OPERATIONS)

    assert (again.status, again.code) == (503, "queue_unavailable")
    assert ended(world, accepted) == ("done", 201, None)
    assert user(world) is not None


def test_of_two_requests_with_one_key_the_refused_one_does_not_take_back_the_accepted_one(world: QueueWorld) -> None:
    headers = {**LATER, "idempotency-key": "k"}
    send, answers = world.sqs.send_message_batch, list[Answer]()

    def overtaken(**request: Any) -> Mapping[str, Any]:
        patch.setattr(world.sqs, "send_message_batch", send)
        answers.append(world.caller.put("/v1/users/1", a_user(), headers=headers))
        world.sqs.refusing = [["0"]] * 3
        return send(**request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.sqs, "send_message_batch", overtaken)
        refused = world.caller.put("/v1/users/1", a_user(), headers=headers)
    world.drain(OPERATIONS)

    assert (refused.status, refused.code) == (503, "queue_unavailable")
    assert answers[0].status == 202
    assert ended(world, answers[0]) == ("done", 201, None)


def test_a_refused_request_goes_on_when_it_is_repeated_with_its_key(world: QueueWorld) -> None:
    headers = {**LATER, "idempotency-key": "k"}
    world.sqs.refusing = [["0"]] * 3
    refused = world.caller.post("/v1/users", a_user(), headers=headers)

    accepted = world.caller.post("/v1/users", a_user(), headers=headers)
    world.drain(OPERATIONS)

    assert (refused.status, accepted.status) == (503, 202)
    assert ended(world, accepted) == ("done", 201, None)


def test_a_request_that_was_done_although_the_queue_gave_no_answer_is_accepted(world: QueueWorld) -> None:
    send = world.sqs.send_message_batch

    def unanswered(**request: Any) -> Mapping[str, Any]:
        send(**request)
        world.drain(OPERATIONS)
        return {"Failed": [{"Id": "0", "Code": "InternalError"}]}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.sqs, "send_message_batch", unanswered)
        accepted = world.caller.put("/v1/users/1", a_user(), headers=LATER)

    assert accepted.status == 202
    assert ended(world, accepted) == ("done", 201, None)
    assert user(world) is not None


@pytest.mark.parametrize("sent", [False, True], ids=["killed before it was sent", "sent long ago"])
def test_a_repeated_create_is_of_the_item_that_its_record_names(world: QueueWorld, *, sent: bool) -> None:
    headers = {**LATER, "idempotency-key": "k"}
    if sent:
        world.caller.post("/v1/users", a_user(), headers=headers)
        world.later(600)
    else:
        world.transport.inject(killed_after("PutItem"))
        with suppress(KilledError):
            world.caller.post("/v1/users", a_user(), headers=headers)

    accepted = world.caller.post("/v1/users", a_user(), headers=headers)
    target = record_of(world, accepted)["target"]
    world.drain(OPERATIONS)

    assert accepted.json["target"] == target == record_of(world, accepted)["target"]
    assert ended(world, accepted) == ("done", 201, None)
    assert world.caller.get(target, query="consistent=true").status == 200
    assert len({each["MessageGroupId"] for call in world.sqs.sent for each in call["Entries"]}) == 1


def test_a_repeated_idempotency_key_is_one_operation(world: QueueWorld) -> None:
    headers = {**LATER, "idempotency-key": "k"}

    first = world.caller.post("/v1/users", a_user(), headers=headers)
    again = world.caller.post("/v1/users", a_user(), headers=headers)
    world.drain(OPERATIONS)
    after = world.caller.post("/v1/users", a_user(), headers=headers)
    world.drain(OPERATIONS)

    assert first.headers["location"] == again.headers["location"] == after.headers["location"]
    assert ended(world, first) == ("done", 201, None)
    assert len(list(world.database().collection(User).scan({"tenant_id": TENANT}))) == 1
    other = world.caller.post("/v1/users", a_user(display_name="Other"), headers=headers)
    assert (other.status, other.code) == (422, "idempotency_key_reused")


def test_a_body_that_nobody_reads_may_have_any_bytes(world: QueueWorld) -> None:
    world.caller.post("/v1/users", a_user(id="1"))

    gone = world.caller.delete("/v1/users/1", body=b"\xff", headers={**LATER, "idempotency-key": "k"})
    world.drain(OPERATIONS)

    assert ended(world, gone) == ("done", 204, None)


def test_records_expire_after_a_week(world: QueueWorld) -> None:
    accepted = world.caller.put("/v1/users/1", a_user(), headers=LATER)
    world.drain(OPERATIONS)
    world.later(7 * 24 * 3600 + 1)

    assert world.caller.get(accepted.headers["location"]).status == 404


def test_records_belong_to_their_tenant_and_are_read_only(world: QueueWorld) -> None:
    location = world.caller.put("/v1/users/1", a_user(), headers=LATER).headers["location"]

    assert world.caller.of("other").get(location).status == 404
    assert world.caller.delete(location).status == 405


@pytest.mark.parametrize("value", ["respond-async, wait=10", "Respond-Async;x=1", "handling=lenient,respond-async"])
def test_the_preference_is_read_as_a_list(world: QueueWorld, value: str) -> None:
    assert world.caller.put("/v1/users/1", a_user(), headers={"prefer": value}).status == 202


@pytest.mark.parametrize("value", ["", "respond-sync", "return=minimal", "respond-asynchronously"])
def test_other_preferences_change_nothing(world: QueueWorld, value: str) -> None:
    assert world.caller.put("/v1/users/1", a_user(), headers={"prefer": value}).status == 201


def test_a_write_that_may_be_too_large_for_a_transaction_is_done_at_once(world: QueueWorld) -> None:
    incident = {"number": 1, "title": "Errors above 1%", "participants": ["user_ada"]}

    done = world.caller.put("/v1/incidents/i1", incident, headers=LATER)

    assert (done.status, "preference-applied" in done.headers) == (201, False)


@settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_accepted_writes_end_as_if_done_one_after_the_other(world: QueueWorld, data: st.DataObject) -> None:
    name = f"u{data.draw(st.integers(0, 10**12), label='name')}"
    path, model, answers = f"/v1/users/{name}", None, []
    for number in range(data.draw(st.integers(1, 5), label="writes")):
        match data.draw(st.sampled_from(["put", "patch", "delete"])):
            case "put":
                answers.append(world.caller.put(path, a_user(department=str(number)), headers=LATER))
                model = [str(number), "Ada"]
            case "patch":
                answers.append(world.caller.patch(path, {"display_name": f"n{number}"}, headers=LATER))
                model = [model[0], f"n{number}"] if model else None
            case _:
                answers.append(world.caller.delete(path, headers=LATER))
                model = None
    for _ in range(data.draw(st.integers(0, 4), label="rounds")):
        operation = data.draw(st.sampled_from(["TransactWriteItems", "GetItem", "PutItem"]))
        nth = data.draw(st.integers(1, 5))
        fault = data.draw(st.sampled_from([throttled(operation, nth=nth), lost_answer(operation, nth=nth)]))
        world.poll(OPERATIONS, [fault])
        if data.draw(st.booleans()):
            with suppress(KilledError):
                world.poll(OPERATIONS, [killed_after(operation)])
        world.later()
    world.drain(OPERATIONS)

    found = user(world, name)
    assert (found and [found["department"], found["display_name"]]) == model
    assert {ended(world, each)[0] for each in answers} <= {"done", "failed"}
