"""All alarms of an environment except those of a pre-warm, which come and go with its stack."""

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs

from dynashard_cdk.alarms import Alarms, FewSamples, Silence
from dynashard_cdk.metrics import FIVE_MINUTES, Metrics, absence
from dynashard_cdk.monitored import Parts
from dynashard_cdk.request_alarms import add_request_alarms
from dynashard_cdk.reshard import WATCH_MINUTES
from dynashard_cdk.table_alarms import add_table_alarms
from dynashard_serving.telemetry import metric_names as names

LATE_SECONDS: Final = 300
"""How long an accepted write, a change in the stream, or a copy may be late."""
MOST_LEFT: Final = 1000
"""Items left on the queue within five minutes, usually because of throttling, at which an alarm rings."""
MOST_REFUSED_GROWTH: Final = 10
"""Refusals of the controller within a quarter of an hour; a few are usual while a count changes."""
IDLE_LOOKS: Final = 4
"""Looks of the watch in a row in which running resizes have not done anything."""
MISSED_LOOKS: Final = 3
"""Looks of the watch that may be missing. A look that comes a little late leaves a period without one."""


def add_alarms(alarms: Alarms, metrics: Metrics, parts: Parts) -> None:
    """Add the alarms of all parts of an environment."""
    add_table_alarms(alarms, metrics, parts.data)
    add_request_alarms(alarms, metrics, parts.api)
    _functions(alarms, parts)
    _throttled_functions(alarms, parts)
    _queues(alarms, metrics, parts)
    _stream(alarms, metrics, parts)
    _resharding(alarms, metrics, parts)
    _growth(alarms, metrics)


def _functions(alarms: Alarms, parts: Parts) -> None:
    for name, which, function in (
        ("api", "of the API", parts.api.function.function),
        ("commands", "of direct invocation", parts.commands.function.function),
        ("writer", "that stores accepted writes", parts.writer.worker.function),
        ("changes", "that consumes the stream", parts.changes.follower.function),
        ("watch", "that watches resizes", parts.reshard.watch.function),
    ):
        alarms.add(
            f"function-failing-{name}",
            f"The function {which} fails or times out.",
            function.metric_errors(period=FIVE_MINUTES),
            page="function-failing",
            silence=Silence.CALM,
        )


def _throttled_functions(alarms: Alarms, parts: Parts) -> None:
    """Report functions that Lambda does not run, because their concurrency or that of the account is used up."""
    reshard = parts.reshard
    for name, which, each in (
        ("api", "of the API: callers get 503", parts.api.function),
        ("commands", "of direct invocation", parts.commands.function),
        ("operator", "for operators of shard counts", reshard.operator),
    ):
        alarms.add(
            f"function-throttled-{name}",
            f"Lambda refuses to run the function {which}.",
            each.function.metric_throttles(period=FIVE_MINUTES),
            page="function-throttled",
            silence=Silence.CALM,
        )
    for name, which, each in (
        ("writer", "that stores accepted writes", parts.writer.worker),
        ("changes", "that consumes the stream", parts.changes.follower),
        ("watch", "that watches resizes", reshard.watch),
        ("dispatch", "that starts resizes", reshard.dispatch),
        ("advance", "that brings resizes forward", reshard.advance),
        ("work", "that moves items", reshard.work),
        ("stop", "that pauses failed resizes", reshard.stop),
    ):
        # A refused run is repeated by what asked for it, so a short burst does no harm.
        alarms.add(
            f"function-throttled-{name}",
            f"Lambda keeps refusing to run the function {which}.",
            each.function.metric_throttles(period=FIVE_MINUTES),
            page="function-throttled",
            silence=Silence.CALM,
            periods=2,
            among=3,
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
            silence=Silence.CALM,
        )
        alarms.add(
            f"dead-letters-{name}",
            f"Accepted writes of the queue {name} could not be executed.",
            _filled(dead),
            page="dead-letters",
            silence=Silence.CALM,
        )
    alarms.add(
        "queue-age-stored",
        "Accepted writes are stored after minutes (p99).",
        metrics.own(names.WRITER_LAG, "p99"),
        page="queue-age",
        threshold=LATE_SECONDS,
        silence=Silence.CALM,
        few_samples=FewSamples.JUDGED,
    )
    alarms.add(
        "writer-throttled",
        "Accepted writes arrive faster than the table takes them: items stay on the queue.",
        metrics.own(names.WRITER_LEFT, "Sum"),
        threshold=MOST_LEFT,
        silence=Silence.CALM,
    )
    alarms.add(
        "operations-failed",
        "Accepted writes were given up without a mistake of their callers: nothing was written.",
        metrics.own(names.WRITER_FAILED, "Sum"),
        silence=Silence.CALM,
    )


