"""Ages of messages and of the stream in a deployed environment are the newest values of CloudWatch's metrics."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import botocore.session
import pytest
from moto import mock_aws

from dynashard_tools.environments import Environment
from dynashard_tools.latest_metrics import Metric, latest

pytestmark = pytest.mark.infra

REGION = "eu-west-1"


@pytest.fixture
def cloudwatch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        yield botocore.session.get_session().create_client("cloudwatch", region_name=REGION)


def test_the_newest_value_counts_and_a_metric_without_one_is_left_out(cloudwatch: Any) -> None:
    now = datetime.now(UTC)
    queue = {"Name": "QueueName", "Value": "intake"}
    values = [
        {"MetricName": "Age", "Dimensions": [queue], "Value": value, "Timestamp": now - timedelta(minutes=minutes)}
        for value, minutes in ((900.0, 40), (70.0, 5), (42.0, 2))
    ]
    cloudwatch.put_metric_data(Namespace="AWS/SQS", MetricData=values)

    found = latest(
        Environment("prod", REGION),
        {
            "intake": Metric("AWS/SQS", "Age", {"QueueName": "intake"}),
            "idle": Metric("AWS/SQS", "Age", {"QueueName": "idle"}),
        },
    )

    assert found == {"intake": 42.0}
