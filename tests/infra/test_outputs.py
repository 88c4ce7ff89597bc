"""The library finds a deployed environment by the names that its stacks and their outputs have."""

import json

import boto3
import pytest
from moto import mock_aws

from dynashard.key_clock import ClockBounds
from dynashard.locations import deployed
from tests.infra.templates import Templates

pytestmark = pytest.mark.infra

REGION = "us-east-1"


def deploy(templates: Templates, stack: str, **values: str) -> None:
    """Create a stack with the name of one of an environment, and its outputs with these values."""
    outputs = {name: {"Value": values.get(name, "of another")} for name in templates[stack]["Outputs"]}
    template = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}, "Outputs": outputs}
    boto3.client("cloudformation", region_name=REGION).create_stack(
        StackName=f"Dynashard-{templates.env}-{stack}", TemplateBody=json.dumps(template)
    )


def test_the_library_finds_an_environment_by_the_outputs_of_its_templates(dev: Templates) -> None:
    with mock_aws():
        secret = boto3.client("secretsmanager", region_name=REGION).create_secret(
            Name="keys", SecretString=json.dumps({"keys": ["a key of sixteen bytes"]})
        )
        deploy(dev, "Data", TableName="items", TopologyName="counts", ClockSeconds="7", AheadSeconds="9")
        deploy(dev, "Api", CursorSecretArn=secret["ARN"])

        found = deployed(dev.env, region=REGION)

        assert (found["table"], found["topology_table"]) == ("items", "counts")
        assert found["clocks"] == ClockBounds(off=7.0, ahead=9.0)
        assert found["cursor_keys"].current() == ("a key of sixteen bytes",)
