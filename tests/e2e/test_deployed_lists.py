"""Listings of 120 users over 16 shards, through the deployed gateway."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from xxhash import xxh64_intdigest

from tests.e2e.deployment import Deployment

pytestmark = pytest.mark.e2e

USERS = [
    {
        "id": f"user-{number:03}",
        "email": f"user{number}@example.com",
        "display_name": f"User {number}",
        "department": ("eng", "math", "art")[number % 3],
        "manager_id": "user-000" if number else None,
        "status": "disabled" if number % 10 == 0 else "active",
    }
    for number in range(120)
]
IDS = [str(user["id"]) for user in USERS]
NEXT = '>; rel="next"'


@pytest.fixture(scope="module")
def tenant(deployment: Deployment) -> httpx.Client:
    """A tenant with 120 users that several callers created at once, and another tenant with the same ids."""
    client, other = deployment.tenant("many"), deployment.tenant("beside")
    with ThreadPoolExecutor(2) as pool:
        created = list(pool.map(lambda user: client.post("/v1/users", json=user).status_code, USERS))
    assert created == [201] * len(USERS)
    assert other.post("/v1/users", json=USERS[7]).status_code == 201
    return client


def pages(client: httpx.Client, **query: Any) -> Iterator[list[dict[str, Any]]]:
    """Read the pages of a listing, following `Link` headers."""
    answered = client.get("/v1/users", params=query)
    for _ in range(200):
        assert answered.status_code == 200, answered.text
        page = answered.json()
        assert len(page["items"]) <= query.get("limit", 50)
        yield page["items"]
        if page["cursor"] is None:
            assert "link" not in answered.headers
            return
        link = answered.headers["link"]
        assert link.endswith(NEXT)
        target = link.removeprefix("<").removesuffix(NEXT)
        assert parse_qs(urlsplit(target).query)["cursor"] == [page["cursor"]]
        answered = client.get(target)
    pytest.fail("the listing does not end")


def ids(client: httpx.Client, **query: Any) -> list[str]:
    return [item["id"] for page in pages(client, **query) for item in page]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("limit", [1, 7, 50, 120, 1000])
def test_round_robin_gives_every_user_once(tenant: httpx.Client, limit: int) -> None:
    limited = ids(tenant, limit=limit)

    assert sorted(limited) == IDS


@pytest.mark.sampled(3)
@pytest.mark.parametrize("limit", [9, 50, 1000])
def test_ordered_gives_every_user_in_order_in_both_directions(tenant: httpx.Client, limit: int) -> None:
    assert ids(tenant, order="ordered", limit=limit) == IDS
    assert ids(tenant, order="ordered", direction="desc", limit=limit) == IDS[::-1]


@pytest.mark.parametrize("limit", [9, 50, 1000])
def test_shard_order_gives_one_shard_after_the_other(tenant: httpx.Client, limit: int) -> None:
    def place(user_id: str) -> tuple[int, str]:
        return xxh64_intdigest(f"user.v1.User:many:{user_id}".encode()) & 15, user_id

    assert ids(tenant, order="shard", limit=limit) == sorted(IDS, key=place)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"prefix": "user-01"}, IDS[10:20]),
        ({"from": "user-050", "to": "user-060"}, IDS[50:60]),
        ({"from": "user-115"}, IDS[115:]),
        ({"status": "disabled"}, IDS[::10]),
        ({"prefix": "nobody"}, []),
        ({"consistent": "true", "to": "user-005"}, IDS[:5]),
    ],
    ids=str,
)
@pytest.mark.parametrize("order", ["round_robin", "ordered", "shard"])
def test_ranges_and_filters_hold_in_every_order(
    tenant: httpx.Client, order: str, query: Mapping[str, str], expected: list[str]
) -> None:
    assert sorted(ids(tenant, order=order, limit=4, **query)) == expected


def test_sharded_indexes_are_listed_by_their_fields(tenant: httpx.Client) -> None:
    engineers = ids(tenant, index="by_department", department="eng", order="ordered", limit=11)
    reports = ids(tenant, index="by_manager", manager_id="user-000", limit=25)
    active = ids(tenant, index="by_department", department="art", status="active", order="ordered")

    assert engineers == IDS[::3]
    assert sorted(reports) == IDS[1:]
    assert active == [user["id"] for user in USERS if user["department"] == "art" and user["status"] == "active"]


def test_an_unsharded_index_finds_one_user_by_email(tenant: httpx.Client) -> None:
    found = tenant.get("/v1/users", params={"index": "by_email", "email": "user42@example.com"})

    assert [item["id"] for item in found.json()["items"]] == ["user-042"]


def test_only_the_fields_asked_for_are_answered(tenant: httpx.Client) -> None:
    (first,) = next(pages(tenant, order="ordered", limit=1, fields="id,email"))

    assert first == {"id": "user-000", "email": "user0@example.com"}


def test_a_cursor_is_valid_only_for_its_tenant_and_query(deployment: Deployment, tenant: httpx.Client) -> None:
    cursor = tenant.get("/v1/users", params={"limit": 5}).json()["cursor"]
    middle = len(cursor) // 2
    damaged = cursor[:middle] + ("A" if cursor[middle] != "A" else "B") + cursor[middle + 1 :]

    refused = {
        "other tenant": deployment.tenant("beside").get("/v1/users", params={"cursor": cursor}),
        "other order": tenant.get("/v1/users", params={"cursor": cursor, "order": "shard"}),
        "other filter": tenant.get("/v1/users", params={"cursor": cursor, "status": "active"}),
        "other index": tenant.get(
            "/v1/users", params={"cursor": cursor, "index": "by_manager", "manager_id": "user-000"}
        ),
        "damaged": tenant.get("/v1/users", params={"cursor": damaged}),
        "truncated": tenant.get("/v1/users", params={"cursor": cursor[:-1]}),
        "empty": tenant.get("/v1/users", params={"cursor": ""}),
    }
    taken = tenant.get("/v1/users", params={"cursor": cursor, "limit": 5})

    answers = {name: (answer.status_code, answer.json().get("code")) for name, answer in refused.items()}
    assert answers == dict.fromkeys(refused, (400, "invalid_cursor"))
    assert taken.status_code == 200


def test_another_tenant_with_the_same_ids_has_its_own_list(deployment: Deployment, tenant: httpx.Client) -> None:
    assert ids(deployment.tenant("beside")) == ["user-007"]
    assert len(ids(tenant)) == 120
