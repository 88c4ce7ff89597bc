"""The dashboard of an environment: from what callers notice, down to the table and the background work."""

from collections.abc import Sequence
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from dynashard import schema
from dynashard_cdk.metrics import FIVE_MINUTES, MINUTE, WAYS, Metrics
from dynashard_cdk.monitored import Parts
from dynashard_cdk.reshard import WATCH_MINUTES
from dynashard_serving.telemetry import metric_names as names

CAUSES: Final = {
    "KeyRangeThroughput": "key range",
    "MaxOnDemandThroughput": "on-demand maximum",
    "ProvisionedThroughput": "provisioned",
    "AccountLimit": "account",
}
"""The causes of throttles, as DynamoDB's metrics name them."""
_HEIGHT: Final = 6
_WHOLE: Final = 24
_LOOK: Final = Duration.minutes(WATCH_MINUTES)
_GROWTH: Final = (
    names.GROWTH_ASKED,
    names.GROWTH_WOULD_ASK,
    names.GROWTH_REFUSED,
    names.GROWTH_LOST,
    names.GROWTH_KEPT,
    names.GROWTH_WITHDRAWN,
    names.GROWTH_TOO_LONG,
    names.GROWTH_CANNOT,
    names.GROWTH_LIMIT,
    names.GROWTH_UNKNOWN,
    names.GROWTH_FAILED,
)


def add_dashboard(scope: Construct, metrics: Metrics, parts: Parts) -> cloudwatch.Dashboard:
    """Add the dashboard."""
    environment = metrics.settings.name
    dashboard = cloudwatch.Dashboard(
        scope, "Dashboard", dashboard_name=f"dynashard-{environment}", default_interval=Duration.hours(3)
    )
    dashboard.add_widgets(
        cloudwatch.TextWidget(
            markdown=(
                f"**Hot keys:** `dynashard hot --env {environment}` · **Resizes:** "
                f"`dynashard reshard status --env {environment}` · **Logs:** `dynashard logs --env {environment}` "
                f"· **Pages:** {metrics.settings.monitoring.runbooks}"
            ),
            width=_WHOLE,
            height=1,
        )
    )
    for row in (
        _requests(metrics, parts),
        _cost(metrics),
        _table(metrics),
        _throttles(metrics),
        _queues(metrics, parts),
        _counts(metrics, parts),
    ):
        dashboard.add_widgets(*row)
    return dashboard


def _requests(metrics: Metrics, parts: Parts) -> list[cloudwatch.IWidget]:
    gateway = parts.api.api
    latency = [gateway.metric_latency(period=MINUTE, statistic=each, label=each) for each in ("p50", "p99", "max")]
    answers = [
        gateway.metric_count(period=MINUTE, statistic="Sum", label="requests"),
        gateway.metric_client_error(period=MINUTE, statistic="Sum", label="4xx"),
        gateway.metric_server_error(period=MINUTE, statistic="Sum", label="5xx"),
    ]
    wrong = [
        metrics.of_requests(name, "Sum", MINUTE)
        for name in (names.SERVER_ERRORS, names.OUTCOME_UNKNOWN, names.CURSOR_ERRORS, names.SHED, names.UNDECODABLE)
    ]
    return _row(
        _graph("Latency (ms)", latency),
        _graph("Requests and errors", answers),
        _graph("5xx, unknown outcomes, cursor errors, shed", wrong),
    )


def _cost(metrics: Metrics) -> list[cloudwatch.IWidget]:
    queries = [metrics.of_requests(names.QUERIES_PER_PAGE, each) for each in ("Average", "p99", "Maximum")]
    per_item = cloudwatch.MathExpression(
        expression="reads / items",
        using_metrics={
            "reads": metrics.of_requests(names.LISTING_READ_UNITS, "Sum"),
            "items": metrics.of_requests(names.ITEMS_LISTED, "Sum"),
        },
        label="read units of a returned item",
        period=FIVE_MINUTES,
    )
    units = [metrics.of_requests(name, "Sum", MINUTE) for name in (names.READ_UNITS, names.WRITE_UNITS)]
    time = [metrics.of_requests(names.LATENCY, each, MINUTE) for each in ("p50", "p99")]
    return _row(
        _graph("Queries of a page", queries),
        _graph("Read units of a returned item", [per_item]),
        _graph("Units of API requests", units),
        _graph("Time in the function (ms)", time),
    )


