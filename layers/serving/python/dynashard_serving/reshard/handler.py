"""Entries of the functions, their settings, and the clients that they share."""

import os
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.metrics import MetricUnit

from dynashard.errors import EngineUnavailableError
from dynashard.resharding import Resharder
from dynashard.transport import Transport
from dynashard.transport.deadline import within
from dynashard_serving.aws_services import client
from dynashard_serving.backend import cloudwatch, open_transport
from dynashard_serving.limits import seconds_left, time_to_answer
from dynashard_serving.reshard.backend import resharder_of
from dynashard_serving.reshard.executions import Executions
from dynashard_serving.reshard.operations import Operator
from dynashard_serving.reshard.settings import Settings
from dynashard_serving.reshard.shrink import shrink
from dynashard_serving.reshard.steps import Steps
from dynashard_serving.reshard.stream_age import Clients, StreamAge
from dynashard_serving.reshard.watch import Seen, Watch
from dynashard_serving.settings import required
from dynashard_serving.telemetry import metric_names as names
from dynashard_serving.telemetry.powertools import RESHARD, log_error, open_logger, open_metrics, without_traceback

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse

logger = open_logger(RESHARD)


@without_traceback
def advance(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """State machine: bring a resize forward, and say what comes next."""
    with _until_answer(context):
        return _steps().advance(event["input"])


@without_traceback
def work(event: Mapping[str, Any], context: object) -> bool:
    """State machine: work on one task for a slice of time."""
    with _until_answer(context):
        return _steps().work(event["input"])


@without_traceback
def stop(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """State machine: pause a resize that has failed, and keep why."""
    with _until_answer(context):
        return _steps().stop(event["input"])


def dispatch(event: Mapping[str, Any], _context: object) -> "PartialItemFailureResponse":
    """Stream of the topology table: start what was asked for."""
    # Powertools' batches bring asyncio and 30 kinds of events with them, 60 ms that the other entries save.
    from dynashard_serving.reshard.dispatch import Dispatcher  # noqa: PLC0415

    return Dispatcher(_executions().start, logger.info).dispatch(event)


def operate(event: Any, context: object) -> dict[str, Any]:
    """Direct invocation: start, pause, resume, abort or look."""
    with _until_answer(context):
        return Operator(_resharder(), lambda error: log_error(logger, "the request failed", error)).answer(event)


@without_traceback
def watch(event: object, _context: object) -> list[str]:
    """Schedule: find resizes without a driver and resizes that take long; with `look: shrink`, quiet counts."""
    if isinstance(event, Mapping) and event.get("look") == "shrink":
        settings, transport = _settings(), _transport()
        load = cloudwatch(settings.environment, transport, settings.table)
        return shrink(settings, _resharder(), log=logger.info, load=load)
    environment = _settings().measured_as
    _measure_stream(_settings(), environment)
    return Watch(
        _resharder(),
        _executions(),
        clock=time.time,
        measure=lambda seen: write_metrics(environment, seen),
        log=logger.info,
    ).look()


def write_metrics(environment: str, seen: Seen) -> None:
    """Write metrics about the resizes that are not complete into the log."""
    metrics = open_metrics(environment)
    metrics.add_metric(names.RESHARDS_RUNNING, MetricUnit.Count, seen.running)
    metrics.add_metric(names.RESHARDS_PAUSED, MetricUnit.Count, seen.paused)
    metrics.add_metric(names.RESHARD_WORK, MetricUnit.Count, seen.handled)
    metrics.add_metric(names.RESHARD_UNITS, MetricUnit.Count, seen.units)
    metrics.add_metric(names.OLDEST_RESHARD, MetricUnit.NoUnit, seen.hours)
    if seen.percent is not None:
        metrics.add_metric(names.RESHARD_PERCENT, MetricUnit.Percent, seen.percent)
    metrics.flush_metrics()


def measure_stream(age: StreamAge, environment: str) -> None:
    """Write the age of the stream as a metric. After an error, which is logged, it is missing, and its alarm rings."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 -- imported where it is needed

    try:
        seconds = age.seconds()
    except (BotoCoreError, ClientError, EngineUnavailableError) as error:
        log_error(logger, "the age of the stream cannot be measured", error)
        return
    metrics = open_metrics(environment)
    metrics.add_metric(names.STREAM_AGE, MetricUnit.Seconds, seconds)
    metrics.flush_metrics()


def _measure_stream(settings: Settings, environment: str) -> None:
    if settings.table_stream:
        clients = Clients(client("lambda"), client("cloudwatch"), client("dynamodbstreams"))
        age = StreamAge(clients, settings.table_stream, settings.table, time.time, logger.info)
        measure_stream(age, environment)


@cache
def _settings() -> Settings:
    return Settings.from_env(os.environ)


@cache
def _transport() -> Transport:
    settings = _settings()
    return open_transport(settings)


@cache
def _resharder() -> Resharder:
    return resharder_of(_settings(), _transport())


@cache
def _steps() -> Steps:
    return Steps(_resharder(), slice_seconds=_settings().slice_seconds, log=logger.info)


@cache
def _executions() -> Executions:
    return Executions(client("stepfunctions", attempts=3), required(os.environ, "STATE_MACHINE_ARN"))


def _until_answer(context: object) -> AbstractContextManager[None]:
    return within(time_to_answer(seconds_left(context)))
