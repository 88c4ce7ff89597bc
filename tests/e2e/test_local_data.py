"""Acknowledged writes survive any end of the stack, in their shards."""

import asyncio
import os
import signal
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import xxhash

from dynashard_local.engine.tables import engine_client
from dynashard_local.run import raise_file_limit
from tests.depth import examples
from tests.e2e.local_process import LocalProcess
from tests.waiting import HANG_SECONDS

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes through /proc"),
]

Start = Callable[..., LocalProcess]
CREATES = 2000
CALLERS = examples(200)
"""Concurrent creators. The number bounds how many creates are acknowledged between the decision and the kill."""
KILL_AFTER = examples(1600)


def user(number: int) -> dict[str, Any]:
    return {"email": f"user{number}@example.com", "display_name": f"User {number}"}


def listed(client: httpx.Client) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = client.get("/v1/users", params={"limit": 1000, **({"cursor": cursor} if cursor else {})})
        page.raise_for_status()
        items += page.json()["items"]
        cursor = page.json()["cursor"]
        if cursor is None:
            return items


def test_a_tenant_sees_no_items_of_another(local_stack: LocalProcess) -> None:
    local_stack.client("one").post("/v1/users", json=user(1)).raise_for_status()

    assert listed(local_stack.client("another")) == []
    assert len(listed(local_stack.client("one"))) == 1


def test_nobody_else_on_the_machine_reads_the_data(local_stack: LocalProcess) -> None:
    local_stack.client("one").post("/v1/users", json=user(2)).raise_for_status()

    modes = {path.name: path.stat().st_mode & 0o077 for path in local_stack.data_dir.rglob("*") if path.is_file()}
    assert {name for name, mode in modes.items() if mode} == set()
    assert {"dynamodb.sqlite", "queues.sqlite"} <= set(modes)


def test_the_landing_page_leads_to_the_documentation(local_stack: LocalProcess) -> None:
    page = httpx.get(f"{local_stack.url}/")

    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert 'href="/v1/docs"' in page.text
    assert f"curl {local_stack.url}/v1/users -H" in page.text
    assert httpx.get(f"{local_stack.url}/v1/docs").status_code == 200


def test_a_page_of_this_machine_signs_in_and_calls(local_stack: LocalProcess) -> None:
    page = {"origin": "http://localhost:5173"}
    token = httpx.post(f"{local_stack.url}/local/tokens", json={"tenant_id": "one"}, headers=page)
    asked = {**page, "access-control-request-method": "GET", "access-control-request-headers": "authorization"}
    allowed = httpx.options(f"{local_stack.url}/v1/users", headers=asked)
    listed_there = httpx.get(
        f"{local_stack.url}/v1/users", headers={**page, "authorization": f"Bearer {token.json()['token']}"}
    )

    for answer in (token, allowed, listed_there):
        assert answer.headers["access-control-allow-origin"] == page["origin"]
    assert (allowed.status_code, listed_there.status_code) == (204, 200)


def key_in_its_shard(name: str) -> tuple[str, str]:
    return f"user.v1.User:abc:{xxhash.xxh64_intdigest(f'user.v1.User:abc:{name}'.encode()) & 15}", name


async def create_until_killed(stack: LocalProcess, authorization: str) -> list[str]:
    """Create users; the engine is killed when enough are acknowledged. Their ids."""
    acknowledged: list[str] = []
    engine = stack.engine_process()
    numbers = iter(range(CREATES))
    context = ssl.create_default_context()

    async def caller() -> None:
        # Each thread has its own client, because a shared pool of many connections costs more than the requests.
        async with httpx.AsyncClient(
            base_url=stack.url,
            headers={"Authorization": authorization},
            verify=context,
            timeout=HANG_SECONDS,
            trust_env=False,
        ) as client:
            for number in numbers:
                try:
                    answer = await client.post("/v1/users", json=user(number))
                except httpx.TransportError:
                    if len(acknowledged) >= KILL_AFTER:
                        return
                    continue
                if answer.status_code == httpx.codes.CREATED:
                    acknowledged.append(answer.json()["id"])
                    if len(acknowledged) == KILL_AFTER:
                        os.kill(engine, signal.SIGKILL)

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return acknowledged


def stored_keys(endpoint: str, tenant: str) -> set[tuple[str, str]]:
    client = engine_client(endpoint)
    (table,) = (name for name in client.list_tables()["TableNames"] if name.endswith("-Table"))
    items = client.get_paginator("scan").paginate(TableName=table, ProjectionExpression="PK, SK")
    keys = {(item["PK"]["S"], item["SK"]["S"]) for page in items for item in page["Items"]}
    return {key for key in keys if key[0].startswith(f"user.v1.User:{tenant}:")}


def test_acknowledged_creates_and_tokens_outlive_a_kill_of_everything_and_then_of_the_engine(
    start_local: Start,
) -> None:
    raise_file_limit()
    stack = start_local().ready()
    client = stack.client()
    authorization = str(client.headers["Authorization"])
    created = [client.post("/v1/users", json=user(number)).raise_for_status().json() for number in range(20)]

    stack.kill_everything()

    second = start_local(PORT=stack.url.rpartition(":")[2]).ready()
    with httpx.Client(base_url=second.url, headers={"Authorization": authorization}, trust_env=False) as later:
        assert sorted(listed(later), key=lambda item: item["id"]) == sorted(created, key=lambda item: item["id"])

    acknowledged = asyncio.run(create_until_killed(second, authorization))

    assert second.ended() == 1
    assert KILL_AFTER <= len(acknowledged) <= KILL_AFTER + CALLERS
    third = start_local().ready()
    found = {item["id"] for item in listed(third.client())}
    assert found >= {*acknowledged, *(item["id"] for item in created)}
    assert stored_keys(third.text.split("engine at ")[1].split()[0], "abc") == set(map(key_in_its_shard, found))
