"""All alarms of an environment except those of a pre-warm, which come and go with its stack."""

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs

from dynashard import schema
from dynashard_serving import metric_names as names
from stacks.alarms import Alarms
from stacks.metrics import FIVE_MINUTES, MINUTE, WAYS, Metrics
from stacks.monitored import Parts
from stacks.reshard import WATCH_MINUTES

HOT_MINUTES: Final = 5
"""Minutes of throttling in a row at which an alarm rings; retries absorb shorter bursts."""
MOST_SERVER_ERRORS: Final = 5
"""Answers of 5xx within five minutes at which an alarm rings; callers repeat single ones."""
MOST_SHARE: Final = 0.01
"""Share of requests that may fail, or have an unknown outcome, for a quarter of an hour."""
MOST_UNKNOWN: Final = 5
"""Unknown outcomes of direct invocation within five minutes at which an alarm rings. It has no rate."""
MOST_SHED: Final = 10
"""Requests shed within five minutes, twice in a row, at which an alarm rings."""
LATE_SECONDS: Final = 300
"""How long an accepted write, a change in the stream, or a copy may be late."""
MOST_LEFT: Final = 1000
"""Items left on the queue within five minutes, usually because of throttling, at which an alarm rings."""
MOST_REFUSED_GROWTH: Final = 10
"""Refusals of the controller within a quarter of an hour; a few are usual while a count changes."""
IDLE_LOOKS: Final = 4
"""Looks of the watch in a row in which running changes have not done anything."""


def add_alarms(alarms: Alarms, metrics: Metrics, parts: Parts) -> None:
    """Add the alarms of all parts of an environment."""
    _table(alarms, metrics, parts)
    _requests(alarms, metrics, parts)
    _direct_invocations(alarms, metrics)
    _functions(alarms, parts)
    _queues(alarms, metrics, parts)
    _stream(alarms, metrics, parts)
    _resharding(alarms, metrics, parts)
    _growth(alarms, metrics)


def _table(alarms: Alarms, metrics: Metrics, parts: Parts) -> None:
    """Report which table or index is throttled, and whether more shards would help."""
    provisioned = alarms.settings.table.provisioned
    ceiling = "ProvisionedThroughput" if provisioned else "MaxOnDemandThroughput"
    limit = "its provisioned capacity" if provisioned else "the maximum of its settings"
    for slot in (None, *schema.INDEX_SLOTS):
        which, of = (slot.lower(), f"index {slot}") if slot else ("table", "the table")
        for way in WAYS:
            alarms.add(
                f"throttled-key-{which}-{way.lower()}s",
                f"{way}s of {of} are throttled: a key range is hot.",
                metrics.throttles(way, "KeyRangeThroughput", slot, MINUTE),
                page="throttled-key",
                periods=HOT_MINUTES,
            )
            alarms.add(
                f"table-ceiling-{which}-{way.lower()}s",
                f"{way}s of {of} are throttled at {limit}, which more shards do not raise.",
                metrics.throttles(way, ceiling, slot, MINUTE),
                page="table-ceiling",
                periods=HOT_MINUTES,
            )
    for way in WAYS:
        alarms.add(
            f"account-limit-{way.lower()}s",
            f"{way}s of the table are throttled at the account's quota, or above twice its last peak.",
            metrics.throttles(way, "AccountLimit", period=MINUTE),
            page="account-limit",
            periods=HOT_MINUTES,
        )
    if parts.data.capacity_steps is not None:
        alarms.add(
            "capacity-step-missed",
            "A scheduled change of the table's capacity was given up.",
            parts.data.capacity_steps.dropped(FIVE_MINUTES),
        )


