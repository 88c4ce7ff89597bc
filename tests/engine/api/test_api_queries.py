"""Filters with operators, counts and batches over HTTP, and by direct invocation with the same words."""

from typing import Any

import pytest

from dynashard.transport import Transport
from dynashard_serving.limits import MAX_MIXED
from tests.api_caller import Caller, a_user
from tests.engine.api.api_on_engine import caller_on, idempotency_table
from tests.engine.commands.commands_on_engine import Service, commands_on
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.recording import RecordingTransport

pytestmark = pytest.mark.engine

USERS: list[dict[str, Any]] = [
    a_user(
        id=f"{number:02d}",
        email=f"{'ada' if number < 20 else 'bob'}{number:02d}@example.com",
        display_name=f"User {number:02d}",
        department=("legal", "sales", None)[number % 3],
        status=("active", "disabled")[number % 2],
    )
    for number in range(40)
]


@pytest.fixture(scope="module")
def stored(transport: Transport, create_table: Any) -> tuple[str, Caller]:
    table = create_table()
    caller = caller_on(transport, table)
    answer = caller.post("/v1/users/batch", {"requests": [{"operation": "create", "item": user} for user in USERS]})
    assert all(outcome["ok"] for outcome in answer.json["outcomes"]), answer.content
    return table, caller


@pytest.fixture
def filled(stored: tuple[str, Caller]) -> Caller:
    return stored[1]


@pytest.fixture
def service(transport: Transport, stored: tuple[str, Caller]) -> Service:
    return Service(commands_on(transport, stored[0]))


def chosen(**holds: Any) -> list[str]:
    return [user["id"] for user in USERS if all(test(user[field]) for field, test in holds.items())]


QUERIES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("department[ne]=legal", {"department": {"ne": "legal"}}, chosen(department=lambda it: it != "legal")),
    (
        "department[in]=legal,sales",
        {"department": {"in": ["legal", "sales"]}},
        chosen(department=lambda it: it is not None),
    ),
    ("department[prefix]=le", {"department": {"prefix": "le"}}, chosen(department=lambda it: it == "legal")),
    ("department[contains]=ale", {"department": {"contains": "ale"}}, chosen(department=lambda it: it == "sales")),
    ("department[exists]=false", {"department": {"exists": False}}, chosen(department=lambda it: it is None)),
    ("department[gte]=m", {"department": {"gte": "m"}}, chosen(department=lambda it: it == "sales")),
    (
        "department[exists]=true&department[lt]=m&status=active",
        {"department": {"exists": True, "lt": "m"}, "status": "active"},
        chosen(department=lambda it: it == "legal", status=lambda it: it == "active"),
    ),
    ("status[in]=disabled", {"status": {"in": ["disabled"]}}, chosen(status=lambda it: it == "disabled")),
]
RANGES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("id[gte]=10&id[lt]=13", {"id": {"gte": "10", "lt": "13"}}, ["10", "11", "12"]),
    ("id[prefix]=3", {"id": {"prefix": "3"}}, [f"3{digit}" for digit in range(10)]),
    ("email[prefix]=bob", {"email": {"prefix": "bob"}}, [f"{number}" for number in range(20, 40)]),
    ("email=bob20@example.com", {"email": "bob20@example.com"}, ["20"]),
]


@pytest.mark.parametrize(("query", "filters", "expected"), QUERIES)
def test_operators_filter_alike_over_rest_and_direct_invocation(
    filled: Caller, service: Service, query: str, filters: dict[str, Any], expected: list[str]
) -> None:
    rest = filled.get("/v1/users", query=f"{query}&limit=1000")
    counted = filled.get("/v1/users/count", query=query)
    direct = service.result("list", filters=filters, limit=1000)

    assert sorted(item["id"] for item in rest.json["items"]) == expected
    assert sorted(item["id"] for item in direct["items"]) == expected
    assert counted.json == {"count": len(expected), "exact": True}
    assert service.result("count", filters=filters) == len(expected)


@pytest.mark.parametrize(("query", "sort", "expected"), RANGES)
def test_operators_on_the_first_sort_field_read_a_range_without_a_declared_filter(
    filled: Caller, service: Service, query: str, sort: dict[str, Any], expected: list[str]
) -> None:
    rest = filled.get("/v1/users", query=f"{query}&limit=1000&order=ordered")
    direct = service.result("list", sort=sort, limit=1000, order="ordered")

    assert [item["id"] for item in rest.json["items"]] == expected
    assert [item["id"] for item in direct["items"]] == expected


