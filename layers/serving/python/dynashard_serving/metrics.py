"""Metrics of all functions but the API: lines in the embedded metric format by Powertools, with one dimension."""

from aws_lambda_powertools.metrics import EphemeralMetrics

from dynashard_serving.metric_names import ENVIRONMENT, NAMESPACE


def open_metrics(environment: str) -> EphemeralMetrics:
    """Return new metrics of an environment; `flush_metrics` writes those that were added into the function's log.

    Threads and batches each have their own. Powertools' `Metrics` would be one set for the whole process.
    """
    # Without a name of the service, Powertools adds no dimension of its own, which no alarm would read.
    metrics = EphemeralMetrics(namespace=NAMESPACE, service="")
    metrics.add_dimension(ENVIRONMENT, environment)
    return metrics
