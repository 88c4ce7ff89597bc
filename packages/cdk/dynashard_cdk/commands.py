"""The commands stack: direct invocation of the entities by other services, which IAM allows or refuses."""

from typing import Any

from aws_cdk import CfnOutput
from aws_cdk import aws_secretsmanager as secrets
from constructs import Construct

from dynashard_cdk.api import serving_variables
from dynashard_cdk.canary import Canary
from dynashard_cdk.permissions import BATCH_ACTIONS
from dynashard_cdk.stack import FunctionStack

JUDGES = ("function-failing-commands", "outcome-unknown-commands")
"""Alarms that move the traffic of direct invocation back to the release before."""


class CommandsStack(FunctionStack):
    """The function that other services invoke. It has no resource policy: callers need `lambda:InvokeFunction`."""

    def __init__(self, scope: Construct, construct_id: str, *, cursor_secret: secrets.ISecret, **kwargs: Any) -> None:
        super().__init__(scope, construct_id, purpose="direct invocation", **kwargs)
        settings = self.settings
        self.function = self.python_function(
            "Commands",
            "commands",
            "direct invocation",
            environment={
                **serving_variables(settings, self.data, cursor_secret),
                "CALLER_REQUIRED": str(settings.commands.caller_required).lower(),
            },
            statements=self.data.allow_serving(cursor_secret, BATCH_ACTIONS),
            memory_mb=settings.commands.memory_mb,
            timeout_seconds=settings.api.timeout_seconds,
            concurrency=settings.concurrency["commands"],
        )
        if settings.deploy.canary is not None:
            Canary(
                self,
                "Canary",
                settings=settings,
                canary=settings.deploy.canary,
                served=self.function,
                name="commands",
                judges=JUDGES,
            )
        CfnOutput(self, "CommandsFunction", value=self.function.live.function_name)
