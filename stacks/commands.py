"""The commands stack: direct invocation of the entities by other services. Who may invoke it is for IAM to say."""

from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_secretsmanager as secrets
from constructs import Construct

from stacks.alarms import Alarms
from stacks.api import serving_statements
from stacks.bundling import Bundle
from stacks.data import DataStack
from stacks.function import PythonFunction, layers
from stacks.settings import Settings


class CommandsStack(Stack):
    """The function that other services invoke. It has no resource policy: callers need `lambda:InvokeFunction` on it.

    Attributes:
        function: The function.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        data: DataStack,
        cursor_secret: secrets.ISecret,
        bundle: Bundle,
        **kwargs: Any,
    ) -> None:
        super().__init__(scope, construct_id, description=f"Dynashard direct invocation ({settings.name})", **kwargs)
        self.function = PythonFunction(
            self,
            "Commands",
            settings=settings,
            description="Dynashard direct invocation",
            code=bundle.function("commands"),
            handler="functions.commands.handler.handler",
            layers=layers(self, bundle),
            environment={
                **data.variables,
                "IDEMPOTENCY_TABLE": data.idempotency.table_name,
                "TENANT_PATTERN": settings.auth.tenant_pattern,
                "MAX_QUERIES_PER_REQUEST": str(settings.api.max_queries_per_request),
                # One secret for both ways in: a listing that began over REST goes on here, and the other way round.
                "CURSOR_SECRET_ARN": cursor_secret.secret_arn,
            },
            # What the REST API may do, and nothing of the gateway.
            statements=serving_statements(data, cursor_secret),
            memory_mb=settings.commands.memory_mb,
            timeout_seconds=settings.api.timeout_seconds,
            concurrency=settings.concurrency["commands"],
        )
        alarms = Alarms(self, settings, "docs/deploying.md")
        alarms.add(
            "Failing",
            "The function of direct invocation fails or times out. Read its log.",
            self.function.function.metric_errors(period=alarms.period),
        )
        CfnOutput(self, "CommandsFunction", value=self.function.function.function_name)
