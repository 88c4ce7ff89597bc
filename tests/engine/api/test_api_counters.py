"""Counters over REST and by direct invocation: one behaviour, and each repeat of a request counts once."""

from typing import Any

import pytest

from dynashard.errors import DeclarationError
from dynashard.testing.faults import FaultyTransport, lost_answer, lost_request
from dynashard.transport import Transport
from dynashard_patterns import Counter
from dynashard_serving.declare import ServedCounter
from tests.api_caller import Caller
from tests.engine.api.api_on_engine import caller_exposing, caller_on
from tests.engine.commands.commands_on_engine import TENANT, Service, commands_on
from tests.engine.stored_things import Note

pytestmark = pytest.mark.engine

SEATS = "/v1/seats/premiere"
LIKES = "/v1/likes/ada/2026/sharding-explained"


@pytest.fixture
def service(transport: Transport, table: str) -> Service:
    return Service(commands_on(transport, table), entity="seats")


def change(caller: Caller, verb: str, amount: int, key: str | None = None) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return caller.post(f"{SEATS}/{verb}", {"amount": amount}, headers=headers)


def value(caller: Caller, path: str = SEATS, **query: str) -> int:
    return caller.get(path, query=query).json["value"]  # type: ignore[no-any-return]


def test_seats_are_added_taken_and_read(caller: Caller) -> None:
    assert value(caller) == 0
    added, taken = change(caller, "add", 100), change(caller, "take", 2)

    assert (added.status, added.json) == (200, {"screening": "premiere", "added": 100})
    assert (taken.status, taken.json) == (200, {"screening": "premiere", "taken": 2})
    assert caller.get(SEATS).json == {"screening": "premiere", "value": 98}
    assert value(caller, approximate="true") == 98
    assert caller.post(f"{SEATS}/take", {}).json["taken"] == 1


def test_a_taking_beyond_the_floor_is_a_conflict_that_says_what_is_left(caller: Caller) -> None:
    change(caller, "add", 3)

    refused = change(caller, "take", 4)

    assert (refused.status, refused.code) == (409, "exhausted")
    assert refused.json["details"] == {"available": 3}
    assert value(caller) == 3


def test_a_key_belongs_to_the_caller_who_used_it_first(caller: Caller, service: Service) -> None:
    change(caller, "add", 10)
    ada, eve = (caller.who(name, "seats:write") for name in ("ada", "eve"))

    first, other, again = (change(each, "take", 4, "order-17") for each in (ada, eve, ada))
    key = {"screening": "premiere"}

    assert (first.status, again.headers["idempotency-replayed"]) == (200, "true")
    assert (other.status, other.code) == (422, "idempotency_key_reused")
    assert service.result("take", key=key, amount=4, idempotency_key="order-17") == {**key, "taken": 4}
    assert value(caller) == 6


def test_a_repeat_with_its_key_counts_once(caller: Caller) -> None:
    change(caller, "add", 10)
    first, again = change(caller, "take", 4, "k1"), change(caller, "take", 4, "k1")
    other = change(caller, "take", 5, "k1")

    assert again.json == first.json
    assert ("idempotency-replayed" in first.headers, again.headers["idempotency-replayed"]) == (False, "true")
    assert (other.status, other.code) == (422, "idempotency_key_reused")
    assert caller.post(f"{SEATS}/add", {"amount": 4}, headers={"Idempotency-Key": "k1"}).code == other.code
    assert value(caller) == 6


def test_a_refused_taking_leaves_its_key_free(caller: Caller) -> None:
    assert change(caller, "take", 1, "k1").code == "exhausted"
    change(caller, "add", 1)

    assert change(caller, "take", 1, "k1").status == 200


@pytest.mark.parametrize("fault", [lost_answer, lost_request])
def test_a_request_whose_outcome_is_unknown_may_be_sent_again(transport: Transport, table: str, fault: Any) -> None:
    caller, taking = caller_on(transport, table), {"document": {"amount": 4}, "headers": {"Idempotency-Key": "k1"}}
    caller.post(f"{LIKES}/add", {"amount": 10})
    broken = FaultyTransport(transport, [fault("TransactWriteItems"), lost_request("TransactWriteItems", nth=2)])
    lost = caller_on(broken, table).post(f"{LIKES}/take", **taking)
    found = caller.post(f"{LIKES}/take", **taking)

    assert (lost.status, lost.code, lost.headers["retry-after"]) == (503, "outcome_unknown", "1")
    assert found.status == 200
    assert value(caller, LIKES) == 6


def test_tenants_have_counters_of_their_own(caller: Caller) -> None:
    change(caller, "add", 5)

    assert value(caller.of("other")) == 0
    assert change(caller.of("other"), "take", 1).code == "exhausted"


def test_a_counter_with_several_fields_is_named_by_its_path(caller: Caller) -> None:
    assert caller.post(f"{LIKES}/add", {}).json == {
        "author": "ada", "year": 2026, "slug": "sharding-explained", "added": 1,
    }  # fmt: skip
    assert value(caller, LIKES) == 1
    assert value(caller, "/v1/likes/ada/2026/other") == 0


