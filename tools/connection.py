"""The way from the command line to a table: the local stack's, or that of a deployed environment."""

import os
from collections.abc import Mapping
from typing import Any, Final

from dynashard import Dynashard
from dynashard.transport import connect
from local.errors import LocalStackError
from local.functions import api_environment
from local.settings import Settings
from tools.failure import CommandError

_NO_LISTING_KEY: Final = "commands continue no listing of others"
"""Signs cursors that never leave the process."""


def open_backend(environment: str | None) -> Dynashard:
    """The entities of the local stack, found by the variables of `make run`, or of a deployed environment.

    Args:
        environment: the environment's name in cdk.json; None for the local stack.

    Raises:
        CommandError: the stack cannot be found.

    Cost: deployed, one DescribeStacks.
    """
    return _local() if environment is None else _deployed(environment)


def _local() -> Dynashard:
    try:
        variables = api_environment(Settings.from_env(os.environ))
    except LocalStackError as error:
        raise CommandError(str(error)) from error
    transport = connect(
        endpoint_url=variables["DYNAMODB_ENDPOINT"],
        region=variables["AWS_REGION"],
        access_key=variables["AWS_ACCESS_KEY_ID"],
        secret_key=variables["AWS_SECRET_ACCESS_KEY"],
    )
    return Dynashard(transport, table=variables["TABLE_NAME"], cursor_keys=[_NO_LISTING_KEY])


def _deployed(environment: str) -> Dynashard:
    outputs = _outputs(f"Dynashard-{environment}-Data")
    return Dynashard(connect(), table=outputs["TableName"], cursor_keys=[_NO_LISTING_KEY])


def _outputs(stack: str) -> Mapping[str, str]:
    # Loaded here: the local stack needs no client of CloudFormation.
    import botocore.session  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        client: Any = botocore.session.get_session().create_client("cloudformation")
        [found] = client.describe_stacks(StackName=stack)["Stacks"]
    except (BotoCoreError, ClientError) as error:
        raise CommandError(f"the stack {stack} cannot be read: {error}") from error
    return {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", [])}
