"""Entries of the functions, their settings, and the clients that they share."""

import logging
import os
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from dynashard.errors import EngineUnavailableError
from dynashard.resharding import Resharder
from dynashard.transport import Transport
from dynashard.transport.deadline import within
from dynashard_serving import metric_names as names
from dynashard_serving.aws_services import cloudwatch_client, lambda_client, streams_client
from dynashard_serving.backend import cloudwatch
from dynashard_serving.environment import required, seconds_left, time_to_answer
from dynashard_serving.logs import log_error, without_traceback
from dynashard_serving.metrics import Figure, metrics_line, write_line
from dynashard_serving.transports import open_transport
from functions.reshard.backend import resharder_of
from functions.reshard.dispatch import Dispatcher
from functions.reshard.executions import Executions
from functions.reshard.operations import Operator
from functions.reshard.settings import Settings
from functions.reshard.shrink import shrink
from functions.reshard.steps import Steps
from functions.reshard.stream_age import Clients, StreamAge
from functions.reshard.watch import Seen, Watch

logger = logging.getLogger("reshard")


@without_traceback
def advance(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """State machine: bring a change forward, and say what comes next."""
    with _until_answer(context):
        return _steps().advance(event["input"])


@without_traceback
def work(event: Mapping[str, Any], context: object) -> bool:
    """State machine: work on one task for a slice of time."""
    with _until_answer(context):
        return _steps().work(event["input"])


@without_traceback
def stop(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """State machine: pause a change that has failed, and keep why."""
    with _until_answer(context):
        return _steps().stop(event["input"])


def dispatch(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Stream of the topology table: start what was asked for."""
    return Dispatcher(_executions().start, _log).dispatch(event)


def operate(event: Any, context: object) -> dict[str, Any]:
    """Direct invocation: start, pause, resume, abort or look."""
    with _until_answer(context):
        return Operator(_resharder(), lambda error: log_error(logger, "the request failed", error)).answer(event)


@without_traceback
def watch(event: object, _context: object) -> list[str]:
    """Schedule: find changes without a driver and changes that take long; with `look: shrink`, quiet counts."""
    if isinstance(event, Mapping) and event.get("look") == "shrink":
        settings, transport = _settings(), _transport()
        return shrink(
            settings, _resharder(), log=_log, load=cloudwatch(settings.environment, transport, settings.table)
        )
    environment = _settings().environment
    _measure_stream(_settings())
    return Watch(
        _resharder(),
        _executions(),
        clock=time.time,
        measure=lambda seen: write_line(metrics(environment, seen, time.time())),
        log=_log,
    ).look()


def metrics(environment: str, seen: Seen, now: float) -> str:
    """Return the line of metrics about the changes that are not complete, at a time in epoch seconds."""
    figures = [
        Figure(names.RESHARDS_RUNNING, seen.running),
        Figure(names.RESHARDS_PAUSED, seen.paused),
        Figure(names.RESHARD_WORK, seen.handled),
        Figure(names.RESHARD_UNITS, seen.units),
        Figure(names.OLDEST_RESHARD, seen.hours, "None"),
    ]
    if seen.percent is not None:
        figures.append(Figure(names.RESHARD_PERCENT, seen.percent, "Percent"))
    return metrics_line(environment, figures, now)


def measure_stream(age: StreamAge, environment: str) -> None:
    """Write the age of the stream as a metric. After an error, which is logged, it is missing, and its alarm rings."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 -- imported where it is needed

    try:
        seconds = age.seconds()
    except (BotoCoreError, ClientError, EngineUnavailableError) as error:
        log_error(logger, "the age of the stream cannot be measured", error)
        return
    write_line(stream_metrics(environment, seconds, age.clock()))


def stream_metrics(environment: str, age: float, now: float) -> str:
    """Return the line of metrics about the stream's age in seconds, at a time in epoch seconds."""
    return metrics_line(environment, [Figure(names.STREAM_AGE, age, "Seconds")], now)


def _measure_stream(settings: Settings) -> None:
    if settings.table_stream:
        clients = Clients(lambda_client(), cloudwatch_client(), streams_client())
        measure_stream(StreamAge(clients, settings.table_stream, settings.table, time.time, _log), settings.environment)


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
    return Steps(_resharder(), slice_seconds=_settings().slice_seconds, log=_log)


@cache
def _executions() -> Executions:
    from botocore.config import Config  # noqa: PLC0415 -- imported where it is needed
    from botocore.session import get_session  # noqa: PLC0415

    config = Config(connect_timeout=3, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3})
    client = get_session().create_client("stepfunctions", config=config)
    return Executions(client, required(os.environ, "STATE_MACHINE_ARN"))


def _until_answer(context: object) -> AbstractContextManager[None]:
    return within(time_to_answer(seconds_left(context)))


def _log(line: str) -> None:
    logger.setLevel(logging.INFO)
    logger.info(line)
