"""The live simulation: 429s appear, `dynashard hot` names key and command, the count grows, and 429s go."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import httpx
import pytest

from domain.samples.audit import Access, OrderedAccess
from domain.samples.users import User
from dynashard import Entity, definition
from dynashard.resharding import Resharder, Scope
from dynashard.transport import Transport, connect
from tests.e2e.local_process import ROOT, LocalProcess
from tests.waiting import HANG_SECONDS, until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.deep,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes through /proc"),
]

TABLE, TOPOLOGY = "Dynashard-local-Data-Table", "Dynashard-local-Data-Topology"
CALLERS = 12
"""As many as in docs/simulating.md."""
CALM_SECONDS = 10.0
REST = 1.0
"""Seconds between the requests of a caller: all need 8 to 16 shards, which a busy machine also makes in time."""
PAUSE = 0.3
"""Seconds between looks, so that they take no time from the stack."""
ACCESS = {"path": "/hot.txt", "action": "read", "user_id": "ada"}
USER = {"email": "ada@example.com", "display_name": "Ada Lovelace"}


@dataclass
class Load:
    """Callers that create items, one after the other with a short pause, also after a 429."""

    stack: LocalProcess
    path: str
    body: Mapping[str, str]
    ending: Event = field(default_factory=Event)
    answers: list[tuple[float, int]] = field(default_factory=list)
    """When each answer came, and its status."""
    created: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)

    def work(self) -> None:
        client = self.stack.client()
        while not self.ending.is_set():
            self.ending.wait(REST)
            answer = client.post(self.path, json=self.body)
            self.answers.append((monotonic(), answer.status_code))
            if answer.status_code == httpx.codes.CREATED:
                self.created.append(answer.json()["id"])
            elif answer.status_code not in (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE):
                # A busy machine may exceed the deadline of an operation, which is 503.
                self.unexpected.append(answer.text)
        client.close()

    def throttled(self) -> list[float]:
        """Return when callers were answered 429."""
        return [at for at, status in self.answers if status == httpx.codes.TOO_MANY_REQUESTS]

    def calm(self) -> bool:
        """Whether nobody was answered 429 for a while, though callers went on."""
        since = monotonic() - CALM_SECONDS
        last = [status for at, status in list(self.answers) if at > since]
        return last.count(httpx.codes.CREATED) > CALLERS and httpx.codes.TOO_MANY_REQUESTS not in last


@contextmanager
def loading(stack: LocalProcess, path: str, body: Mapping[str, str]) -> Iterator[Load]:
    load = Load(stack, path, body)
    threads = [Thread(target=load.work) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        load.ending.set()
        for thread in threads:
            thread.join()


def dynashard(stack: LocalProcess, *arguments: str) -> str:
    """Return what a command prints."""
    port = stack.engine_url.rpartition(":")[2]
    environment = {**os.environ, "DATA_DIR": str(stack.data_dir), "DYNAMODB_PORT": port}
    command = [sys.executable, "-c", "from dynashard_tools.cli import main; main()", *arguments]
    ended = subprocess.run(  # noqa: S603 - our own program
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=HANG_SECONDS
    )
    return ended.stdout


def stored_ids(wire: Transport) -> set[str]:
    """Return the ids of all stored items; the limits do not hold for Scans."""
    request, found = {"TableName": TABLE, "ConsistentRead": True}, set[str]()
    while True:
        answer = wire.call("Scan", request)
        found |= {item["SK"]["S"].rpartition("#")[2] for item in answer["Items"]}
        if "LastEvaluatedKey" not in answer:
            return found
        request = {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]}


@pytest.mark.parametrize(
    ("model", "path"), [(Access, "/v1/accesses"), (OrderedAccess, "/v1/ordered-accesses")], ids=["random", "epochs"]
)
def test_429s_come_and_go_while_the_count_grows_by_itself(
    start_local: Callable[..., LocalProcess], model: type[Entity], path: str
) -> None:
    name = definition(model).name
    scope = Scope(definition(model), f"{name}:abc:/hot.txt")
    stack = start_local(SIMULATE="hot-tenant").ready()
    wire = connect(stack.engine_url, "us-east-1", access_key="local", secret_key="local")  # noqa: S106
    control = Resharder(wire, table=TABLE, topology_table=TOPOLOGY, entities=[model])

    with loading(stack, path, ACCESS) as load:
        until(lambda: bool(load.throttled()), PAUSE)
        shown = dynashard(stack, "hot")
        named = monotonic()
        until(lambda: control.status(scope).count >= 4, PAUSE)
        until(load.calm, PAUSE)

    assert named - load.throttled()[0] < 60
    assert "table writes: " in shown
    assert f"{name} abc:/hot.txt: " in shown
    assert "    dynashard " in shown
    assert load.unexpected == []
    assert set(load.created) <= stored_ids(wire)
    status = control.status(scope)
    assert (status.cause, status.paused) == ("throttle", False)
    wire.close()


def test_a_calculated_count_grows_by_itself_and_moves_what_callers_have_created(
    start_local: Callable[..., LocalProcess],
) -> None:
    scope = Scope(definition(User), "user.v1.User:abc")
    stack = start_local(SIMULATE="hot-tenant").ready()
    wire = connect(stack.engine_url, "us-east-1", access_key="local", secret_key="local")  # noqa: S106
    control = Resharder(wire, table=TABLE, topology_table=TOPOLOGY, entities=[User])
    # The declared 16 shards take more than the callers send.
    dynashard(stack, "reshard", "start", "users", "abc", "--to", "1", "--create", "--yes")
    until(lambda: control.status(scope).count == 1, PAUSE)

    with loading(stack, "/v1/users", USER) as load:
        until(lambda: bool(load.throttled()), PAUSE)
        until(lambda: control.status(scope).count >= 2, PAUSE)

    assert load.unexpected == []
    assert set(load.created) <= stored_ids(wire)
    assert control.status(scope).cause == "throttle"
    wire.close()
