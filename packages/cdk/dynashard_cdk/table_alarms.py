"""Alarms of the tables: which table or index is throttled, and whether more shards would help."""

from typing import Final

from aws_cdk import aws_dynamodb as dynamodb

from dynashard import schema
from dynashard_cdk.alarms import Alarms, Silence
from dynashard_cdk.data import DataStack
from dynashard_cdk.metrics import FIVE_MINUTES, WAYS, Metrics

HOT_MINUTES: Final = 5
"""Minutes of throttling at which an alarm rings; retries absorb shorter bursts."""
AMONG_MINUTES: Final = HOT_MINUTES + 2
"""Of how many minutes. The newest one or two have no data yet, because CloudWatch is about two minutes behind."""


def add_table_alarms(alarms: Alarms, metrics: Metrics, data: DataStack) -> None:
    """Add the alarms of the tables of an environment."""
    for slot in (None, *schema.INDEX_SLOTS):
        _resource(alarms, metrics, slot)
    for name, table in (("idempotency", data.idempotency), ("topology", data.topology)):
        _small_table(alarms, metrics, name, table)
    if data.capacity_steps is not None:
        alarms.add(
            "capacity-step-missed",
            "A scheduled change of the table's capacity was given up.",
            data.capacity_steps.dropped(FIVE_MINUTES),
            silence=Silence.CALM,
        )


def _resource(alarms: Alarms, metrics: Metrics, slot: str | None) -> None:
    """Add the alarms of the table, or of an index."""
    provisioned = alarms.settings.table.provisioned
    ceiling = "ProvisionedThroughput" if provisioned else "MaxOnDemandThroughput"
    limit = "its provisioned capacity" if provisioned else "the maximum of its settings"
    which, of = (slot.lower(), f"index {slot}") if slot else ("table", "the table")
    for way in WAYS:
        for page, cause, why in (
            ("throttled-key", "KeyRangeThroughput", "are throttled: a key range is hot"),
            ("table-ceiling", ceiling, f"are throttled at {limit}, which more shards do not raise"),
            ("account-limit", "AccountLimit", "are throttled at the account's quota for a table and its indexes"),
        ):
            alarms.add(
                f"{page}-{which}-{way.lower()}s",
                f"{way}s of {of} {why}.",
                metrics.events(f"{way}{cause}ThrottleEvents", metrics.table, slot),
                page=page,
                silence=Silence.CALM,
                periods=HOT_MINUTES,
                among=AMONG_MINUTES,
            )


def _small_table(alarms: Alarms, metrics: Metrics, name: str, table: dynamodb.ITableV2) -> None:
    for way in WAYS:
        alarms.add(
            f"small-table-throttled-{name}-{way.lower()}s",
            f"{way}s of the {name} table are throttled.",
            metrics.events(f"{way}ThrottleEvents", table),
            page="small-table-throttled",
            silence=Silence.CALM,
            periods=HOT_MINUTES,
            among=AMONG_MINUTES,
        )
