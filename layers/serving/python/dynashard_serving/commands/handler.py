"""Entry of the function for direct invocation."""

import os
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from dynashard_serving.start import uncollected

with uncollected():
    from aws_lambda_powertools.metrics import MetricUnit

    from dynashard import RetryPolicy
    from dynashard.errors import OutcomeUnknownError, OverloadedError, UndecodableItemError
    from dynashard.runtime import SYSTEM, Runtime
    from dynashard.transport import Transport
    from dynashard_serving.backend import open_backend, open_transport
    from dynashard_serving.commands.answers import Commands
    from dynashard_serving.commands.lines import described
    from dynashard_serving.domain import Domain, declared
    from dynashard_serving.idempotency import IdempotentCreates
    from dynashard_serving.limits import seconds_left
    from dynashard_serving.request_bounds import RequestBounds
    from dynashard_serving.settings import ServingSettings
    from dynashard_serving.shedding import LoadSignal
    from dynashard_serving.telemetry import metric_names as names
    from dynashard_serving.telemetry.log_text import loggable
    from dynashard_serving.telemetry.powertools import COMMANDS, GrowthLog, log_error, open_logger, open_metrics

logger = open_logger(COMMANDS)

COUNTED: Final[Mapping[str, str]] = {
    OutcomeUnknownError.code: names.OUTCOME_UNKNOWN,
    OverloadedError.code: names.SHED,
    UndecodableItemError.code: names.UNDECODABLE,
}
"""Codes of refusals that are counted, with their metrics. Other answers write none."""


class Log(GrowthLog):
    """Writes internal errors and events of the growth policy into the log."""

    def failed(self, error: Exception) -> None:
        """Log an internal error."""
        log_error(self._logger, "the request failed", error)


def build_commands(
    settings: ServingSettings,
    transport: Transport,
    *,
    domain: Domain | None = None,
    log: Log | None = None,
    runtime: Runtime = SYSTEM,
    retry_policy: RetryPolicy | None = None,
) -> Commands:
    """Compose the function for a domain, by default of the package `domain`."""
    domain = domain or declared()
    observer = log or Log(logger, settings)
    backend = open_backend(settings, transport, domain.models, observer, runtime=runtime, retry_policy=retry_policy)
    idempotent = IdempotentCreates(settings.idempotency_table, transport, clock=runtime.clock)
    return Commands(
        backend,
        idempotent,
        domain,
        observer.failed,
        runtime.clock,
        tenants=settings.tenants,
        caller_required=settings.caller_required,
        bounds=RequestBounds(
            runtime.clock, LoadSignal(runtime.clock, runtime.random), max_queries=settings.max_queries
        ),
    )


@cache
def _settings() -> ServingSettings:
    return ServingSettings.from_env(os.environ)


@cache
def _commands() -> Commands:
    with uncollected():
        settings = _settings()
        return build_commands(settings, open_transport(settings))


def handler(event: Any, context: Any) -> dict[str, Any]:
    """Answer one request. What answers is built by the first one and kept for the process."""
    begun = time.monotonic()
    answer = _commands().answer(event, seconds_left(context))
    common = {
        "request_id": getattr(context, "aws_request_id", None),
        "milliseconds": round((time.monotonic() - begun) * 1000, 1),
    }
    for about in described(event, answer, _commands().entities):
        logger.info("request", extra=loggable({**common, **about}, item_keys=_settings().log_item_keys))
    write_metrics(_settings().measured_as, answer)
    return answer


def write_metrics(environment: str, answer: Mapping[str, Any]) -> None:
    """Write the metric of an answer into the log, if it is counted and somebody reads it."""
    metric, number = None if answer["ok"] else COUNTED.get(answer["error"]["code"]), 1
    if "undecodable" in answer:
        metric, number = names.UNDECODABLE, answer["undecodable"]["number"]
    if metric is None or environment == "local":
        return
    metrics = open_metrics(environment)
    metrics.add_metric(metric, MetricUnit.Count, number)
    metrics.flush_metrics()
