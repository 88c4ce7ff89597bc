"""The other AWS services that functions and tools use, by boto3. Only those who ask for a client import it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dynashard.errors import EngineUnavailableError, EventBusUnavailableError

CONNECT_SECONDS: Final = 2
READ_SECONDS: Final = 5


def client(service: str, *, attempts: int = 2, **options: Any) -> Any:
    """Return boto3's client of a service, which gives up well before a function does.

    Args:
        service: as boto3 calls it.
        attempts: how often a request is sent, the first time included.
        options: as of `boto3.session.Session.client`.

    Cost: imports the SDK, about 80 ms, once; no request.
    """
    import boto3  # noqa: PLC0415 - imported on first use
    from botocore.config import Config  # noqa: PLC0415

    retries = {"mode": "standard", "total_max_attempts": attempts}
    config = Config(connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS, retries=retries)
    # A session of its own, because threads must not open clients of boto3's common one at the same time.
    return boto3.session.Session().client(service, config=config, **options)


def sqs_client() -> Any:
    """Return a client of SQS. Cost: as `client`."""
    return client("sqs", attempts=3)


def metric_data(cloudwatch: Callable[[], Any], **request: Any) -> Sequence[Mapping[str, Any]]:
    """Return the results of CloudWatch's GetMetricData, all of them complete; `cloudwatch` returns its client.

    Raises `EngineUnavailableError` if CloudWatch does not answer, or answers in part. Cost: 1 round trip to CloudWatch,
    which bills each metric.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - imported on first use

    try:
        results: Sequence[Mapping[str, Any]] = cloudwatch().get_metric_data(**request)["MetricDataResults"]
    except (BotoCoreError, ClientError, ValueError) as error:
        raise EngineUnavailableError(f"CloudWatch does not answer: {error}", operation="GetMetricData") from error
    if any(each["StatusCode"] != "Complete" for each in results):
        raise EngineUnavailableError("CloudWatch returned a partial answer", operation="GetMetricData")
    return results


def put_events(eventbridge: Callable[[], Any], entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Send up to 10 entries to EventBridge, and return its answer; `eventbridge` returns its client.

    Raises `EventBusUnavailableError` if EventBridge does not answer. Cost: 1 round trip to EventBridge, which bills
    each 64 KiB of an event.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - imported on first use

    try:
        answer: Mapping[str, Any] = eventbridge().put_events(Entries=list(entries))
    except (BotoCoreError, ClientError) as error:
        raise EventBusUnavailableError(f"EventBridge does not answer: {error}") from error
    return answer
