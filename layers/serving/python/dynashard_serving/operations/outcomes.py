"""Outcomes of the parts of a batch, and of direct invocations: a result, or what is wrong."""

from typing import Any

from dynashard_serving.refusals import refusal_of

Outcome = dict[str, Any]


def done(result: Any) -> Outcome:
    """The outcome with a result."""
    return {"ok": True, "result": result}


def refused(error: Exception) -> Outcome:
    """The outcome of what raised this error; of an unexpected one it tells nothing."""
    return {"ok": False, "error": refusal_of(error).document()}
