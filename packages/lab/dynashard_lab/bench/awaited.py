"""CPU time of a GET with `await`, as a multiple of the plain call in the same process.

    python -m dynashard_lab.bench.awaited

Both faces take turns against a server that answers at once, so a busy machine slows both. The least of many rounds
counts. Time of the kernel is included, because an event loop asks it more often.
"""

import asyncio
import time
from typing import TYPE_CHECKING, Final

from dynashard import AsyncDynashard, connect
from dynashard_lab.bench import stored
from dynashard_lab.bench.clients.layer import SETTINGS, opened
from dynashard_lab.bench.users import User
from dynashard_lab.bench.world import canned_process

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

GETS: Final = 192
AT_ONCE: Final = 16
KEY: Final = {"tenant_id": stored.TENANT, "id": f"{stored.KSUID}{1:024d}"}


async def ratios(url: str, rounds: int) -> tuple[float, float]:
    """Return what a GET takes one after another, and with 16 under way, as multiples of the plain call."""
    db = opened(connect(url, **SETTINGS))
    users, awaited = db.collection(User), AsyncDynashard.over(db).collection(User)

    async def plain() -> None:
        for _ in range(GETS):
            users.get(KEY)

    async def gets(count: int) -> None:
        for _ in range(count):
            await awaited.get(KEY)

    async def together() -> None:
        await asyncio.gather(*(gets(GETS // AT_ONCE) for _ in range(AT_ONCE)))

    ways: list[Callable[[], Awaitable[None]]] = [plain, lambda: gets(GETS), together]
    least = [float("inf")] * len(ways)
    for each in range(rounds + 1):
        for at, way in enumerate(ways):
            began = time.process_time()
            await way()
            # The first round opens connections.
            if each:
                least[at] = min(least[at], time.process_time() - began)
    return least[1] / least[0], least[2] / least[0]


def main(rounds: int = 40) -> None:
    """Print a line for each kind of event loop."""
    import uvloop  # noqa: PLC0415 - not on Windows

    with canned_process() as url:
        for name, run in (("asyncio", asyncio.run), ("uvloop", uvloop.run)):
            alone, together = run(ratios(url, rounds))
            print(f"{name}: one after another {alone:.2f}, {AT_ONCE} at once {together:.2f}")


if __name__ == "__main__":
    main()
