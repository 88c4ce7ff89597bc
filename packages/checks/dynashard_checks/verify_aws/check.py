"""What a check is, and what it can find out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from dynashard_checks.verify_aws.context import Context

PRICE_MARGIN: Final = 2.0
"""Costs are stated at twice the prices of us-east-1, because other regions are dearer."""
_WRITE_UNIT: Final = 0.625e-6
_READ_UNIT: Final = 0.125e-6


class Verdict(StrEnum):
    """What a check found out about its fact."""

    HOLDS = "holds"
    DIFFERS = "differs"
    UNCLEAR = "could not tell"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict, and what was seen or why nothing could be seen."""

    verdict: Verdict
    seen: str


@dataclass(frozen=True, slots=True)
class Check:
    """A check of one fact, or of some facts that are seen together.

    Attributes:
        name: as `--check` names it.
        fact: what should hold, in one sentence.
        run: makes the observation and judges it. It creates everything through the context's scratch resources.
        dollars: the most that it can cost.
        seconds: the most that it should take.
        local: whether a local AWS decides as AWS does, so that its answer counts.
        needs_api: whether it calls the deployed API.
        needs_token: whether it calls the API with a token of the caller.
        optional: whether it runs only if `--check` names it, because it is long or expensive.
    """

    name: str
    fact: str
    run: Callable[[Context], Outcome]
    dollars: float = 0.01
    seconds: float = 60.0
    local: bool = False
    needs_api: bool = False
    needs_token: bool = False
    optional: bool = False


def holds(seen: str) -> Outcome:
    """Return the outcome of a fact that holds."""
    return Outcome(Verdict.HOLDS, seen)


def differs(seen: str) -> Outcome:
    """Return the outcome of a fact that does not hold."""
    return Outcome(Verdict.DIFFERS, seen)


def unclear(why: str) -> Outcome:
    """Return the outcome of a check that shows nothing."""
    return Outcome(Verdict.UNCLEAR, why)


def compare(expected: Mapping[str, Any], seen: Mapping[str, Any]) -> Outcome:
    """Judge observations that must equal what is expected, each under its name."""
    wrong = [
        f"{name}: {seen.get(name)!r} instead of {value!r}"
        for name, value in expected.items()
        if seen.get(name) != value
    ]
    if wrong:
        return differs("; ".join(wrong))
    return holds("; ".join(f"{name}: {value!r}" for name, value in expected.items()))


def dollars_of(*, write_units: float = 0.0, read_units: float = 0.0) -> float:
    """Return what units on demand cost at most."""
    return (write_units * _WRITE_UNIT + read_units * _READ_UNIT) * PRICE_MARGIN
