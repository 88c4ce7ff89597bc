"""What an environment leaves in CloudWatch: ordinary hours, and outages.

Each service writes its metrics as its developer guide says: API Gateway and Lambda only in minutes with requests and
runs, DynamoDB counts of throttles only above 0, SQS while a queue is in use. Our own metrics come from the lines that
our functions write.
"""

import json
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from io import StringIO
from random import Random
from typing import Any, Final

from dynashard.transport.interface import Meter
from dynashard_patterns.changes import Outcome
from dynashard_serving.api.request_log import Observed, RequestLines
from dynashard_serving.changes import handler as changes
from dynashard_serving.reshard import handler as reshard
from dynashard_serving.reshard.stream_age import Clients, StreamAge
from dynashard_serving.reshard.watch import Seen
from dynashard_serving.writer import metrics as writer
from dynashard_serving.writer.outcomes import Tally
from tests.infra.cloudwatch_metrics import CloudWatch, minutes
from tests.infra.reshard_aws import Mappings

START: Final = 1_800_000_000.0
QUARTER: Final = 900
HOUR: Final = 3600
ENVIRONMENT: Final = "dev"
API: Final = "Gateway"
FUNCTIONS: Final = {
    "api": "ApiFunction",
    "commands": "CommandsFunction",
    "writer": "WorkerFunction",
    "changes": "FollowFunction",
    "watch": "WatchFunction",
    "dispatch": "DispatchFunction",
    "advance": "AdvanceFunction",
    "work": "WorkFunction",
    "stop": "StopFunction",
    "operator": "OperatorFunction",
}
"""The logical ids of functions, by the names in alarms."""
QUEUES: Final = ("Intake", "Operations", "IntakeDeadLetters", "OperationsDeadLetters", "Dead", "Lost", "Missed")


@dataclass
class RecordedStream:
    """Answers as a client of DynamoDB Streams about one open shard, whose records were written at these times."""

    times: list[float] = field(default_factory=list)

    def describe_stream(self, **_request: Any) -> dict[str, Any]:
        return {"StreamDescription": {"Shards": [{"ShardId": "0", "SequenceNumberRange": {}}]}}

    def get_shard_iterator(self, **_request: Any) -> dict[str, str]:
        return {"ShardIterator": "0"}

    def get_records(self, *, ShardIterator: str) -> dict[str, Any]:  # noqa: N803 - botocore's
        first, most = int(ShardIterator), 1000
        page = sorted(self.times)[first : first + most]
        records = [{"dynamodb": {"ApproximateCreationDateTime": datetime.fromtimestamp(at, UTC)}} for at in page]
        return {"Records": records, "NextShardIterator": str(first + len(page))}


