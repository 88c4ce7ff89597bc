"""A stack on moto, with the outputs by which commands find the tables and queues of an environment."""

from collections.abc import Mapping

import boto3
import orjson


def deploy(environment: str, outputs: Mapping[str, str], part: str = "Data") -> None:
    """Create a stack with the outputs that commands read."""
    template = {
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {name: {"Value": value} for name, value in outputs.items()},
    }
    boto3.client("cloudformation", region_name="us-east-1").create_stack(
        StackName=f"Dynashard-{environment}-{part}", TemplateBody=orjson.dumps(template).decode()
    )
