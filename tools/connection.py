"""The way from the command line to a table: the local stack's, or that of a deployed environment."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dynashard import Dynashard
from dynashard.errors import ConfigurationError, EngineError, EngineUnavailableError
from dynashard.locations import deployed
from dynashard.resharding import Resharder, Timing
from dynashard.topology import LeasedTopology
from dynashard.transport import Transport, connect
from dynashard.transport.aws import stack_outputs
from dynashard_serving.growth_policy import GrowthSettings, Report
from dynashard_serving.growth_requests import growth_of
from dynashard_serving.table_load import TableLoad, table_load
from local.errors import LocalStackError
from local.functions import api_environment
from local.resharding import growth, timing
from local.settings import ROOT, Settings
from local.worker import RESHARD_LOG
from tools.entities import models
from tools.failure import CommandError

_NO_LISTING_KEY: Final = "commands continue no listing of others"
"""Signs cursors that never leave the process."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend that commands work on.

    Attributes:
        target: which one it is, in words that stay the same from one command to the next.
        transport: the wire to it.
        table: the name of the table of items.
        topology_table: the name of the table of shard counts.
        timing: how long what is published takes to reach everybody, as far as is known here.
        worker: where changes of shard counts are carried out, for those who miss them.
        growth: how its counts change by themselves.
        load: tells how busy the table is; None where nobody counts.
        entities: its items.
    """

    target: str
    transport: Transport
    table: str
    topology_table: str
    timing: Timing
    worker: str
    growth: GrowthSettings
    load: TableLoad | None
    entities: Dynashard

    def writer(self) -> Dynashard:
        """Its items, for those who write many: a throttle makes counts grow, as one of the API does.

        Cost: no request; of a throttle, as `dynashard_serving.growth_policy.Growth.throttled`, after a random wait.
        """
        growing = growth_of(
            self.resharder(),
            settings=self.growth,
            # The first throttle that lasts ends a command: there will be no second.
            waits=True,
            load=self.load,
            report=_tell,
        )
        return _entities(self.transport, self.table, self.topology_table, self.timing, throttled=growing.throttled)

    def resharder(self) -> Resharder:
        """What changes the shard counts of this backend. Cost: no request."""
        return Resharder(
            self.transport,
            table=self.table,
            topology_table=self.topology_table,
            entities=models(),
            timing=self.timing,
        )


def open_backend(environment: str | None, *, reach: bool = True) -> Backend:
    """The local stack, found by the variables of `make run`, or a deployed environment.

    Args:
        environment: the environment's name in cdk.json; None for the local stack.
        reach: make sure that the local stack runs; False for commands that will send nothing.

    Raises:
        CommandError: the stack cannot be found, or does not run.

    Cost: deployed, one DescribeStacks; local, one DescribeTable.
    """
    return _local(reach=reach) if environment is None else _deployed(environment)


def _local(*, reach: bool) -> Backend:
    try:
        settings = Settings.from_env(os.environ)
        variables = api_environment(settings)
    except LocalStackError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"the data folder of the local stack cannot be used ({error}): set DATA_DIR") from error
    endpoint, table = variables["DYNAMODB_ENDPOINT"], variables["TABLE_NAME"]
    transport = connect(
        endpoint_url=endpoint,
        region=variables["AWS_REGION"],
        access_key=variables["AWS_ACCESS_KEY_ID"],
        secret_key=variables["AWS_SECRET_ACCESS_KEY"],
        operation_seconds=float(variables["TOPOLOGY_OPERATION_SECONDS"]),
    )
    if reach:
        _require_table(transport, endpoint, table)
    data = settings.dynamodb_endpoint or settings.data_dir
    topology, told = variables["TOPOLOGY_TABLE"], timing(variables)
    return Backend(
        target=f"the local stack on {data}",
        transport=transport,
        table=table,
        topology_table=topology,
        timing=told,
        worker=f"`make run` has one, whose log is {settings.data_dir / RESHARD_LOG}",
        growth=growth(variables),
        load=None,
        entities=_entities(transport, table, topology, told, operation_seconds=told.operation),
    )


def _require_table(transport: Transport, endpoint: str, table: str) -> None:
    try:
        transport.call("DescribeTable", {"TableName": table})
    except EngineUnavailableError as error:
        raise CommandError(
            f"the local stack does not run: nothing answers at {endpoint}. Start it with `make run`; if it has another "
            "port, set DYNAMODB_PORT as for `make run`"
        ) from error
    except EngineError as error:
        if error.aws_code != "ResourceNotFoundException":
            raise
        raise CommandError(f"the engine at {endpoint} has no table {table}: start it with `make run`") from error


def _deployed(environment: str) -> Backend:
    try:
        place = deployed(environment)
    except ConfigurationError as error:
        raise CommandError(str(error)) from error
    transport, table, topology = place.connect(), place.table, place.topology_table
    # A lease other than the deployed one does no harm: clients keep to the shorter, and changes wait for the longer.
    told = Timing()
    return Backend(
        target=f"the environment {environment} with table {table}",
        transport=transport,
        table=table,
        topology_table=topology,
        timing=told,
        worker="the executions of the environment's state machine tell why",
        growth=_deployed_growth(environment),
        load=table_load(transport, table),
        entities=_entities(transport, table, topology, told, operation_seconds=place.operation),
    )


def _deployed_growth(environment: str) -> GrowthSettings:
    """As this checkout would deploy it; off for an environment that it does not know."""
    environments = json.loads((ROOT / "cdk.json").read_text())["context"]["environments"]
    if environment not in environments:
        return GrowthSettings(mode="off")
    try:
        return GrowthSettings(**environments[environment].get("growth", {}))
    except TypeError as error:
        raise CommandError(f"environments.{environment}.growth in cdk.json cannot be used: {error}") from error


def _entities(transport: Transport, table: str, topology_table: str, timing: Timing, **more: Any) -> Dynashard:
    topology = LeasedTopology(transport, topology_table, lease=timing.lease)
    return Dynashard(transport, table=table, cursor_keys=[_NO_LISTING_KEY], topology=topology, **more)


def _tell(report: Report) -> None:
    print(f"growth: {report.news}: {report.told}", file=sys.stderr)


def outputs_of(stack: str) -> Mapping[str, str]:
    """The outputs of a deployed stack.

    Raises:
        CommandError: it cannot be read.

    Cost: one DescribeStacks.
    """
    try:
        return stack_outputs(stack)
    except ConfigurationError as error:
        raise CommandError(str(error)) from error
