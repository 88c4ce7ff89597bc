"""One soak: clients work over HTTP on stored items while something is done to these, and nothing may be lost."""

import json
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import quantiles
from threading import Event
from typing import Any

from rich.console import Console

from dynashard import Collection, Dynashard, definition
from dynashard.placement import UNSHARDED
from dynashard.resharding import Resharder, Scope
from dynashard.routing import home
from dynashard.schema import MOVED_TO, PK, SK
from dynashard.topology import LeasedTopology
from dynashard.transport import Transport, connect
from dynashard.transport.interface import Wire
from dynashard_checks.soak.callers import Lister, Worker
from dynashard_checks.soak.ledger import Findings, Ledger
from dynashard_checks.threads import at_work
from dynashard_local.stack import Stack, running_stack
from dynashard_serving.domain import declared

TENANT = "soak"
_CHUNK = 5000
_BATCH = 25
LIMIT_RATIO = 1.5
"""How much longer the slowest hundredth of writes may take meanwhile."""


@dataclass(frozen=True)
class Plan:
    """The sizes and times of a run."""

    items: int
    before: float
    lease: int
    workers: int
    listers: int
    pause: float
    list_pause: float
    seed: int


class Soak(ABC):
    """One run: `_changes` says what is done while clients work."""

    def __init__(self, plan: Plan, stack: Stack, console: Console) -> None:
        variables = stack.variables
        self._plan, self._stack, self._console = plan, stack, console
        self._ledger, self._findings = Ledger(), Findings()
        self._stored = Counter[int]()
        self._transport: Transport = connect(
            endpoint_url=variables["DYNAMODB_ENDPOINT"],
            region=variables["AWS_REGION"],
            access_key=variables["AWS_ACCESS_KEY_ID"],
            secret_key=variables["AWS_SECRET_ACCESS_KEY"],
        )
        self._table = variables["TABLE_NAME"]
        self._topology = LeasedTopology(self._transport, variables["TOPOLOGY_TABLE"], lease=plan.lease)
        self._resharder = Resharder(
            self._transport,
            table=self._table,
            topology_table=variables["TOPOLOGY_TABLE"],
            entities=list(declared().models),
        )
        entity = definition(next(each.entity for each in declared().entities if each.path == "users"))
        self._scope = Scope(entity, entity.logical_partition({"tenant_id": TENANT}))

    def run(self) -> dict[str, object]:
        """Load items, change something while clients work, compare, and return the report."""
        started = time.monotonic()
        self._load()
        stop = Event()
        with self._at_work(stop):
            self._window("quiet", lambda: time.sleep(self._plan.before))
            for change in self._changes():
                self._window("changing", change)
                self._window("quiet", lambda: time.sleep(self._plan.before))
        self._compare()
        return self._report(time.monotonic() - started)

    @abstractmethod
    def _changes(self) -> Iterable[Callable[[], None]]:
        """What is done to the items, one after the other."""

    def _load(self) -> None:
        write = self._write_bare if self._scope.entity.shards.adopt else self._collection().batch_write  # type: ignore[union-attr]
        for first in range(0, self._plan.items, _CHUNK):
            numbers = range(first, min(first + _CHUNK, self._plan.items))
            people = [self._person(number) for number in numbers]
            write(put=people)
            for person in people:
                self._ledger.born(person.id)
        self._say(f"{self._plan.items:,} items loaded")

    def _person(self, number: int) -> Any:
        fields = {"tenant_id": TENANT, "email": f"b{number}@example.com", "display_name": f"B {number}"}
        return self._scope.entity.model.model_validate(fields)

    def _collection(self) -> Collection[Any]:
        return self._database(self._loading()).collection(self._scope.entity.model)

    def _loading(self) -> Transport:
        """Return what stores the items before the clients begin."""
        return self._transport

    def _database(self, transport: Transport) -> Dynashard:
        keys = ["this database signs no cursors"]
        return Dynashard(transport, table=self._table, cursor_keys=keys, topology=self._topology)

    def _write_bare(self, put: Sequence[Any]) -> None:
        """Store items under the bare partition key, as a service without the layer does."""
        entity = self._scope.entity
        for first in range(0, len(put), _BATCH):
            writes = []
            for user in put[first : first + _BATCH]:
                key = entity.key_of(user)
                bare = {PK: {"S": key.partition}, SK: {"S": key.sort}, **entity.encode(user.__dict__)}
                writes.append({"PutRequest": {"Item": bare}})
            requests: dict[str, Any] = {self._table: writes}
            while requests:
                requests = self._transport.call("BatchWriteItem", {"RequestItems": requests})["UnprocessedItems"]

    @contextmanager
    def _at_work(self, stop: Event) -> Iterator[None]:
        plan, findings, ledger = self._plan, self._findings, self._ledger
        names = sorted(ledger.lives)
        callers: list[Worker | Lister] = [
            Worker(
                self._stack.client(TENANT),
                ledger,
                findings,
                stop,
                Random(f"{plan.seed}/{number}"),
                plan.pause * plan.workers,
                names[number :: plan.workers],
            )
            for number in range(plan.workers)
        ]
        orders = ("round_robin", "ordered")[: plan.listers]
        callers += [
            Lister(self._stack.client(TENANT), ledger, findings, stop, order, plan.list_pause) for order in orders
        ]
        with at_work(*(caller.run for caller in callers)):
            try:
                yield
            finally:
                stop.set()

    def _window(self, name: str, work: Callable[[], None]) -> None:
        self._findings.window = name
        work()

    def _compare(self) -> None:
        """Compare the stored items with the acknowledged writes."""
        entity, record = self._scope.entity, self._resharder.topology.find(self._scope.key)
        initial = entity.shards.initial if entity.shards else UNSHARDED
        stored: dict[str, str] = {}
        for item in self._scanned(ConsistentRead=True):
            pk, name = item[PK]["S"], item[SK]["S"]
            count = record.count_of(name) if record else initial
            if MOVED_TO in item:
                self._findings.anomaly(f"a relocation marker is left at {pk} {name}")
            elif name in stored:
                self._findings.anomaly(f"stored twice: {name} in {stored[name]} and {pk}")
            elif pk != home(entity, entity.key_of({"tenant_id": TENANT, "id": name}), count):
                self._findings.anomaly(f"not at home: {name} in {pk}")
            stored[name] = pk
            self._stored[count] += 1
        alive = self._ledger.alive()
        self._findings.anomaly(*(f"lost: {name}" for name in alive - stored.keys()))
        self._findings.anomaly(*(f"came back: {name}" for name in stored.keys() - alive))

    def _scanned(self, **more: object) -> Iterator[Wire]:
        """Yield what is stored in the table, or with an `IndexName` in its index."""
        request: dict[str, object] = {"TableName": self._table, **more}
        while True:
            answer = self._transport.call("Scan", request)
            yield from answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _report(self, seconds: float) -> dict[str, object]:
        found = self._findings
        p99 = {window: quantiles(times, n=100)[98] * 1000 for window, times in found.seconds.items()}
        p50 = {window: quantiles(times, n=100)[49] * 1000 for window, times in found.seconds.items()}
        return {
            "items": self._plan.items,
            "seconds": round(seconds),
            "requests": found.requests,
            "listings": found.listings,
            "client_errors": len(found.errors),
            "anomalies": len(found.anomalies),
            "stored_by_count": dict(sorted(self._stored.items())),
            "first_problems": (found.errors + found.anomalies)[:10],
            "writes": {window: len(times) for window, times in found.seconds.items()},
            "write_p50_ms": {window: round(ms, 2) for window, ms in p50.items()},
            "write_p99_ms": {window: round(ms, 2) for window, ms in p99.items()},
            "p99_ratio": round(p99["changing"] / p99["quiet"], 3),
            "p99_limit": LIMIT_RATIO,
        }

    def _say(self, text: str) -> None:
        self._console.print(text)


def run_soak(soak: Callable[[Stack], Soak], plan: Plan, output: Path, about: Mapping[str, object]) -> int:
    """Run a soak on a stack of its own, print its report, and write it to a file.

    Returns:
        The exit status: 0 if nothing was wrong, writes were fast enough, and listings were compared.
    """
    with (
        tempfile.TemporaryDirectory(prefix="dynashard-soak-") as folder,
        running_stack(Path(folder), lease=plan.lease) as stack,
    ):
        report: dict[str, Any] = {**about, **soak(stack).run()}
    Console().print_json(data=report)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(report, indent=2) + "\n")
    slow = plan.before > 0 and report["p99_ratio"] > LIMIT_RATIO
    # One that `stop` interrupts is not compared, so a short run may have compared none.
    unlisted = plan.listers > 0 and not report["listings"]
    return 1 if report["client_errors"] or report["anomalies"] or slow or unlisted else 0