def _requests(alarms: Alarms, metrics: Metrics, parts: Parts) -> None:
    gateway, wanted = parts.api.api, alarms.settings.monitoring
    alarms.add(
        "server-errors",
        f"Callers got {MOST_SERVER_ERRORS} answers of 5xx within five minutes.",
        gateway.metric_server_error(period=FIVE_MINUTES, statistic="Sum"),
        threshold=MOST_SERVER_ERRORS,
    )
    alarms.add(
        "server-errors-rate",
        f"{MOST_SHARE:.0%} of the requests fail with 5xx, for a quarter of an hour.",
        metrics.of_requests(names.SERVER_ERRORS, "Average"),
        page="server-errors",
        threshold=MOST_SHARE,
        periods=3,
    )
    alarms.add(
        "latency",
        f"The slowest hundredth of the requests takes {wanted.latency_milliseconds} ms, for a quarter of an hour.",
        gateway.metric_latency(period=FIVE_MINUTES, statistic="p99"),
        threshold=wanted.latency_milliseconds,
        periods=3,
    )
    alarms.add(
        "outcome-unknown",
        f"The outcome of {MOST_SHARE:.0%} of the requests is unknown, for a quarter of an hour.",
        metrics.of_requests(names.OUTCOME_UNKNOWN, "Average"),
        threshold=MOST_SHARE,
        periods=3,
    )
    alarms.add(
        "shed",
        "Listings and batches are refused, because DynamoDB refuses over a third of the attempts.",
        metrics.of_requests(names.SHED, "Sum"),
        threshold=MOST_SHED,
        periods=2,
    )


def _direct_invocations(alarms: Alarms, metrics: Metrics) -> None:
    alarms.add(
        "outcome-unknown-commands",
        f"The outcome of {MOST_UNKNOWN} direct invocations within five minutes is unknown.",
        metrics.own(names.OUTCOME_UNKNOWN, "Sum"),
        page="outcome-unknown",
        threshold=MOST_UNKNOWN,
    )
    alarms.add(
        "shed-commands",
        "Direct invocations of many items are refused, because DynamoDB refuses over a third of the attempts.",
        metrics.own(names.SHED, "Sum"),
        page="shed",
        threshold=MOST_SHED,
        periods=2,
    )


def _functions(alarms: Alarms, parts: Parts) -> None:
    api = parts.api.function.function
    for name, which, function in (
        ("api", "of the API", api),
        ("commands", "of direct invocation", parts.commands.function.function),
        ("writer", "that stores accepted writes", parts.writer.worker.function),
        ("changes", "that consumes the stream", parts.changes.follower.function),
        ("watch", "that watches changes of shard counts", parts.reshard.watch.function),
    ):
        alarms.add(
            f"function-failing-{name}",
            f"The function {which} fails or times out.",
            function.metric_errors(period=FIVE_MINUTES),
            page="function-failing",
        )
    alarms.add(
        "function-throttled-api",
        "Lambda refuses requests, because the concurrency of the API's function is used up. Callers get 503.",
        api.metric_throttles(period=FIVE_MINUTES),
        page="function-throttled",
    )


def _queues(alarms: Alarms, metrics: Metrics, parts: Parts) -> None:
    writer = parts.writer
    for name, queue, dead in (
        ("intake", writer.intake, writer.intake_dead),
        ("operations", writer.operations, writer.operations_dead),
    ):
        alarms.add(
            f"queue-age-{name}",
            f"Accepted writes wait on the queue {name} for minutes.",
            queue.metric_approximate_age_of_oldest_message(period=FIVE_MINUTES),
            page="queue-age",
            threshold=LATE_SECONDS,
        )
        alarms.add(
            f"dead-letters-{name}",
            f"Accepted writes of the queue {name} could not be executed.",
            _filled(dead),
            page="dead-letters",
        )
    alarms.add(
        "queue-age-stored",
        "Accepted writes are stored after minutes (p99).",
        metrics.own(names.WRITER_LAG, "p99"),
        page="queue-age",
        threshold=LATE_SECONDS,
    )
    alarms.add(
        "writer-throttled",
        "Accepted writes arrive faster than the table takes them: items stay on the queue.",
        metrics.own(names.WRITER_LEFT, "Sum"),
        threshold=MOST_LEFT,
    )