@dataclass
class Night:
    """Writes what happens into CloudWatch, and changes into the stream."""

    cloud: CloudWatch = field(default_factory=CloudWatch)
    stream: RecordedStream = field(default_factory=RecordedStream)
    mappings: Mappings = field(default_factory=lambda: Mappings({FUNCTIONS["changes"]: "Enabled"}))
    random: Random = field(default_factory=lambda: Random(26))
    lines: RequestLines = field(default_factory=lambda: RequestLines(ENVIRONMENT, metrics=True))

    def ordinary(self, start: float, end: float, *, requests: int = 6) -> None:
        """All that runs, runs; `requests` a minute on average."""
        self.traffic(start, end, requests=requests)
        self.consumer(start, end)
        self.watch(start, end)
        self.queues(start, end)

    def traffic(self, start: float, end: float, *, requests: int = 6, status: int = 200, ms: float = 40.0) -> None:
        """Requests that reach the API's function, all with one status and about one latency."""
        for at in minutes(start, end):
            for _ in range(self._about(requests)):
                self.request(at, status, ms * self.random.uniform(0.5, 2.0))

    def request(self, at: float, status: int = 200, ms: float = 40.0) -> None:
        """A request that reaches the API's function; a create, if it succeeds."""
        self.gateway(at, status, ms)
        self.run("api", at)
        meter = Meter()
        code = "internal_error" if status >= 500 else None
        self.cloud.log(self.lines.line(Observed("r", "POST", "/v1/users", status, "abc", ms, meter, code, code), at))
        # A condition that is not met consumes a unit too.
        self.cloud.write("AWS/DynamoDB", "ConsumedWriteCapacityUnits", ["Table"], at, 1.0)
        if status < 400:
            self.stream.times.append(at)

    def gateway(self, at: float, status: int, ms: float = 5.0) -> None:
        """A request at the gateway, with its line in the gateway's log, where a metric filter counts it."""
        self.cloud.write("AWS/ApiGateway", "Count", [API], at, 1)
        self.cloud.write("AWS/ApiGateway", "4xx", [API], at, int(400 <= status < 500))
        self.cloud.write("AWS/ApiGateway", "5xx", [API], at, int(status >= 500))
        self.cloud.write("AWS/ApiGateway", "Latency", [API], at, ms)
        if matches('{ $.status = "401" }', json.dumps({"route": "GET /v1/users", "status": str(status)})):
            self.cloud.write(f"Dynashard/{ENVIRONMENT}", "Unauthorized", [], at, 1)

    def run(self, function: str, at: float, *, age_ms: float | None = None) -> None:
        """A run of a function that succeeds."""
        for name, value in (("Invocations", 1), ("Errors", 0), ("Throttles", 0)):
            self.cloud.write("AWS/Lambda", name, [FUNCTIONS[function]], at, value)
        if age_ms is not None:
            self.cloud.write("AWS/Lambda", "IteratorAge", [FUNCTIONS[function]], at, age_ms)

    def refused(self, function: str, at: float, times: int = 1) -> None:
        """Runs that Lambda refuses: they are not invocations."""
        self.cloud.write("AWS/Lambda", "Throttles", [FUNCTIONS[function]], at, *[1] * times)

    def consumer(self, start: float, end: float) -> None:
        """The stream consumer: a batch a second after each change that was recorded before."""
        for written in [at for at in self.stream.times if start <= at < end]:
            at = written + 1
            self.run("changes", at, age_ms=400.0)
            record = {"dynamodb": {"ApproximateCreationDateTime": written}}
            self.log(at, partial(changes.write_metrics, ENVIRONMENT, Outcome(None, 1, 0), [record], at))

    def watch(self, start: float, end: float) -> None:
        """The watch every quarter of an hour, up to a minute late. It sees what was recorded before."""
        for look in (start + QUARTER * n for n in range(int((end - start) // QUARTER))):
            at = look + self.random.uniform(0, 60)
            self.run("watch", at)
            self.log(at, partial(reshard.write_metrics, ENVIRONMENT, Seen()))
            self.cloud.now = at
            self.log(at, partial(reshard.measure_stream, self._stream_age(at), ENVIRONMENT))

    def _stream_age(self, at: float) -> StreamAge:
        clients = Clients(self.mappings, self.cloud, self.stream)
        return StreamAge(clients, "stream", "Table", lambda: at, lambda _line: None)

    def queues(self, start: float, end: float) -> None:
        """Queues that are polled, with an accepted write every ten minutes."""
        for at in minutes(start, end):
            for queue in QUEUES:
                self.cloud.write("AWS/SQS", "ApproximateNumberOfMessagesVisible", [queue], at, 0)
                self.cloud.write("AWS/SQS", "ApproximateAgeOfOldestMessage", [queue], at, 0)
            if at % 600 < 60:
                self.run("writer", at)
                self.log(at, partial(writer.write_metrics, ENVIRONMENT, Tally(stored=1, lags=[0.5])))

    def gave_up(self, at: float) -> None:
        """The writer ends an accepted write as failed, without a mistake of its caller."""
        self.run("writer", at)
        self.log(at, partial(writer.write_metrics, ENVIRONMENT, Tally(failed=1, lags=[0.5])))

    def throttled(self, start: float, end: float, event: str, *of: str) -> None:
        """Throttles of DynamoDB in every minute."""
        for at in minutes(start, end):
            self.cloud.write("AWS/DynamoDB", event, of, at, self._about(20))

    def log(self, at: float, write: Callable[[], None]) -> None:
        """What a function writes into its log at a time; its own lines have the time of the test."""
        with redirect_stdout(StringIO()) as written:
            write()
        for text in written.getvalue().splitlines():
            line = json.loads(text)
            self.cloud.log(json.dumps({**line, "_aws": {**line["_aws"], "Timestamp": int(at * 1000)}}))

    def _about(self, count: int) -> int:
        return self.random.randint(count // 2, count + count // 2)


def matches(pattern: str, line: str) -> bool:
    """Return whether a line of a log matches the pattern of a metric filter, as far as ours uses the syntax."""
    found = re.fullmatch(r'\{ \$\.(\w+) = "(\w+)" \}', pattern)
    assert found is not None, pattern
    return bool(json.loads(line).get(found[1]) == found[2])
