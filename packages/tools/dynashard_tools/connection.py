"""Connects the command line to the local stack, or to a deployed environment."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from dynashard import Dynashard
from dynashard.errors import ConfigurationError, EngineError, EngineUnavailableError
from dynashard.growth.requests import growth_of
from dynashard.growth.settings import GrowthSettings
from dynashard.growth.terms import Report
from dynashard.locations import deployed
from dynashard.resharding import Resharder, Share, Timing
from dynashard.topology import LeasedTopology, TopologyTable
from dynashard.transport import Transport
from dynashard_local.errors import LocalStackError
from dynashard_local.functions.specs import api_environment
from dynashard_local.logs import RESHARD_LOG
from dynashard_local.settings import Settings
from dynashard_local.workers.resharding import WorkerSettings, transport_of
from dynashard_serving.table_load import TableLoad, table_load
from dynashard_tools.account.records import PurgeRecords
from dynashard_tools.app import VARIABLE
from dynashard_tools.entities import models
from dynashard_tools.environments import backend_context, environment_named
from dynashard_tools.failure import CommandError
from dynashard_tools.program import Program, program_of

RESTORED: Final = ("RESTORED_TABLE", "RESTORED_TOPOLOGY")
"""Variables that name restored tables of an environment, for commands that check them before they are used."""
_CURSOR_KEY: Final = "cursors of commands never leave the process"


def _no_idempotency_table() -> str:
    raise CommandError("this backend has no idempotency table, which keeps the records of purges")


@dataclass(frozen=True)
class Backend:
    """A backend that commands work on.

    Attributes:
        target: its description, the same in each command.
        timing: how long a published change takes to reach all readers.
        operation: the longest operation, in seconds.
        worker: where resizes are carried out, for the message that no worker seems to run.
        load: measures how busy the table is; None if nothing measures it.
        concurrency: tasks of a resize that its worker works on at a time, for estimates.
        endpoint: the URL of the local engine; None for a deployed environment.
        drives: no worker looks after the tables, so `dynashard reshard` carries resizes out itself.
        idempotency_table: returns the name of the table that no restore undoes.
    """

    target: str
    transport: Transport
    table: str
    topology_table: str
    timing: Timing
    operation: float
    worker: str
    growth: GrowthSettings
    load: TableLoad | None = None
    concurrency: int = 8
    endpoint: str | None = None
    drives: bool = False
    idempotency_table: Callable[[], str] = _no_idempotency_table

    @cached_property
    def entities(self) -> Dynashard:
        """Its items."""
        return self._entities(operation_seconds=self.operation)

    def purge_records(self) -> PurgeRecords:
        """Return the records of its purges. Cost: deployed, 1 DescribeStacks."""
        return PurgeRecords(self.transport, self.idempotency_table(), time.time)

    @property
    def topology(self) -> TopologyTable:
        """Its table of shard counts."""
        return TopologyTable(self.transport, self.topology_table)

    def writer(self) -> Dynashard:
        """Return its items for bulk writes: a throttle makes counts grow, as in the API.

        Cost: no request; of a throttle, as `dynashard.growth.policy.Growth.throttled`, after a random wait.
        """
        growing = growth_of(
            self.resharder(),
            settings=self.growth,
            # The first throttle that lasts ends a command, so there is no second one. Nothing shows the demand then,
            # and the policy doubles the count.
            waits=True,
            load=self.load,
            report=_print_growth,
        )
        return self._entities(throttled=growing.throttled)

    def resharder(self) -> Resharder:
        """Return what changes the shard counts of this backend. Cost: no request."""
        return Resharder(
            self.transport,
            table=self.table,
            topology_table=self.topology_table,
            entities=models(),
            timing=self.timing,
            share=Share(self.growth.mover_share),
            most_seconds=self.growth.most_seconds,
            concurrency=self.concurrency,
        )

    def _entities(self, **more: Any) -> Dynashard:
        topology = LeasedTopology(self.transport, self.topology_table, lease=self.timing.lease)
        return Dynashard(
            self.transport,
            table=self.table,
            cursor_keys=[_CURSOR_KEY],
            topology=topology,
            clocks=self.timing.clocks,
            **more,
        )


def open_backend(environment: str | None, *, reach: bool = True) -> Backend:
    """Connect to the local stack, found by the variables of `make run`, or to a deployed environment.

    If `DYNASHARD_DB` names a program, connect to its tables instead.

    Args:
        environment: the environment's name in cdk.json; None for the local stack.
        reach: make sure that the local stack runs; False for commands that send nothing.

    Raises:
        CommandError: the stack cannot be found, or does not run; or the credentials are of another account; or the
            program has no such tables, or an environment is named besides.

    Cost: deployed, one DescribeStacks, and what `environment_named` costs; local, one DescribeTable; of a program,
        none.
    """
    if (program := program_of(os.environ)) is not None:
        refuse_environment(environment)
        return _of_program(program)
    return _local(reach=reach) if environment is None else _deployed(environment)


def refuse_environment(environment: str | None) -> None:
    """Refuse an environment that is named although a program's tables are."""
    if environment is not None:
        raise CommandError(f"--env is an environment of a backend, and {VARIABLE} names the tables: unset one")