def _stream(alarms: Alarms, metrics: Metrics, parts: Parts) -> None:
    alarms.add(
        "stream-age",
        "The stream consumer is minutes behind the table. After 24 hours, changes are lost.",
        parts.changes.follower.function.metric("IteratorAge", period=FIVE_MINUTES, statistic="Maximum"),
        threshold=LATE_SECONDS * 1000,
    )
    alarms.add(
        "rollup-lag",
        "Copies and roll-ups are stored minutes after the items that they are made of (p99).",
        metrics.own(names.CHANGES_LAG, "p99"),
        threshold=LATE_SECONDS,
    )
    alarms.add(
        "changes-dead-letters",
        "Changes could not be handled, so copies and roll-ups lack them.",
        _filled(parts.changes.dead),
    )


def _resharding(alarms: Alarms, metrics: Metrics, parts: Parts) -> None:
    reshard, look = parts.reshard, Duration.minutes(WATCH_MINUTES)
    for name, ended, metric in (
        ("reshard-failed", "has failed, so its change is paused", reshard.machine.metric_failed(period=look)),
        ("reshard-failed-timed-out", "has timed out", reshard.machine.metric_timed_out(period=look)),
        ("reshard-failed-aborted", "was stopped", reshard.machine.metric_aborted(period=look)),
    ):
        alarms.add(name, f"An execution that changes a shard count {ended}.", metric, page="reshard-failed")
    alarms.add(
        "reshard-paused",
        "A change of a shard count is paused, by an operator or after an error. Writes cost more until it ends.",
        metrics.own(names.RESHARDS_PAUSED, "Maximum", look),
        periods=2,
    )
    running = metrics.own(names.RESHARDS_RUNNING, "Minimum", look)
    units = metrics.own(names.RESHARD_UNITS, "Maximum", look)
    alarms.add(
        "reshard-idle",
        "A change of a shard count runs and has done nothing for an hour.",
        cloudwatch.MathExpression(
            expression="IF(FILL(running, 0) > 0 AND DIFF(units) == 0, 1, 0)",
            using_metrics={"running": running, "units": units},
            label="changes that stand still",
            period=look,
        ),
        periods=IDLE_LOOKS,
    )
    alarms.add(
        "reshard-old",
        f"A change of a shard count is not complete after {alarms.settings.reshard.stuck_hours} hours.",
        metrics.own(names.OLDEST_RESHARD, "Maximum", look),
        threshold=alarms.settings.reshard.stuck_hours,
    )
    alarms.add(
        "reshard-not-started",
        "A change of a shard count was requested and not started. The watch starts it within 15 minutes.",
        _filled(reshard.lost),
    )
    alarms.add("watch-missed", "The watch of changes of shard counts could not run.", _filled(reshard.missed))


def _growth(alarms: Alarms, metrics: Metrics) -> None:
    look, hour = Duration.minutes(15), Duration.hours(1)
    alarms.add(
        "growth-refused",
        "A key range is hot, and the declaration does not allow more shards.",
        metrics.own(names.GROWTH_CANNOT, "Sum", look),
    )
    alarms.add(
        "growth-refused-busy",
        "Hot key ranges ask for more shards, and other changes of counts are in the way.",
        metrics.own(names.GROWTH_REFUSED, "Sum", look),
        page="growth-refused",
        threshold=MOST_REFUSED_GROWTH,
    )
    alarms.add(
        "growth-failed",
        "A count could not be read or changed, so a hot key range stays hot.",
        metrics.own(names.GROWTH_FAILED, "Sum", look),
    )
    alarms.add(
        "growth-frequent",
        "Shard counts grow many times an hour.",
        metrics.own(names.GROWTH_ASKED, "Sum", hour),
        threshold=alarms.settings.monitoring.growths_per_hour,
    )
    alarms.add(
        "growth-limit",
        "Writes are throttled at a limit of the table or the account, which more shards do not raise.",
        metrics.own(names.GROWTH_LIMIT, "Sum", look),
    )


def _filled(queue: sqs.Queue) -> cloudwatch.Metric:
    return queue.metric_approximate_number_of_messages_visible(period=FIVE_MINUTES, statistic="Maximum")
