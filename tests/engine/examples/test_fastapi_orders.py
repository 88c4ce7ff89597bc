"""The example with FastAPI: entities as bodies and answers, pages by cursor, and errors by the tree."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest

pytestmark = pytest.mark.engine


@dataclass(frozen=True)
class Client:
    """Sends requests to an application, which starts and ends with each."""

    app: Any

    def __call__(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with (
                self.app.router.lifespan_context(self.app),
                httpx.AsyncClient(transport=transport, base_url="http://orders") as client,
            ):
                return await client.request(method, path, **more)

        return asyncio.run(asked())


@pytest.fixture
def client(example: Callable[[str], Any]) -> Client:
    return Client(example("fastapi_orders").app)


@pytest.fixture
def shop() -> str:
    return uuid4().hex


def ordered(client: Client, shop: str, **fields: Any) -> httpx.Response:
    return client("POST", "/orders", json={"shop": shop, "item": "tea", **fields})


def test_an_order_is_created_read_changed_and_deleted(client: Client, shop: str) -> None:
    made = ordered(client, shop, amount=2)
    path = f"/shops/{shop}/orders/{made.json()['id']}"

    read = client("GET", path)
    changed = client("PATCH", path, json={"state": "sent"}, headers={"If-Match": read.headers["ETag"]})
    late = client("PATCH", path, json={"amount": 3}, headers={"If-Match": read.headers["ETag"]})
    deleted = client("DELETE", path)

    assert (made.status_code, made.headers["ETag"]) == (201, read.headers["ETag"])
    assert (
        read.json()
        == made.json()
        == {"shop": shop, "id": made.json()["id"], "item": "tea", "amount": 2, "state": "open"}
    )
    assert (changed.status_code, changed.json()["state"], changed.json()["amount"]) == (200, "sent", 2)
    assert (late.status_code, late.json()["code"]) == (412, "revision_mismatch")
    assert (deleted.status_code, client("GET", path).json()["code"]) == (204, "not_found")


@pytest.mark.parametrize(("chosen", "expected"), [({}, 7), ({"state": "open"}, 5), ({"state": "sent"}, 2)])
def test_cursors_lead_through_all_pages(client: Client, shop: str, chosen: dict[str, str], expected: int) -> None:
    made = [ordered(client, shop, state="sent" if n < 2 else "open").json() for n in range(7)]
    path, found, cursor = f"/shops/{shop}/orders", [], ""

    while True:
        page = client("GET", path, params={"limit": 3, **chosen, **({"cursor": cursor} if cursor else {})}).json()
        assert len(page["items"]) <= 3
        found += page["items"]
        if not (cursor := page["cursor"]):
            break

    wanted = [each for each in made if not chosen or each["state"] == chosen["state"]]
    assert found == sorted(wanted, key=lambda each: each["id"], reverse=True)
    assert len(found) == expected


def test_errors_have_the_status_and_code_of_the_tree(client: Client, shop: str) -> None:
    order = ordered(client, shop).json()

    taken = client("POST", "/orders", json=order)
    colon = ordered(client, "a:b")
    cursor = client("GET", f"/shops/{shop}/orders", params={"cursor": "no"})
    invalid = ordered(client, shop, amount=0)

    assert (taken.status_code, taken.json()["code"]) == (409, "already_exists")
    assert taken.headers["content-type"] == "application/problem+json"
    assert (colon.status_code, colon.json()["code"]) == (422, "invalid_key")
    assert (cursor.status_code, cursor.json()["code"]) == (400, "invalid_cursor")
    assert (invalid.status_code, invalid.json()["detail"][0]["loc"]) == (422, ["body", "amount"])


def test_the_entity_is_the_schema(client: Client) -> None:
    document = client("GET", "/openapi.json").json()

    body = document["paths"]["/orders"]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    schema = document["components"]["schemas"][body.rpartition("/")[2]]
    assert schema["required"] == ["shop", "item"]
    assert schema["properties"]["item"]["maxLength"] == 200
