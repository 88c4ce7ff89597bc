"""Every entry point refuses expired items, and ids that do not fit a URL."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynashard.runtime import Runtime
from dynashard_serving.commands.handler import build_commands
from tests.api_caller import TENANT, Caller, a_user
from tests.engine.api.api_on_engine import TOPOLOGY, idempotency_table, settings_of
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.writer.queue_world import OPERATIONS, QueueWorld
from tests.roles import as_function

pytestmark = pytest.mark.engine

LATER = {"prefer": "respond-async"}
NO_IDS = [".", "..", "a?b", "a/b?", "a\nb", "\r", "a\0", "\x7f", "a\x85b"]


@pytest.fixture
def caller(world: QueueWorld) -> Caller:
    return world.caller


def invoke(world: QueueWorld, operation: str, **members: Any) -> dict[str, Any]:
    allowed = as_function("commands", world.transport, world.table, TOPOLOGY)
    commands = build_commands(settings_of(world.table), allowed, runtime=Runtime(world.clock))
    answer = commands.answer({"operation": operation, "entity": "users", "tenant_id": TENANT, **members})
    return dict(answer)


def in_seconds(world: QueueWorld, seconds: float) -> str:
    return (datetime.fromtimestamp(world.clock.now, UTC) + timedelta(seconds=seconds)).isoformat()


@pytest.mark.parametrize("seconds", [-86400, -1, 0, 0.9])
def test_an_expired_item_is_refused_by_every_entry_point(world: QueueWorld, caller: Caller, seconds: float) -> None:
    past = in_seconds(world, seconds)
    caller.post("/v1/users", a_user(id="ada"))
    body = a_user(id="bob", expires_at=past)

    answers = [
        caller.post("/v1/users", body),
        caller.post("/v1/users", body, headers=LATER),
        caller.put("/v1/users/bob", body),
        caller.put("/v1/users/bob", body, headers=LATER),
        caller.put("/v1/users/ada", {**body, "id": "ada"}),
        caller.patch("/v1/users/ada", {"expires_at": past}),
        caller.patch("/v1/users/ada", {"expires_at": past}, headers=LATER),
    ]
    invoked = [
        invoke(world, "create", item=body),
        invoke(world, "put", item=body),
        invoke(world, "update", key={"id": "ada"}, patch={"expires_at": past}),
        invoke(world, "batch_write", put=[body])["result"]["put"][0],
    ]

    assert [answer.fields for answer in answers] == [{"expires_at": "datetime_future"}] * len(answers)
    assert [answer["error"]["errors"][0]["code"] for answer in invoked] == ["datetime_future"] * len(invoked)
    assert caller.get("/v1/users/bob").status == 404
    assert caller.get("/v1/users/ada").json["expires_at"] is None


def test_an_item_that_expires_later_is_stored_and_null_removes_the_expiry(world: QueueWorld, caller: Caller) -> None:
    created = caller.post("/v1/users", a_user(id="ada", expires_at=in_seconds(world, 2)))
    patched = caller.patch("/v1/users/ada", {"display_name": "Ada"})
    emptied = caller.patch("/v1/users/ada", {"expires_at": None})

    assert (created.status, patched.status, emptied.status) == (201, 200, 200)
    assert emptied.json["expires_at"] is None


def test_a_queued_write_is_judged_by_the_time_it_was_accepted(world: QueueWorld, caller: Caller) -> None:
    accepted = caller.post("/v1/users", a_user(id="ada", expires_at=in_seconds(world, 30)), headers=LATER)
    world.later(60)
    world.drain(OPERATIONS)

    assert accepted.status == 202
    assert caller.get(accepted.headers["location"]).json["state"] == "done"
    assert caller.get("/v1/users/ada").status == 404


def test_a_repeat_is_answered_as_the_first_even_when_its_item_has_expired(
    world: QueueWorld, dynamodb: RawDynamoDB
) -> None:
    with idempotency_table(dynamodb) as table:
        world.idempotency = table
        key = {"idempotency-key": "k"}
        body = a_user(id="ada", expires_at=in_seconds(world, 30))
        first = world.caller.post("/v1/users", body, headers=key)
        queued = world.caller.post("/v1/users", {**body, "id": "bob"}, headers={**key, **LATER})
        world.later(60)

        again = world.caller.post("/v1/users", body, headers=key)
        queued_again = world.caller.post("/v1/users", {**body, "id": "bob"}, headers={**key, **LATER})
        other = world.caller.post("/v1/users", body, headers={"idempotency-key": "another"})

    assert (first.status, queued.status) == (201, 202)
    assert (again.status, again.json, again.headers["idempotency-replayed"]) == (201, first.json, "true")
    assert queued_again.headers["location"] == queued.headers["location"]
    assert other.fields == {"expires_at": "datetime_future"}


@pytest.mark.parametrize("identity", NO_IDS, ids=ascii)
def test_an_id_that_does_not_fit_a_url_is_refused_by_every_entry_point(
    world: QueueWorld, caller: Caller, identity: str
) -> None:
    body = a_user(id=identity)

    answers = [caller.post("/v1/users", body), caller.post("/v1/users", body, headers=LATER)]
    invoked = [
        invoke(world, "create", item=body),
        invoke(world, "put", item=body),
        invoke(world, "batch_write", put=[body])["result"]["put"][0],
    ]

    assert [answer.fields for answer in answers] == [{"id": "unaddressable"}] * 2
    assert [answer["error"]["errors"][0]["code"] for answer in invoked] == ["unaddressable"] * 3


@pytest.mark.parametrize("path", ["%2E", "%2E%2E", "a%0Ab", "%00"])
def test_a_put_to_an_address_that_does_not_fit_a_url_is_refused(caller: Caller, path: str) -> None:
    assert caller.put(f"/v1/users/{path}", a_user()).fields == {"id": "unaddressable"}
    assert caller.put(f"/v1/users/{path}", a_user(), headers=LATER).fields == {"id": "unaddressable"}


@pytest.mark.parametrize("identity", ["a/b", "/", "...", "a b", "%41", "%", "é", "a:b", "#", "a\\b", "+", "&=;"])
def test_any_other_id_is_stored_and_read_by_its_location(caller: Caller, identity: str) -> None:
    created = caller.post("/v1/users", a_user(id=identity))

    assert created.status == 201
    assert caller.get(created.headers["location"]).json == created.json