def _table(metrics: Metrics) -> list[cloudwatch.IWidget]:
    return _row(
        *(
            _graph(f"{way} units a second", [_units(metrics, way, slot) for slot in (None, *schema.INDEX_SLOTS)])
            for way in WAYS
        )
    )


def _units(metrics: Metrics, way: str, slot: str | None) -> cloudwatch.MathExpression:
    """Consumed units a second, because DynamoDB's sums are of whole minutes."""
    name = (slot or "table").lower()
    return cloudwatch.MathExpression(
        expression=f"{name} / PERIOD({name})",
        using_metrics={name: metrics.dynamodb(f"Consumed{way}CapacityUnits", "Sum", slot, MINUTE)},
        label=slot or "table",
        period=MINUTE,
    )


def _throttles(metrics: Metrics) -> list[cloudwatch.IWidget]:
    causes = [
        metrics.throttles(way, cause, period=MINUTE).with_(label=f"{way.lower()}s, {label}")
        for way in WAYS
        for cause, label in CAUSES.items()
    ]
    return _row(
        _graph("Throttles of the table by reason", causes),
        *(
            _graph(
                f"{way}s throttled by a hot key range",
                [
                    metrics.throttles(way, "KeyRangeThroughput", slot, MINUTE).with_(label=slot or "table")
                    for slot in (None, *schema.INDEX_SLOTS)
                ],
            )
            for way in WAYS
        ),
    )


def _queues(metrics: Metrics, parts: Parts) -> list[cloudwatch.IWidget]:
    writer = parts.writer
    ages = [
        queue.metric_approximate_age_of_oldest_message(period=MINUTE, statistic="Maximum", label=name)
        for name, queue in (("intake", writer.intake), ("operations", writer.operations))
    ]
    dead = [
        queue.metric_approximate_number_of_messages_visible(period=MINUTE, statistic="Maximum", label=name)
        for name, queue in (
            ("intake", writer.intake_dead),
            ("operations", writer.operations_dead),
            ("changes", parts.changes.dead),
            ("reshard", parts.reshard.lost),
            ("watch", parts.reshard.missed),
        )
    ]
    lags = [
        metrics.own(names.CHANGES_LAG, "p99", MINUTE).with_(label="copies and roll-ups, p99"),
        metrics.own(names.WRITER_LAG, "p99", MINUTE).with_(label="accepted writes, p99"),
    ]
    behind = parts.changes.follower.function.metric(
        "IteratorAge", period=MINUTE, statistic="Maximum", label="behind the stream (ms)"
    )
    work = [
        metrics.own(name, "Sum", MINUTE)
        for name in (
            names.WRITER_STORED,
            names.WRITER_LEFT,
            names.WRITER_FAILED,
            names.CHANGES_HANDLED,
            names.CHANGE_BATCHES_AGAIN,
        )
    ]
    return _row(
        _graph("Age of the oldest message (s)", ages),
        _graph("Dead letters", dead),
        _graph("Lag (s)", lags, right=[behind]),
        _graph("Accepted writes and changes", work),
    )


def _counts(metrics: Metrics, parts: Parts) -> list[cloudwatch.IWidget]:
    resizes = [
        metrics.own(names.RESHARDS_RUNNING, "Maximum", _LOOK),
        metrics.own(names.RESHARDS_PAUSED, "Maximum", _LOOK),
        metrics.own(names.OLDEST_RESHARD, "Maximum", _LOOK),
        parts.reshard.machine.metric_failed(period=_LOOK, label="executions failed"),
    ]
    progress = [metrics.own(name, "Maximum", _LOOK) for name in (names.RESHARD_WORK, names.RESHARD_UNITS)]
    percent = [metrics.own(names.RESHARD_PERCENT, "Minimum", _LOOK)]
    events = [metrics.own(name, "Sum") for name in _GROWTH]
    return _row(
        _graph("Resizes", resizes),
        _graph("Progress of resizes", progress, right=percent),
        _graph("Growth events", events),
    )


def _row(*widgets: cloudwatch.GraphWidget) -> list[cloudwatch.IWidget]:
    return list(widgets)


def _graph(
    title: str, left: Sequence[cloudwatch.IMetric], right: Sequence[cloudwatch.IMetric] = ()
) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(left), right=list(right), height=_HEIGHT, width=_WHOLE // 4)
