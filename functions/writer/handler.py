"""Entry of the writer: what it is told by its environment, and the clients it shares between batches."""

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from dynashard.transport import connect
from functions.writer.backend import database_of
from functions.writer.metrics import line
from functions.writer.operations import Operations, problem_document
from functions.writer.queues import Queues, Sqs
from functions.writer.settings import Settings
from functions.writer.writer import LAST_MILLISECONDS, Writer

if TYPE_CHECKING:
    from dynashard.resharding.growth_terms import Report

logger = logging.getLogger("writer")


def handler(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Do a batch of a queue's messages; the answer names those that have to come again."""
    settings = _settings()
    left, tally = _writer().work(event["Records"], _remaining(context))
    _print(line(settings.environment, tally, time.time()))
    return {"batchItemFailures": [{"itemIdentifier": each} for each in left]}


@cache
def _settings() -> Settings:
    return Settings.from_env(os.environ)


@cache
def _writer() -> Writer:
    settings = _settings()
    transport = connect(endpoint_url=settings.endpoint)
    database = database_of(settings, transport, _Witness())
    return Writer(
        collection_of=database.collection,
        operate=Operations(database, problem_document).operate,
        queues=Queues(_sqs(), settings.queues, settings.dead_letters),
        log=_log,
        clock=time.time,
        lanes=settings.lanes,
    )


class _Witness:
    """Writes what the growth policy does into the log."""

    def grew(self, report: "Report", /) -> None:
        _log("growth", {"news": report.news.value, "entity": report.entity, "told": report.told})

    def growth_failed(self, error: Exception, /) -> None:
        _log("growth failed", {"exception": error})


def _sqs() -> Sqs:
    from botocore.config import Config  # noqa: PLC0415 -- imported where it is needed
    from botocore.session import get_session  # noqa: PLC0415

    config = Config(connect_timeout=3, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3})
    client: Sqs = get_session().create_client("sqs", config=config)
    return client


def _remaining(context: Any) -> Callable[[], int]:
    ask = getattr(context, "get_remaining_time_in_millis", None)
    return (lambda: LAST_MILLISECONDS) if ask is None else lambda: int(ask())


def _log(event: str, fields: Mapping[str, Any]) -> None:
    error = fields.get("exception")
    plain = {name: value for name, value in fields.items() if name != "exception"}
    logger.warning(json.dumps({"event": event, **plain}, default=str), exc_info=error)


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
