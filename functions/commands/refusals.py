"""Answers: a result, or what is wrong with the request."""

from typing import Any

from dynashard.errors import DynashardError
from dynashard.hosting.refusals import refusal_of

Outcome = dict[str, Any]


def done(result: Any) -> Outcome:
    """The answer with a result."""
    return {"ok": True, "result": result}


def refused(error: Exception) -> Outcome:
    """The answer to what raised this error; of an unexpected one it tells nothing."""
    return {"ok": False, "error": refusal_of(error).document()}


class OperationError(DynashardError):
    """An entity is not served with this operation."""

    code = "method_not_allowed"
    status = 405
