"""How far the consumer is behind the table's stream."""

import os
import time
from dataclasses import dataclass

from dynashard_local.errors import LocalStackError
from dynashard_local.functions.specs import api_environment
from dynashard_local.settings import Settings
from dynashard_local.workers.stream import Positions, Stream, stream_of, streams_client
from dynashard_local.workers.stream_consumer import POSITIONS
from dynashard_tools.environments import Environment, aws_errors, environment_named, is_local
from dynashard_tools.failure import CommandError
from dynashard_tools.latest_metrics import MINUTES, Metric, MetricsUnreadError, latest


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a consumer is behind.

    Attributes:
        seconds: the age of the oldest record that it has not handled; None if that is not known.
        state: of its mapping, as Lambda names it; locally, whether the stack runs.
        reason: why the lag is not known.
    """

    seconds: float | None
    state: str
    reason: str = ""

    def line(self) -> str:
        """Return it as a line for people."""
        shown = self.reason if self.seconds is None else f"{self.seconds:,.0f} s behind"
        return f"stream: {shown} ({self.state})"


def lag_of(environment: str | None) -> Lag:
    """Return the lag of the local stack, or of a deployed environment.

    Raises:
        CommandError: it cannot be asked for.

    Cost: locally, 1 request for each shard of the stream; deployed, what `environment_named` costs, a
    ListStackResources, a GetEventSourceMapping and a GetMetricData.
    """
    return _local() if environment is None else _deployed(environment_named(environment))


def _local() -> Lag:
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - imported only where it is needed

    try:
        settings = Settings.from_env(os.environ)
        variables = api_environment(settings)
        endpoint, table = variables["DYNAMODB_ENDPOINT"], variables["TABLE_NAME"]
        stream = Stream(streams_client(endpoint), stream_of(endpoint, table), table)
        places = Positions(settings.data_dir / POSITIONS, stream.arn)
        return Lag(behind(stream, places, time.time()), "running")
    except (BotoCoreError, ClientError):
        return Lag(None, "stopped", "unknown, because the local stack does not run")
    except LookupError as error:
        return Lag(None, "running", str(error))
    except (LocalStackError, OSError) as error:
        raise CommandError(str(error)) from error


def behind(stream: Stream, places: Positions, now: float) -> float:
    """Return the age in seconds of the oldest record after these positions; 0 if all are handled.

    Cost: 1 request for each shard of the stream.
    """
    oldest = [record for shard in stream.shards() for record in stream.after(shard, places[shard], 1)]
    times = [float(record["dynamodb"]["ApproximateCreationDateTime"]) for record in oldest]
    return max(0.0, now - min(times)) if times else 0.0


def _deployed(environment: Environment) -> Lag:
    functions = environment.resources("Changes", "AWS::Lambda::Function").values()
    mappings = environment.resources("Changes", "AWS::Lambda::EventSourceMapping").values()
    function, mapping = next(iter(functions), None), next(iter(mappings), None)
    if function is None or mapping is None:
        raise CommandError(f"the stack {environment.stack('Changes')} has no stream consumer: deploy it")
    client = environment.client("lambda")
    with aws_errors("the stream consumer cannot be read"):
        state = str(client.get_event_source_mapping(UUID=mapping)["State"])
    if is_local(client.meta.endpoint_url):
        return Lag(None, state, "unknown, because a local AWS has no metrics of functions")
    metric = Metric("AWS/Lambda", "IteratorAge", {"FunctionName": function})
    try:
        found = latest(environment, {"age": metric})
    except MetricsUnreadError:
        return Lag(None, state, "unknown, because its metric cannot be read")
    if "age" not in found:
        return Lag(None, state, f"the consumer was not invoked in the last {MINUTES} minutes")
    return Lag(found["age"] / 1000, state)