@pytest.mark.parametrize(
    ("members", "field", "takes"),
    [
        ({"filters": {"department": {"like": "x"}}}, "filters.department[like]", "department takes eq, ne, in,"),
        ({"filters": {"status": {"in": ["active"], "no": 1}}}, "filters.status[no]", "status takes eq, ne, in here"),
        ({"sort": {"email": {"like": "x"}}}, "sort.email[like]", "email takes gt, gte, lt, lte, prefix"),
    ],
)
def test_direct_invocation_names_an_unknown_operator_and_those_that_the_field_takes(
    service: Service, members: dict[str, Any], field: str, takes: str
) -> None:
    (error,) = service.error("list", **members)["errors"]

    assert (error["field"], error["code"]) == (field, "unknown_parameter")
    assert takes in error["message"]


def test_a_range_of_the_first_sort_field_reads_only_its_items(transport: Transport, stored: tuple[str, Caller]) -> None:
    recording = RecordingTransport(transport)
    caller = caller_on(recording, stored[0])

    caller.get("/v1/users", query="limit=1")
    recording.clear()

    caller.get("/v1/users", query="email[prefix]=bob3&limit=1000&order=ordered")

    assert recording.operations == ["Query"]
    assert recording.scanned == 10


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ("display_name[gte]=a", {"display_name[gte]": "unknown_parameter"}),
        ("status[gte]=active", {"status[gte]": "unknown_parameter"}),
        ("status[in]=active,unknown", {"status[in]": "enum"}),
        ("status[ne]=", {"status[ne]": "enum"}),
        ("department[exists]=maybe", {"department[exists]": "enum"}),
        ("department[prefix]=", {"department[prefix]": "string_type"}),
        ("department[like]=x", {"department[like]": "unknown_parameter"}),
        ("department[gte]=a&department[gte]=b", {"department[gte]": "repeated_parameter"}),
        (f"department[in]={','.join(map(str, range(101)))}", {"department[in]": "out_of_range"}),
    ],
)
def test_a_wrong_operator_is_refused_by_its_name(filled: Caller, query: str, fields: dict[str, str]) -> None:
    for path in ("/v1/users", "/v1/users/count"):
        answer = filled.get(path, query=query)

        assert answer.status == 422
        assert answer.fields == fields


def test_an_unknown_filter_names_the_declared_ones(filled: Caller) -> None:
    [error] = filled.get("/v1/users", query="display_name[gte]=a").json["errors"]

    assert "filters by department, manager_id, status" in error["message"]


@pytest.mark.parametrize("operator", ["in", "exists", "like"])
def test_an_unknown_operator_of_a_sort_field_names_those_that_it_takes(filled: Caller, operator: str) -> None:
    [error] = filled.get("/v1/users", query=f"email[{operator}]=a@example.com").json["errors"]

    taken = "email takes email[gt], email[gte], email[lt], email[lte], email[prefix]."
    assert error["message"] == f"Unknown query parameter. {taken}"


def test_an_unknown_operator_names_those_of_the_field(filled: Caller, service: Service) -> None:
    [error] = filled.get("/v1/users", query="status[gte]=a").json["errors"]
    [direct] = service.error("list", filters={"status": {"gte": "a"}})["errors"]

    assert error["message"] == "Unknown query parameter. status takes status[ne], status[in]."
    assert direct == {
        "field": "filters.status[gte]",
        "message": "status takes eq, ne, in here.",
        "code": "unknown_parameter",
    }


def test_a_value_of_an_operator_is_taken_as_it_was_sent(service: Service) -> None:
    assert service.fields("list", filters={"department": {"in": [["eng"]]}}) == {
        "filters.department[in]": "string_type"
    }
    assert service.fields("list", filters={"department": {"exists": 1}}) == {"filters.department[exists]": "enum"}
    assert service.result("list", filters={"department": {"in": ["x", "x"]}})["items"] == []


def test_a_value_with_a_comma_is_sent_by_repeating_the_parameter(filled: Caller) -> None:
    comma = a_user(id="comma", email="comma@example.com", department="legal, sales")
    filled.of("xyz").post("/v1/users", comma)

    for query, found in (
        ("department[in]=legal%2C sales&department[in]=x", ["comma"]),
        ("department[in]=legal%2C sales", []),
    ):
        answer = filled.of("xyz").get("/v1/users", query=query.replace(" ", "%20"))
        assert [item["id"] for item in answer.json["items"]] == found


def test_a_cursor_belongs_to_its_operators(filled: Caller) -> None:
    cursor = filled.get("/v1/users", query="department[ne]=legal&limit=3").json["cursor"]

    same = filled.get("/v1/users", query=f"department[ne]=legal&limit=5&cursor={cursor}")
    other = filled.get("/v1/users", query=f"department[ne]=sales&limit=5&cursor={cursor}")

    assert same.status == 200
    assert other.code == "invalid_cursor"


