"""GETs of the Python client over REST, a hundred at once: tasks of an `AsyncClient`, and threads of a `Client`.

    make run                                            # in another terminal
    python -m dynashard_lab.bench.awaited_client [URL]

Both faces take turns against the local stack, so a busy machine slows both; the median round counts. The CPU time is
that of this process. The time of the clock is mostly the stack's, which shares the machine.
"""

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final
from urllib.request import Request, urlopen

from dynashard_client import AsyncClient, Client, Item, Retries

AT_ONCE: Final = 100
GETS: Final = 1000
ROUNDS: Final = 7
RETRIES: Final = Retries(attempts=20)
"""A stack that has just started sheds load until its processes are up."""


class User(Item, path="users"):
    """What is read."""

    id: str | None = None
    email: str
    display_name: str


def measure(url: str, gets: int = GETS, rounds: int = ROUNDS) -> dict[str, tuple[float, float]]:
    """Return the median milliseconds of CPU and of the clock that a GET takes, under each face."""
    token = _token(url)
    with (
        Client.rest(url, token=token, retries=RETRIES) as client,
        ThreadPoolExecutor(AT_ONCE) as threads,
        asyncio.Runner() as runner,
    ):
        users = client.collection(User)
        key = users.create(User(email="ada@example.com", display_name="Ada"))
        opened = AsyncClient.rest(url, token=token, retries=RETRIES, connections=AT_ONCE)
        awaited = opened.collection(User)

        async def some() -> None:
            for _ in range(gets // AT_ONCE):
                await awaited.get(key)

        async def tasks() -> None:
            await asyncio.gather(*(some() for _ in range(AT_ONCE)))

        def by_threads() -> None:
            for _ in threads.map(lambda _: users.get(key), range(gets)):
                pass

        ways: dict[str, Callable[[], None]] = {"tasks": lambda: runner.run(tasks()), "threads": by_threads}
        samples: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(rounds + 1):
            for name, way in ways.items():
                samples[name].append(_timed(way, gets))
        runner.run(opened.close())
    # The first round opens connections, and the stack starts its processes.
    return {name: _median(taken[1:]) for name, taken in samples.items()}


def _timed(way: Callable[[], None], gets: int) -> tuple[float, float]:
    cpu, clock = time.process_time(), time.perf_counter()
    way()
    return (time.process_time() - cpu) * 1000 / gets, (time.perf_counter() - clock) * 1000 / gets


def _median(samples: list[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(cpu for cpu, _ in samples), statistics.median(clock for _, clock in samples)


def _token(url: str) -> str:
    asked = Request(f"{url}/local/tokens", json.dumps({"tenant_id": "bench"}).encode(), method="POST")  # noqa: S310
    with urlopen(asked) as answer:  # noqa: S310 - the caller's own stack
        token: str = json.load(answer)["token"]
        return token


def main() -> None:
    """Print a line for each face."""
    url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"
    for name, (cpu, clock) in measure(url).items():
        print(f"{AT_ONCE} {name}: {cpu:.2f} ms of CPU time a GET, {1000 / clock:.0f} GETs a second")


if __name__ == "__main__":
    main()