def _of_program(program: Program) -> Backend:
    here = program.tables
    return Backend(
        target=f"the tables {here.table} and {here.topology_table} of {program.name}",
        transport=here.transport,
        table=here.table,
        topology_table=here.topology_table,
        timing=Timing(here.lease, here.operation_seconds, clocks=here.clocks),
        operation=here.operation_seconds,
        worker="`dynashard reshard work` carries resizes of these tables out",
        growth=GrowthSettings(),
        drives=True,
    )


def _local(*, reach: bool) -> Backend:
    try:
        settings = Settings.from_env(os.environ)
        variables = api_environment(settings)
    except LocalStackError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"the data folder of the local stack cannot be used ({error}): set DATA_DIR") from error
    transport, worker = transport_of(variables), WorkerSettings.from_env(variables)
    table, topology_table = _restored(os.environ, variables["TABLE_NAME"], variables["TOPOLOGY_TABLE"])
    if reach:
        _require_table(transport, variables["DYNAMODB_ENDPOINT"], table)
    return Backend(
        target=f"the local stack on {settings.dynamodb_endpoint or settings.data_dir}",
        transport=transport,
        table=table,
        topology_table=topology_table,
        timing=worker.timing,
        operation=worker.timing.operation,
        worker=f"`make run` starts one, whose log is {settings.data_dir / RESHARD_LOG}",
        growth=worker.growth,
        concurrency=worker.concurrency,
        endpoint=variables["DYNAMODB_ENDPOINT"],
        idempotency_table=lambda: variables["IDEMPOTENCY_TABLE"],
    )


def _require_table(transport: Transport, endpoint: str, table: str) -> None:
    try:
        exists = _exists(transport, table)
    except EngineUnavailableError as error:
        raise CommandError(
            f"the local stack does not run: nothing answers at {endpoint}. Start it with `make run`; if it has another "
            "port, set DYNAMODB_PORT as for `make run`"
        ) from error
    if not exists:
        raise CommandError(f"the engine at {endpoint} has no table {table}: start it with `make run`")


def _exists(transport: Transport, table: str) -> bool:
    """Whether there is such a table. Cost: 1 DescribeTable."""
    try:
        transport.call("DescribeTable", {"TableName": table})
    except EngineError as error:
        if error.aws_code != "ResourceNotFoundException":
            raise
        return False
    return True


def _deployed(environment: str) -> Backend:
    found = environment_named(environment)
    try:
        place = deployed(environment, region=found.region)
    except ConfigurationError as error:
        raise found.unreadable(error) from error
    transport = place["transport"]
    table, topology_table = _restored(os.environ, place["table"], place["topology_table"])
    for variable, name in zip(RESTORED, (table, topology_table), strict=True):
        if os.environ.get(variable) and not _exists(transport, name):
            raise CommandError(f"{variable} is {name}, and there is no such table in {found.region}")
    return Backend(
        target=f"the environment {environment} in {found.region} with table {table}",
        transport=transport,
        table=table,
        topology_table=topology_table,
        # A lease other than the deployed one is safe: clients use the shorter one, and resizes wait for the longer one.
        timing=Timing(clocks=place["clocks"]),
        operation=place["operation_seconds"],
        worker="the executions of the environment's state machine show the reason",
        growth=_deployed_growth(environment),
        load=table_load(transport, table, region_name=found.region),
        idempotency_table=lambda: found.output("Data", "IdempotencyName"),
    )


def _restored(environ: Mapping[str, str], table: str, topology: str) -> tuple[str, str]:
    """Return the tables to work on: those of the environment, or the restored ones that variables name.

    Raises:
        CommandError: one of them is named without the other; they are of one moment.
    """
    named = [environ.get(name, "") for name in RESTORED]
    if any(named) and not all(named):
        raise CommandError(f"set both {' and '.join(RESTORED)}, or neither: both tables are restored to one moment")
    return (named[0], named[1]) if all(named) else (table, topology)


def _deployed_growth(environment: str) -> GrowthSettings:
    """Return the settings with which this backend would deploy the environment; off if cdk.json does not name it."""
    environments = backend_context()["environments"]
    if environment not in environments:
        return GrowthSettings(mode="off")
    try:
        return GrowthSettings(**environments[environment].get("growth", {}))
    except TypeError as error:
        raise CommandError(f"environments.{environment}.growth in cdk.json cannot be used: {error}") from error


def _print_growth(report: Report) -> None:
    print(f"growth: {report.event}: {report.reason}", file=sys.stderr)
