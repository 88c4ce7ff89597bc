"""Entry of the writer, its settings, and the clients that it shares between batches."""

import os
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from aws_lambda_powertools.utilities.data_classes import SQSEvent

from dynashard_serving.aws_services import sqs_client
from dynashard_serving.backend import open_entities, open_transport
from dynashard_serving.domain import declared
from dynashard_serving.refusals import expected
from dynashard_serving.telemetry.log_text import loggable
from dynashard_serving.telemetry.powertools import WRITER, GrowthLog, open_logger
from dynashard_serving.writer.metrics import write_metrics
from dynashard_serving.writer.operations import Operations
from dynashard_serving.writer.queues import Queues
from dynashard_serving.writer.settings import Settings
from dynashard_serving.writer.writer import LAST_MILLISECONDS, Writer

logger = open_logger(WRITER)


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Do a batch of a queue's messages; the answer names those that have to come again."""
    settings = _settings()
    left, tally = _writer().work(SQSEvent(dict(event)).records, _remaining(context))
    write_metrics(settings.measured_as, tally)
    return {"batchItemFailures": [{"itemIdentifier": each} for each in left]}


@cache
def _settings() -> Settings:
    return Settings.from_env(os.environ)


@cache
def _writer() -> Writer:
    settings = _settings()
    transport = open_transport(settings)
    database = open_entities(settings, transport, declared().models, GrowthLog(logger, settings))
    return Writer(
        collection_of=database.collection,
        operate=Operations(database, time.time).operate,
        queues=Queues(cache(sqs_client), settings.queues, settings.dead_letters),
        log=_log,
        clock=time.time,
        record=_record,
        workers=settings.workers,
        tenants=settings.tenants,
    )


def _remaining(context: Any) -> Callable[[], int]:
    ask = getattr(context, "get_remaining_time_in_millis", None)
    return (lambda: LAST_MILLISECONDS) if ask is None else lambda: int(ask())


def _record(about: Mapping[str, Any]) -> None:
    # What operators have to repair is logged at every level.
    write = logger.warning if about.get("error") else logger.info
    write("write", extra=loggable(about, item_keys=_settings().log_item_keys))


def _log(event: str, fields: Mapping[str, Any]) -> None:
    error = fields.get("exception")
    plain = {name: value for name, value in fields.items() if name != "exception"}
    # The line has the message of an expected error; only an unexpected one needs a traceback.
    unexpected = error is not None and not expected(error)
    logger.warning(event, extra=plain, exc_info=error if unexpected else None)