@pytest.mark.parametrize("name", ["x/add", "x/take", "a?b", ".", "a\nb"])
def test_a_counter_that_no_path_leads_to_is_not_begun(caller: Caller, service: Service, name: str) -> None:
    asked = service.fields("add", key={"screening": name}, amount=1)

    assert asked == {"screening": "unaddressable"}
    assert service.result("get", key={"screening": name})["value"] == 0
    assert caller.post("/v1/seats/x%2Fadd/add", {"amount": 1}).fields == {"screening": "unaddressable"}
    # It may contain a slash, and end with the word alone.
    assert caller.post("/v1/seats/add/add", {"amount": 1}).status == 200
    assert caller.post("/v1/seats/x%2Fadds/add", {"amount": 1}).status == 200
    assert value(caller, "/v1/seats/x%2Fadds") == value(caller, "/v1/seats/add") == 1


WRONG = [
    ("POST", f"{SEATS}/take", {"amount": 0}, 422, ["amount"]),
    ("POST", f"{SEATS}/take", {"amount": 1.5}, 422, ["amount"]),
    ("POST", f"{SEATS}/take", {"amount": "1"}, 422, ["amount"]),
    ("POST", f"{SEATS}/take", {"amount": True}, 422, ["amount"]),
    ("POST", f"{SEATS}/take", {"many": 1}, 422, ["many"]),
    ("POST", f"{SEATS}/take", [1], 422, [""]),
    ("POST", f"/v1/seats/{'x' * 201}/take", {}, 422, ["screening"]),
    ("POST", "/v1/seats/a:b/take", {}, 422, ["screening"]),
    ("POST", "/v1/likes/ada/soon/x/add", {}, 422, ["year"]),
    ("POST", "/v1/likes/ada/add", {}, 404, []),
    ("POST", SEATS, {}, 405, []),
    ("DELETE", SEATS, None, 405, []),
    ("GET", f"{SEATS}/take", None, 405, []),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "fields"), WRONG)
def test_a_wrong_request_is_refused(
    caller: Caller, method: str, path: str, body: Any, *, status: int, fields: list[str]
) -> None:
    answer = caller.send(method, path, document=body)

    assert answer.status == status, answer.json
    assert [each["field"] for each in answer.json.get("errors", [])] == fields


def test_an_unusable_key_or_parameter_is_refused(caller: Caller) -> None:
    assert change(caller, "add", 1, "é").status == 400
    assert caller.get(SEATS, query={"approximate": "perhaps"}).fields.keys() == {"approximate"}
    assert caller.post(f"{SEATS}/add", {}, query={"consistent": "true"}).status == 422


def test_a_counter_may_be_removed_where_that_is_served(transport: Transport, table: str) -> None:
    from domain.samples.seats import Seats  # noqa: PLC0415 - the sample, served otherwise

    served = ServedCounter(Seats, path="chairs", operations=("get", "add", "delete"))
    caller = caller_exposing(transport, table, Seats, served)  # type: ignore[arg-type]
    caller.post("/v1/chairs/a/add", {"amount": 5})

    assert caller.delete("/v1/chairs/a").status == 204
    assert value(caller, "/v1/chairs/a") == 0
    assert caller.post("/v1/chairs/a/take", {}).status == 405


def test_direct_invocation_does_the_same(service: Service, caller: Caller) -> None:
    key = {"screening": "premiere"}
    assert service.result("add", key=key, amount=10) == {**key, "added": 10}
    assert service.result("take", key=key, amount=3, idempotency_key="k1") == {**key, "taken": 3}
    assert service.result("take", key=key, amount=3, idempotency_key="k1") == {**key, "taken": 3}
    assert service.result("take", entity="screening.v1.Seats", key=key) == {**key, "taken": 1}

    assert service.tenant == TENANT
    assert service.result("get", key=key) == {**key, "value": 6} == caller.get(SEATS).json
    assert service.result("get", key=key, approximate=True)["value"] == 6
    exhausted = service.error("take", key=key, amount=7)
    assert (exhausted["code"], exhausted["details"]) == ("exhausted", {"available": 6})


def test_direct_invocation_refuses_what_it_does_not_serve(service: Service) -> None:
    key = {"screening": "premiere"}
    assert service.fields("take", key=key, amount=0) == {"amount": "greater_than_equal"}
    assert service.fields("take", key={}) == {"screening": "missing"}
    assert service.fields("take", key=key, item={}) == {"item": "unknown_parameter"}
    assert service.fields("take", key=key, idempotency_key="") == {"idempotency_key": "string_pattern_mismatch"}
    assert "seats is not served with delete" in service.error("delete", key=key)["message"]
    assert "take" in service.error("draw", key=key)["message"]


@pytest.mark.parametrize(
    ("model", "declared", "message"),
    [
        (Note, {}, "declares no counter"),
        (Counter, {}, "declares no counter"),
        (None, {"operations": ()}, "not none"),
        (None, {"operations": ("get", "set")}, "not set"),
    ],
)
def test_a_wrong_declaration_is_refused(model: Any, declared: dict[str, Any], message: str) -> None:
    from domain.samples.seats import Seats  # noqa: PLC0415 - as above

    with pytest.raises(DeclarationError, match=message):
        ServedCounter(model or Seats, path="seats", **declared)
