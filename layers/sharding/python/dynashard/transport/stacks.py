"""Outputs of deployed stacks, by botocore's client for CloudFormation."""

from collections.abc import Mapping
from typing import Any

from dynashard.errors import ConfigurationError


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
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - only who looks for a stack pays
    from botocore.session import Session  # noqa: PLC0415

    try:
        client: Any = Session(profile=profile).create_client("cloudformation", region_name=region)
        [found] = client.describe_stacks(StackName=stack)["Stacks"]
    except (BotoCoreError, ClientError, ValueError) as error:
        # An endpoint or region that makes no URL is a plain ValueError.
        raise ConfigurationError(f"the stack {stack} cannot be read: {error}") from error
    return {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])}
