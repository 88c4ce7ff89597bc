"""Entry of the function for direct invocation."""

import logging
import os
from collections.abc import Sequence
from functools import cache
from typing import Any

from domain import ENTITIES, Exposed
from dynashard import RetryPolicy
from dynashard.runtime import SYSTEM, Runtime
from dynashard.transport import Transport, connect
from dynashard_serving.backend import open_backend
from dynashard_serving.environment import seconds_left
from dynashard_serving.growth_log import GrowthLog
from dynashard_serving.idempotency import IdempotentCreates
from dynashard_serving.logs import log_error
from dynashard_serving.settings import ServingSettings
from dynashard_serving.shedding import LoadSignal
from functions.commands.answers import Commands

logger = logging.getLogger("commands")


class Log(GrowthLog):
    """Writes internal errors and events of the growth policy into the log."""

    def failed(self, error: Exception) -> None:
        """Log an internal error."""
        log_error(self._logger, "the request failed", error)


def build_commands(
    settings: ServingSettings,
    transport: Transport,
    *,
    exposed: Sequence[Exposed] = ENTITIES,
    log: Log | None = None,
    runtime: Runtime = SYSTEM,
    retry_policy: RetryPolicy | None = None,
) -> Commands:
    """Compose the function."""
    observer = log or Log(logger, settings.environment)
    entities = [each.entity for each in exposed]
    backend = open_backend(settings, transport, entities, observer, runtime=runtime, retry_policy=retry_policy)
    idempotent = IdempotentCreates(settings.idempotency_table, transport, clock=runtime.clock)
    return Commands(
        backend,
        idempotent,
        exposed,
        observer.failed,
        runtime.clock,
        tenants=settings.tenants,
        max_queries=settings.max_queries,
        load=LoadSignal(runtime.clock, runtime.random),
    )


@cache
def _commands() -> Commands:
    settings = ServingSettings.from_env(os.environ)
    return build_commands(
        settings, connect(endpoint_url=settings.endpoint, operation_seconds=settings.topology_operation_seconds)
    )


def handler(event: Any, context: Any) -> dict[str, Any]:
    """Answer one request. What answers is built by the first one and kept for the process."""
    return _commands().answer(event, seconds_left(context))
