"""Entry of the function: a batch of the table's stream to every consumer that the domain declares."""

import json
import logging
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import domain
from dynashard import Dynashard, LeasedTopology
from dynashard.changes import Consumer, Dispatcher, Letter, Outcome
from dynashard.transport import connect
from functions.changes.letters import Keep, to_queue
from functions.changes.settings import Settings

NAMESPACE: Final = "Dynashard"
DECLARED: Final = ("COPIES", "ROLL_UPS")
"""Names of the domain under which it declares what follows from changes."""

logger = logging.getLogger("changes")


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Answer a batch of stream records: from which one on the batch has to come again, if it has to."""
    outcome = _dispatcher().take(event["Records"])
    sys.stdout.write(f"{metrics(_settings().environment, outcome, time.time())}\n")
    if outcome.again is None:
        return {"batchItemFailures": []}
    logger.warning("records come again from %s on: %s", outcome.again, outcome.reason)
    return {"batchItemFailures": [{"itemIdentifier": outcome.again}]}


def consumers(db: Dynashard) -> Iterator[Consumer]:
    """Who follows changes: what the domain declares."""
    for name in DECLARED:
        for declared in getattr(domain, name, ()):
            yield declared.consumer(db)


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
    transport = connect(endpoint_url=settings.endpoint)
    db = Dynashard(
        transport,
        table=settings.table,
        # No cursor leaves this function: a key of no use elsewhere does.
        cursor_keys=[secrets.token_urlsafe()],
        topology=LeasedTopology(transport, settings.topology_table, lease=settings.lease),
    )
    return Dispatcher(consumers(db), keep=_told(to_queue(settings.dead_letter_queue)))


def _told(keep: Keep) -> Keep:
    def told(letter: Letter) -> None:
        keep(letter)
        logger.error("dead letter: %s of %s: %s", letter.sequence, letter.consumer or "nobody", letter.reason)

    return told
