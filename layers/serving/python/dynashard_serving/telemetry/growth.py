"""Events of the growth policy in a function's log: the fields of a line, and the name of a metric."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynashard.growth.terms import Report


def growth_metric(report: "Report") -> str:
    """Return the metric that counts events of this kind: `GrowthAsked`, `GrowthLimit` and so on."""
    return f"Growth{report.event.value.title().replace('_', '')}"


def growth_fields(report: "Report") -> dict[str, Any]:
    """Return the fields of an event's line in the log."""
    return {
        "outcome": report.event.value,
        "entity": report.entity,
        "partition": report.partition,
        "index": report.index,
        "target": report.target,
        "reason": report.reason,
    }
