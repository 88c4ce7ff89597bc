"""The figures of a scenario's runs, as text."""

from collections.abc import Iterator, Mapping

from tools.simulate.run import Result
from tools.simulate.scenario import Scenario

_HEADINGS = ("", "admitted/s", "settled/s", "throttled", "partitions", "splits", "seconds", "$/month")


def lines(scenario: Scenario, results: Mapping[str, Result]) -> Iterator[str]:
    """Yield the question, a table with a row for each variant, and what was throttled."""
    yield scenario.title
    yield scenario.question
    yield ""
    rows = [_HEADINGS, *(_row(name, result) for name, result in results.items())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    for row in rows:
        first, *others = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join([row[0].ljust(len(first)), *others]).rstrip()
    for name, result in results.items():
        for reason, count in result.reasons.items():
            yield f"{name or scenario.title}: {count:,} requests throttled with {reason}"
        if not result.finished:
            yield f"{name or scenario.title}: not all items were written in {result.seconds:,.0f} seconds"


def _row(name: str, result: Result) -> tuple[str, ...]:
    share = result.throttled / result.asked if result.asked else 0.0
    return (
        name,
        f"{result.admitted_rate:,.0f}",
        f"{result.settled_rate:,.0f}",
        f"{share:.1%}",
        f"{result.partitions:,}",
        f"{result.heat_splits + result.size_splits:,}",
        f"{result.seconds:,.0f}",
        f"{result.dollars_a_month:,.0f}",
    )
