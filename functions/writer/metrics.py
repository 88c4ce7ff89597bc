"""The writer's metrics, as lines of the log from which CloudWatch makes them (embedded metric format)."""

import json
from typing import Any, Final

from functions.writer.outcomes import Tally

NAMESPACE: Final = "Dynashard"
STORED: Final = "WriterStored"
"""Items written: the worker's throughput."""
DUPLICATES: Final = "WriterDuplicates"
LEFT: Final = "WriterLeft"
"""Items whose message comes again."""
POISON: Final = "WriterDeadLetters"
LAG: Final = "WriterLagSeconds"
"""From the acceptance of a message to what it asks for being stored."""
MOST_VALUES: Final = 100
"""Values a metric may have in one line."""


def line(environment: str, tally: Tally, now: float) -> str:
    """The line for a batch.

    Args:
        environment: the dimension of every metric.
        tally: what the batch came to.
        now: epoch seconds.
    """
    values: dict[str, Any] = {
        STORED: tally.stored,
        DUPLICATES: tally.duplicates,
        LEFT: tally.left,
        POISON: tally.poison,
    }
    metrics = [{"Name": name, "Unit": "Count"} for name in values]
    if tally.lags:
        values[LAG] = [round(lag, 3) for lag in sorted(tally.lags)[-MOST_VALUES:]]
        metrics.append({"Name": LAG, "Unit": "Seconds"})
    directive = {"Namespace": NAMESPACE, "Dimensions": [["environment"]], "Metrics": metrics}
    return json.dumps(
        {
            "_aws": {"Timestamp": int(now * 1000), "CloudWatchMetrics": [directive]},
            "environment": environment,
            **values,
        }
    )
