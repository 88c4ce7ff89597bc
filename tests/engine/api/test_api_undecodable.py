"""Stored items that do not fit their declaration, over HTTP and by direct invocation."""

from collections.abc import Mapping
from typing import Any

import pytest

from domain.samples.users import User
from dynashard import definition
from dynashard.routing import home
from dynashard.transport import Transport
from tests.api_caller import Caller, a_user
from tests.engine.api.api_on_engine import caller_on
from tests.engine.commands.commands_on_engine import Service, commands_on
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine

SIZE = 300
ODD: Mapping[str, Mapping[str, Any]] = {
    "u000": {"email": {"M": {}}},
    "u001": {"status": {"L": []}},
    "u002": {"tenant_id": {"S": "xyz"}},
    "u003": {"tenant_id": {"S": "another"}},
    "u004": {},
}
"""What five of 300 rows have in place of what is stored; the last has nothing but its key."""
OTHERS = sorted(f"u{number:03}" for number in range(len(ODD), SIZE))


@pytest.fixture(scope="module")
def ways(transport: Transport, create_table: Any, dynamodb: RawDynamoDB) -> tuple[Caller, Service]:
    """A caller and a service on a table with 300 users of their tenant, 5 of which do not fit."""
    table = create_table()
    caller, service = caller_on(transport, table), Service(commands_on(transport, table))
    for first in range(0, SIZE, 100):
        users = [a_user(id=f"u{n:03}", email=f"u{n}@example.com", department="eng") for n in range(first, first + 100)]
        service.result("batch_write", put=users)
    entity = definition(User)
    for sort, odd in ODD.items():
        place = home(entity, entity.key_of({"tenant_id": "abc", "id": sort}), 16)
        key = {"PK": {"S": place}, "SK": {"S": sort}}
        row = dynamodb.call("GetItem", TableName=table, Key=key)["Item"]
        dynamodb.call("PutItem", TableName=table, Item={**row, **odd} if odd else key)
    return caller, service


@pytest.mark.parametrize(
    "query",
    [{}, {"order": "ordered"}, {"fields": "id,email,status"}, {"consistent": "true", "order": "shard"}],
    ids=str,
)
def test_a_listing_has_the_others_and_says_how_many_it_leaves_out(
    ways: tuple[Caller, Service], query: dict[str, str]
) -> None:
    caller, _ = ways

    answer = caller.get("/v1/users", query={"limit": "1000", **query})

    assert (answer.status, answer.headers["undecodable-items"]) == (200, "5")
    assert sorted(item["id"] for item in answer.json["items"]) == OTHERS


def test_only_pages_that_leave_out_something_have_the_header(ways: tuple[Caller, Service]) -> None:
    caller, _ = ways

    found, counted = 0, 0
    query = {"limit": "100", "order": "ordered"}
    while True:
        answer = caller.get("/v1/users", query=query)
        found += len(answer.json["items"])
        counted += int(answer.headers.get("undecodable-items", 0))
        assert answer.headers.get("undecodable-items") != "0"
        if answer.json["cursor"] is None:
            break
        query = {**query, "cursor": answer.json["cursor"]}

    assert (found, counted) == (SIZE - 5, 5)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/v1/users", {"limit": "1000", "strict": "true"}),
        ("/v1/users", {"limit": "1000", "strict": "true", "fields": "id,email"}),
        ("/v1/users/u000", {}),
        ("/v1/users/u002", {}),
        ("/v1/users/u004", {}),
    ],
    ids=str,
)
def test_a_strict_listing_and_a_get_answer_with_the_error(
    ways: tuple[Caller, Service], path: str, query: dict[str, str]
) -> None:
    caller, _ = ways

    answer = caller.get(path, query=query)

    assert (answer.status, answer.json["code"]) == (500, "undecodable_item")
    assert b"another" not in answer.content


def test_a_tenant_that_a_row_claims_does_not_see_it(ways: tuple[Caller, Service]) -> None:
    caller, _ = ways

    answer = caller.of("xyz").get("/v1/users", query={"limit": "1000"})

    assert (answer.status, answer.json["items"]) == (200, [])
    assert caller.of("xyz").get("/v1/users/u002").status == 404


def test_direct_invocation_names_what_it_leaves_out(ways: tuple[Caller, Service]) -> None:
    _, service = ways

    listed = service.ask("list", partition={}, limit=1000)
    batch = service.ask("batch_get", keys=[{"id": sort} for sort in (*ODD, "u299")], caller="service")
    strict = service.ask("list", partition={}, limit=1000, strict=True)

    assert sorted(item["id"] for item in listed["result"]["items"]) == OTHERS
    for answer in (listed, batch):
        assert answer["ok"] is True
        assert answer["undecodable"]["number"] == 5
        assert sorted(key["sort_key"] for key in answer["undecodable"]["keys"]) == sorted(ODD)
        assert all(key["partition_key"].startswith("user.v1.User:abc:") for key in answer["undecodable"]["keys"])
        assert all(key["problem"].startswith("user.v1.User") for key in answer["undecodable"]["keys"])
    assert (strict["ok"], strict["error"]["code"]) == (False, "undecodable_item")


def test_keys_of_what_is_left_out_are_not_for_a_user_for_whom_a_service_asks(ways: tuple[Caller, Service]) -> None:
    _, service = ways

    listed = service.ask("list", limit=1000, caller={"scopes": ["users:read", "users:all"]})

    assert listed["undecodable"] == {"number": 5, "keys": []}
