"""Entry of the function: a batch of the table's stream to every consumer that the domain declares."""

import json
import logging
import os
import sys
import time
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from dynashard.changes import Dispatcher, Letter, Outcome
from dynashard.transport import connect
from functions.changes.backend import consumers, database_of
from functions.changes.letters import Keep, to_queue
from functions.changes.settings import Settings

if TYPE_CHECKING:
    from dynashard.resharding.growth_terms import Report

NAMESPACE: Final = "Dynashard"

logger = logging.getLogger("changes")


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Answer a batch of stream records: from which one on the batch has to come again, if it has to."""
    outcome = _dispatcher().take(event["Records"])
    sys.stdout.write(f"{metrics(_settings().environment, outcome, time.time())}\n")
    if outcome.again is None:
        return {"batchItemFailures": []}
    logger.warning("records come again from %s on: %s", outcome.again, outcome.reason)
    return {"batchItemFailures": [{"itemIdentifier": outcome.again}]}


def metrics(environment: str, outcome: Outcome, now: float) -> str:
    """A log line from which CloudWatch makes metrics (embedded metric format)."""
    counted = {
        "ChangesHandled": outcome.changes,
        "ChangesDead": outcome.letters,
        "ChangeBatchesAgain": int(outcome.again is not None),
    }
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [["environment"]],
        "Metrics": [{"Name": name, "Unit": "Count"} for name in counted],
    }
    told = {"Timestamp": int(now * 1000), "CloudWatchMetrics": [directive]}
    return json.dumps({"_aws": told, "environment": environment, **counted})


@cache
def _settings() -> Settings:
    return Settings.from_env(os.environ)


@cache
def _dispatcher() -> Dispatcher:
    settings = _settings()
    db = database_of(settings, connect(endpoint_url=settings.endpoint), _Witness())
    return Dispatcher(consumers(db), keep=_told(to_queue(settings.dead_letter_queue)))


class _Witness:
    """Writes what the growth policy does into the log."""

    def grew(self, report: "Report", /) -> None:
        news = {"event": "growth", "news": report.news.value, "entity": report.entity, "told": report.told}
        logger.warning(json.dumps(news))

    def growth_failed(self, error: Exception, /) -> None:
        logger.warning("growth failed", exc_info=error)


def _told(keep: Keep) -> Keep:
    def told(letter: Letter) -> None:
        keep(letter)
        logger.error("dead letter: %s of %s: %s", letter.sequence, letter.consumer or "nobody", letter.reason)

    return told
