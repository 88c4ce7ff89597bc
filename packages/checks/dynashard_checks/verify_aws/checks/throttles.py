"""Checks of throttles: which reason names which limit of which resource."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from dynashard.errors import CancellationReason
from dynashard_checks.verify_aws.check import PRICE_MARGIN, Check, Outcome, Verdict, differs, dollars_of, holds, unclear
from dynashard_checks.verify_aws.checks.items import key
from dynashard_checks.verify_aws.context import Answer, Context, answer_of
from dynashard_checks.verify_aws.load import ITEM_UNITS, WORKERS, Traffic, filler, send
from dynashard_checks.verify_aws.scratch import INDEX

_HOT_RATE: Final = 250.0
"""2,500 units a second: above what a partition admits, below what a new table admits."""
_COLD_RATE: Final = 800.0
"""8,000 units a second: twice what a new table is warm for."""
_HOT_SECONDS: Final = 20
_METRIC_SECONDS: Final = 600.0
_TRIES: Final = 60
_BATCH: Final = 25
_SMALL_BYTES: Final = 1024
_PROVISIONED_DOLLARS: Final = 2 * 60 * 0.00065 * PRICE_MARGIN
"""60 units for an hour, which may touch two billed hours."""
_KEY_BYTES: Final = 64

Put = Callable[[int], Answer]


def put_large(context: Context, table: str, partition: Callable[[int], str], *, indexed: bool = False) -> Put:
    """Return a function that puts an item of 10 units under a number, in a partition that depends on the number."""
    dynamodb = context.client("dynamodb", retries=False)

    def put(number: int) -> Answer:
        item = key(partition(number), f"{number:08d}")
        if indexed:
            item |= {"GSI1PK": {"S": "hot"}, "GSI1SK": {"S": f"{number:08d}"}}
        return answer_of(dynamodb.put_item, TableName=table, Item=item | filler(_KEY_BYTES))

    return put


def arn_of(context: Context, table: str, index: str | None = None) -> str:
    """Return the ARN of a table, or of its index."""
    arn = str(context.client("dynamodb").describe_table(TableName=table)["Table"]["TableArn"])
    return arn if index is None else f"{arn}/index/{index}"


def judge_reasons(traffic: Traffic, reason: str, arn: str) -> Outcome:
    """Judge throttled traffic, which should name one reason and one resource."""
    seen = ", ".join(f"{count:,} x {name} of {where}" for (name, where), count in traffic.reasons.most_common())
    rates = f"{traffic.sent_rate:,.0f} requests a second sent, {traffic.throttled:,} throttled"
    if traffic.errors:
        return unclear(f"other errors came: {dict(traffic.errors)}")
    if not traffic.throttled:
        return unclear(f"nothing was throttled: {rates}")
    if traffic.unexplained:
        return differs(f"{traffic.unexplained:,} throttles had no reason; {seen or 'none had one'}")
    if (reason, arn) not in traffic.reasons:
        return differs(f"{seen}; expected {reason} of {arn}")
    return holds(f"{seen}; {rates}")


def key_range(context: Context) -> Outcome:
    """Write more to one partition key than a partition admits."""
    table = context.scratch.table("key-range")
    put = put_large(context, table, lambda _number: "hot")
    traffic = send(put, rate=_HOT_RATE, seconds=_HOT_SECONDS, clock=context.clock)
    return judge_reasons(traffic, "TableWriteKeyRangeThroughputExceeded", arn_of(context, table))


def cold_table(context: Context) -> Outcome:
    """Write more to a new on-demand table than it is warm for, in as many partition keys as items."""
    table = context.scratch.table("cold")
    put = put_large(context, table, lambda number: f"{number:016x}")
    traffic = send(put, rate=_COLD_RATE, seconds=_HOT_SECONDS, clock=context.clock, workers=2 * WORKERS)
    return judge_reasons(traffic, "TableWriteKeyRangeThroughputExceeded", arn_of(context, table))


def index_key_range(context: Context) -> Outcome:
    """Write items of different keys whose entries have one index key, and wait for the metric of the throttles."""
    table = context.scratch.table("index-key-range", indexed=True)
    put = put_large(context, table, lambda number: f"{number:016x}", indexed=True)
    traffic = send(put, rate=_HOT_RATE, seconds=_HOT_SECONDS, clock=context.clock)
    outcome = judge_reasons(traffic, "IndexWriteKeyRangeThroughputExceeded", arn_of(context, table, INDEX))
    if outcome.verdict is not Verdict.HOLDS:
        return outcome
    dimensions = {"TableName": table, "GlobalSecondaryIndexName": INDEX}
    count = metric_sum(context, "WriteKeyRangeThroughputThrottleEvents", dimensions)
    if not count:
        return differs(f"{outcome.seen}; the metric of the index counts nothing after {_METRIC_SECONDS:.0f} seconds")
    return holds(f"{outcome.seen}; the metric of the index counts {count:,.0f}")


def metric_sum(context: Context, name: str, dimensions: Mapping[str, str], namespace: str = "AWS/DynamoDB") -> float:
    """Return the sum of a metric over the last hour, as soon as it is not 0; 0 if that takes too long."""
    cloudwatch = context.client("cloudwatch")

    def total() -> float:
        now = context.clock.now()
        metric = {
            "Namespace": namespace,
            "MetricName": name,
            "Dimensions": [{"Name": each, "Value": value} for each, value in dimensions.items()],
        }
        answer = cloudwatch.get_metric_data(
            MetricDataQueries=[{"Id": "m", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}}],
            StartTime=datetime.fromtimestamp(now - 3600, UTC),
            EndTime=datetime.fromtimestamp(now + 60, UTC),
        )
        return float(sum(answer["MetricDataResults"][0]["Values"]))

    return float(context.until(total, seconds=_METRIC_SECONDS, every=20.0))


def provisioned(context: Context) -> Outcome:
    """Write more to an index than is provisioned for it."""
    table = context.scratch.table(
        "provisioned",
        indexed=True,
        BillingMode="PROVISIONED",
        ProvisionedThroughput=_provisioned(55),
        index={"ProvisionedThroughput": _provisioned(1)},
    )
    put = put_large(context, table, lambda number: f"{number:016x}", indexed=True)
    traffic = send(put, rate=5.0, seconds=30, clock=context.clock, workers=4)
    return judge_reasons(traffic, "IndexWriteProvisionedThroughputExceeded", arn_of(context, table, INDEX))


def maximum(context: Context) -> Outcome:
    """Write more to an on-demand table than the maximum that is set on it."""
    table = context.scratch.table("maximum", OnDemandThroughput={"MaxWriteRequestUnits": 1, "MaxReadRequestUnits": 1})
    put = put_large(context, table, lambda number: f"{number:016x}")
    traffic = send(put, rate=10.0, seconds=60, clock=context.clock, workers=8)
    return judge_reasons(traffic, "TableWriteMaxOnDemandThroughputExceeded", arn_of(context, table))


def batches_and_transactions(context: Context) -> Outcome:
    """Throttle batches and transactions on a table with one write unit, and look for what says so."""
    table = context.scratch.table("throttled", BillingMode="PROVISIONED", ProvisionedThroughput=_provisioned(1))
    dynamodb = context.client("dynamodb", retries=False)
    # Small items, so that the units of a second are enough for a part of a batch.
    items = [key(str(number)) | filler(_KEY_BYTES, _SMALL_BYTES) for number in range(_BATCH)]
    puts = [{"PutRequest": {"Item": item}} for item in items]
    actions = [{"Put": {"TableName": table, "Item": item}} for item in items]
    batches, transactions = [], []
    for _ in range(_TRIES):
        batches.append(answer_of(dynamodb.batch_write_item, RequestItems={table: puts}))
        transactions.append(answer_of(dynamodb.transact_write_items, TransactItems=actions))
        if unprocessed(batches[-1]) and transactions[-1].code:
            break
    return judge_unexplained(batches, transactions)


def unprocessed(answer: Answer) -> bool:
    """Whether a batch was answered in part."""
    return not answer.code and bool(answer.document.get("UnprocessedItems"))


def judge_unexplained(batches: list[Answer], transactions: list[Answer]) -> Outcome:
    """Judge throttled batches, whose rest is unprocessed, and throttled transactions, which have codes."""
    codes: Counter[str] = Counter()
    for answer in transactions:
        for each in answer.document.get("CancellationReasons", ()):
            codes[each.get("Code", "")] += 1
    other = {answer.code for answer in transactions} - {"", "TransactionCanceledException"}
    parts = sum(map(unprocessed, batches))
    refused = Counter(answer.code for answer in batches if answer.code)
    seen = f"{parts} batches in part, refused batches {dict(refused)}, codes of transactions {dict(codes)}"
    unknown = codes.keys() - CancellationReason.THROTTLES - {CancellationReason.NONE}
    if other or unknown:
        return differs(f"{seen}; other errors of transactions: {sorted(other | unknown)}")
    if not parts or not codes.keys() & CancellationReason.THROTTLES:
        return unclear(f"not both were throttled: {seen}")
    return holds(seen)


def _provisioned(units: int) -> Mapping[str, Any]:
    return {"ReadCapacityUnits": 1, "WriteCapacityUnits": units}


_HOT_UNITS: Final = _HOT_RATE * _HOT_SECONDS * ITEM_UNITS

CHECKS: Final = (
    Check(
        "key-range-throttle",
        "a hot partition key is throttled with TableWriteKeyRangeThroughputExceeded and the table's ARN",
        key_range,
        dollars=dollars_of(write_units=_HOT_UNITS),
    ),
    Check(
        "cold-table-throttle",
        "a new on-demand table throttles what it is not warm for as a key range, though no key is hot",
        cold_table,
        dollars=dollars_of(write_units=_COLD_RATE * _HOT_SECONDS * ITEM_UNITS),
    ),
    Check(
        "index-key-range-throttle",
        "a hot index key throttles writes to the table with IndexWriteKeyRangeThroughputExceeded and the index's ARN, "
        "and CloudWatch counts that for the index",
        index_key_range,
        dollars=dollars_of(write_units=2 * _HOT_UNITS) + 0.01,
        seconds=700,
    ),
    Check(
        "provisioned-throttle",
        "used-up units of an index throttle with IndexWriteProvisionedThroughputExceeded and the index's ARN",
        provisioned,
        dollars=_PROVISIONED_DOLLARS,
        seconds=90,
    ),
    Check(
        "maximum-throttle",
        "the maximum of an on-demand table throttles with TableWriteMaxOnDemandThroughputExceeded and its ARN",
        maximum,
        dollars=dollars_of(write_units=10 * 60 * ITEM_UNITS),
        seconds=90,
    ),
    Check(
        "unexplained-throttles",
        "a throttled batch is answered in part, and a throttled transaction has codes; neither names a resource",
        batches_and_transactions,
        seconds=90,
    ),
)