def _stream(alarms: Alarms, metrics: Metrics, parts: Parts) -> None:
    alarms.add(
        "stream-age",
        "The stream consumer is minutes behind the table. After 24 hours, changes are lost.",
        parts.changes.follower.function.metric("IteratorAge", period=FIVE_MINUTES, statistic="Maximum"),
        threshold=LATE_SECONDS * 1000,
        silence=Silence.CALM,
    )
    alarms.add(
        "stream-age-unread",
        "Changes of the table wait for a consumer that does not run. After 24 hours, they are lost.",
        # Two looks of the watch: one that comes a little late does not leave a period without data.
        metrics.own(names.STREAM_AGE, "Maximum", Duration.minutes(2 * WATCH_MINUTES)),
        page="stream-age",
        silence=Silence.FAULT,
        threshold=LATE_SECONDS,
    )
    alarms.add(
        "rollup-lag",
        "Copies and roll-ups are stored minutes after the items that they are made of (p99).",
        metrics.own(names.CHANGES_LAG, "p99"),
        threshold=LATE_SECONDS,
        silence=Silence.CALM,
        few_samples=FewSamples.JUDGED,
    )
    alarms.add(
        "changes-dead-letters",
        "Changes could not be handled, so copies and roll-ups lack them.",
        _filled(parts.changes.dead),
        silence=Silence.CALM,
    )


def _resharding(alarms: Alarms, metrics: Metrics, parts: Parts) -> None:
    reshard, look = parts.reshard, Duration.minutes(WATCH_MINUTES)
    for name, ended, metric in (
        ("reshard-failed", "has failed, so its resize is paused", reshard.machine.metric_failed(period=look)),
        ("reshard-failed-timed-out", "has timed out", reshard.machine.metric_timed_out(period=look)),
        ("reshard-failed-aborted", "was stopped", reshard.machine.metric_aborted(period=look)),
    ):
        alarms.add(
            name,
            f"An execution that changes a shard count {ended}.",
            metric,
            page="reshard-failed",
            silence=Silence.CALM,
        )
    alarms.add(
        "reshard-paused",
        "A resize is paused, by an operator or after an error. Writes cost more until it ends.",
        metrics.own(names.RESHARDS_PAUSED, "Maximum", look),
        periods=2,
        silence=Silence.UNKNOWN,
    )
    running = metrics.own(names.RESHARDS_RUNNING, "Minimum", look)
    units = metrics.own(names.RESHARD_UNITS, "Maximum", look)
    alarms.add(
        "reshard-idle",
        "A resize runs and has done nothing for an hour.",
        cloudwatch.MathExpression(
            expression="IF(FILL(running, 0) > 0 AND DIFF(units) == 0, 1, 0)",
            using_metrics={"running": running, "units": units},
            label="resizes that stand still",
            period=look,
        ),
        periods=IDLE_LOOKS,
        silence=Silence.CALM,
    )
    alarms.add(
        "reshard-old",
        f"A resize is not complete after {alarms.settings.reshard.stuck_hours} hours.",
        metrics.own(names.OLDEST_RESHARD, "Maximum", look),
        threshold=alarms.settings.reshard.stuck_hours,
        silence=Silence.UNKNOWN,
    )
    alarms.add(
        "reshard-not-started",
        "A resize was requested and not started. The watch starts it within 15 minutes.",
        _filled(reshard.lost),
        silence=Silence.CALM,
    )
    alarms.add(
        "watch-missed",
        "The watch of resizes could not run.",
        _filled(reshard.missed),
        silence=Silence.CALM,
    )
    alarms.add(
        "watch-missed-silent",
        f"The watch of resizes has not run for {MISSED_LOOKS * WATCH_MINUTES} minutes.",
        absence(metrics.own(names.RESHARDS_RUNNING, "SampleCount", look)),
        page="watch-missed",
        silence=Silence.FAULT,
        periods=MISSED_LOOKS,
    )


def _growth(alarms: Alarms, metrics: Metrics) -> None:
    look, hour = Duration.minutes(15), Duration.hours(1)
    alarms.add(
        "growth-refused",
        "A key range is hot, and the declaration does not allow more shards.",
        metrics.own(names.GROWTH_CANNOT, "Sum", look),
        silence=Silence.CALM,
    )
    alarms.add(
        "growth-refused-long",
        "A key range is hot, and moving its items would take too long to start by itself: decide.",
        metrics.own(names.GROWTH_TOO_LONG, "Sum", look),
        page="growth-refused",
        silence=Silence.CALM,
    )
    alarms.add(
        "growth-refused-busy",
        "Hot key ranges ask for more shards, and other resizes are in the way.",
        metrics.own(names.GROWTH_REFUSED, "Sum", look),
        page="growth-refused",
        threshold=MOST_REFUSED_GROWTH,
        silence=Silence.CALM,
    )
    alarms.add(
        "growth-failed",
        "A count could not be read or changed, so a hot key range stays hot.",
        metrics.own(names.GROWTH_FAILED, "Sum", look),
        silence=Silence.CALM,
    )
    alarms.add(
        "growth-frequent",
        "Shard counts grow many times an hour.",
        metrics.own(names.GROWTH_ASKED, "Sum", hour),
        threshold=alarms.settings.monitoring.growths_per_hour,
        silence=Silence.CALM,
    )
    alarms.add(
        "growth-limit",
        "Writes are throttled at a limit of the table or the account, which more shards do not raise.",
        metrics.own(names.GROWTH_LIMIT, "Sum", look),
        silence=Silence.CALM,
    )


def _filled(queue: sqs.Queue) -> cloudwatch.Metric:
    return queue.metric_approximate_number_of_messages_visible(period=FIVE_MINUTES, statistic="Maximum")
