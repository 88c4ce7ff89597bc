"""The writer's metrics."""

from typing import Final

from dynashard_serving.metrics import Figure, metrics_line
from functions.writer.outcomes import Tally

STORED: Final = "WriterStored"
"""Items written: the worker's throughput."""
DUPLICATES: Final = "WriterDuplicates"
LEFT: Final = "WriterLeft"
"""Items whose message comes again."""
POISON: Final = "WriterDeadLetters"
LAG: Final = "WriterLagSeconds"
"""From the acceptance of a message to the storing of its items."""


def line(environment: str, tally: Tally, now: float) -> str:
    """Return the line for a batch at a time in epoch seconds."""
    figures = [
        Figure(STORED, tally.stored),
        Figure(DUPLICATES, tally.duplicates),
        Figure(LEFT, tally.left),
        Figure(POISON, tally.poison),
    ]
    if tally.lags:
        figures.append(Figure(LAG, [round(lag, 3) for lag in tally.lags], "Seconds"))
    return metrics_line(environment, figures, now)
