"""The writer's metrics."""

from aws_lambda_powertools.metrics import MetricUnit

from dynashard_serving.telemetry import metric_names as names
from dynashard_serving.telemetry.powertools import open_metrics
from dynashard_serving.writer.outcomes import Tally


def write_metrics(environment: str, tally: Tally) -> None:
    """Write the metrics of a batch into the log."""
    metrics = open_metrics(environment)
    for lag in tally.lags:
        # Powertools begins another line after a hundred values, so these come first: no line is left without a metric.
        metrics.add_metric(names.WRITER_LAG, MetricUnit.Seconds, round(lag, 3))
    metrics.add_metric(names.WRITER_STORED, MetricUnit.Count, tally.stored)
    metrics.add_metric(names.WRITER_DUPLICATES, MetricUnit.Count, tally.duplicates)
    metrics.add_metric(names.WRITER_LEFT, MetricUnit.Count, tally.left)
    metrics.add_metric(names.WRITER_DEAD_LETTERS, MetricUnit.Count, tally.poison)
    metrics.add_metric(names.WRITER_FAILED, MetricUnit.Count, tally.failed)
    metrics.flush_metrics()
