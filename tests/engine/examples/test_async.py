"""The examples on asyncio: FastAPI with routes that are coroutines, and a script of many tasks."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.engine


def test_fastapi_serves_from_its_event_loop(example: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    app = example("fastapi_async").app
    started: list[str] = []
    plain = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        started.append(thread.name)
        plain(thread)

    monkeypatch.setattr(threading.Thread, "start", start)

    async def main() -> tuple[list[int], list[Any], httpx.Response, httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://readings") as client,
        ):
            started.clear()
            made = await asyncio.gather(
                *(
                    client.post("/readings", json={"site": f"s{number % 3}", "sensor": "a", "value": number})
                    for number in range(30)
                )
            )
            latest = await client.get("/latest", params={"site": ["s0", "s1", "nowhere"]})
            page = await client.get("/sites/s0/readings", params={"limit": 4})
            wrong = await client.get("/sites/s0/readings", params={"cursor": "wrong"})
            return [each.status_code for each in made], latest.json(), page, wrong

    made, latest, page, wrong = asyncio.run(main())

    assert made == [201] * 30
    assert [each and each["site"] for each in latest] == ["s0", "s1", None]
    assert len(page.json()["items"]) == 4
    assert page.json()["cursor"] is not None
    assert (wrong.status_code, wrong.json()["code"]) == (400, "invalid_cursor")
    assert [each for each in started if each.startswith("dynashard")] == []


def test_a_script_writes_and_reads_by_tasks(example: Callable[[str], Any]) -> None:
    assert asyncio.run(example("async_script").main(100)) == sum(each / 2 for each in range(100)) + 1
