"""How functions log errors: one line for those that explain themselves, a traceback for all others."""

import json
from collections.abc import Callable
from functools import wraps
from logging import Logger
from typing import Any, ParamSpec, TypeVar

from dynashard.errors import DynashardError
from dynashard.hosting.refusals import expected, one_line

P = ParamSpec("P")
R = TypeVar("R")


def log_error(logger: Logger, event: str, error: Exception, **fields: Any) -> None:
    """Log an error: `{"event": ..., "error": "ThrottledError: ...", "code": ...}`.

    Args:
        logger: of the function.
        event: what went wrong.
        error: the error.
        fields: what else the line says.
    """
    document = {"event": event, "error": one_line(error), "code": getattr(error, "code", None), **fields}
    line = json.dumps(document, default=str)
    if expected(error):
        logger.warning(line)
    else:
        logger.error(line, exc_info=error)


def without_traceback(entry: Callable[P, R]) -> Callable[P, R]:
    """Let a function fail with an expected error as one line.

    Lambda's runtime logs whatever a function raises with its traceback. An error that explains itself is raised anew,
    with nothing behind it but this frame. Its class and message, by which a state machine decides, stay the same.
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
