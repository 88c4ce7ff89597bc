"""What only `AsyncClient` has: tasks, cancellations, deadlines, event loops. `test_client.py` tests both faces."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from domain.samples.users import User
from dynashard.transport import Transport
from dynashard_client import AsyncClient, AsyncItems
from dynashard_client.errors import DynashardError, EngineUnavailableError, OutcomeUnknownError
from tests.engine.api.api_on_engine import idempotency_table
from tests.engine.clients.clients_on_engine import HALF, HELD, RESOURCES, Served, served
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.engine

SHORT = 0.2
"""Seconds that a client waits for an answer that never comes."""


@pytest.fixture(scope="module")
def serving(transport: Transport, create_table: Any, dynamodb: RawDynamoDB) -> Iterator[Served]:
    with idempotency_table(dynamodb) as records, served(transport, create_table(), records) as serving:
        yield serving


@pytest.fixture
def backend(serving: Served) -> Served:
    serving.network.reset()
    serving.pauses.clear()
    return serving


def a_user(tenant: str, name: str = "ada") -> User:
    return User(tenant_id=tenant, id=name, email=f"{name}@example.com", display_name=name)


def on_loop(backend: Served, tenant: str, use: Callable[[AsyncItems[User]], Awaitable[Any]], **options: Any) -> Any:
    """Return what a function makes of the users of a new client, on a new event loop."""

    async def opened() -> Any:
        async with backend.async_rest(tenant, **options) as client:
            return await use(client.collection(User))

    return asyncio.run(opened())


async def happened(event: Any) -> None:
    assert await asyncio.to_thread(event.wait, HANG_SECONDS)


def test_listings_are_iterated_over_and_awaited(backend: Served, tenant: str) -> None:
    async def listed(users: AsyncItems[User]) -> list[list[str]]:
        await users.batch_write(put=[a_user(tenant, name) for name in "abcde"])
        first = await users.list(order="ordered", limit=2)
        return [
            [user.id for user in first],
            [user.id async for user in users.list(order="ordered", limit=2, cursor=first.cursor)],
            [user.id async for page in users.pages(order="ordered", limit=2) for user in page],
            [user.id async for user in users.items(order="ordered", limit=2)],
        ]

    assert on_loop(backend, tenant, listed) == [["a", "b"], ["c", "d"], [*"abcde"], [*"abcde"]]


def test_a_listing_that_is_left_reads_no_further_page(backend: Served, tenant: str) -> None:
    async def begun(users: AsyncItems[User]) -> str | None:
        await users.batch_write(put=[a_user(tenant, name) for name in "abcde"])
        async for user in users.items(order="ordered", limit=1):
            found: User = user
            return found.id
        return None

    assert on_loop(backend, tenant, begun) == "a"
    assert backend.network.requests == 2


def test_tasks_share_as_many_connections_as_the_client_may_have(backend: Served, tenant: str) -> None:
    async def together(users: AsyncItems[User]) -> list[str]:
        await users.create(a_user(tenant))
        read = await asyncio.gather(*(users.get("ada") for _ in range(40)))
        return [user.id for user in read]

    assert on_loop(backend, tenant, together, connections=4) == ["ada"] * 40
    assert 1 < backend.network.most <= 4
    assert len(backend.network.peers) <= 4


@pytest.mark.parametrize("answered", [HELD, HALF], ids=["before its answer", "amid its answer"])
def test_a_cancelled_request_leaves_no_connection_that_another_could_get_its_answer_from(
    backend: Served, tenant: str, answered: int
) -> None:
    async def cancelled(users: AsyncItems[User]) -> str:
        await users.create(a_user(tenant))
        backend.network.plan[:] = [answered]
        waiting = asyncio.create_task(users.update("ada", {"display_name": "Countess"}))
        await happened(backend.network.arrived)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await happened(backend.network.left)
        # The write was done: a caller who cancels reads the item.
        return (await users.get("ada", consistent=True)).display_name

    # The only connection was closed, and its place is free.
    assert on_loop(backend, tenant, cancelled, connections=1) == "Countess"
    assert backend.network.requests == 3
    assert len(backend.network.peers) == 2


class CancelledAt:
    """Awaits something, and is cancelled where it waits for the nth time; `ended` says whether it ended before."""

    def __init__(self, work: Awaitable[Any], at: int) -> None:
        self._work = work
        self._at = at
        self.ended = False

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self._work.__await__()
        for _ in range(self._at):
            try:
                waits_for = next(steps)
            except StopIteration:
                self.ended = True
                return
            yield waits_for
        with suppress(StopIteration, asyncio.CancelledError):
            yield steps.throw(asyncio.CancelledError())
            yield from steps


def test_the_only_connection_is_used_again_wherever_a_request_was_cancelled(backend: Served, tenant: str) -> None:
    async def cancelled(users: AsyncItems[User]) -> int:
        await users.create(a_user(tenant))
        at, ended = 0, False
        while not ended:
            at += 1
            work = CancelledAt(users.get("ada"), at)
            await work
            ended = work.ended
            assert (await users.get("ada")).id == "ada"
        return at

    assert on_loop(backend, tenant, cancelled, connections=1, timeout=1.0, attempts=1) > 3


def test_a_task_that_waits_for_a_connection_is_cancelled_without_sending(backend: Served, tenant: str) -> None:
    async def cancelled(users: AsyncItems[User]) -> None:
        backend.network.plan[:] = [HELD]
        first = asyncio.create_task(users.find("ada"))
        await happened(backend.network.arrived)
        second = asyncio.create_task(users.find("bob"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(second, SHORT)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)

    on_loop(backend, tenant, cancelled, connections=1)
    assert backend.network.requests == 1


def test_a_cancelled_pause_sends_nothing_more(backend: Served, tenant: str) -> None:
    async def cancelled() -> None:
        paused = asyncio.Event()

        async def forever(_seconds: float) -> None:
            paused.set()
            await asyncio.Event().wait()

        async with backend.async_rest(tenant, sleep_async=forever) as client:
            backend.network.plan[:] = [429]
            waiting = asyncio.create_task(client.collection(User).get("ada"))
            await paused.wait()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(cancelled())
    assert backend.network.requests == 1


def test_a_deadline_covers_all_attempts(backend: Served, tenant: str) -> None:
    async def too_late(users: AsyncItems[User]) -> None:
        backend.network.plan[:] = [HELD] * 5
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(SHORT):
                await users.get("ada")
        await happened(backend.network.left)

    on_loop(backend, tenant, too_late)
    assert (backend.network.requests, backend.pauses) == (1, [])


def test_a_create_whose_answer_takes_too_long_is_sent_again_and_done_once(backend: Served, tenant: str) -> None:
    async def created(users: AsyncItems[User]) -> tuple[User, list[User]]:
        backend.network.plan[:] = [HELD]
        return await users.create(a_user(tenant)), [user async for user in users.items()]

    made, found = on_loop(backend, tenant, created, timeout=SHORT)
    assert found == [made]
    assert backend.pauses == [0.1]
    assert backend.network.requests == 3


def test_a_write_whose_answer_takes_too_long_is_of_unknown_outcome(backend: Served, tenant: str) -> None:
    async def put(users: AsyncItems[User]) -> None:
        backend.network.plan[:] = [HELD]
        with pytest.raises(OutcomeUnknownError, match="ReadTimeout"):
            await users.put(a_user(tenant))

    on_loop(backend, tenant, put, timeout=SHORT)
    assert backend.network.requests == 1


def test_a_read_without_an_answer_ends_after_the_last_attempt(backend: Served, tenant: str) -> None:
    async def read(users: AsyncItems[User]) -> None:
        backend.network.plan[:] = [HELD] * 2
        with pytest.raises(EngineUnavailableError, match="ReadTimeout"):
            await users.get("ada")

    on_loop(backend, tenant, read, timeout=SHORT, attempts=2)
    assert backend.network.requests == 2


def test_one_client_is_used_by_event_loops_in_turn_and_at_once(backend: Served, tenant: str) -> None:
    client = backend.async_rest(tenant)
    users = client.collection(User)
    asyncio.run(users.create(a_user(tenant)))

    async def read() -> list[User]:
        return await asyncio.gather(*(users.get("ada") for _ in range(5)))

    in_turn = [asyncio.run(read()) for _ in range(3)]
    with ThreadPoolExecutor(4) as threads:
        at_once = list(threads.map(lambda _: asyncio.run(read()), range(8)))

    assert {user.id for found in (*in_turn, *at_once) for user in found} == {"ada"}

    async def closed() -> str:
        async with client:
            return (await users.get("ada")).id

    # It may be used again after it was closed, as the blocking client.
    assert [asyncio.run(closed()) for _ in range(2)] == ["ada", "ada"]


@pytest.mark.parametrize("kind", ["plain", "awaited"])
def test_a_token_is_asked_for_before_every_request(backend: Served, tenant: str, kind: str) -> None:
    tokens = [backend.token(tenant), "expired"]

    async def later() -> str:
        return tokens.pop(0)

    async def asked() -> None:
        token: Any = later if kind == "awaited" else lambda: tokens.pop(0)
        async with AsyncClient.rest(backend.url, token=token, resources=RESOURCES) as client:
            users = client.collection(User)
            assert await users.find("nobody") is None
            with pytest.raises(DynashardError) as refused:
                await users.find("nobody")
            assert refused.value.code == "unauthenticated"

    asyncio.run(asked())
    assert tokens == []