def test_a_count_ends_at_its_bound_and_says_so(filled: Caller, service: Service) -> None:
    assert filled.get("/v1/users/count", query="up_to=7").json == {"count": 7, "exact": False}
    assert filled.get("/v1/users/count", query="up_to=40").json == {"count": 40, "exact": True}
    assert service.result("count", up_to=7) == {"count": 7, "exact": False}
    # A parser of JSON may read a whole number that is too large for 64 bits as a float.
    for huge in (10**6, 2**63, 10**30, 1e30, 1e300):
        assert service.result("count", up_to=huge) == {"count": 40, "exact": True}
    for wrong in (0, -1, 0.5, -1e30, True, "7", [7]):
        assert service.fields("count", up_to=wrong) == {"up_to": "out_of_range"}
    for wrong in ("0", "-1", "x", "100001", ""):
        assert filled.get("/v1/users/count", query=f"up_to={wrong}").fields == {"up_to": "out_of_range"}


def test_a_count_takes_no_pages(filled: Caller) -> None:
    assert filled.get("/v1/users/count", query="limit=5").fields == {"limit": "unknown_parameter"}


def test_a_batch_has_an_outcome_for_each_request(caller: Caller) -> None:
    revision = caller.post("/v1/users", a_user(id="old")).json["revision"]
    requests = [
        {"operation": "get", "key": {"id": "old"}},
        {"operation": "get", "key": {"id": "missing"}},
        {"operation": "create", "item": a_user(id="new")},
        {"operation": "create", "item": a_user(id="bad", email="no address")},
        {"operation": "put", "item": a_user(id="put", display_name="Put")},
        {"operation": "update", "key": {"id": "old"}, "patch": {"display_name": "Older"}, "if_match": revision},
        {"operation": "delete", "key": {"id": "none"}},
    ]

    answer = caller.post("/v1/users/batch", {"requests": requests})

    got, missing, created, bad, put, updated, deleted = answer.json["outcomes"]
    assert answer.status == 200
    assert got["result"]["id"] == "old"
    assert created["result"] == caller.get("/v1/users/new").json
    assert put["result"] == {"item": caller.get("/v1/users/put").json, "created": True}
    assert updated["result"]["display_name"] == "Older"
    assert [each["error"]["code"] for each in (missing, bad, deleted)] == [
        "not_found",
        "validation_failed",
        "not_found",
    ]
    assert bad["error"]["errors"][0]["field"] == "email"


def test_a_condition_of_a_batch_concerns_its_own_request(caller: Caller) -> None:
    first = caller.post("/v1/users", a_user(id="one")).json["revision"]
    caller.post("/v1/users", a_user(id="two"))
    requests = [
        {"operation": "put", "item": a_user(id="one", display_name="One"), "if_match": first},
        {"operation": "put", "item": a_user(id="two", display_name="Two"), "if_match": first},
        {"operation": "put", "item": a_user(id="three"), "if_none_match": "*"},
        {"operation": "delete", "key": {"id": "four"}, "if_match": first},
    ]

    outcomes = caller.post("/v1/users/batch", {"requests": requests}).json["outcomes"]

    assert [each["ok"] for each in outcomes] == [True, False, True, False]
    assert outcomes[1]["error"]["code"] == "revision_mismatch"
    assert caller.get("/v1/users/two").json["display_name"] == "Ada"


def test_a_repeated_batch_creates_once(transport: Transport, table: str, dynamodb: RawDynamoDB) -> None:
    requests = [{"operation": "create", "item": a_user(email=f"{n}@example.com")} for n in range(5)]
    with idempotency_table(dynamodb) as idempotency:
        caller = caller_on(transport, table, idempotency)

        first, again = (
            caller.post("/v1/users/batch", {"requests": requests}, headers={"Idempotency-Key": "once"})
            for _ in range(2)
        )

    assert first.json == again.json
    assert len(caller.get("/v1/users").json["items"]) == 5


def test_an_unusable_idempotency_key_of_a_create_is_refused(caller: Caller) -> None:
    requests = [{"operation": "create", "item": a_user(), "idempotency_key": key} for key in ("", "x" * 256)]

    outcomes = caller.post("/v1/users/batch", {"requests": requests}).json["outcomes"]

    assert [each["error"]["errors"][0]["field"] for each in outcomes] == ["idempotency_key"] * 2
    assert caller.get("/v1/users").json["items"] == []


def test_a_wrong_key_is_named_as_its_request_has_it(caller: Caller) -> None:
    caller.post("/v1/users", a_user(id="old"))
    wrong = [
        {"operation": "get", "key": {"id": 7}},
        {"operation": "get", "key": {"id": 7}, "consistent": True},
        {"operation": "delete", "key": {"id": 7}},
    ]
    requests = [{"operation": "get", "key": {"id": "old"}}, *wrong]

    outcomes = caller.post("/v1/users/batch", {"requests": requests}).json["outcomes"]

    assert [each["ok"] for each in outcomes] == [True, False, False, False]
    assert [each["error"]["errors"][0]["field"] for each in outcomes[1:]] == ["key.id"] * 3


