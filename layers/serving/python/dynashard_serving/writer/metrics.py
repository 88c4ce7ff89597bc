"""The writer's metrics."""

from dynashard_serving import metric_names as names
from dynashard_serving.metrics import Figure, metrics_line
from dynashard_serving.writer.outcomes import Tally


def line(environment: str, tally: Tally, now: float) -> str:
    """Return the line for a batch at a time in epoch seconds."""
    figures = [
        Figure(names.WRITER_STORED, tally.stored),
        Figure(names.WRITER_DUPLICATES, tally.duplicates),
        Figure(names.WRITER_LEFT, tally.left),
        Figure(names.WRITER_DEAD_LETTERS, tally.poison),
    ]
    if tally.lags:
        figures.append(Figure(names.WRITER_LAG, [round(lag, 3) for lag in tally.lags], "Seconds"))
    return metrics_line(environment, figures, now)
