"""How functions log errors: one line for an expected error, and a traceback for an unexpected one."""

import json
from collections.abc import Callable
from functools import wraps
from logging import Logger
from typing import Any, ParamSpec, TypeVar

from dynashard.errors import DynashardError
from dynashard_serving.refusals import expected, one_line

P = ParamSpec("P")
R = TypeVar("R")


def log_error(logger: Logger, event: str, error: Exception, **fields: Any) -> None:
    """Log an error: `{"event": ..., "error": "ThrottledError: ...", "code": ...}`."""
    document = {"event": event, "error": one_line(error), "code": getattr(error, "code", None), **fields}
    line = json.dumps(document, default=str)
    if expected(error):
        logger.warning(line)
    else:
        logger.error(line, exc_info=error)


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
