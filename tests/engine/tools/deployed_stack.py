"""A stack on moto, with the outputs by which commands find the tables and queues of an environment."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import boto3
import orjson


def deploy(
    environment: str,
    outputs: Mapping[str, str],
    part: str = "Data",
    resources: Mapping[str, Any] = MappingProxyType({"Topic": {"Type": "AWS::SNS::Topic"}}),
) -> None:
    """Create a stack with the outputs and resources that commands read."""
    template = {
        "Resources": {**resources},
        "Outputs": {name: {"Value": value} for name, value in outputs.items()},
    }
    boto3.client("cloudformation", region_name="us-east-1").create_stack(
        StackName=f"Dynashard-{environment}-{part}", TemplateBody=orjson.dumps(template).decode()
    )
