"""What forked processes renew: locks that other threads hold, and sockets."""

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from dynashard.runtime import SYSTEM
from dynashard.topology.leases import Leases
from dynashard.transport import Call
from dynashard.transport.client import open_client, open_session
from dynashard.transport.direct.choice import transport_for
from dynashard.transport.direct.connections import ConnectionPool
from dynashard.transport.direct.credentials import ProviderCredentials
from dynashard.transport.forks import own_lock
from dynashard.transport.interface import Settings
from dynashard.transport.lookups import Lookup
from dynashard.transport.sdk import SdkTransport
from dynashard_lab.bench.canned import Asked, Reply, canned_server
from tests.unit.project.rooms import ROOT
from tests.unit.transport.forking import child_of, result_of

pytestmark = pytest.mark.unit

GET = {"TableName": "users", "Key": {"PK": {"S": "a"}}}


class Owner:
    """An object with a lock."""

    def __init__(self) -> None:
        self._lock = own_lock(self)


@contextmanager
def elsewhere(held: Any) -> Iterator[None]:
    """Hold a lock in another thread."""
    holding, release = Event(), Event()

    def hold() -> None:
        with held:
            holding.set()
            release.wait()

    thread = Thread(target=hold)
    thread.start()
    holding.wait()
    try:
        yield
    finally:
        release.set()
        thread.join()


def test_a_lock_that_another_thread_holds_is_free_in_a_child() -> None:
    owner = Owner()

    with elsewhere(owner._lock):
        free = result_of(child_of(lambda: owner._lock.acquire(blocking=False)))

    assert free == "True"


def test_a_child_reads_what_another_thread_was_reading() -> None:
    leases: Leases[str, str] = Leases(SYSTEM, limit=10)
    reading, answer = Event(), Event()

    def slow(_now: float) -> tuple[str, float]:
        reading.set()
        answer.wait()
        return "parent", 60.0

    thread = Thread(target=leases.get, args=("key", slow))
    thread.start()
    reading.wait()
    found = result_of(child_of(lambda: leases.get("key", lambda _: ("child", 60.0))))
    answer.set()
    thread.join()

    assert (found, leases.get("key", slow)) == ("child", "parent")


def test_a_child_may_open_as_many_connections_as_its_parent() -> None:
    pool = ConnectionPool(1, SYSTEM.clock)
    assert pool.acquire(0.0) is None

    assert result_of(child_of(lambda: pool.acquire(0.0))) == "None"


def sockets() -> set[int]:
    """Return the sockets of this process by inode: those of earlier tests may be closed at any time."""
    found: set[int] = set()
    for file in Path("/proc/self/fd").iterdir():
        # The folder itself was open while it was read.
        with suppress(OSError):
            status = os.fstat(int(file.name))
            if stat.S_ISSOCK(status.st_mode):
                found.add(status.st_ino)
    return found


def test_a_child_keeps_no_idle_connection_of_its_parent() -> None:
    with canned_server(lambda _: Reply()) as url:
        before = sockets()
        transport = transport_for(Settings(url, "eu-west-1", "local", "local"), {})
        transport.call_all([Call("GetItem", GET)] * 4)
        # The other ends, which are the server's, are in this process too.
        connections = len(sockets() - before) // 2
        left = int(result_of(child_of(lambda: len(sockets() - before))))
        transport.close()

    assert connections >= 1
    assert left == connections


def test_a_child_keeps_no_connection_on_which_another_thread_waits() -> None:
    arrived = Event()

    def silent(_: Asked) -> Reply:
        arrived.set()
        return Reply(silent=True)

    with canned_server(silent) as url:
        before = sockets()
        settings = Settings(url, "eu-west-1", "local", "local", attempts=1, read_timeout=0.5)
        transport = transport_for(settings, {})
        waiting = Thread(target=transport.try_all, args=([Call("GetItem", GET)],))
        waiting.start()
        arrived.wait()
        left = int(result_of(child_of(lambda: len(sockets() - before))))
        waiting.join()
        transport.close()

    assert left == 1  # the server's end


def counted(monkeypatch: pytest.MonkeyPatch, name: str, real: Callable[..., Any]) -> list[object]:
    """Count the calls of a function."""
    calls: list[object] = []

    def counting(*arguments: Any) -> Any:
        calls.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(name, counting)
    return calls


def test_a_child_has_a_client_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    # Another thread may have held any lock of the client.
    opened = counted(monkeypatch, "dynashard.transport.sdk.open_client", open_client)
    transport = SdkTransport(Settings("http://127.0.0.1:9", "eu-west-1", "local", "local"))
    transport.warm()

    def builds() -> int:
        transport.warm()
        return len(opened)

    assert result_of(child_of(builds)) == "2"
    transport.warm()
    assert len(opened) == 1


def test_a_child_asks_providers_of_its_own_for_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    opened = counted(monkeypatch, "dynashard.transport.client.open_session", open_session)
    provided = ProviderCredentials(None)
    provided("GetItem")

    def asks() -> int:
        provided("GetItem")
        return len(opened)

    assert result_of(child_of(asks)) == "2"
    assert [provided("GetItem").access_key, len(opened)] == ["key", 1]


def test_a_child_looks_up_what_another_thread_was_looking_up() -> None:
    parent, asked, answers = os.getpid(), Event(), Event()

    def name() -> str:
        asked.set()
        if os.getpid() == parent:
            answers.wait()
        return str(os.getpid() == parent)

    lookup = Lookup(name, "a name")
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(lookup.result)
        asked.wait()
        in_child = result_of(child_of(lookup.result))
        answers.set()

        assert (in_child, found.result()) == ("False", "True")


def test_every_lock_of_the_layers_is_renewed_or_belongs_to_one_request() -> None:
    made: Counter[str] = Counter()
    for file in (ROOT / "layers").rglob("*.py"):
        text = file.read_text()
        if re.search(r"\b(?:threading|asyncio|multiprocessing)\b", text):
            made[file.stem] += len(re.findall(r"\b(?:Lock|RLock|Semaphore|Event)\(", text))

    # The first belongs to one request, as two of the calls' do; their other two are renewed with the transport. One of
    # those of waiting belongs to one wait; the other is a turn's, which its owner renews. The others are renewed;
    # `own_lock` makes all that are not here.
    assert {name: count for name, count in made.items() if count} == {
        "allowance": 1,
        "bounded_calls": 4,
        "connections": 1,
        "driving": 1,
        "forks": 2,
        "leases": 1,
        "lookups": 1,
        "sdk": 1,
        "waiting": 2,
    }
