"""Alarms of requests to the API, and of direct invocations."""

from typing import Final

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_logs as logs

from dynashard_cdk.alarms import Alarms, FewSamples, Silence
from dynashard_cdk.api import ApiStack
from dynashard_cdk.metrics import FIVE_MINUTES, Metrics, absence, share
from dynashard_serving.telemetry import metric_names as names

MOST_SERVER_ERRORS: Final = 5
"""Answers of 5xx within five minutes at which an alarm rings; callers repeat single ones."""
MOST_SHARE: Final = 0.01
"""Share of requests that may fail, or have an unknown outcome, for a quarter of an hour."""
MOST_UNAUTHORIZED: Final = 0.5
"""Share of requests that may be answered with 401, for a quarter of an hour."""
FEWEST_REQUESTS: Final = 10
"""Requests in five minutes from which on the share of 401 is judged. One caller without a token is not an outage."""
MOST_UNKNOWN: Final = 5
"""Unknown outcomes of direct invocation within five minutes at which an alarm rings. It has no rate."""
MOST_SHED: Final = 10
"""Requests shed within five minutes, twice in a row, at which an alarm rings."""


def add_request_alarms(alarms: Alarms, metrics: Metrics, api: ApiStack) -> None:
    """Add the alarms of requests of an environment."""
    _errors(alarms, metrics, api)
    _unauthorized(alarms, api)
    _latency(alarms, api)
    _outcomes(alarms, metrics)
    _direct_invocations(alarms, metrics)
    if alarms.settings.monitoring.quiet_minutes is not None:
        _no_traffic(alarms, api, alarms.settings.monitoring.quiet_minutes)


def _errors(alarms: Alarms, metrics: Metrics, api: ApiStack) -> None:
    errors = api.api.metric_server_error(period=FIVE_MINUTES, statistic="Sum")
    alarms.add(
        "server-errors",
        f"Callers got {MOST_SERVER_ERRORS} answers of 5xx within five minutes.",
        errors,
        silence=Silence.CALM,
        threshold=MOST_SERVER_ERRORS,
    )
    alarms.add(
        "server-errors-rate",
        f"{MOST_SHARE:.0%} of the requests are answered with 5xx, for a quarter of an hour.",
        share(errors, _requests(api)),
        page="server-errors",
        silence=Silence.CALM,
        threshold=MOST_SHARE,
        periods=3,
    )
    alarms.add(
        "undecodable-items",
        "Stored items do not fit their declarations: listings leave them out, and requests for one of them fail.",
        metrics.of_requests(names.UNDECODABLE, "Sum"),
        silence=Silence.CALM,
    )
    alarms.add(
        "shed",
        "Listings and batches are refused, because DynamoDB refuses over a third of the attempts.",
        metrics.of_requests(names.SHED, "Sum"),
        silence=Silence.CALM,
        threshold=MOST_SHED,
        periods=2,
    )


def _unauthorized(alarms: Alarms, api: ApiStack) -> None:
    """Watch the gateway's own refusals, of which no function learns: its log shows their status."""
    refused = logs.MetricFilter(
        alarms.scope,
        "UnauthorizedFilter",
        log_group=api.access_log,
        filter_pattern=logs.FilterPattern.string_value("$.status", "=", "401"),
        # Its dimensions could only be fields of the log.
        metric_namespace=f"{names.NAMESPACE}/{alarms.settings.name}",
        metric_name=names.UNAUTHORIZED,
    )
    alarms.add(
        "unauthorized",
        f"{MOST_UNAUTHORIZED:.0%} of the requests are answered with 401, for a quarter of an hour.",
        share(
            refused.metric(period=FIVE_MINUTES, statistic="Sum"),
            _requests(api),
            of_at_least=FEWEST_REQUESTS,
        ),
        silence=Silence.CALM,
        threshold=MOST_UNAUTHORIZED,
        periods=3,
    )


def _latency(alarms: Alarms, api: ApiStack) -> None:
    """Judge the slowest hundredth if there are enough requests for it, and the slower half always."""
    most = alarms.settings.monitoring.latency_milliseconds
    for name, which, statistic, few_samples in (
        ("latency", "The slowest hundredth of the requests", "p99", FewSamples.NOT_JUDGED),
        ("latency-median", "Half of the requests", "p50", FewSamples.JUDGED),
    ):
        alarms.add(
            name,
            f"{which} takes {most} ms, for a quarter of an hour.",
            api.api.metric_latency(period=FIVE_MINUTES, statistic=statistic),
            page="latency",
            silence=Silence.CALM,
            threshold=most,
            periods=3,
            few_samples=few_samples,
        )


def _no_traffic(alarms: Alarms, api: ApiStack, minutes: int) -> None:
    alarms.add(
        "no-traffic",
        f"No request has reached the API for {minutes} minutes.",
        absence(_requests(api)),
        silence=Silence.FAULT,
        periods=minutes // 5,
    )


def _outcomes(alarms: Alarms, metrics: Metrics) -> None:
    alarms.add(
        "outcome-unknown",
        f"The outcome of {MOST_SHARE:.0%} of the requests is unknown, for a quarter of an hour.",
        metrics.of_requests(names.OUTCOME_UNKNOWN, "Average"),
        silence=Silence.CALM,
        threshold=MOST_SHARE,
        periods=3,
    )


def _direct_invocations(alarms: Alarms, metrics: Metrics) -> None:
    alarms.add(
        "outcome-unknown-commands",
        f"The outcome of {MOST_UNKNOWN} direct invocations within five minutes is unknown.",
        metrics.own(names.OUTCOME_UNKNOWN, "Sum"),
        page="outcome-unknown",
        silence=Silence.CALM,
        threshold=MOST_UNKNOWN,
    )
    alarms.add(
        "undecodable-items-commands",
        "Stored items do not fit their declarations: direct invocations leave them out, or fail.",
        metrics.own(names.UNDECODABLE, "Sum"),
        page="undecodable-items",
        silence=Silence.CALM,
    )
    alarms.add(
        "shed-commands",
        "Direct invocations of many items are refused, because DynamoDB refuses over a third of the attempts.",
        metrics.own(names.SHED, "Sum"),
        page="shed",
        silence=Silence.CALM,
        threshold=MOST_SHED,
        periods=2,
    )


def _requests(api: ApiStack) -> cloudwatch.Metric:
    return api.api.metric_count(period=FIVE_MINUTES, statistic="Sum")
