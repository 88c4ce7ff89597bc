"""Botocore's clients of other services, each made when it is first needed: only who asks pays for the SDK's import."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dynashard.errors import ConfigurationError, EngineUnavailableError


def sqs_client() -> Any:
    """The client of SQS. Cost: imports the SDK's description of SQS, once; no request."""
    from botocore.config import Config  # noqa: PLC0415 - see above
    from botocore.session import get_session  # noqa: PLC0415

    config = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 3})
    return get_session().create_client("sqs", config=config)


def cloudwatch_client(
    *,
    region: str | None = None,
    endpoint_url: str | None = None,
    access_key: str | None = None,
    secret_key: str | None = None,
    token: str | None = None,
) -> Any:
    """The client of CloudWatch; arguments as those of `transport.connect`. Cost: the SDK's import, once; no request."""
    from botocore.config import Config  # noqa: PLC0415 - see above
    from botocore.session import Session  # noqa: PLC0415

    return Session().create_client(
        "cloudwatch",
        region_name=region,
        endpoint_url=endpoint_url,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        aws_session_token=token,
        config=Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 2}),
    )


def metric_data(client: Callable[[], Any], **asked: Any) -> Sequence[Mapping[str, Any]]:
    """The results of CloudWatch's GetMetricData, all of them complete; `client` gives CloudWatch's.

    Raises:
        EngineUnavailableError: CloudWatch does not answer, or not in full.

    Cost: 1 round trip to CloudWatch, which bills each metric.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - see above

    try:
        results: Sequence[Mapping[str, Any]] = client().get_metric_data(**asked)["MetricDataResults"]
    except (BotoCoreError, ClientError, ValueError) as error:
        raise EngineUnavailableError(f"CloudWatch does not answer: {error}", operation="GetMetricData") from error
    if any(each["StatusCode"] != "Complete" for each in results):
        raise EngineUnavailableError("CloudWatch has given part of an answer", operation="GetMetricData")
    return results


def stack_outputs(stack: str, *, region: str | None = None, profile: str | None = None) -> Mapping[str, str]:
    """The outputs of a deployed stack, by their names.

    Args:
        stack: its name.
        region: None takes the SDK's: environment or profile.
        profile: None takes the SDK's own credentials.

    Raises:
        ConfigurationError: it cannot be read, because it does not exist or the caller may not.

    Cost: 1 DescribeStacks; the first time also the SDK's import.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - see above
    from botocore.session import Session  # noqa: PLC0415

    try:
        client: Any = Session(profile=profile).create_client("cloudformation", region_name=region)
        [found] = client.describe_stacks(StackName=stack)["Stacks"]
    except (BotoCoreError, ClientError, ValueError) as error:
        # An endpoint or region that makes no URL is a plain ValueError.
        raise ConfigurationError(f"the stack {stack} cannot be read: {error}") from error
    return {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])}


class SecretReader:
    """Reads the text of one secret.

    Args:
        arn: the secret's.
        what: its name in an error, such as `cursor keys`.
        region, profile: as of `stack_outputs`.
    """

    def __init__(self, arn: str, what: str, *, region: str | None = None, profile: str | None = None) -> None:
        self._arn = arn
        self._what = what
        self._region = region
        self._profile = profile
        self._client: Any = None

    def __call__(self) -> str:
        """The secret as it is now. Cost: 1 request to Secrets Manager; the first time also the SDK's import.

        Raises:
            EngineUnavailableError: it cannot be read.
        """
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - see above
        from botocore.session import Session  # noqa: PLC0415

        if self._client is None:
            self._client = Session(profile=self._profile).create_client("secretsmanager", region_name=self._region)
        try:
            return str(self._client.get_secret_value(SecretId=self._arn)["SecretString"])
        except (BotoCoreError, ClientError) as error:
            raise EngineUnavailableError(
                f"The {self._what} cannot be read: try again.", operation="GetSecretValue"
            ) from error
