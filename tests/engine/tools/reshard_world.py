"""A stack for resizes: its engine, its tables and a worker.

The test controls time, so the worker's waits end at once.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from threading import Event, Thread
from time import time
from typing import Any

import pytest

from dynashard import Dynashard
from dynashard.resharding import Resharder, Scope, Status, Timing
from dynashard.resharding.driver import drive
from dynashard.runtime import Runtime
from dynashard.topology import LeasedTopology
from dynashard.transport import Transport
from dynashard_checks.schedules.wire import port_of_engine_in_memory
from dynashard_local.engine.tables import TablePlan, table_plans
from dynashard_local.template import committed
from dynashard_tools import entities
from dynashard_tools.reshard.watch import Watch
from tests.direct_transport import direct_transport
from tests.engine.command_line import CURSOR_KEYS, CommandLine

TIMING = Timing(lease=30.0, operation=4.0, skew=0.0)
_SLICE = 5.0
_HURRY = 10.0
"""The factor by which the worker's pauses are longer, so that it polls less often in phases of the same length."""


@dataclass
class ReshardWorld:
    """The command line, clients and a worker on one engine."""

    command_line: CommandLine
    wire: Transport
    table: str
    topology_table: str
    behind: float = 0.0
    """How far its time is behind that of others, in seconds."""
    _ahead: float = 0.0

    def clock(self) -> float:
        return time() + self._ahead - self.behind

    def pass_by(self, seconds: float) -> None:
        self._ahead += seconds

    def layer(self) -> Dynashard:
        """Return a connection with its own lease, as another process has it."""
        topology = LeasedTopology(self.wire, self.topology_table, lease=TIMING.lease, runtime=Runtime(self.clock))
        return Dynashard(
            self.wire, table=self.table, cursor_keys=CURSOR_KEYS, topology=topology, runtime=Runtime(self.clock)
        )

    def resharder(self) -> Resharder:
        return Resharder(
            self.wire,
            table=self.table,
            topology_table=self.topology_table,
            entities=entities.models(),
            timing=TIMING,
            runtime=Runtime(self.clock, self.pass_by),
        )

    def bring_to(self, scope: Scope, stage: str) -> Status:
        """Advance a resize to a stage."""
        resharder = self.resharder()
        for _ in range(100):
            status = resharder.status(scope)
            if status.stage == stage:
                return status
            self.pass_by(self._step(resharder, scope.key))
        raise AssertionError(f"{scope.key} never came to {stage}: {status}")

    def go_on(self) -> None:
        """Advance each running resize by one step, and the clock by their waits."""
        resharder = self.resharder()
        seconds = [self._step(resharder, key) for key in resharder.poll()]
        self.pass_by(max(seconds, default=0.0))

    def nibble(self, key: str, *, seconds: float = 10.0) -> None:
        """Do the smallest part of a step, or let some of its wait pass."""
        resharder = self.resharder()
        step = resharder.advance(key)
        if step.tasks:
            resharder.work(key, step.tasks[0], seconds=0.0)
        else:
            self.pass_by(min(step.seconds, seconds))

    def _step(self, resharder: Resharder, key: str) -> float:
        step = resharder.advance(key)
        for task in step.tasks:
            assert resharder.work(key, task, seconds=_SLICE)
        return step.seconds

    @contextmanager
    def between_looks(self, act: Callable[[], Any]) -> Iterator[None]:
        """Replace the pauses between two polls of a waiting command by an action."""
        patched = partial(Watch, clock=self.clock, sleep=lambda _: act())
        with self.command_line.monkeypatch.context() as patch:
            patch.setattr("dynashard_tools.reshard.watch.Watch", patched)
            yield

    @contextmanager
    def working(self) -> Iterator[None]:
        """Run a worker within the block."""
        ending, errors = Event(), list[str]()

        def sleep(seconds: float) -> None:
            self.pass_by(_HURRY * seconds)
            ending.wait(0.002)

        work = partial(drive, self.resharder(), stop=ending.is_set, sleep=sleep, log=errors.append)
        thread = Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()
        assert errors == []

    def run(self, *arguments: str | Path) -> Any:
        return self.command_line.run(*arguments)


@contextmanager
def reshard_world(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Iterator[ReshardWorld]:
    """Open a world on its own engine. Commands in this process use its clock."""
    with ExitStack() as stack:
        endpoint = f"http://127.0.0.1:{stack.enter_context(port_of_engine_in_memory())}"
        wire = stack.enter_context(closing(direct_transport(endpoint)))
        for plan in _plans():
            wire.call("CreateTable", dict(plan.create))
        [table, topology] = [
            plan.name for end in ("-Table", "-Topology") for plan in _plans() if plan.name.endswith(end)
        ]
        environment = {
            "DYNAMODB_ENDPOINT": endpoint,
            "DATA_DIR": str(folder / "data"),
            "TOPOLOGY_LEASE_SECONDS": "30",
            "TOPOLOGY_OPERATION_SECONDS": "4",
        }
        world = ReshardWorld(CommandLine(folder, environment, monkeypatch, capsys), wire, table, topology)
        monkeypatch.setattr("dynashard_tools.connection.Resharder", partial(Resharder, runtime=Runtime(world.clock)))
        yield world


@cache
def _plans() -> tuple[TablePlan, ...]:
    return tuple(table_plans(committed()))
