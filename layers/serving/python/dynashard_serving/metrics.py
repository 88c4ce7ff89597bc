"""Metrics as lines of a function's log, from which CloudWatch makes them (embedded metric format)."""

import json
import sys
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from dynashard_serving.metric_names import ENVIRONMENT, NAMESPACE

MOST_VALUES: Final = 100
"""Values a metric may have in one line."""


class Figure(NamedTuple):
    """A metric and its value.

    Attributes:
        name: of the metric, from `metric_names`.
        value: one, or several of them, of which the highest 100 are written.
        unit: as CloudWatch calls it.
    """

    name: str
    value: float | Sequence[float]
    unit: Literal["Count", "Seconds", "Percent", "None"] = "Count"

    @property
    def written(self) -> Any:
        """The value in a line."""
        return sorted(self.value)[-MOST_VALUES:] if isinstance(self.value, Sequence) else self.value


def metrics_line(environment: str, figures: Sequence[Figure], now: float) -> str:
    """Return the line with these figures at a time in epoch seconds; a figure of several values has at least one."""
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [[ENVIRONMENT]],
        "Metrics": [{"Name": figure.name, "Unit": figure.unit} for figure in figures],
    }
    values = {figure.name: figure.written for figure in figures}
    head = {"Timestamp": int(now * 1000), "CloudWatchMetrics": [directive]}
    return json.dumps({"_aws": head, ENVIRONMENT: environment, **values})


def write_line(line: str) -> None:
    """Write a line into the function's log."""
    sys.stdout.write(f"{line}\n")
