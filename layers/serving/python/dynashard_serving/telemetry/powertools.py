"""The logs and metrics of all functions but the API, by Powertools: lines of JSON, and of the embedded metric format.

One query follows a request or an item through all logs: `request_id` is the API's, `item` is an item's path such as
`users/ada`, and `revision` is what was written. An expected error is one line, any other has a traceback.
"""

from collections.abc import Callable
from functools import wraps
from typing import IO, TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from dynashard.errors import DynashardError
from dynashard_serving.refusals import expected, one_line
from dynashard_serving.telemetry.growth import growth_fields, growth_metric
from dynashard_serving.telemetry.log_text import line_text
from dynashard_serving.telemetry.metric_names import ENVIRONMENT, NAMESPACE

if TYPE_CHECKING:
    from dynashard.growth.terms import Report
    from dynashard_serving.settings import TableSettings

COMMANDS: Final = "dynashard-commands"
WRITER: Final = "dynashard-writer"
CHANGES: Final = "dynashard-changes"
RESHARD: Final = "dynashard-reshard"
PREWARM: Final = "dynashard-prewarm"
"""Services, which distinguish the lines."""

P = ParamSpec("P")
R = TypeVar("R")


def open_logger(service: str, stream: IO[str] | None = None) -> Logger:
    """Return the logger of a service, by default to the function's log. `LOG_LEVEL` hides what is below it."""
    # The traceback is in `exception`, so a second time as a list of frames would only cost more.
    return Logger(service=service, stream=stream, json_serializer=line_text, serialize_stacktrace=False)


def log_error(logger: Logger, event: str, error: Exception, **fields: Any) -> None:
    """Log an error: `{"message": event, "error": "ThrottledError: ...", "code": ...}`."""
    about = {"error": one_line(error), "code": getattr(error, "code", None), **fields}
    if expected(error):
        logger.warning(event, extra=about)
    else:
        logger.error(event, exc_info=error, extra=about)


def without_traceback(entry: Callable[P, R]) -> Callable[P, R]:
    """Decorate a Lambda handler so that an expected error has no traceback in the log.

    Lambda's runtime logs every error that a handler raises, with its traceback. An expected error is raised again
    without one. Its class and message stay the same, because a state machine decides by them.
    """

    @wraps(entry)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return entry(*args, **kwargs)
        except DynashardError as error:
            failed = error.with_traceback(None)
        failed.__cause__ = failed.__context__ = None
        raise failed

    return called


def open_metrics(environment: str) -> EphemeralMetrics:
    """Return new metrics of an environment; `flush_metrics` writes those that were added into the function's log.

    Threads and batches each have their own. Powertools' `Metrics` would be one set for the whole process.
    """
    # Without a name of the service, Powertools adds no dimension of its own, which no alarm would read.
    metrics = EphemeralMetrics(namespace=NAMESPACE, service="")
    metrics.add_dimension(ENVIRONMENT, environment)
    return metrics


class GrowthLog:
    """Writes events of the growth policy into the log of a function."""

    def __init__(self, logger: Logger, settings: "TableSettings") -> None:
        self._logger = logger
        self._environment = settings.measured_as

    def grew(self, report: "Report", /) -> None:
        """Log an event and count it."""
        self._logger.warning("growth", extra=growth_fields(report))
        metrics = open_metrics(self._environment)
        metrics.add_metric(growth_metric(report), MetricUnit.Count, 1)
        metrics.flush_metrics()

    def growth_failed(self, error: Exception, /) -> None:
        """Log an error of the policy itself."""
        log_error(self._logger, "growth failed", error)
