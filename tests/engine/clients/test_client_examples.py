"""The examples of `AsyncClient`: a script of many tasks, and FastAPI with routes that are coroutines."""

import asyncio
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest

from domain.samples.users import User
from dynashard.transport import Transport
from tests.engine.api.api_on_engine import idempotency_table
from tests.engine.clients.clients_on_engine import Served, served
from tests.engine.raw_dynamodb import RawDynamoDB

pytestmark = pytest.mark.engine

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def backend(transport: Transport, create_table: Any, dynamodb: RawDynamoDB) -> Iterator[Served]:
    with idempotency_table(dynamodb) as records, served(transport, create_table(), records) as serving:
        yield serving


@pytest.fixture(autouse=True)
def example_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])


def test_a_script_creates_and_reads_by_tasks(backend: Served, tenant: str, capsys: pytest.CaptureFixture[str]) -> None:
    script: Any = import_module("client_script")

    names = asyncio.run(script.main(backend.url, backend.token(tenant), 30))

    assert names == [f"U{number:03d}" for number in range(30)]
    assert capsys.readouterr().out.endswith("30 were created; 30 are listed\n")


def test_fastapi_answers_from_a_backend(backend: Served, tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = import_module("fastapi_client").app
    monkeypatch.setenv("BACKEND_URL", backend.url)
    monkeypatch.setenv("BACKEND_TOKEN", backend.token(tenant))
    with backend.client("rest", tenant) as client:
        client.collection(User).create(User(tenant_id=tenant, id="ada", email="ada@example.com", display_name="Ada"))

    async def asked() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://names") as caller,
        ):
            return [
                await caller.get("/names/ada"),
                await caller.get("/names/bob"),
                await caller.get("/names", params={"user_id": ["bob", "ada"]}),
            ]

    one, missing, several = asyncio.run(asked())
    assert (one.status_code, one.json()) == (200, "Ada")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert several.json() == [None, "Ada"]
