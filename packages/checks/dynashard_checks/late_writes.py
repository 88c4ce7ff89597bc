"""Check that no acknowledged write is lost while the engine executes writes seconds late and shard counts change.

Some writes of every client, and of the worker that changes the counts, are held for longer than the lease, the longest
operation and the clock difference together. They are executed after that. By then their senders have given up, or still
wait for the answer. Meanwhile the shard count of a partition changes again and again. At the end every acknowledged
create must be found by a read of its key and exactly once in every kind of listing, and verification must find nothing.

    python -m dynashard_checks.late_writes
    python -m dynashard_checks.late_writes --seconds 300 --late 9 --share 0.2 --clients 8
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from threading import Event, Lock
from typing import Any, Final

from dynashard import Collection, Dynashard, Entity, Index, Key, LeasedTopology, Registry, Shards, definition
from dynashard.errors import DynashardError, EngineUnavailableError, ReshardRefusedError
from dynashard.resharding import Resharder, Scope, Timing
from dynashard.resharding.driver import drive
from dynashard.transport import Transport, connect
from dynashard.transport.interface import Call, Wire
from dynashard_checks.threads import at_work
from dynashard_local.engine.process import running_engine
from dynashard_local.engine.tables import table_plans
from dynashard_local.settings import Settings
from dynashard_local.template import committed
from dynashard_tools.verify import Declared, Report, Verifier

HELD: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"})
COUNTS: Final = (16, 4, 2, 8)
TIMING: Final = Timing(lease=1.0, operation=2.0, skew=0.1, lag=0.0)


class Parcel(
    Entity,
    name="late.v1.Parcel",
    key=Key("{tenant}", "{id}"),
    shards=Shards(4),
    indexes=[Index("GSI1", "by_state", "{tenant}:{state}", "{id}", shards=Shards(4))],
    registry=Registry(),
):
    """An item whose writes may be late."""

    tenant: str
    id: str
    state: str = "new"


@dataclass
class LateWire:
    """A transport on which some writes are executed late.

    Attributes:
        inner: the transport to the engine.
        random: decides which writes are late, how late, and whether their senders wait for the answer.
        share: the share of writes that are late.
        seconds: how late they are executed, at most.
        waiting: the share of late writes whose senders wait for the answer. Other senders give up in time.
    """

    inner: Transport
    random: Random
    share: float
    seconds: float
    waiting: float = 0.3
    late: Counter[str] = field(default_factory=Counter)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(256))
    _lock: Lock = field(default_factory=Lock)

    def call(self, operation: str, request: Mapping[str, Any], **more: Any) -> Wire:
        """See `Transport.call`."""
        with self._lock:
            held = operation in HELD and self.random.random() < self.share
            waits, pause = self.random.random() < self.waiting, self.seconds * self.random.uniform(0.5, 1.0)
        if not held:
            return self.inner.call(operation, request, **more)
        future = self._pool.submit(self._later, pause, operation, request)
        with self._lock:
            self.late["answered late" if waits else "given up"] += 1
        if waits:
            return future.result()
        time.sleep(TIMING.operation / 2)
        raise EngineUnavailableError(f"{operation}: no answer came.", operation=operation)

    def _later(self, pause: float, operation: str, request: Mapping[str, Any]) -> Wire:
        time.sleep(pause)
        return self.inner.call(operation, request)

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        """See `Transport.call_all`."""
        del concurrency
        return [self.call(call.operation, call.request) for call in calls]

    def try_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Any]:
        """See `Transport.try_all`."""
        del concurrency
        answers: list[Any] = []
        for call in calls:
            try:
                answers.append(self.call(call.operation, call.request))
            except DynashardError as error:
                answers.append(error)
        return answers

    def close(self) -> None:
        """Wait for all late writes."""
        self._pool.shutdown()


@dataclass
class Backend:
    """The tables, and a way to make clients for them."""

    wire: Transport
    table: str
    topology: str

    def open(self, transport: Transport) -> Dynashard:
        """Return a client with a lease of its own."""
        leased = LeasedTopology(transport, self.topology, lease=TIMING.lease)
        return Dynashard(transport, table=self.table, cursor_keys=["0" * 16], topology=leased)

    def parcels(self) -> Collection[Parcel]:
        """Return a client whose requests are never late."""
        return self.open(self.wire).collection(Parcel)


@dataclass
class Client:
    """Creates parcels, changes some of them and reads them back, until `stop` is set."""

    number: int
    parcels: Collection[Parcel]
    random: Random
    stop: Event
    acknowledged: list[str] = field(default_factory=list)
    unknown: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Work until `stop` is set."""
        created = 0
        while not self.stop.is_set():
            created += 1
            identity = f"{self.number:02d}-{created:06d}"
            if self._did(lambda each=identity: self.parcels.create(Parcel(tenant="abc", id=each))):
                self.acknowledged.append(identity)
            if self.acknowledged:
                self._read_back(self.random.choice(self.acknowledged))

    def _read_back(self, identity: str) -> None:
        key = {"tenant": "abc", "id": identity}
        try:
            if self.parcels.find(key, consistent=True) is None:
                self.wrong.append(f"{identity} was acknowledged, but is not found")
        except DynashardError:
            self.unknown += 1
            return
        self._did(lambda: self.parcels.update(key, set={"state": self.random.choice(["new", "sent", "done"])}))

    def _did(self, write: Any) -> bool:
        try:
            write()
        except EngineUnavailableError:
            self.unknown += 1
            return False
        except DynashardError:
            self.refused += 1
            return False
        return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print the result as JSON, and return 0 if everything is right."""
    parser = argparse.ArgumentParser(prog="python -m dynashard_checks.late_writes", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long clients work")
    parser.add_argument("--late", type=float, default=9.0, help="how late writes are executed at most, in seconds")
    parser.add_argument("--share", type=float, default=0.15, help="the share of writes that are executed late")
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, running_engine(Settings(data_dir=Path(folder), dynamodb_port=0)) as e:
        wire = connect(e.endpoint, "us-east-1", access_key="local", secret_key="local")  # noqa: S106
        for plan in table_plans(committed()):
            wire.call("CreateTable", dict(plan.create))
        names = [plan.name for plan in table_plans(committed())]
        [table, topology] = [name for end in ("-Table", "-Topology") for name in names if name.endswith(end)]
        result = measured(Backend(wire, table, topology), asked)
        wire.close()
    sys.stdout.write(json.dumps(result, indent=1) + "\n")
    return 0 if right(result) else 1


def right(result: Mapping[str, Any]) -> bool:
    """Return whether nothing was wrong, and there was something to check: acknowledged creates, and changed counts."""
    checked = result["acknowledged creates"] and result["changes"]
    return bool(checked) and not result["wrong"] and not result["verify"]


def measured(backend: Backend, asked: argparse.Namespace) -> dict[str, Any]:
    """Run the clients and the worker, and check what is stored afterwards."""
    stop, random = Event(), Random(asked.seed)
    wires = [LateWire(backend.wire, Random(random.random()), asked.share, asked.late) for _ in range(asked.clients + 1)]
    clients = [
        Client(number, backend.open(wire).collection(Parcel), Random(number), stop)
        for number, wire in enumerate(wires[1:])
    ]
    worker = _resharder(backend, wires[0])
    ending = Event()
    with at_work(partial(drive, worker, stop=ending.is_set, sleep=time.sleep)):
        try:
            with at_work(*(client.run for client in clients)):
                try:
                    changes = _changes(_resharder(backend, backend.wire), asked.seconds)
                finally:
                    stop.set()
            for wire in wires[1:]:
                wire.close()
            _await_rest(_resharder(backend, backend.wire))
        finally:
            ending.set()
    wires[0].close()
    acknowledged = [identity for client in clients for identity in client.acknowledged]
    wrong = [each for client in clients for each in client.wrong] + _lost_or_double(backend, acknowledged)
    report = _verified(backend)
    late = sum((wire.late for wire in wires), Counter())
    return {
        "changes": changes,
        "acknowledged creates": len(acknowledged),
        "late writes": dict(late),
        "unknown": sum(client.unknown for client in clients),
        "refused": sum(client.refused for client in clients),
        "wrong": wrong[:20],
        "verify": dict(report.found),
        "items": report.items,
    }


def _resharder(backend: Backend, transport: Transport) -> Resharder:
    return Resharder(
        transport, table=backend.table, topology_table=backend.topology, entities=[Parcel], timing=TIMING, concurrency=2
    )


def _scope() -> Scope:
    return Scope(definition(Parcel), "late.v1.Parcel:abc")


def _changes(resharder: Resharder, seconds: float) -> int:
    """Request one count after the other. Return how many changes were started."""
    until, begun = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        try:
            resharder.start(_scope(), COUNTS[begun % len(COUNTS)])
            begun += 1
        except ReshardRefusedError:
            time.sleep(0.5)
    return begun


def _await_rest(resharder: Resharder) -> None:
    while resharder.poll():
        status = resharder.status(_scope())
        if status.error:
            raise SystemExit(f"the resize has stopped: {status.error}")
        time.sleep(0.5)


def _lost_or_double(backend: Backend, acknowledged: Sequence[str]) -> list[str]:
    parcels = backend.parcels()
    found = parcels.batch_get([{"tenant": "abc", "id": each} for each in acknowledged], consistent=True)
    wrong = [f"{each} is lost" for each, item in zip(acknowledged, found, strict=True) if item is None]
    listings = {
        "scan": [item.id for item in parcels.scan({"tenant": "abc"}, consistent=True)],
        **{
            order: [item.id for page in parcels.pages({"tenant": "abc"}, order=order, limit=500) for item in page.items]
            for order in ("round_robin", "ordered", "shard")
        },
    }
    for name, listed in listings.items():
        often = Counter(listed)
        wrong += [f"{each} appears {often[each]} times in {name}" for each in acknowledged if often[each] != 1]
        wrong += [f"{each} appears {number} times in {name}" for each, number in often.items() if number > 1]
    return wrong


def _verified(backend: Backend) -> Report:
    return Verifier(backend.open(backend.wire), backend.topology, Declared([Parcel])).run()


if __name__ == "__main__":
    raise SystemExit(main())
