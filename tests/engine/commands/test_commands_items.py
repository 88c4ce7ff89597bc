"""Direct invocation: single items and batches."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynashard import Dynashard, Entity, Key, Registry, RetryPolicy
from dynashard.runtime import Runtime
from dynashard.testing.faults import (
    FaultyTransport,
    about,
    lost_after,
    lost_answer,
    lost_request,
    meanwhile,
    throttled,
    unprocessed,
    unreachable,
)
from dynashard.topology import DeclaredTopology
from dynashard.transport import Transport
from dynashard_serving.declare import Exposed, Window
from tests.api_caller import a_user
from tests.engine.api.api_on_engine import KEYS, caller_on
from tests.engine.commands.commands_on_engine import Service, commands_on

pytestmark = pytest.mark.engine


def test_created_item_is_read_by_its_key_and_over_rest(service: Service, transport: Transport, table: str) -> None:
    created = service.result("create", item=a_user(id="ada"))

    assert service.result("get", key={"id": "ada"}) == created
    assert service.result("get", key={"id": "ada", "tenant_id": "abc"}, consistent=True) == created
    assert service.result("get", key={"id": "ada"}, fields=["email"]) == {"email": created["email"]}
    assert service.fields("get", key={"id": "ada"}, fields=["shoe"]) == {"fields": "enum"}
    assert caller_on(transport, table).get("/v1/users/ada").json == created
    assert created["revision"]


def test_an_entity_is_also_found_by_its_resource_name(service: Service) -> None:
    created = service.result("create", entity="users", item=a_user())

    assert service.result("get", key={"id": created["id"]}) == created


def test_create_of_an_item_that_exists_is_refused(service: Service) -> None:
    service.result("create", item=a_user(id="ada"))

    assert service.error("create", item=a_user(id="ada"))["code"] == "already_exists"


def test_put_creates_then_replaces_and_accepts_what_was_read(service: Service) -> None:
    first = service.result("put", item=a_user(id="ada"))
    second = service.result("put", item={**first["item"], "display_name": "Countess"})

    assert (first["created"], second["created"]) == (True, False)
    assert second["item"]["display_name"] == "Countess"
    assert second["item"]["created_at"] == first["item"]["created_at"]
    assert second["item"]["revision"] != first["item"]["revision"]


def test_update_merges_a_patch(service: Service) -> None:
    service.result("create", item=a_user(id="ada", department="maths"))

    updated = service.result("update", key={"id": "ada"}, patch={"department": None, "display_name": "Countess"})

    assert (updated["department"], updated["display_name"]) == (None, "Countess")
    assert service.result("get", key={"id": "ada"}) == updated


def test_deleted_item_is_gone(service: Service) -> None:
    service.result("create", item=a_user(id="ada"))

    assert service.result("delete", key={"id": "ada"}) is None
    assert service.error("get", key={"id": "ada"})["code"] == "not_found"
    assert service.error("delete", key={"id": "ada"})["code"] == "not_found"


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("put", {"item": a_user(id="ada")}),
        ("update", {"key": {"id": "ada"}, "patch": {"display_name": "x"}}),
        ("delete", {"key": {"id": "ada"}}),
    ],
)
def test_if_match_guards_every_change(service: Service, operation: str, members: dict[str, Any]) -> None:
    stale = service.result("create", item=a_user(id="ada"))["revision"]
    fresh = service.result("update", key={"id": "ada"}, patch={"display_name": "Countess"})["revision"]

    assert service.error(operation, if_match=stale, **members)["code"] == "revision_mismatch"
    service.result(operation, if_match=fresh, **members)


def test_repeated_create_gets_the_first_answer(service: Service) -> None:
    first = service.result("create", item=a_user(), idempotency_key="order-66")
    service.result("delete", key={"id": first["id"]})

    assert service.result("create", item=a_user(), idempotency_key="order-66") == first
    reused = service.error("create", item=a_user(display_name="Other"), idempotency_key="order-66")
    assert reused["code"] == "idempotency_key_reused"


def test_idempotency_keys_are_those_of_rest(service: Service, transport: Transport, table: str, records: str) -> None:
    first = caller_on(transport, table, records).post("/v1/users", a_user(), headers={"Idempotency-Key": "k-1"})

    assert service.result("create", item=a_user(), idempotency_key="k-1") == first.json


INCIDENT = {"number": 1, "title": "Errors above 1%", "participants": ["user_ada"]}
"""An entity with attachments, which is created in steps."""


def test_a_create_whose_outcome_was_lost_is_answered_when_it_is_repeated(
    transport: Transport, table: str, records: str
) -> None:
    faulty = FaultyTransport(transport, [lost_after("TransactWriteItems", lambda: None, nth=None)])

    lost = Service(commands_on(faulty, table, records)).error("create", item=a_user(), idempotency_key="k-1")
    service = Service(commands_on(transport, table, records))
    again = service.result("create", item=a_user(), idempotency_key="k-1")

    assert (lost["code"], lost["retry_after"], lost["details"]["resend"]) == ("outcome_unknown", 1, True)
    assert service.result("list")["items"] == [again]


def test_a_stepwise_create_whose_outcome_was_lost_continues_with_the_same_item(
    transport: Transport, table: str, records: str
) -> None:
    # The third PutItem stores the item, but its answer is lost. The fourth GetItem looks whether it did.
    faulty = FaultyTransport(transport, [lost_answer("PutItem", nth=3), lost_request("GetItem", nth=4)])
    service = Service(commands_on(faulty, table, records), entity="incidents")

    lost = service.error("create", item=INCIDENT, idempotency_key="k-1")
    again = service.result("create", item=INCIDENT, idempotency_key="k-1")

    assert not faulty.waiting
    assert (lost["code"], lost["retry_after"]) == ("outcome_unknown", 1)
    assert service.result("count") == 1
    assert service.result("list")["items"] == [again]


def test_a_killed_create_is_taken_over_when_its_time_is_over(transport: Transport, table: str, records: str) -> None:
    now = [1_780_000_000.0]
    # The first UpdateItem records the number.
    faulty = FaultyTransport(transport, [throttled("UpdateItem", nth=2)])
    service = Service(commands_on(faulty, table, records, runtime=Runtime(lambda: now[0])), entity="incidents")

    first = service.result("create", item=INCIDENT, idempotency_key="k-1")
    waiting = service.error("create", item=INCIDENT, idempotency_key="k-1")
    now[0] += 31
    again = service.result("create", item=INCIDENT, idempotency_key="k-1")

    assert not faulty.waiting
    assert (waiting["code"], waiting["retry_after"]) == ("request_in_progress", 1)
    assert again == first
    assert service.result("count") == 1


def test_an_item_of_another_does_not_answer_a_killed_create(transport: Transport, table: str, records: str) -> None:
    # Before the item, the counter of the tenant and the record are put.
    faulty = FaultyTransport(transport, [throttled("PutItem", nth=3)])
    service = Service(commands_on(faulty, table, records), entity="incidents")
    mine = {**INCIDENT, "id": "i1"}
    service.error("create", item=mine, idempotency_key="k-1")
    service.result("create", item={**mine, "number": 2, "title": "Somebody else's"})

    again = service.error("create", item=mine, idempotency_key="k-1")

    assert not faulty.waiting
    assert again["code"] == "already_exists"


def test_tenants_see_only_their_own(service: Service) -> None:
    service.result("create", item=a_user(id="ada"))
    other = Service(service.commands, tenant="xyz")

    assert other.error("get", key={"id": "ada"})["code"] == "not_found"
    assert other.result("count") == 0
    assert other.fields("get", key={"id": "ada", "tenant_id": "abc"}) == {"key.tenant_id": "immutable"}
    assert other.fields("create", item=a_user(tenant_id="abc")) == {"tenant_id": "immutable"}
    assert other.fields("put", item=a_user(id="ada", tenant_id="abc")) == {"tenant_id": "immutable"}
    assert other.error("update", key={"id": "ada"}, patch={"display_name": "x"})["code"] == "not_found"
    assert other.error("delete", key={"id": "ada"})["code"] == "not_found"
    assert other.fields("list", partition={"tenant_id": "abc"}) == {"partition.tenant_id": "immutable"}
    outcome = other.result("batch_write", put=[a_user(id="ada", tenant_id="abc")])["put"][0]
    assert outcome["error"]["errors"][0]["code"] == "immutable"


def test_update_cannot_move_an_item(service: Service) -> None:
    service.result("create", item=a_user(id="ada"))

    for patch in ({"id": "bob"}, {"tenant_id": "xyz"}):
        assert list(service.fields("update", key={"id": "ada"}, patch=patch).values()) == ["immutable"]


def test_batch_reads_and_writes_with_an_outcome_for_each(service: Service) -> None:
    written = service.result(
        "batch_write",
        put=[a_user(id="1"), {"id": "2"}, a_user(id="3"), a_user(id="x" * 1100)],
        delete=[{"id": "4"}, {"name": "5"}],
    )
    read = service.result("batch_get", keys=[{"id": "3"}, {"id": "2"}, {}, {"id": "1"}])

    assert [outcome["ok"] for outcome in written["put"]] == [True, False, True, False]
    assert [outcome["ok"] for outcome in written["delete"]] == [True, False]
    assert written["put"][3]["error"]["code"] == "invalid_key"
    assert [outcome.get("error", {}).get("code") for outcome in read] == [None, "not_found", "validation_failed", None]
    assert [outcome["result"]["id"] for outcome in read if outcome["ok"]] == ["3", "1"]


def test_an_invalid_key_does_not_keep_others_from_being_read(service: Service) -> None:
    service.result("create", item=a_user(id="1"))

    read = service.result("batch_get", keys=[{"id": ""}, {"id": "1"}, {"id": "x" * 1100}])

    assert [outcome.get("error", {}).get("code") for outcome in read] == ["invalid_key", None, "invalid_key"]


def test_a_key_that_appears_twice_in_a_batch_is_written_once(service: Service) -> None:
    written = service.result("batch_write", put=[a_user(id="1"), a_user(id="1")], delete=[{"id": "1"}])

    outcomes = [*written["put"], *written["delete"]]
    assert [outcome.get("error", {}).get("code") for outcome in outcomes] == [None, "invalid_key", "invalid_key"]
    assert service.result("count") == 1


def test_item_that_is_too_large_does_not_keep_others_from_being_written(service: Service) -> None:
    item = {"author": "parth", "published_at": "2017-05-04T00:00:00Z"}

    written = service.result(
        "batch_write",
        entity="articles",
        put=[{**item, "title": "Short"}, {**item, "title": "Long", "text": "x" * 500_000}],
    )

    assert [outcome.get("error", {}).get("code") for outcome in written["put"]] == [None, "item_too_large"]
    assert service.result("count", entity="articles", partition={"author": "parth", "year": 2017}) == 1


def test_an_unprocessed_item_of_a_batch_has_its_own_outcome(transport: Transport, table: str) -> None:
    faulty = FaultyTransport(transport, [unprocessed("BatchWriteItem", keep=1, nth=None)])
    once = RetryPolicy(seconds=0, runtime=Runtime(sleep=lambda _: None))
    service = Service(commands_on(faulty, table, retry_policy=once))

    written = service.result("batch_write", put=[a_user(id="1"), a_user(id="2")])["put"]

    [left] = [outcome["error"] for outcome in written if not outcome["ok"]]
    assert (left["code"], len(left["details"]["keys"])) == ("unprocessed", 1)
    [done] = [place for place, outcome in enumerate(written, 1) if outcome["ok"]]
    assert [item["id"] for item in service.result("list")["items"]] == [str(done)]


def test_only_stored_incidents_of_a_batch_are_reported_as_done(transport: Transport, table: str) -> None:
    names = {each: f"2gSoQcoRlyLdNEyDDQHUGpS9V0{each}" for each in ("a", "b", "c", "d", "e")}
    faults = [
        about(f'"{names["a"]}"', throttled("PutItem")),
        about(f'"{names["b"]}"', lost_request("PutItem")),
        about(f'"{names["c"]}"', unreachable("PutItem")),
        about(f'"{names["d"]}"', lost_answer("PutItem")),
    ]
    once = RetryPolicy(seconds=0, runtime=Runtime(sleep=lambda _: None))
    service = Service(commands_on(FaultyTransport(transport, faults), table, retry_policy=once), entity="incidents")

    put = [{"id": name, "title": each} for each, name in names.items()]
    written = service.result("batch_write", put=put, delete=[{"id": "2gSoQcoRlyLdNEyDDQHUGpS9V0z"}])

    codes = [outcome.get("error", {}).get("code") for outcome in written["put"]]
    assert codes == ["key_range_throttled", "outcome_unknown", "engine_unavailable", None, None]
    unknown = written["put"][1]["error"]["details"]
    assert (unknown["key"], unknown.keys()) == ({"tenant_id": "abc", "id": names["b"]}, {"resend", "key", "revision"})
    assert written["delete"] == [{"ok": True, "result": None}]
    assert {item["title"] for item in service.result("list")["items"]} == {"d", "e"}


def test_unprocessed_reads_of_a_batch_may_be_requested_again(transport: Transport, table: str) -> None:
    faulty = FaultyTransport(transport, [unprocessed("BatchGetItem", keep=1, nth=None)])
    service = Service(
        commands_on(faulty, table, retry_policy=RetryPolicy(seconds=0, runtime=Runtime(sleep=lambda _: None)))
    )

    read = service.result("batch_get", keys=[{"id": "1"}, {"id": "2"}])

    assert [outcome["error"]["code"] for outcome in read] == ["unprocessed"] * 2


class Note(Entity, name="note.v1.Dated", key=Key(partition="{tenant_id}", sort="{id}"), registry=Registry()):
    """A note that is too old to be created, but may be replaced."""

    tenant_id: str
    id: str
    at: datetime
    text: str = ""


def test_an_item_of_a_batch_that_others_keep_changing_may_be_sent_again(transport: Transport, table: str) -> None:
    notes = Dynashard(transport, table=table, topology=DeclaredTopology(), cursor_keys=KEYS).collection(Note)
    old = {"at": "2020-01-01T00:00:00Z", "text": "mine"}
    stored = {each: Note(tenant_id="abc", id=each, at=datetime(2020, 1, 1, tzinfo=UTC)) for each in ("a", "b")}
    notes.batch_write(put=list(stored.values()))
    changed = FaultyTransport(transport, [about('"a"', meanwhile("UpdateItem", lambda: notes.replace(stored["a"])))])
    window = Window("at", past=timedelta(days=1), ahead=timedelta(minutes=5))
    service = Service(commands_on(changed, table, exposed=(Exposed(Note, "notes", window=window),)), entity="notes")

    written = service.result("batch_write", put=[{"id": each, **old} for each in stored])["put"]

    assert [outcome.get("error", {}).get("code") for outcome in written] == ["write_contended", None]


def test_items_beyond_the_size_of_an_answer_may_be_requested_again(service: Service) -> None:
    layer = {"starts_at": "2026-11-21T00:00:00Z", "users": ["x" * 200] * 50}
    for some in (range(35), range(35, 70)):
        put = [{"team_id": "red", "schedule_id": str(n), "name": "Day", "layers": [layer] * 10} for n in some]
        service.result("batch_write", entity="schedules", put=put)
    keys = [{"team_id": "red", "schedule_id": str(number)} for number in range(70)]

    read = service.result("batch_get", entity="schedules", keys=keys)
    rest = service.result(
        "batch_get", entity="schedules", keys=[k for k, r in zip(keys, read, strict=True) if not r["ok"]]
    )

    left = [outcome["error"]["code"] for outcome in read if not outcome["ok"]]
    assert set(left) == {"answer_too_large"}
    assert [outcome["ok"] for outcome in rest] == [True] * len(left)


def test_half_of_a_surrogate_pair_is_refused_in_a_batch_too(service: Service) -> None:
    [outcome] = service.result("batch_write", delete=[{"\ud800": "a"}])["delete"]

    assert outcome["error"]["code"] == "validation_failed"
