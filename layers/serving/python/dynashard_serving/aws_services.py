"""The other AWS services that functions and tools use. Only those who ask for a client import the SDK."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dynashard.errors import EngineUnavailableError
from dynashard.transport.aws import sdk_client


def sqs_client() -> Any:
    """Return a client of SQS. Cost: imports the SDK, once; no request."""
    return sdk_client("sqs", attempts=3)


def cloudwatch_client(**options: Any) -> Any:
    """Return a client of CloudWatch; options as in botocore's `create_client`. Cost: as `sqs_client`."""
    return sdk_client("cloudwatch", attempts=2, **options)


def lambda_client() -> Any:
    """Return a client of Lambda. Cost: as `sqs_client`."""
    return sdk_client("lambda", attempts=2)


def streams_client() -> Any:
    """Return a client of DynamoDB Streams. Cost: as `sqs_client`."""
    return sdk_client("dynamodbstreams", attempts=2)


def metric_data(client: Callable[[], Any], **request: Any) -> Sequence[Mapping[str, Any]]:
    """Return the results of CloudWatch's GetMetricData, all of them complete; `client` returns a CloudWatch client.

    Raises `EngineUnavailableError` if CloudWatch does not answer, or answers in part. Cost: 1 round trip to CloudWatch,
    which bills each metric.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - imported on first use

    try:
        results: Sequence[Mapping[str, Any]] = client().get_metric_data(**request)["MetricDataResults"]
    except (BotoCoreError, ClientError, ValueError) as error:
        raise EngineUnavailableError(f"CloudWatch does not answer: {error}", operation="GetMetricData") from error
    if any(each["StatusCode"] != "Complete" for each in results):
        raise EngineUnavailableError("CloudWatch returned a partial answer", operation="GetMetricData")
    return results
