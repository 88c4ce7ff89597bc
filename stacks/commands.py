"""The commands stack: direct invocation of the entities by other services. Who may invoke it is for IAM to say."""

from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secrets
from constructs import Construct

from dynashard import schema
from stacks.alarms import Alarms
from stacks.api import IDEMPOTENCY_ACTIONS, ITEM_ACTIONS, TOPOLOGY_ACTIONS
from stacks.bundling import Bundle
from stacks.data import DataStack
from stacks.function import ENVIRONMENT_NAMES, PythonFunction, allow, layer, metrics_read
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
            layers=[layer(self, f"{name.title()}Layer", bundle, name) for name in ("sharding", "domain")],
            environment={
                "ENVIRONMENT": ENVIRONMENT_NAMES[settings.purpose],
                "TABLE_NAME": data.table.table_name,
                "TOPOLOGY_TABLE": data.topology.table_name,
                "IDEMPOTENCY_TABLE": data.idempotency.table_name,
                "TOPOLOGY_LEASE_SECONDS": str(settings.topology_lease_seconds),
                **settings.growth.variables,
                # One secret for both ways in: a listing that began over REST goes on here, and the other way round.
                "CURSOR_SECRET_ARN": cursor_secret.secret_arn,
            },
            statements=_statements(data, cursor_secret),
            memory_mb=settings.commands.memory_mb,
            timeout_seconds=settings.api.timeout_seconds,
            reserved_concurrency=settings.commands.reserved_concurrency,
        )
        alarms = Alarms(self, settings, "docs/deploying.md")
        alarms.add(
            "Failing",
            "The function of direct invocation fails or times out. Read its log.",
            self.function.function.metric_errors(period=alarms.period),
        )
        CfnOutput(self, "CommandsFunction", value=self.function.function.function_name)


def _statements(data: DataStack, cursor_secret: secrets.ISecret) -> list[iam.PolicyStatement]:
    """What the REST API's function may do, and nothing of the gateway."""
    table = data.table.table_arn
    return [
        allow(ITEM_ACTIONS, [table]),
        allow(["dynamodb:Query"], [f"{table}/index/{slot}" for slot in schema.INDEX_SLOTS]),
        allow(TOPOLOGY_ACTIONS, [data.topology.table_arn]),
        allow(IDEMPOTENCY_ACTIONS, [data.idempotency.table_arn]),
        allow(["secretsmanager:GetSecretValue"], [cursor_secret.secret_arn]),
        # A throttle without a reason is looked up: how busy was the table, and what is its limit?
        metrics_read(),
        allow(["dynamodb:DescribeTable"], [table]),
    ]
