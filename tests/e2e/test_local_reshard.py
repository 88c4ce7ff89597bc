"""A resize finishes on the local stack after any process was killed, and loses nothing."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from threading import Event, Thread
from time import monotonic

import httpx
import pytest

from domain.samples.users import User
from dynashard import Dynashard, definition
from dynashard.entity import ItemKey
from dynashard.resharding import Resharder, Scope, Status, Timing
from dynashard.routing import home
from dynashard.topology import LeasedTopology
from dynashard.transport import Transport, connect
from tests.e2e.local_process import LocalProcess
from tests.waiting import HANG_SECONDS

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.deep,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes through /proc"),
]

Start = Callable[..., LocalProcess]
TIMES = {"TOPOLOGY_LEASE_SECONDS": "1", "TOPOLOGY_OPERATION_SECONDS": "6", "TOPOLOGY_SKEW_SECONDS": "0"}
ENTITY = definition(User)
TENANT = "abc"
PARTITION = f"{ENTITY.name}:{TENANT}"
SCOPE = Scope(ENTITY, partition=PARTITION)
TABLE, TOPOLOGY = "Dynashard-local-Data-Table", "Dynashard-local-Data-Topology"
ITEMS = 200
WRITERS = 2
BUDGET = 1000.0
"""Write units a second, so few that moving can be killed in its middle."""
MARKS = {"move": (60,), "sweep": (60,)}
"""The phases, with the numbers of markers at which the worker is killed, too."""
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


@contextmanager
def connected(stack: LocalProcess) -> Iterator[Transport]:
    wire = connect(stack.engine_url, "us-east-1", access_key="local", secret_key="local")  # noqa: S106
    yield wire
    wire.close()


def resharder(wire: Transport) -> Resharder:
    timing = Timing(*(float(TIMES[f"TOPOLOGY_{name}_SECONDS"]) for name in ("LEASE", "OPERATION", "SKEW")))
    return Resharder(wire, table=TABLE, topology_table=TOPOLOGY, entities=[User], timing=timing)


def fill(wire: Transport) -> dict[str, str]:
    """Write some users, and return their names by id."""
    layer = Dynashard(wire, table=TABLE, cursor_keys=["k" * 16], topology=LeasedTopology(wire, TOPOLOGY, lease=1.0))
    people = [
        User(tenant_id=TENANT, id=f"p{n:04}", email=f"u{n}@b.c", display_name=f"User {n}", department="legal")
        for n in range(ITEMS)
    ]
    layer.collection(User).batch_write(put=people)
    return {person.id: person.display_name for person in people}


def until(control: Resharder, reached: Callable[[Status], bool]) -> Status:
    """Wait until the resize has reached a stage, and return it."""
    deadline, pause = monotonic() + HANG_SECONDS, Event()
    while monotonic() < deadline:
        status = control.status(SCOPE)
        if reached(status):
            return status
        pause.wait(0.1)
    raise AssertionError(f"it stands still: {status}")


def listed(client: httpx.Client) -> list[tuple[str, str]]:
    """Return ids and names of all listed users."""
    found: list[tuple[str, str]] = []
    cursor = None
    while True:
        page = client.get("/v1/users", params={"limit": 400, **({"cursor": cursor} if cursor else {})})
        page.raise_for_status()
        found += [(item["id"], item["display_name"]) for item in page.json()["items"]]
        cursor = page.json()["cursor"]
        if cursor is None:
            return sorted(found)


def stored(wire: Transport) -> list[tuple[str, str, bool]]:
    """Return the stored key of every item, and whether it is a relocation marker."""
    request = {"TableName": TABLE, "ConsistentRead": True}
    items = []
    while True:
        answer = wire.call("Scan", request)
        items += answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return sorted((item["PK"]["S"], item["SK"]["S"], "MovedTo" in item) for item in items)
        request = {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]}


def homes(names: dict[str, str], count: int) -> list[tuple[str, str, bool]]:
    return sorted((home(ENTITY, ItemKey(PARTITION, each), count), each, False) for each in names)


@dataclass
class Writer:
    """A client that creates, changes and deletes its own users over HTTP, one request after the other."""

    client: httpx.Client
    number: int
    names: dict[str, str]
    """What it knows to be stored: every request was acknowledged."""
    refused: list[str] = field(default_factory=list)
    done: int = 0

    def work(self, ending: Event) -> None:
        random = Random(self.number)
        while not ending.is_set() and not self.refused:
            self._step(random)
            self.done += 1
            # Without pauses two clients would take a small machine from the worker.
            ending.wait(0.25)

    def _step(self, random: Random) -> None:
        name = f"Name {self.done}"
        match random.choice(["create", "change", "change", "delete"]):
            case "create":
                fresh = f"w{self.number}-{self.done}"
                body = {"id": fresh, "email": "a@b.c", "display_name": name, "department": "sales"}
                if self._took(self.client.post("/v1/users", json=body), httpx.codes.CREATED):
                    self.names[fresh] = name
            case "change":
                chosen = random.choice(sorted(self.names))
                answer = self.client.patch(f"/v1/users/{chosen}", json={"display_name": name}, headers=MERGE_PATCH)
                if self._took(answer, httpx.codes.OK):
                    self.names[chosen] = name
            case "delete":
                chosen = random.choice(sorted(self.names))
                if self._took(self.client.delete(f"/v1/users/{chosen}"), httpx.codes.NO_CONTENT):
                    del self.names[chosen]

    def _took(self, answer: httpx.Response, status: int) -> bool:
        if answer.status_code != status:
            self.refused.append(f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text}")
        return answer.status_code == status


@contextmanager
def writing(stack: LocalProcess, names: dict[str, str]) -> Iterator[list[Writer]]:
    """Let clients write within the block, each to its share of the users."""
    ending = Event()
    shares = [dict(sorted(names.items())[number::WRITERS]) for number in range(WRITERS)]
    writers = [Writer(stack.client(TENANT), number, share) for number, share in enumerate(shares)]
    threads = [Thread(target=writer.work, args=[ending]) for writer in writers]
    for thread in threads:
        thread.start()
    try:
        yield writers
    finally:
        ending.set()
        for thread in threads:
            thread.join()


def test_a_resize_finishes_whenever_its_worker_is_killed_and_no_write_is_lost(start_local: Start) -> None:
    stack = start_local(**TIMES).ready()
    with connected(stack) as wire:
        names = fill(wire)
        control = resharder(wire)
        killed = []

        with writing(stack, names) as writers:
            control.start(SCOPE, 64, budget=BUDGET)
            for stage in ("pending", "prepare", "move", "settle", "sweep"):
                until(control, partial(_at, stage))
                killed.append((stage, kill_worker(stack)))
                # The next worker does not know unsaved progress, so markers are counted.
                for marks in MARKS.get(stage, ()):
                    until(control, partial(_gone_on, wire, stage, marks))
                    killed.append((stage, kill_worker(stack)))
            until(control, lambda status: not status.busy)

        assert [writer.refused for writer in writers] == [[], []]
        assert all(writer.done > 20 for writer in writers)
        assert len({worker for _, worker in killed}) == len(killed) == 7
        expected = {name: text for writer in writers for name, text in writer.names.items()}
        assert listed(stack.client(TENANT)) == sorted(expected.items())
        assert stored(wire) == homes(expected, 64)
        assert stack.text.count("and is restarted") == len(killed)


def kill_worker(stack: LocalProcess) -> int:
    worker = stack.worker_process()
    os.kill(worker, signal.SIGKILL)
    return worker


def _at(stage: str, status: Status) -> bool:
    return status.stage == stage


def _gone_on(wire: Transport, stage: str, marks: int, status: Status) -> bool:
    """Return whether the stage is over, or its work has reached this number of markers."""
    there = sum(mark for _, _, mark in stored(wire))
    return status.stage != stage or (there >= marks if stage == "move" else there <= marks)


def test_a_resize_continues_after_everything_was_killed(start_local: Start) -> None:
    stack = start_local(**TIMES).ready()
    with connected(stack) as wire:
        names = fill(wire)
        resharder(wire).start(SCOPE, 4, budget=BUDGET)
        until(resharder(wire), lambda status: status.stage == "move" and status.moved > 0)

    stack.kill_everything()

    again = start_local(**TIMES).ready()
    with connected(again) as wire:
        assert resharder(wire).status(SCOPE).stage == "move"
        assert listed(again.client(TENANT)) == sorted(names.items())
        until(resharder(wire), lambda status: not status.busy)
        assert listed(again.client(TENANT)) == sorted(names.items())
        assert stored(wire) == homes(names, 4)
