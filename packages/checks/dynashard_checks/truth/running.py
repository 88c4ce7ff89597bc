"""Run clients against an API on a failing engine."""

import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any, Final

from dynashard_checks.truth.api_clients import ApiClient, FunctionClient, HttpClient, app_on
from dynashard_checks.truth.clients import Client, Traffic
from dynashard_checks.truth.counter import Count, count_together
from dynashard_checks.truth.judging import Verdict, judged
from dynashard_checks.truth.proxy import Rates
from dynashard_checks.truth.records import Listed, Record
from dynashard_checks.truth.world import FaultyEngine, create_api_tables, faulty_engine, local_stack_on

USUAL: Final = Rates(0.07, 0.19)
COUNTING: Final = Rates(0.05)
_EPOCH: Final = 5000
"""The number of operations after which all keys are replaced."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A run.

    Attributes:
        operations: how many all clients do together.
        level: one of `LEVELS`.
        processes: how many processes run clients. Without HTTP, each has an API of its own.
        threads: how many clients each process has.
        rates: the rates of faults.
        seed: determines the operations of clients and the faults of requests.
        increments: how often each of the ten writers increases the counter.
    """

    operations: int
    level: str = "plain"
    processes: int = 2
    threads: int = 5
    rates: Rates = USUAL
    seed: int = 1
    increments: int = 20

    def traffic(self) -> Traffic:
        """Return the operations of each client."""
        each = -(-self.operations // (self.processes * self.threads))
        return Traffic(each, self.level, epochs=max(1, self.operations // _EPOCH))


@dataclass(frozen=True, slots=True)
class Done:
    """The records of the clients of one process."""

    records: Sequence[Record]
    listings: Sequence[Listed]
    strange: Sequence[str]


def clients_run(connect: Callable[[], ApiClient], plan: Plan, process: int) -> Done:
    """Run the clients of a process as threads."""
    clients = [
        Client(connect(), number, Random(plan.seed * 1000 + number), plan.traffic())
        for number in range(process * plan.threads, (process + 1) * plan.threads)
    ]
    with ThreadPoolExecutor(plan.threads) as pool:
        for running in [pool.submit(client.run) for client in clients]:
            running.result()
    return _sum(clients)


def _sum(clients: Sequence[Client]) -> Done:
    return Done(
        [record for client in clients for record in client.records],
        [listing for client in clients for listing in client.listings],
        [each for client in clients for each in client.strange],
    )


def _in_process(endpoint: str, plan: Plan, process: int) -> Done:
    app = app_on(endpoint)
    return clients_run(lambda: FunctionClient(app), plan, process)


def _over_http(url: str, plan: Plan, process: int) -> Done:
    return clients_run(lambda: HttpClient(url), plan, process)


def run(engine: FaultyEngine, connect: Callable[[], ApiClient], done: Callable[[], list[Done]], plan: Plan) -> Verdict:
    """Run clients while the engine fails, then read everything without faults, and judge the records.

    Args:
        engine: the engine behind the proxy.
        connect: returns a client of the API.
        done: runs the clients.
        plan: the run.
    """
    engine.fail(plan.rates)
    parts = done()
    engine.fail(Rates())
    time.sleep(plan.rates.late)
    reader = Client(connect(), plan.processes * plan.threads, Random(plan.seed), plan.traffic())
    reader.read_all()
    parts.append(_sum([reader]))
    _, attempts = engine.log()
    records, listings = [r for part in parts for r in part.records], [x for part in parts for x in part.listings]
    strange = [each for part in parts for each in part.strange]
    return judged(records, listings, attempts, strange, guarded=plan.level == "guarded")


def counted(engine: FaultyEngine, connect: Callable[[], ApiClient], plan: Plan) -> Count:
    """Let ten writers increase a counter while 5% of the engine's answers are lost or late."""
    engine.fail(COUNTING)
    count = count_together(connect, increments=plan.increments, level=plan.level, seed=plan.seed)
    engine.fail(Rates())
    return count


def run_in_process(plan: Plan) -> tuple[Verdict, dict[str, Any]]:
    """Run without HTTP: the processes of the clients call the API function."""
    with faulty_engine(plan.seed) as engine:
        create_api_tables(engine.wire)
        app = app_on(engine.endpoint)
        # Initialise the topology first, as it is in any table in use.
        for path in ("licensors", "users"):
            FunctionClient(app).send("truth0", "GET", f"/v1/{path}", b"", {})
        count = counted(engine, lambda: FunctionClient(app), plan)
        verdict = run(engine, lambda: FunctionClient(app), lambda: _spread(_in_process, engine.endpoint, plan), plan)
        return replace(verdict, counter=count), engine.log()[0]


def run_over_http(plan: Plan) -> tuple[Verdict, dict[str, Any]]:
    """Run against the processes of `make run`."""
    with (
        tempfile.TemporaryDirectory() as folder,
        faulty_engine(plan.seed) as engine,
        local_stack_on(engine, Path(folder), lease=5) as url,
    ):
        count = counted(engine, lambda: HttpClient(url), plan)
        verdict = run(engine, lambda: HttpClient(url), lambda: _spread(_over_http, url, plan), plan)
        return replace(verdict, counter=count), engine.log()[0]


def _spread(part: Callable[[str, Plan, int], Done], where: str, plan: Plan) -> list[Done]:
    if plan.processes == 1:
        return [part(where, plan, 0)]
    with ProcessPoolExecutor(plan.processes, mp_context=get_context("spawn")) as pool:
        return list(pool.map(part, [where] * plan.processes, [plan] * plan.processes, range(plan.processes)))
