"""What an environment leaves in CloudWatch: ordinary hours, and outages.

Each service writes its metrics as its developer guide says: API Gateway and Lambda only in minutes with requests and
runs, DynamoDB counts of throttles only above 0, SQS while a queue is in use. Our own metrics come from the lines that
our functions write.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

from dynashard.transport.interface import Meter
from dynashard_patterns.changes import Outcome
from functions.api.request_lines import Observed, RequestLines
from functions.changes import handler as changes
from functions.reshard import handler as reshard
from functions.reshard.watch import Seen
from functions.writer import metrics as writer
from functions.writer.outcomes import Tally
from tests.infra.cloudwatch_metrics import CloudWatch, minutes

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
class Night:
    """Writes what happens into CloudWatch."""

    cloud: CloudWatch = field(default_factory=CloudWatch)
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
        self.cloud.write("AWS/DynamoDB", "ConsumedWriteCapacityUnits", ["Table"], at, 1.0)

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
        """The stream consumer, a batch a minute, a second behind."""
        for at in minutes(start, end):
            self.run("changes", at, age_ms=400.0)
            record = {"dynamodb": {"ApproximateCreationDateTime": at - 1}}
            self.cloud.log(changes.metrics(ENVIRONMENT, Outcome(None, 1, 0), [record], at))

    def watch(self, start: float, end: float) -> None:
        """The watch every quarter of an hour, up to a minute late, and its hourly look at quiet counts."""
        for at in looks(start, end):
            late = at + self.random.uniform(0, 60)
            self.run("watch", late)
            self.cloud.log(reshard.metrics(ENVIRONMENT, Seen(), late))

    def queues(self, start: float, end: float) -> None:
        """Queues that are polled, with an accepted write every ten minutes."""
        for at in minutes(start, end):
            for queue in QUEUES:
                self.cloud.write("AWS/SQS", "ApproximateNumberOfMessagesVisible", [queue], at, 0)
                self.cloud.write("AWS/SQS", "ApproximateAgeOfOldestMessage", [queue], at, 0)
            if at % 600 < 60:
                self.run("writer", at)
                self.cloud.log(writer.line(ENVIRONMENT, Tally(stored=1, lags=[0.5]), at))

    def throttled(self, start: float, end: float, event: str, *of: str) -> None:
        """Throttles of DynamoDB in every minute."""
        for at in minutes(start, end):
            self.cloud.write("AWS/DynamoDB", event, of, at, self._about(20))

    def _about(self, count: int) -> int:
        return self.random.randint(count // 2, count + count // 2)


def looks(start: float, end: float) -> Iterator[float]:
    """The times at which the rule runs the watch."""
    yield from (start + QUARTER * n for n in range(int((end - start) // QUARTER)))


def matches(pattern: str, line: str) -> bool:
    """Return whether a line of a log matches the pattern of a metric filter, as far as ours uses the syntax."""
    found = re.fullmatch(r'\{ \$\.(\w+) = "(\w+)" \}', pattern)
    assert found is not None, pattern
    return bool(json.loads(line).get(found[1]) == found[2])
