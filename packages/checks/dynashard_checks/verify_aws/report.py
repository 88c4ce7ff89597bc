"""A run's report, as lines for people and as a document for programs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dynashard_checks.verify_aws.check import Check, Verdict
from dynashard_checks.verify_aws.runner import Report, Result, total_dollars

_CLEAN = "dynashard verify-aws --clean"


def listing(checks: Sequence[Check]) -> Iterator[str]:
    """Return a line for each check: what it costs at most, how long it takes, and its fact."""
    width = max(len(check.name) for check in checks)
    yield f"{'check':<{width}}  at most   minutes  a local answer counts  fact"
    for check in checks:
        marks = f"${check.dollars:>8.2f}  {check.seconds / 60:>7.1f}  {'yes' if check.local else 'no':<21}"
        yield f"{check.name:<{width}} {marks}  {check.fact}{' (only by --check)' if check.optional else ''}"


def costs(checks: Sequence[Check], target: str) -> Iterator[str]:
    """Return what is said before anything is spent."""
    minutes = sum(check.seconds for check in checks) / 60
    yield f"{target}: {len(checks)} checks, at most ${total_dollars(checks):,.2f} and about {minutes:,.0f} minutes."
    dear = [check for check in checks if check.dollars >= 0.05]  # noqa: PLR2004 - what is worth a line
    yield from (f"  {check.name}: at most ${check.dollars:,.2f}" for check in dear)
    yield "The stacks of a deployed environment stay, and are billed, until `make destroy` removes them."


def line(result: Result) -> str:
    """Return the line of a result."""
    return f"{result.outcome.verdict.value:<14} {result.check.name} ({result.seconds:,.0f} s): {result.outcome.seen}"


def lines(report: Report) -> Iterator[str]:
    """Return the report: a line for each check, the numbers of outcomes, and what was left."""
    yield from (line(result) for result in report.results)
    counts = ", ".join(f"{report.count(verdict)} {words}" for verdict, words in _WORDS.items())
    yield f"{counts}; {len(report.not_run)} did not run"
    if report.left:
        yield f"These scratch resources could not be removed. `{_CLEAN}` tries again:"
        yield from (f"  {each}" for each in report.left)


def document(report: Report, *, account: str, region: str, environment: str, local: bool) -> dict[str, Any]:
    """Return the whole report as one JSON object."""
    return {
        "account": account,
        "region": region,
        "environment": environment,
        "local": local,
        "checks": [_document(result, local=local) for result in report.results],
        "not_run": _names(report.not_run),
        "left": list(report.left),
    }


def _document(result: Result, *, local: bool) -> dict[str, Any]:
    return {
        "name": result.check.name,
        "fact": result.check.fact,
        "verdict": result.outcome.verdict.value,
        "seen": result.outcome.seen,
        "counts": result.check.local or not local,
        "seconds": result.seconds,
        "dollars_at_most": result.check.dollars,
    }


def _names(checks: Iterable[Check]) -> list[str]:
    return [check.name for check in checks]


_WORDS = {Verdict.HOLDS: "hold", Verdict.DIFFERS: "differ", Verdict.UNCLEAR: "stay unknown"}
