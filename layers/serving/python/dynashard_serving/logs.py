"""The logs of all functions but the API: lines of JSON by Powertools' logger.

One query follows a request or an item through all logs: `request_id` is the API's, `item` is an item's path such as
`users/ada`, and `revision` is what was written. An expected error is one line, any other has a traceback.
"""

from collections.abc import Callable
from functools import wraps
from typing import IO, Any, Final, ParamSpec, TypeVar

from aws_lambda_powertools.logging import Logger

from dynashard.errors import DynashardError
from dynashard_serving.log_text import line_text
from dynashard_serving.refusals import expected, one_line

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
