"""For throttles without a reason, CloudWatch shows whether the whole table was below its limits.

The answers in `responses/load/` are CloudWatch's and DynamoDB's documented bodies.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError, NoRegionError
from botocore.session import Session
from botocore.stub import Stubber
from moto import mock_aws

from dynashard.errors import EngineError
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport.interface import Call, Resend, Wire
from dynashard_serving.table_load import TableLoad, table_load

pytestmark = pytest.mark.unit

RESPONSES = Path(__file__).parent / "responses" / "load"
NOW = datetime(2026, 11, 20, 12, 7, 30, tzinfo=UTC).timestamp()
MINUTES = [datetime(2026, 11, 20, 12, minute, tzinfo=UTC) for minute in range(7)]


class Described(OneByOne):
    """A transport that only answers DescribeTable."""

    def __init__(self, name: str | None) -> None:
        self.asked: list[Mapping[str, Any]] = []
        self._name = name

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        del resend
        assert operation == "DescribeTable"
        self.asked.append(request)
        if self._name is None:
            raise EngineError("DescribeTable was refused.", operation=operation)
        return recorded(self._name)

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def recorded(name: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads((RESPONSES / f"{name}.json").read_text())
    for series in answer.get("MetricDataResults", ()):
        series["Timestamps"] = [datetime.fromisoformat(at) for at in series["Timestamps"]]
    return answer


def client() -> Any:
    return Session().create_client(
        "cloudwatch",
        region_name="eu-west-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106
        config=Config(retries={"total_max_attempts": 1}),
    )


def load(
    metrics: str, table: str | None = None, asked: Mapping[str, Any] | None = None
) -> tuple[TableLoad, Described, Stubber]:
    """Return the load of the table `users` by a recorded answer of CloudWatch, with its transport and stubber."""
    cloudwatch = client()
    stubber = Stubber(cloudwatch)
    stubber.add_response("get_metric_data", recorded(metrics), asked)
    stubber.activate()
    transport = Described(table)
    return TableLoad(transport, "users", metrics=lambda: cloudwatch, clock=lambda: NOW), transport, stubber


@pytest.mark.parametrize(
    ("metrics", "table", "below", "reason"),
    [
        ("hot_key_range_counted", None, True, "CloudWatch counts 412 throttles by KeyRangeThroughput"),
        ("account_limit_counted", None, False, "CloudWatch counts 90 throttles by AccountLimit"),
        ("maximum_counted", None, False, "CloudWatch counts 90 throttles by MaxOnDemandThroughput"),
        ("provisioned_below", None, True, "1,100 of 3,000 write units a second in the busiest throttled minute"),
        ("provisioned_used_up", None, False, "2,900 of 3,000 write units a second in the busiest throttled minute"),
        ("on_demand", "table_on_demand", True, "1,100 of 4,000 write units a second in the busiest throttled minute"),
        (
            "on_demand",
            "table_provisioned",
            False,
            "1,100 of 1,100 write units a second in the busiest throttled minute",
        ),
        ("throttle_not_counted_yet", None, None, "CloudWatch has not counted the throttle yet"),
        ("nothing", None, None, "CloudWatch has not counted the throttle yet"),
    ],
)
def test_a_table_is_below_its_limit_at_it_or_unknown(
    metrics: str, table: str | None, *, below: bool | None, reason: str
) -> None:
    ask, transport, _ = load(metrics, table)

    answer = ask()

    assert (answer.below, answer.reason) == (below, reason)
    assert len(transport.asked) == (table is not None)


@pytest.mark.parametrize(("of_key_ranges", "below"), [(1.0, True), (0.0, False)])
def test_one_throttle_of_a_key_range_shows_that_one_is_hot_whatever_else_was_throttled(
    of_key_ranges: float, *, below: bool
) -> None:
    cloudwatch = client()
    results = [
        {"Id": name, "StatusCode": "Complete", "Timestamps": MINUTES[:1], "Values": [count]}
        for name, count in (("m3", of_key_ranges), ("m6", 90.0))
    ]
    with Stubber(cloudwatch) as stubber:
        stubber.add_response("get_metric_data", {"MetricDataResults": results})

        assert TableLoad(Described(None), "users", metrics=lambda: cloudwatch, clock=lambda: NOW)().below is below


@pytest.mark.parametrize(
    ("consumed", "throttled", "provisioned", "below"),
    [
        ([799.0], [3], [1000.0], True),
        ([800.0], [3], [1000.0], False),
        ([799.0], [3], [2000.0, 1000.0], True),
        ([801.0], [3], [2000.0, 1000.0], False),
        ([799.0, 999.0], [3, 0], [1000.0], True),
        ([799.0], [3, 3], [1000.0], True),
    ],
    ids=["below", "at it", "raised of late", "raised, at it", "busy without throttles", "consumption is late"],
)
def test_a_table_below_four_fifths_of_its_least_limit_in_its_throttled_minutes_is_below_it(
    consumed: list[float], throttled: list[float], provisioned: list[float], *, below: bool
) -> None:
    cloudwatch = client()
    series = ([60 * each for each in consumed], provisioned, throttled)
    results = [
        {"Id": f"m{at}", "StatusCode": "Complete", "Timestamps": MINUTES[: len(values)], "Values": values}
        for at, values in enumerate(series)
    ]
    with Stubber(cloudwatch) as stubber:
        stubber.add_response("get_metric_data", {"MetricDataResults": results})

        assert TableLoad(Described(None), "users", metrics=lambda: cloudwatch, clock=lambda: NOW)().below is below


@pytest.mark.parametrize(
    ("index", "table", "below", "reason"),
    [
        ("GSI1", "table_on_demand", False, "1,100 of 1,200 write units"),
        ("GSI2", "table_on_demand", True, "1,100 of 40,000 write units"),
        ("GSI1", "table_provisioned", True, "1,100 of 2,500 write units"),
        ("GSI3", "table_on_demand", None, "users has no index GSI3"),
    ],
)
def test_an_index_has_limits_of_its_own(index: str, table: str, *, below: bool | None, reason: str) -> None:
    ask, _, _ = load("on_demand", table)

    answer = ask(index=index)

    assert answer.below is below
    assert reason in answer.reason


@pytest.mark.parametrize(
    ("table", "index", "writing", "units"),
    [
        ("table_on_demand", None, True, 4_000.0),
        ("table_on_demand", None, False, 12_000.0),
        ("table_on_demand", "GSI1", True, 1_200.0),
        ("table_on_demand", "GSI2", True, 40_000.0),
        ("table_on_demand", "GSI3", True, None),
        ("table_provisioned", "GSI1", True, 2_500.0),
        (None, None, True, None),
    ],
)
def test_what_a_table_or_index_can_give_is_described(
    table: str | None, index: str | None, units: float | None, *, writing: bool
) -> None:
    transport = Described(table)

    assert TableLoad(transport, "users", metrics=client).limit(index=index, writing=writing) == units
    assert len(transport.asked) == 1


@pytest.mark.parametrize(("table", "below"), [("table_on_demand", True), ("table_provisioned", True)])
def test_reading_is_compared_with_read_units(table: str, *, below: bool) -> None:
    ask, _, _ = load("reading_on_demand", table)

    answer = ask(writing=False)

    assert answer.below is below
    assert answer.reason.startswith("3,100 of ")
    assert "read units" in answer.reason


@pytest.mark.parametrize(("index", "does"), [(None, "Write"), ("GSI2", "Read")])
def test_ten_whole_minutes_of_the_table_or_index_are_requested_by_the_minute(index: str | None, does: str) -> None:
    dimensions = [{"Name": "TableName", "Value": "users"}]
    dimensions += [{"Name": "GlobalSecondaryIndexName", "Value": index}] if index else []
    names = [
        (f"Consumed{does}CapacityUnits", "Sum"),
        (f"Provisioned{does}CapacityUnits", "Minimum"),
        (f"{does}ThrottleEvents", "Sum"),
        (f"{does}KeyRangeThroughputThrottleEvents", "Sum"),
        (f"{does}ProvisionedThroughputThrottleEvents", "Sum"),
        (f"{does}MaxOnDemandThroughputThrottleEvents", "Sum"),
        (f"{does}AccountLimitThrottleEvents", "Sum"),
    ]
    metrics = [{"Namespace": "AWS/DynamoDB", "MetricName": name, "Dimensions": dimensions} for name, _ in names]
    expected = {
        "StartTime": datetime(2026, 11, 20, 11, 57, tzinfo=UTC),
        "EndTime": datetime(2026, 11, 20, 12, 7, 30, tzinfo=UTC),
        "MetricDataQueries": [
            {"Id": f"m{at}", "MetricStat": {"Metric": metric, "Period": 60, "Stat": stat}}
            for at, (metric, (_, stat)) in enumerate(zip(metrics, names, strict=True))
        ],
    }
    ask, _, stubber = load("hot_key_range_counted", asked=expected)

    assert ask(index=index, writing=does == "Write").below
    stubber.assert_no_pending_responses()


def hours(read: list[float], write: list[float], *, status: str = "Complete") -> dict[str, Any]:
    """Return an answer of CloudWatch about throttles by the hour."""
    return {
        "MetricDataResults": [
            {
                "Id": f"m{at}",
                "Label": "throttles",
                "StatusCode": status,
                "Timestamps": [datetime(2026, 11, 20, hour, tzinfo=UTC) for hour in range(len(counts))],
                "Values": counts,
            }
            for at, counts in enumerate((read, write))
        ]
    }


@pytest.mark.parametrize(
    ("read", "write", "calm"),
    [([], [], True), ([0.0, 0.0], [0.0], True), ([0.0, 1.0], [], False), ([], [2.0, 0.0, 0.0], False)],
)
def test_a_table_without_throttles_is_calm(read: list[float], write: list[float], *, calm: bool) -> None:
    cloudwatch = client()
    stubber = Stubber(cloudwatch)
    metrics = [
        {"Namespace": "AWS/DynamoDB", "MetricName": name, "Dimensions": [{"Name": "TableName", "Value": "users"}]}
        for name in ("ReadThrottleEvents", "WriteThrottleEvents")
    ]
    expected = {
        "StartTime": datetime(2026, 11, 19, 12, tzinfo=UTC),
        "EndTime": datetime(2026, 11, 20, 12, 7, 30, tzinfo=UTC),
        "MetricDataQueries": [
            {"Id": f"m{at}", "MetricStat": {"Metric": metric, "Period": 3600, "Stat": "Sum"}}
            for at, metric in enumerate(metrics)
        ],
    }
    stubber.add_response("get_metric_data", hours(read, write), expected)
    stubber.activate()

    assert TableLoad(Described(None), "users", metrics=lambda: cloudwatch, clock=lambda: NOW).calm(86_400) is calm


def test_a_partial_answer_makes_the_load_unknown() -> None:
    cloudwatch = client()
    stubber = Stubber(cloudwatch)
    for _ in range(2):
        stubber.add_response("get_metric_data", hours([], [], status="PartialData"))
    stubber.activate()
    ask = TableLoad(Described(None), "users", metrics=lambda: cloudwatch, clock=lambda: NOW)

    assert ask.calm(86_400) is None
    answer = ask()
    assert answer.below is None
    assert "CloudWatch returned a partial answer" in answer.reason


def refused() -> Any:
    cloudwatch = client()
    stubber = Stubber(cloudwatch)
    stubber.add_client_error("get_metric_data", "AccessDenied", "not authorized", 403)
    stubber.activate()
    return cloudwatch


def unreachable() -> Any:
    raise EndpointConnectionError(endpoint_url="https://monitoring.eu-west-1.amazonaws.com")


def without_region() -> Any:
    raise NoRegionError


def with_a_wrong_endpoint() -> Any:
    return Session().create_client("cloudwatch", region_name="eu-west-1", endpoint_url="nowhere")


@pytest.mark.parametrize("metrics", [refused, unreachable, without_region, with_a_wrong_endpoint])
def test_errors_of_cloudwatch_make_the_load_unknown(metrics: Callable[[], Any]) -> None:
    ask = TableLoad(Described(None), "users", metrics=metrics, clock=lambda: NOW)

    answer = ask()

    assert answer.below is None
    assert "the load of users is not known" in answer.reason
    assert "allow cloudwatch:GetMetricData and dynamodb:DescribeTable" in answer.reason
    assert TableLoad(Described(None), "users", metrics=metrics, clock=lambda: NOW).calm(3600, index="GSI1") is None


def test_errors_of_dynamodb_make_the_load_unknown() -> None:
    ask, transport, _ = load("on_demand", None)

    answer = ask()

    assert answer.below is None
    assert "DescribeTable was refused" in answer.reason
    assert len(transport.asked) == 1


def test_the_client_is_built_once() -> None:
    built: list[Any] = []

    def build() -> Any:
        cloudwatch = client()
        stubber = Stubber(cloudwatch)
        for _ in range(2):
            stubber.add_response("get_metric_data", recorded("hot_key_range_counted"))
        stubber.activate()
        built.append(cloudwatch)
        return cloudwatch

    ask = TableLoad(Described(None), "users", metrics=build, clock=lambda: NOW)

    assert (ask().below, ask().below) == (True, True)
    assert len(built) == 1


def test_the_real_client_is_understood() -> None:
    keys: dict[str, Any] = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    ask = table_load(Described(None), "users", region_name="eu-west-1", **keys)

    with mock_aws():
        answer = ask()

    assert answer.reason == "CloudWatch has not counted the throttle yet"


def test_the_import_loads_no_sdk() -> None:
    code = "import sys, dynashard_serving.table_load as load; load.table_load(None, 'users'); print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()  # noqa: S603

    assert "dynashard_serving.table_load" in loaded
    assert {name.split(".")[0] for name in loaded} & {"botocore", "boto3"} == set()
