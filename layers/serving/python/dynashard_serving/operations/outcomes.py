"""Outcomes of the parts of a batch, and of direct invocations: a result, or what is wrong."""

from typing import Any

from dynashard_serving.refusals import refusal_of

Outcome = dict[str, Any]


def done(result: Any) -> Outcome:
    """The outcome with a result."""
    return {"ok": True, "result": result}


def refused(error: Exception) -> Outcome:
    """Return the outcome with an error, without details if the error is unexpected."""
    return {"ok": False, "error": refusal_of(error).document()}
