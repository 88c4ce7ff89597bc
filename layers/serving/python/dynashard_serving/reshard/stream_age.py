"""How long changes wait in the table's stream for a consumer that Lambda does not run.

Lambda writes `IteratorAge` only while it runs a consumer. If the event source mapping is disabled or gone, or Lambda
refuses every run, that metric has no data, and the stream loses changes after 24 hours. So the watch measures the age.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from dynashard_serving.aws_services import metric_data

KEPT_SECONDS: Final = 86_400
"""How long a stream keeps records."""
RECENT_SECONDS: Final = 600
"""A consumer that ran since is alive: `IteratorAge` says how far behind it is."""
MINUTE: Final = 60
MOST_READS: Final = 100
"""Reads of the stream for one consumer; each returns up to 1,000 records or 1 MB."""
EMPTY_READS: Final = 3
"""Reads without records after which an open shard is taken for read: a read may return none before the newest."""

Client = Any  # boto3 makes its clients' methods at run time


class Consumer(NamedTuple):
    """A function that an event source mapping invokes with the records of the stream."""

    function: str
    state: str


@dataclass(frozen=True, slots=True)
class Clients:
    """Clients of Lambda, CloudWatch and DynamoDB Streams."""

    mappings: Client
    metrics: Client
    streams: Client


@dataclass(frozen=True, slots=True)
class StreamAge:
    """Measures the age of changes that no consumer was invoked for.

    Attributes:
        stream: ARN of the table's stream.
        table: the table's name.
        clock: epoch seconds.
        log: receives a line for each consumer that is missing changes.
    """

    clients: Clients
    stream: str
    table: str
    clock: Callable[[], float]
    log: Callable[[str], None]

    def seconds(self) -> float:
        """Return the age of the oldest change that waits for a consumer that does not run; 0 if none waits.

        A mapping with filters is not judged, because Lambda does not invoke its consumer for every change.

        Raises:
            EngineUnavailableError: CloudWatch does not answer.
            BotoCoreError, ClientError: Lambda or the stream does not answer.

        Cost: a call of Lambda and one of CloudWatch for 3 metrics. Only if changes may wait, up to 100 reads of the
        stream for each consumer.
        """
        now = self.clock()
        consumers = self._consumers()
        runs, written = self._activity([each.function for each in consumers], now)
        # Without a mapping, everything that the stream keeps waits.
        silent = zip(consumers, runs, strict=True) if consumers else [(Consumer("none", "missing"), now - KEPT_SECONDS)]
        ages = [0.0]
        for consumer, last_run in silent:
            age = self._waiting(last_run, written, now)
            if age > 0:
                self.log(
                    f"changes wait for {age:.0f} s in the stream: consumer {consumer.function} has not run since, and "
                    f"its event source mapping is {consumer.state}"
                )
            ages.append(age)
        return max(ages)

    def _consumers(self) -> list[Consumer]:
        found: list[Consumer] = []
        request = {"EventSourceArn": self.stream}
        while True:
            answer = self.clients.mappings.list_event_source_mappings(**request)
            found += [
                # arn:aws:lambda:<region>:<account>:function:<name>, and perhaps an alias.
                Consumer(each["FunctionArn"].split(":")[6], each["State"])
                for each in answer["EventSourceMappings"]
                if not each.get("FilterCriteria", {}).get("Filters")
            ]
            if not answer.get("NextMarker"):
                return found
            request["Marker"] = answer["NextMarker"]

    def _activity(self, functions: Sequence[str], now: float) -> tuple[list[float], float]:
        """Return when each function ran last, and when the table was written last: beginnings of minutes."""
        queries = [
            *(_query(f"run{n}", "AWS/Lambda", "Invocations", "FunctionName", each) for n, each in enumerate(functions)),
            _query("written", "AWS/DynamoDB", "ConsumedWriteCapacityUnits", "TableName", self.table),
            # They take no capacity, and are in the stream.
            _query("expired", "AWS/DynamoDB", "TimeToLiveDeletedItemCount", "TableName", self.table),
        ]
        results = metric_data(
            lambda: self.clients.metrics,
            MetricDataQueries=queries,
            StartTime=datetime.fromtimestamp(now - KEPT_SECONDS, UTC),
            EndTime=datetime.fromtimestamp(now, UTC),
        )
        last = {each["Id"]: _last(each, before=now - KEPT_SECONDS) for each in results}
        return [last[f"run{n}"] for n in range(len(functions))], max(last["written"], last["expired"])

    def _waiting(self, last_run: float, written: float, now: float) -> float:
        # What consumes write units is not always a change: a refused condition is not. So the stream decides.
        if now - last_run < RECENT_SECONDS or written <= last_run:
            return 0.0
        oldest = self._oldest_after(last_run + MINUTE)
        return 0.0 if oldest is None else now - oldest

    def _oldest_after(self, since: float) -> float | None:
        """Return the time of the oldest record after a time; the time itself if there are too many to read."""
        found: list[float] = []
        reads = 0
        for shard in self._shards():
            last = shard["SequenceNumberRange"].get("EndingSequenceNumber")
            if last is not None and not self._is_after(shard["ShardId"], last, since):
                continue
            for times in self._read(shard["ShardId"]):
                reads += 1
                later = [at for at in times if at > since]
                if later:
                    found.append(min(later))
                    break
                if reads >= MOST_READS:
                    return since
        return min(found, default=None)

    def _shards(self) -> Iterator[Mapping[str, Any]]:
        request = {"StreamArn": self.stream}
        while True:
            described = self.clients.streams.describe_stream(**request)["StreamDescription"]
            yield from described["Shards"]
            if not described.get("LastEvaluatedShardId"):
                return
            request["ExclusiveStartShardId"] = described["LastEvaluatedShardId"]

    def _is_after(self, shard: str, number: str, since: float) -> bool:
        """Whether the last record of a closed shard is after a time."""
        iterator = self._iterator(shard, "AT_SEQUENCE_NUMBER", SequenceNumber=number)
        records = self.clients.streams.get_records(ShardIterator=iterator, Limit=1)["Records"]
        return any(at > since for at in _times(records))

    def _read(self, shard: str) -> Iterator[list[float]]:
        """Yield the times of the records of a shard, read by read."""
        iterator: str | None = self._iterator(shard, "TRIM_HORIZON")
        empty = 0
        while iterator is not None and empty < EMPTY_READS:
            answer = self.clients.streams.get_records(ShardIterator=iterator)
            times = _times(answer["Records"])
            yield times
            empty = 0 if times else empty + 1
            iterator = answer.get("NextShardIterator")

    def _iterator(self, shard: str, kind: str, **position: str) -> str:
        request = {"StreamArn": self.stream, "ShardId": shard, "ShardIteratorType": kind, **position}
        return str(self.clients.streams.get_shard_iterator(**request)["ShardIterator"])


def _query(name: str, namespace: str, metric: str, dimension: str, value: str) -> dict[str, Any]:
    dimensions = [{"Name": dimension, "Value": value}]
    described = {"Namespace": namespace, "MetricName": metric, "Dimensions": dimensions}
    return {"Id": name, "MetricStat": {"Metric": described, "Period": MINUTE, "Stat": "Sum"}}


def _last(result: Mapping[str, Any], *, before: float) -> float:
    """Return the newest minute whose value is not 0, or the time before all of them."""
    found = zip(result["Timestamps"], result["Values"], strict=True)
    return max((at.timestamp() for at, value in found if value > 0), default=before)


def _times(records: Sequence[Mapping[str, Any]]) -> list[float]:
    return [each["dynamodb"]["ApproximateCreationDateTime"].timestamp() for each in records]
