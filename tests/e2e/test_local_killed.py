"""Killed processes of the local stack are replaced, and lose at most the request they were serving."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import httpx
import pytest

from tests.e2e.local_process import LocalProcess
from tests.waiting import HANG_SECONDS

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes through /proc"),
]

LIST = "/v1/users?limit=1"
PARTICIPATIONS = "/v1/participations?participant=team_1&state=OPEN"


def children_of(stack: LocalProcess, name: str) -> list[int]:
    """Return the child processes of the stack whose command lines contain a name."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"PPid:\t{stack.process.pid}\n" in (entry / "status").read_text():
                found += [int(entry.name)] if name in (entry / "cmdline").read_text().replace("\0", " ") else []
        except OSError:
            continue  # It has ended meanwhile.
    return found


def environments_of(stack: LocalProcess) -> list[int]:
    return children_of(stack, "spawn_main")


def eventually(condition: Callable[[], bool]) -> None:
    deadline, pause = monotonic() + HANG_SECONDS, Event()
    while not condition():
        assert monotonic() < deadline
        pause.wait(0.02)


def test_killing_idle_environments_loses_no_request(local_stack: LocalProcess) -> None:
    client = local_stack.client()
    for _ in range(3):
        assert client.get(LIST).status_code == 200
        killed = environments_of(local_stack)
        assert killed
        for process in killed:
            os.kill(process, signal.SIGKILL)

        answers = [client.get(LIST).status_code for _ in range(5)]

        assert answers == [200] * 5
        assert not set(killed) & set(environments_of(local_stack))


def test_killing_serving_environments_loses_only_their_own_requests(
    local_stack: LocalProcess,
) -> None:
    client = local_stack.client()
    assert client.get(LIST).status_code == 200
    engine = local_stack.engine_process()
    lost: list[int] = []

    def ask() -> None:
        with httpx.Client(
            base_url=local_stack.url, timeout=HANG_SECONDS, trust_env=False, headers=client.headers
        ) as mine:
            lost.append(mine.get(LIST).status_code)

    # While the engine is stopped, the request stays in its environment.
    os.kill(engine, signal.SIGSTOP)
    asking = Thread(target=ask)
    try:
        asking.start()
        # A second environment answers this one, because the first is busy.
        eventually(lambda: client.get("/v1/health").status_code == 200 and len(environments_of(local_stack)) > 1)
        for process in environments_of(local_stack):
            os.kill(process, signal.SIGKILL)
    finally:
        os.kill(engine, signal.SIGCONT)
    asking.join(HANG_SECONDS)
    after = [client.get(LIST).status_code for _ in range(5)]

    # 200 if its environment was killed before it began, because another one takes the request over.
    assert lost in ([500], [200])
    assert after == [200] * 5


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "worker",
    [
        "dynashard_local.workers.resharding",
        "dynashard_local.workers.queue_worker",
        "dynashard_local.workers.stream_consumer",
    ],
)
def test_a_worker_that_is_killed_is_replaced_and_its_work_is_done(local_stack: LocalProcess, worker: str) -> None:
    eventually(lambda: len(children_of(local_stack, worker)) == 1)
    [killed] = children_of(local_stack, worker)

    os.kill(killed, signal.SIGKILL)

    client = local_stack.client(f"after-{worker.replace('.', '-')}")
    user = {"id": "ada", "email": "ada@example.com", "display_name": "Ada"}
    accepted = client.post("/v1/users", json=user, headers={"Prefer": "respond-async"})
    incident = {"id": "i1", "number": 1, "title": "Disk", "team": "team_1", "participants": ["team_1"]}
    created = client.post("/v1/incidents", json=incident)
    assert (accepted.status_code, created.status_code) == (202, 201)
    eventually(lambda: client.get("/v1/users/ada").status_code == 200)
    eventually(lambda: len(client.get(PARTICIPATIONS).json()["items"]) == 1)
    eventually(lambda: len(children_of(local_stack, worker)) == 1)
    assert children_of(local_stack, worker) != [killed]
