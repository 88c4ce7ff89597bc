"""Clients of services other than DynamoDB, on botocore, which only their callers import."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from dynashard.errors import ConfigurationError, EngineUnavailableError
from dynashard.transport.interface import AwsSession


def stack_outputs(
    stack: str, *, region: str | None = None, profile: str | None = None, session: AwsSession | None = None
) -> Mapping[str, str]:
    """Return the outputs of a deployed stack by name; None uses the SDK's own region and credentials.

    Raises `ConfigurationError` if the stack does not exist, or the caller may not read it. Cost: 1 DescribeStacks;
    imports the SDK, once.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - imported on first use

    try:
        client = sdk_client("cloudformation", profile=profile, session=session, region_name=region)
        [found] = client.describe_stacks(StackName=stack)["Stacks"]
    except (BotoCoreError, ClientError, ValueError) as error:
        # Botocore raises a plain ValueError for an endpoint or region that makes no URL.
        raise ConfigurationError(f"the stack {stack} cannot be read: {error}") from error
    return {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])}


def secret_reader(
    arn: str,
    what: str,
    *,
    region: str | None = None,
    profile: str | None = None,
    session: AwsSession | None = None,
) -> Callable[[], str]:
    """Return a function that reads the current text of a secret; `what` is its name in errors.

    None uses the SDK's own region and credentials. The function raises `EngineUnavailableError` if the secret cannot be
    read. Cost of each call: 1 request to Secrets Manager.
    """
    client = cache(partial(sdk_client, "secretsmanager", profile=profile, session=session, region_name=region))

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


def sdk_client(
    service: str,
    *,
    profile: str | None = None,
    session: AwsSession | None = None,
    **options: Any,
) -> Any:
    """Return botocore's client of a service, with `options` of its `create_client`. Cost: no request."""
    from dynashard.transport.client import open_session  # noqa: PLC0415 - it imports the SDK

    if session is not None and options.get("region_name") is None:
        options["region_name"] = session.region_name
    return open_session(profile, session).create_client(service, **options)
