"""Entry of the function: a batch of the table's stream to every consumer that the domain declares."""

import os
import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from dynashard.transport.deadline import within
from dynashard_patterns.changes import DeadLetter, Dispatcher, Outcome
from dynashard_serving.backend import open_entities, open_transport
from dynashard_serving.changes.dead_letters import Keep, to_queue
from dynashard_serving.changes.following import consumers
from dynashard_serving.changes.lines import Described
from dynashard_serving.changes.settings import Settings
from dynashard_serving.domain import declared
from dynashard_serving.events.publishing import to_bus
from dynashard_serving.limits import seconds_left, time_to_answer
from dynashard_serving.operations.served import Served
from dynashard_serving.telemetry import metric_names as names
from dynashard_serving.telemetry.log_text import loggable
from dynashard_serving.telemetry.powertools import CHANGES, GrowthLog, open_logger, open_metrics

logger = open_logger(CHANGES)


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Answer a batch of stream records: from which one on the batch has to come again, if it has to."""
    with within(time_to_answer(seconds_left(context))):
        outcome = _dispatcher().dispatch(event["Records"])
    for about in _described().records(event["Records"], outcome.again):
        about["invocation"] = getattr(context, "aws_request_id", None)
        logger.info("change", extra=loggable(about, item_keys=_settings().log_item_keys))
    write_metrics(_settings().measured_as, outcome, event["Records"], time.time())
    if outcome.again is None:
        return {"batchItemFailures": []}
    logger.warning("records come again from %s on: %s", outcome.again, outcome.reason)
    return {"batchItemFailures": [{"itemIdentifier": outcome.again}]}


def write_metrics(environment: str, outcome: Outcome, records: Sequence[Mapping[str, Any]], now: float) -> None:
    """Write the metrics of a batch that has ended at a time in epoch seconds into the log."""
    metrics = open_metrics(environment)
    metrics.add_metric(names.CHANGES_HANDLED, MetricUnit.Count, outcome.changes)
    metrics.add_metric(names.CHANGES_DEAD, MetricUnit.Count, outcome.dead_letters)
    metrics.add_metric(names.CHANGE_BATCHES_AGAIN, MetricUnit.Count, int(outcome.again is not None))
    times = [each["dynamodb"].get("ApproximateCreationDateTime") for each in records]
    if written := [float(at) for at in times if at is not None]:
        metrics.add_metric(names.CHANGES_LAG, MetricUnit.Seconds, round(max(0.0, now - min(written)), 3))
    metrics.flush_metrics()


@cache
def _settings() -> Settings:
    return Settings.from_env(os.environ)


@cache
def _described() -> Described:
    return Described([Served(each) for each in declared().entities])


@cache
def _dispatcher() -> Dispatcher:
    settings = _settings()
    transport = open_transport(settings)
    domain = declared()
    db = open_entities(settings, transport, domain.models, GrowthLog(logger, settings))
    publish = to_bus(settings.event_bus, settings.event_source)
    return Dispatcher(consumers(db, domain.declarations, publish), keep=_logged(to_queue(settings.dead_letter_queue)))


def _logged(keep: Keep) -> Keep:
    def keep_and_log(letter: DeadLetter) -> None:
        keep(letter)
        logger.error("dead letter: %s of %s: %s", letter.sequence, letter.consumer or "no consumer", letter.reason)

    return keep_and_log
