"""What an event loop sees of the layer: nothing blocks it, and tasks, loops and threads do not disturb each other."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import closing
from typing import Any, Self

import pytest
import uvloop

from dynashard import AsyncDynashard, Create, DynashardError, NotFoundError, Put, connect
from dynashard.reads.scan import MAX_WORKERS
from dynashard.testing.faults import Fault, FaultyTransport, unprocessed
from dynashard.testing.sandbox import Sandbox
from dynashard.topology import LeasedTopology
from dynashard.transport import Transport, metered
from dynashard.transport.deadline import within
from tests.engine.awaiting.conftest import Fact

pytestmark = pytest.mark.engine

TENANT = "abc"
LOOPS = {"asyncio": asyncio.run, "uvloop": uvloop.run}
Main = Callable[[], Coroutine[Any, Any, Any]]


@pytest.fixture(params=sorted(LOOPS))
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine on a new event loop, of either kind."""
    return LOOPS[request.param]


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What blocked the thread of an event loop: waits of sockets, of locks and of time, and look-ups of names."""
    found: list[str] = []

    def watch(owner: Any, name: str, blocks: Callable[..., bool]) -> None:
        plain = getattr(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            if _has_running_loop() and blocks(*args, **kwargs):
                found.append(f"{getattr(owner, '__name__', owner)}.{name}")
            return plain(*args, **kwargs)

        monkeypatch.setattr(owner, name, watched)

    def waits(opened: socket.socket, *_: Any) -> bool:
        return opened.gettimeout() != 0

    for name in ("send", "recv", "connect"):
        watch(socket.socket, name, waits)
    watch(time, "sleep", lambda seconds: seconds > 0)
    watch(socket, "getaddrinfo", lambda host, *_, **__: not bytes(host).replace(b".", b"").isdigit())
    watch(threading.Event, "wait", lambda *_: True)
    watch(threading.Condition, "wait", lambda *_: True)
    watch(threading.Thread, "join", lambda *_: True)
    return found


def _has_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def some(count: int) -> list[Fact]:
    return [Fact(tenant=TENANT, id=f"{number:04d}", number=number) for number in range(count)]


async def every_operation(db: AsyncDynashard) -> None:
    facts = db.collection(Fact)
    await facts.batch_write(put=some(300))
    ada = await facts.create(tenant=TENANT, id="ada")
    await facts.put(ada.model_copy(update={"number": 1}))
    await facts.update(ada, set={"number": 2})
    await facts.part("ada", tenant=TENANT, fields=["number"])
    await facts.delete(ada)
    assert await facts.find(ada) is None
    assert len(await facts.batch_get([f"{number:04d}" for number in range(250)], tenant=TENANT)) == 250
    await db.transact(Create(Fact(tenant=TENANT, id="bob")), Put(Fact(tenant=TENANT, id="eve")))
    assert len([each async for each in facts.items(tenant=TENANT, order="ordered", limit=100)]) == 302
    assert len([each async for each in facts.scan(tenant=TENANT, workers=4)]) == 302
    assert await facts.count(tenant=TENANT) == 302
    assert sum(each.items for each in await facts.shards(tenant=TENANT)) == 302


def test_no_operation_blocks_its_loop(db: AsyncDynashard, run: Callable[..., Any], blocked: list[str]) -> None:
    run(every_operation(db))

    assert blocked == []


@pytest.mark.parametrize("wire", ["a name", "botocore"])
def test_names_and_botocore_are_left_to_threads(
    engine_url: str, sandbox: Sandbox, blocked: list[str], wire: str
) -> None:
    url = engine_url.replace("127.0.0.1", "localhost")
    with closing(opened(url, transport="botocore" if wire == "botocore" else "direct")) as transport:
        facts = on(transport, sandbox).collection(Fact)

        async def main() -> tuple[int, int, set[str]]:
            await facts.batch_write(put=some(30))
            found = await asyncio.gather(*(facts.get(f"{number:04d}", tenant=TENANT) for number in range(30)))
            with metered() as meter:
                page = await facts.list(tenant=TENANT, order="ordered", limit=100)
            assert meter.consumed.requests >= 64
            return len(found), len(page), set(blocked)

        found, listed, waits = asyncio.run(main())

    assert (found, listed) == (30, 30)
    # To start a thread of the executor, asyncio waits until it runs.
    assert waits <= {"Condition.wait", "Event.wait"}


def test_what_blocks_a_loop_is_found(db: AsyncDynashard, blocked: list[str]) -> None:
    async def main() -> None:
        db.sync.collection(Fact).find("ada", tenant=TENANT)

    asyncio.run(main())

    assert {"socket.send", "socket.recv"} <= set(blocked)


def test_pauses_and_leases_that_another_task_reads_do_not_block_the_loop(
    engine_url: str, sandbox: Sandbox, blocked: list[str]
) -> None:
    with closing(opened(engine_url)) as wire:
        faulty = FaultyTransport(wire, [unprocessed("BatchWriteItem", keep=2)])
        facts = on(faulty, sandbox).collection(Fact)

        async def main() -> None:
            await asyncio.gather(*(facts.find(str(number), tenant=TENANT) for number in range(20)))
            await facts.batch_write(put=some(5))

        asyncio.run(main())

    assert not faulty.waiting
    assert blocked == []


def test_a_hundred_gets_go_on_at_once(db: AsyncDynashard, run: Callable[..., Any]) -> None:
    async def main() -> list[Fact]:
        facts = db.collection(Fact)
        await facts.batch_write(put=some(100))
        return await asyncio.gather(*(facts.get(f"{number:04d}", tenant=TENANT) for number in range(100)))

    assert [each.number for each in run(main())] == list(range(100))


def test_64_shards_are_read_without_a_thread(db: AsyncDynashard, run: Callable[..., Any]) -> None:
    started: list[str] = []
    plain = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        started.append(thread.name)
        plain(thread)

    async def main() -> int:
        facts = db.collection(Fact)
        page = await facts.list(tenant=TENANT, order="ordered", limit=100)
        scanned = [each async for each in facts.scan(tenant=TENANT, workers=MAX_WORKERS)]
        return len(page) + len(scanned) + await facts.count(tenant=TENANT)

    db.sync.collection(Fact).batch_write(put=some(200))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        assert run(main()) == 500
    assert started == []


def test_more_tasks_than_connections_take_turns(engine_url: str, sandbox: Sandbox) -> None:
    with closing(opened(engine_url, max_connections=3)) as wire:
        db = on(wire, sandbox)

        async def main() -> list[Any]:
            facts = db.collection(Fact)
            await facts.batch_write(put=some(40))
            listed = facts.list(tenant=TENANT, order="ordered", limit=100)
            return await asyncio.gather(
                _awaited(listed), *(facts.get(f"{number:04d}", tenant=TENANT) for number in range(40))
            )

        page, *found = asyncio.run(main())

    assert (len(page), [each.number for each in found]) == (40, list(range(40)))


async def _awaited(listed: Any) -> Any:
    return await listed


def opened(url: str, **more: Any) -> Transport:
    return connect(url, "us-east-1", access_key="local", secret_key="local", **more)  # noqa: S106


def on(wire: Transport, sandbox: Sandbox) -> AsyncDynashard:
    topology = LeasedTopology(wire, sandbox.topology_table)
    return AsyncDynashard(wire, table=sandbox.table, topology=topology, cursor_keys=["a secret of these tests"])


def test_loops_one_after_another_share_no_connection(db: AsyncDynashard, run: Callable[..., Any]) -> None:
    async def main() -> Fact:
        return await db.collection(Fact).replace(tenant=TENANT, id="ada")

    first = run(main())
    second = run(main())

    assert first.revision != second.revision


def test_loops_of_several_threads_and_plain_calls_work_side_by_side(db: AsyncDynashard) -> None:
    errors: list[BaseException] = []

    async def tasks(name: str) -> None:
        facts = db.collection(Fact)
        await asyncio.gather(*(facts.put(tenant=TENANT, id=f"{name}-{number}") for number in range(30)))

    def thread(name: str, work: Callable[[str], Any]) -> threading.Thread:
        def guarded() -> None:
            try:
                work(name)
            except BaseException as error:  # noqa: BLE001 - shown by the assertion
                errors.append(error)

        return threading.Thread(target=guarded)

    def plain(name: str) -> None:
        for number in range(30):
            db.sync.collection(Fact).put(tenant=TENANT, id=f"{name}-{number}")

    threads = [thread(name, lambda name: asyncio.run(tasks(name))) for name in ("a", "b")] + [thread("c", plain)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert errors == []
    assert db.sync.collection(Fact).count(tenant=TENANT) == 90


def test_a_fork_does_not_end_the_connections_of_the_loop(db: AsyncDynashard) -> None:
    async def main() -> tuple[int, int, bool]:
        facts = db.collection(Fact)
        await facts.put(tenant=TENANT, id="ada")
        child = os.fork()
        if not child:
            os._exit(0)
        _, status = os.waitpid(child, 0)  # noqa: ASYNC222 - nothing else runs here
        with within(5.0):
            await facts.put(tenant=TENANT, id="bob")
        return status, len(await facts.list(tenant=TENANT)), True

    assert asyncio.run(main()) == (0, 2, True)


@pytest.mark.parametrize("operation", ["GetItem", "PutItem", "Query"])
def test_a_cancelled_call_drops_its_connection_and_nothing_else(
    engine_url: str, sandbox: Sandbox, operation: str
) -> None:

    async def main() -> None:
        async with _Proxy(engine_url) as proxy:
            wire = opened(proxy.url, max_connections=2)
            slow = on(wire, sandbox)
            facts = slow.collection(Fact)
            await facts.put(tenant=TENANT, id="ada", number=1)
            calls: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
                "GetItem": lambda: facts.get("ada", tenant=TENANT),
                "PutItem": lambda: facts.put(tenant=TENANT, id="bob"),
                "Query": lambda: _awaited(facts.list(tenant=TENANT, order="ordered")),
            }
            for _ in range(5):
                proxy.hold()
                task = asyncio.ensure_future(calls[operation]())
                await proxy.holding()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                proxy.release()
                # The answer to the cancelled call must not be taken for that of this one.
                async with asyncio.timeout(20):
                    assert (await facts.get("ada", tenant=TENANT)).number == 1
                    with pytest.raises(NotFoundError):
                        await facts.get("nobody", tenant=TENANT)
            wire.close()

    asyncio.run(main())


class _Proxy:
    """Passes bytes on to the engine, and holds answers back on demand."""

    def __init__(self, engine_url: str) -> None:
        self._port = int(engine_url.rpartition(":")[2])
        self._open = asyncio.Event()
        self._open.set()
        self._held = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for each in self._tasks:
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def hold(self) -> None:
        self._open.clear()
        self._held.clear()

    async def holding(self) -> None:
        await self._held.wait()

    def release(self) -> None:
        self._open.set()

    async def _connected(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        engine, on = await asyncio.open_connection("127.0.0.1", self._port)
        for reader, writer, held in ((client, on, False), (engine, back, True)):
            task = asyncio.ensure_future(self._passon(reader, writer, held=held))
            self._tasks.add(task)

    async def _passon(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, held: bool) -> None:
        try:
            while data := await reader.read(65536):
                if held:
                    self._held.set()
                    await self._open.wait()
                writer.write(data)
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


def test_a_cancelled_task_leaves_no_lease_locked(engine_url: str, sandbox: Sandbox) -> None:
    async def main() -> Fact:
        async with _Proxy(engine_url) as proxy:
            wire = opened(proxy.url)
            facts = on(wire, sandbox).collection(Fact)
            proxy.hold()
            # All of them need the same view of the shard map, which the first one reads.
            waiting = [asyncio.ensure_future(facts.find(str(number), tenant=TENANT)) for number in range(5)]
            await proxy.holding()
            waiting[0].cancel()
            waiting[3].cancel()
            await asyncio.sleep(0)
            proxy.release()
            async with asyncio.timeout(20):
                found = await asyncio.gather(*waiting, return_exceptions=True)
                assert [type(each) for each in found] == [
                    asyncio.CancelledError, type(None), type(None), asyncio.CancelledError, type(None)
                ]  # fmt: skip
                stored = await facts.replace(tenant=TENANT, id="ada")
            wire.close()
            return stored

    assert asyncio.run(main()).id == "ada"


def test_a_timeout_ends_a_call_that_waits_for_an_answer(engine_url: str, sandbox: Sandbox) -> None:
    async def main() -> None:
        async with _Proxy(engine_url) as proxy:
            wire = opened(proxy.url)
            facts = on(wire, sandbox).collection(Fact)
            await facts.find("ada", tenant=TENANT)
            proxy.hold()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await facts.find("ada", tenant=TENANT)
            proxy.release()
            wire.close()

    asyncio.run(main())


def test_an_operation_ends_at_its_deadline(engine_url: str, sandbox: Sandbox) -> None:
    async def main() -> None:
        async with _Proxy(engine_url) as proxy:
            wire = opened(proxy.url, operation_seconds=0.3, attempts=1)
            facts = on(wire, sandbox).collection(Fact)
            await facts.find("ada", tenant=TENANT)
            proxy.hold()
            with pytest.raises(DynashardError, match="no answer came in time"):
                await facts.find("ada", tenant=TENANT)
            wire.close()

    asyncio.run(main())


def test_each_task_has_meters_and_deadlines_of_its_own(db: AsyncDynashard) -> None:
    async def gets(count: int) -> int:
        facts = db.collection(Fact)
        with metered() as meter, within(20.0):
            for number in range(count):
                await facts.find(str(number), tenant=TENANT)
        return meter.consumed.requests

    async def main() -> list[int]:
        await db.collection(Fact).find("first", tenant=TENANT)
        return await asyncio.gather(*map(gets, (1, 5, 9)))

    assert asyncio.run(main()) == [1, 5, 9]


def test_a_stream_that_is_left_early_ends_its_work(db: AsyncDynashard) -> None:
    async def main() -> None:
        facts = db.collection(Fact)
        await facts.batch_write(put=some(300))
        scan = facts.scan(tenant=TENANT, workers=4)
        async for _ in scan:
            break
        await scan.aclose()
        items = facts.items(tenant=TENANT, limit=10)
        async for _ in items:
            break
        await items.aclose()
        while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110 - tasks that were cancelled end by themselves
            await asyncio.sleep(0)

    asyncio.run(main())


def test_functions_of_patterns_run_on_the_loop(db: AsyncDynashard, blocked: list[str]) -> None:
    def transfer(amount: int) -> list[int]:
        facts = db.sync.collection(Fact)
        facts.put(tenant=TENANT, id="from", number=-amount)
        facts.put(tenant=TENANT, id="to", number=amount)
        return [facts.get(each, tenant=TENANT).number for each in ("from", "to")]

    async def main() -> list[int]:
        return await db.run(transfer, amount=7)

    assert asyncio.run(main()) == [-7, 7]
    assert blocked == []


def test_a_loop_that_is_closed_with_a_call_under_way_harms_no_later_one(engine_url: str, sandbox: Sandbox) -> None:
    wire = opened(engine_url)
    db = on(wire, sandbox)
    first = asyncio.new_event_loop()

    async def begun() -> None:
        task = first.create_task(db.collection(Fact).replace(tenant=TENANT, id="ada"))
        await asyncio.sleep(0)
        kept.append(task)

    kept: list[Any] = []
    first.run_until_complete(begun())
    kept[0].cancel()
    first.run_until_complete(asyncio.gather(*kept, return_exceptions=True))
    first.close()

    async def main() -> Fact:
        return await db.collection(Fact).replace(tenant=TENANT, id="bob")

    assert asyncio.run(main()).id == "bob"
    wire.close()


def test_a_fault_of_the_wire_is_the_error_of_its_call(db: AsyncDynashard, sandbox: Sandbox) -> None:
    def strike(send: Any, request: Any) -> Any:
        del send, request
        raise ValueError("not an error of the layer")

    async def main() -> None:
        sandbox.inject(Fault("GetItem", strike))
        with pytest.raises(ValueError, match="not an error of the layer"):
            await db.collection(Fact).get("ada", tenant=TENANT)

    asyncio.run(main())