def test_a_key_is_written_once_in_a_batch(caller: Caller) -> None:
    requests = [
        {"operation": "put", "item": a_user(id="same")},
        {"operation": "delete", "key": {"id": "same"}},
        {"operation": "put", "item": a_user(id="other")},
    ]

    outcomes = caller.post("/v1/users/batch", {"requests": requests}).json["outcomes"]

    assert [each["ok"] for each in outcomes] == [False, False, True]
    assert caller.get("/v1/users/same").status == 404


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"requests": "list_type"}),
        ({"requests": []}, {"requests": "out_of_range"}),
        ({"requests": [{"operation": "get", "key": {"id": "x"}}] * (MAX_MIXED + 1)}, {"requests": "out_of_range"}),
        ({"requests": [7]}, {"requests.0": "object_type"}),
        ({"requests": [{"operation": "drop"}]}, {"requests.0.operation": "enum"}),
        ({"requests": [{"operation": "get"}]}, {"requests.0.key": "missing"}),
        ({"requests": [{"operation": "get", "key": None}]}, {"requests.0.key": "missing"}),
        ({"requests": [{"operation": "update", "key": {"id": "x"}}]}, {"requests.0.patch": "missing"}),
        (
            {"requests": [{"operation": "delete", "key": {"id": "x"}, "if_match": 7, "item": {}}]},
            {"requests.0.if_match": "wrong_type", "requests.0.item": "unknown_parameter"},
        ),
        ({"requests": [{"operation": "get", "key": {"id": "x"}}], "atomic": True}, {"atomic": "unknown_parameter"}),
    ],
)
def test_a_malformed_batch_does_nothing(caller: Caller, body: dict[str, Any], fields: dict[str, str]) -> None:
    assert caller.post("/v1/users/batch", body).fields == fields


def test_a_member_of_a_batch_that_can_be_left_out_may_be_null(caller: Caller) -> None:
    requests = [
        {"operation": "create", "item": a_user(id="new"), "idempotency_key": None},
        {"operation": "put", "item": a_user(id="put"), "if_match": None, "if_none_match": None},
    ]
    written = caller.post("/v1/users/batch", {"requests": requests}).json["outcomes"]
    requests = [
        {"operation": "get", "key": {"id": "put"}, "consistent": None},
        {"operation": "delete", "key": {"id": "new"}, "if_match": None},
    ]
    done = caller.post("/v1/users/batch", {"requests": requests}).json["outcomes"]

    assert [each["ok"] for each in (*written, *done)] == [True] * 4
    assert caller.get("/v1/users/new").status == 404


def test_a_batch_keeps_to_its_tenant(caller: Caller) -> None:
    caller.of("xyz").post("/v1/users", a_user(id="theirs"))
    requests = [
        {"operation": "get", "key": {"id": "theirs"}},
        {"operation": "get", "key": {"id": "theirs", "tenant_id": "xyz"}},
        {"operation": "put", "item": a_user(id="mine", tenant_id="xyz")},
    ]

    outcomes = caller.post("/v1/users/batch", {"requests": requests}).json["outcomes"]

    assert [each["error"]["code"] for each in outcomes] == ["not_found", "validation_failed", "validation_failed"]


def test_direct_invocation_takes_the_same_batch(service: Service) -> None:
    requests = [{"operation": "get", "key": {"id": "00"}}, {"operation": "delete", "key": {"id": "none"}}]

    got, deleted = service.result("batch", requests=requests)

    assert got["result"]["id"] == "00"
    assert deleted["error"]["code"] == "not_found"


def test_items_whose_id_is_the_name_of_a_route_can_be_written_and_read_by_a_batch(caller: Caller) -> None:
    for name in ("count", "batch"):
        assert caller.put(f"/v1/users/{name}", a_user()).status == 201
        read = {"requests": [{"operation": "get", "key": {"id": name}}]}
        [outcome] = caller.post("/v1/users/batch", read).json["outcomes"]
        assert outcome["result"]["id"] == name
        assert name == "count" or caller.get(f"/v1/users/{name}").json == outcome["result"]
        assert caller.delete(f"/v1/users/{name}").status == 204
    assert caller.get("/v1/users/count").json == {"count": 0, "exact": True}


def test_an_entity_that_is_only_read_refuses_the_writes_of_a_batch(caller: Caller) -> None:
    path = {"id": "x", "path": "/a", "accessed_at": "2026-01-01T00:00:00Z"}
    requests = [{"operation": "get", "key": path}, {"operation": "delete", "key": path}]

    outcomes = caller.post("/v1/accesses/batch", {"requests": requests}).json["outcomes"]

    assert [each["error"]["code"] for each in outcomes] == ["not_found", "method_not_allowed"]
