"""Botocore clients of services other than DynamoDB. Each is built on first use, so only its callers import the SDK."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from dynashard.errors import ConfigurationError, EngineUnavailableError


def sqs_client() -> Any:
    """Return a client of SQS. Cost: imports the SDK, once; no request."""
    return _client("sqs", attempts=3)


def cloudwatch_client(**options: Any) -> Any:
    """Return a client of CloudWatch; options as in botocore's `create_client`. Cost: as `sqs_client`."""
    return _client("cloudwatch", attempts=2, **options)


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


def stack_outputs(stack: str, *, region: str | None = None, profile: str | None = None) -> Mapping[str, str]:
    """Return the outputs of a deployed stack by name; None uses the SDK's own region and credentials.

    Raises `ConfigurationError` if the stack does not exist, or the caller may not read it. Cost: 1 DescribeStacks;
    imports the SDK, once.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - imported on first use

    try:
        client = _client("cloudformation", profile=profile, region_name=region)
        [found] = client.describe_stacks(StackName=stack)["Stacks"]
    except (BotoCoreError, ClientError, ValueError) as error:
        # Botocore raises a plain ValueError for an endpoint or region that makes no URL.
        raise ConfigurationError(f"the stack {stack} cannot be read: {error}") from error
    return {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])}


def secret_reader(arn: str, what: str, *, region: str | None = None, profile: str | None = None) -> Callable[[], str]:
    """Return a function that reads the current text of a secret; `what` is its name in errors.

    None uses the SDK's own region and credentials. The function raises `EngineUnavailableError` if the secret cannot be
    read. Cost of each call: 1 request to Secrets Manager.
    """
    client = cache(partial(_client, "secretsmanager", profile=profile, region_name=region))

    def read() -> str:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - imported on first use

        secrets = client()
        try:
            return str(secrets.get_secret_value(SecretId=arn)["SecretString"])
        except (BotoCoreError, ClientError) as error:
            raise EngineUnavailableError(
                f"The {what} cannot be read: try again.", operation="GetSecretValue"
            ) from error

    return read


def _client(service: str, *, profile: str | None = None, attempts: int | None = None, **options: Any) -> Any:
    from botocore.config import Config  # noqa: PLC0415 - imported on first use

    from dynashard.transport.client import open_session  # noqa: PLC0415 - it imports the SDK

    if attempts is not None:
        retries = {"mode": "standard", "total_max_attempts": attempts}
        options["config"] = Config(connect_timeout=2, read_timeout=5, retries=retries)
    return open_session(profile).create_client(service, **options)
