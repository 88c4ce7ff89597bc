"""Entry of the function: a batch of the table's stream to every consumer that the domain declares."""

import logging
import os
import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from domain import ENTITIES
from dynashard.transport.deadline import within
from dynashard_patterns.changes import DeadLetter, Dispatcher, Outcome
from dynashard_serving import metric_names as names
from dynashard_serving.backend import open_entities
from dynashard_serving.environment import seconds_left, time_to_answer
from dynashard_serving.growth_log import GrowthLog
from dynashard_serving.log_lines import CHANGES, LogLines
from dynashard_serving.metrics import Figure, metrics_line, write_line
from dynashard_serving.operations.served import Served
from dynashard_serving.transports import open_transport
from functions.changes.dead_letters import Keep, to_queue
from functions.changes.following import consumers
from functions.changes.lines import Described
from functions.changes.settings import Settings

logger = logging.getLogger("changes")


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Answer a batch of stream records: from which one on the batch has to come again, if it has to."""
    with within(time_to_answer(seconds_left(context))):
        outcome = _dispatcher().dispatch(event["Records"])
    for about in _described().records(event["Records"], outcome.again):
        about["invocation"] = getattr(context, "aws_request_id", None)
        write_line(_lines().line("change", about, time.time()))
    write_line(metrics(_settings().environment, outcome, event["Records"], time.time()))
    if outcome.again is None:
        return {"batchItemFailures": []}
    logger.warning("records come again from %s on: %s", outcome.again, outcome.reason)
    return {"batchItemFailures": [{"itemIdentifier": outcome.again}]}


def metrics(environment: str, outcome: Outcome, records: Sequence[Mapping[str, Any]], now: float) -> str:
    """Return the line of metrics for a batch that has ended at a time in epoch seconds."""
    figures = [
        Figure(names.CHANGES_HANDLED, outcome.changes),
        Figure(names.CHANGES_DEAD, outcome.dead_letters),
        Figure(names.CHANGE_BATCHES_AGAIN, int(outcome.again is not None)),
    ]
    times = [each["dynamodb"].get("ApproximateCreationDateTime") for each in records]
    if written := [float(at) for at in times if at is not None]:
        figures.append(Figure(names.CHANGES_LAG, round(max(0.0, now - min(written)), 3), "Seconds"))
    return metrics_line(environment, figures, now)


@cache
def _settings() -> Settings:
    return Settings.from_env(os.environ)


@cache
def _described() -> Described:
    return Described([Served(each) for each in ENTITIES])


@cache
def _lines() -> LogLines:
    return LogLines(CHANGES, item_keys=_settings().log_item_keys)


@cache
def _dispatcher() -> Dispatcher:
    settings = _settings()
    transport = open_transport(settings)
    entities = [each.entity for each in ENTITIES]
    db = open_entities(settings, transport, entities, GrowthLog(logger, settings.environment))
    return Dispatcher(consumers(db), keep=_logged(to_queue(settings.dead_letter_queue)))


def _logged(keep: Keep) -> Keep:
    def keep_and_log(letter: DeadLetter) -> None:
        keep(letter)
        logger.error("dead letter: %s of %s: %s", letter.sequence, letter.consumer or "no consumer", letter.reason)

    return keep_and_log
