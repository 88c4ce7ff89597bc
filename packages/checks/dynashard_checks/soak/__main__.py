"""`make soak`: reshard a logical partition of 200,000 items up and down while clients work on it over HTTP.

With a domain that adopts (`make soak-adoption`), the items are stored under the bare partition key first.

Clients must see no error. Every listing must return each item that existed throughout exactly once. Writes must be
about as fast as without a resize. At the end the stored items are compared with the acknowledged writes.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import quantiles
from threading import Event, Thread
from typing import Any

from rich.console import Console

from dynashard import Collection, Dynashard, definition
from dynashard.resharding import Resharder, Scope
from dynashard.routing import home
from dynashard.schema import MOVED_TO, PK, SK
from dynashard.topology import LeasedTopology
from dynashard.transport import Transport, connect
from dynashard_checks.soak.callers import Lister, Worker
from dynashard_checks.soak.ledger import Findings, Ledger
from dynashard_local.stack import Stack, running_stack
from dynashard_serving.domain import declared

_TENANT = "soak"
_CHUNK = 5000
_BATCH = 25
_LIMIT_RATIO = 1.5


@dataclass(frozen=True)
class Plan:
    """The sizes and times of a run."""

    items: int
    counts: Sequence[int]
    before: float
    lease: int
    budget: float | None
    workers: int
    listers: int
    pause: float
    list_pause: float
    seed: int


class Soak:
    """One run of the soak test."""

    def __init__(self, plan: Plan, stack: Stack, console: Console) -> None:
        variables = stack.variables
        self._plan, self._stack, self._console = plan, stack, console
        self._ledger, self._findings = Ledger(), Findings()
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
        self._scope = Scope(entity, entity.logical_partition({"tenant_id": _TENANT}))

    def run(self) -> dict[str, object]:
        """Load items, change the counts while clients work, compare, and return the report."""
        started = time.monotonic()
        self._load()
        stop = Event()
        with self._at_work(stop):
            self._window("quiet", lambda: time.sleep(self._plan.before))
            for count in self._plan.counts:
                self._window("changing", lambda count=count: self._resize(count))  # type: ignore[misc]
                self._window("quiet", lambda: time.sleep(self._plan.before))
        self._compare()
        return self._report(time.monotonic() - started)

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
        fields = {"tenant_id": _TENANT, "email": f"b{number}@example.com", "display_name": f"B {number}"}
        return self._scope.entity.model.model_validate(fields)

    def _collection(self) -> Collection[Any]:
        database = Dynashard(
            self._transport, table=self._table, cursor_keys=["this database signs no cursors"], topology=self._topology
        )
        return database.collection(self._scope.entity.model)

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
                self._stack.client(_TENANT),
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
            Lister(self._stack.client(_TENANT), ledger, findings, stop, order, plan.list_pause) for order in orders
        ]
        threads = [Thread(target=caller.run, daemon=True) for caller in callers]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def _window(self, name: str, work: Callable[[], None]) -> None:
        self._findings.window = name
        work()

    def _resize(self, count: int) -> None:
        budget = ["--budget", str(self._plan.budget)] if self._plan.budget else []
        started = time.monotonic()
        command = self._stack.command("reshard", "start", "users", _TENANT, "--to", str(count), *budget, "--json")
        if command.wait():
            raise RuntimeError(f"dynashard reshard start ended with {command.returncode}")
        while True:
            time.sleep(1)
            status = self._resharder.status(self._scope)
            if status.error:
                raise RuntimeError(f"the resize stopped: {status.error}")
            if status.count == count and status.swept and status.target is None:
                break
        self._say(
            f"{count} shards after {time.monotonic() - started:,.0f} s; {self._findings.listings} listings so far"
        )

    def _compare(self) -> None:
        """Compare the stored items with the acknowledged writes."""
        entity, record = self._scope.entity, self._resharder.topology.find(self._scope.key)
        assert record is not None  # noqa: S101 - its count has changed
        stored: dict[str, str] = {}
        request: dict[str, object] = {"TableName": self._table, "ConsistentRead": True}
        while True:
            answer = self._transport.call("Scan", request)
            for item in answer["Items"]:
                pk, name = item[PK]["S"], item[SK]["S"]
                if MOVED_TO in item:
                    self._findings.anomaly(f"a relocation marker is left at {pk} {name}")
                elif name in stored:
                    self._findings.anomaly(f"stored twice: {name} in {stored[name]} and {pk}")
                elif pk != home(entity, entity.key_of({"tenant_id": _TENANT, "id": name}), record.count_of(name)):
                    self._findings.anomaly(f"not at home: {name} in {pk}")
                stored[name] = pk
            if "LastEvaluatedKey" not in answer:
                break
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
        alive = self._ledger.alive()
        self._findings.anomaly(*(f"lost: {name}" for name in alive - stored.keys()))
        self._findings.anomaly(*(f"came back: {name}" for name in stored.keys() - alive))

    def _report(self, seconds: float) -> dict[str, object]:
        found = self._findings
        p99 = {window: quantiles(times, n=100)[98] * 1000 for window, times in found.seconds.items()}
        p50 = {window: quantiles(times, n=100)[49] * 1000 for window, times in found.seconds.items()}
        return {
            "items": self._plan.items,
            "counts": list(self._plan.counts),
            "seconds": round(seconds),
            "requests": found.requests,
            "listings": found.listings,
            "client_errors": len(found.errors),
            "anomalies": len(found.anomalies),
            "first_problems": (found.errors + found.anomalies)[:10],
            "writes": {window: len(times) for window, times in found.seconds.items()},
            "write_p50_ms": {window: round(ms, 2) for window, ms in p50.items()},
            "write_p99_ms": {window: round(ms, 2) for window, ms in p99.items()},
            "p99_ratio": round(p99["changing"] / p99["quiet"], 3),
            "p99_limit": _LIMIT_RATIO,
        }

    def _say(self, text: str) -> None:
        self._console.print(text)


def main() -> int:
    """Run, and return 0 if nothing was wrong and writes were fast enough."""
    parser = argparse.ArgumentParser(prog="python -m dynashard_checks.soak", description=__doc__)
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--counts", default="64,16", help="shard counts to change to, one after the other (from 16)")
    parser.add_argument(
        "--before", type=float, default=45, help="seconds of work without a resize, before and after each"
    )
    parser.add_argument("--lease", type=int, default=2, help="seconds")
    parser.add_argument("--budget", type=float, default=1500, help="write units per second of the mover")
    parser.add_argument("--workers", type=int, default=6, help="clients that work on single items")
    parser.add_argument("--listers", type=int, default=2, choices=(0, 1, 2), help="clients that list everything")
    parser.add_argument(
        "--pause", type=float, default=0.12, help="seconds from one request to the next, over all workers"
    )
    parser.add_argument("--list-pause", type=float, default=2.5, help="seconds from one page of a listing to the next")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=Path("build/soak.json"))
    asked = vars(parser.parse_args())
    output: Path = asked.pop("json")
    counts = [int(count) for count in asked.pop("counts").split(",")]
    plan = Plan(counts=counts, **asked)
    console = Console()
    with (
        tempfile.TemporaryDirectory(prefix="dynashard-soak-") as folder,
        running_stack(Path(folder), lease=plan.lease) as stack,
    ):
        report = Soak(plan, stack, console).run()
    console.print_json(data=report)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(report, indent=2) + "\n")
    slow = plan.before > 0 and float(str(report["p99_ratio"])) > _LIMIT_RATIO
    return 1 if report["client_errors"] or report["anomalies"] or slow else 0


if __name__ == "__main__":
    sys.exit(main())
