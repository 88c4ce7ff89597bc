"""The pre-warm stack: optional, and separate, so that a failure rolls back only itself."""

from typing import Any

from aws_cdk import CfnOutput, CfnResource, CustomResource, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from dynashard import schema
from dynashard_cdk.alarms import Alarms, Silence
from dynashard_cdk.function import PythonFunction
from dynashard_cdk.metrics import Metrics, or_zero
from dynashard_cdk.permissions import allow
from dynashard_cdk.prewarm_machine import STEP_SECONDS, definition
from dynashard_cdk.sections import NativePrewarm, ProvisionedPrewarm
from dynashard_cdk.stack import FunctionStack

CLOUDFORMATION_SECONDS = 3600
LONGEST_HOURS = 2
"""How long the table may be provisioned before an alarm rings. A run ends within one hour."""


class PrewarmStack(FunctionStack):
    """Warms the table of an environment while it is deployed."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        prewarm: NativePrewarm | ProvisionedPrewarm,
        topic: sns.ITopic | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(scope, construct_id, purpose="pre-warm", layer_names=["sharding"], **kwargs)
        self.prewarm = prewarm
        self._memory = f"/dynashard/{self.settings.name}/prewarm"
        self._stop_loss = f"dynashard-{self.settings.name}-stop-loss"
        self._step = self._step_function()
        self.machine = self.state_machine(definition(prewarm, self._step.live.function_arn), [self._step])
        if topic is not None:
            self._alarms(Alarms(self, self.settings, topic))
        resource = self._resource(self._entry_function())
        CfnOutput(self, "Outcome", value=resource.get_att_string("Outcome"))
        CfnOutput(self, "ExpectedDollars", value=resource.get_att_string("ExpectedDollars"))

    def _step_function(self) -> PythonFunction:
        limits, prewarm, data = self.settings.table, self.prewarm, self.data
        memory = self._arn("ssm", "parameter", self._memory[1:])
        environment = {
            "TABLE_NAME": data.table.table_name,
            "IDEMPOTENCY_TABLE": data.idempotency.table_name,
            "MEMORY_NAME": self._memory,
            "CEILING_WRITE_UNITS": str(prewarm.ceiling_write_units),
            "DOLLARS_PER_WRITE_UNIT_HOUR": str(prewarm.dollars_per_write_unit_hour),
            "DOLLARS_PER_READ_UNIT_HOUR": str(prewarm.dollars_per_read_unit_hour),
            "MAX_READ_UNITS": str(limits.max_read_units or ""),
            "MAX_WRITE_UNITS": str(limits.max_write_units or ""),
        }
        tables = [data.table.table_arn, data.idempotency.table_arn]
        statements = [
            allow(["dynamodb:DescribeTable", "dynamodb:UpdateTable"], tables),
            allow(["ssm:GetParameter"], [memory]),
        ]
        if data.stop_loss_role is not None:
            environment |= {
                "STOP_LOSS_NAME": self._stop_loss,
                "STOP_LOSS_ROLE_ARN": data.stop_loss_role.role_arn,
            }
            # Only a run that switches the table has something to remember.
            statements += [allow(["ssm:PutParameter"], [memory]), *self._stop_loss_statements(data.stop_loss_role)]
        return self._function("Step", "step", environment, statements)

    def _stop_loss_statements(self, role: iam.IRole) -> list[iam.PolicyStatement]:
        schedule = self._arn("scheduler", "schedule", f"default/{self._stop_loss}")
        handed_over = iam.PolicyStatement(
            actions=["iam:PassRole"],
            resources=[role.role_arn],
            conditions={"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}},
        )
        return [
            allow(["scheduler:CreateSchedule", "scheduler:GetSchedule", "scheduler:UpdateSchedule"], [schedule]),
            handed_over,
        ]

    def _entry_function(self) -> PythonFunction:
        return self._function(
            "Entry",
            "begin",
            {"STATE_MACHINE_ARN": self.machine.state_machine_arn},
            [allow(["states:StartExecution"], [self.machine.state_machine_arn])],
        )

    def _function(
        self, construct_id: str, entry: str, environment: dict[str, str], statements: list[iam.PolicyStatement]
    ) -> PythonFunction:
        return self.python_function(
            construct_id,
            "prewarm",
            f"pre-warm, {entry}",
            entry=entry,
            environment=environment,
            statements=statements,
            memory_mb=256,
            timeout_seconds=STEP_SECONDS - 15,
            concurrency=self.settings.concurrency[f"prewarm.{entry}"],
        )

    def _alarms(self, alarms: Alarms) -> None:
        """Add one alarm for all ends of a run but success, and one for a table that stays provisioned."""
        period = Duration.minutes(5)
        ends = {
            "failed": self.machine.metric_failed(period=period),
            "timedOut": self.machine.metric_timed_out(period=period),
            "aborted": self.machine.metric_aborted(period=period),
        }
        alarms.add(
            "prewarm-failed",
            "A pre-warm has failed.",
            cloudwatch.MathExpression(
                expression=" + ".join(f"FILL({name}, 0)" for name in ends), using_metrics=ends, period=period
            ),
            silence=Silence.CALM,
        )
        if isinstance(self.prewarm, ProvisionedPrewarm) and not self.settings.table.provisioned:
            # An on-demand table has no such metric.
            metrics = Metrics(self.settings, self.data.table)
            provisioned = or_zero(metrics.dynamodb("ProvisionedWriteCapacityUnits", "Maximum", period=period))
            alarms.add(
                "prewarm-not-returned",
                f"The table has been provisioned for {LONGEST_HOURS} hours, and is billed for it.",
                provisioned,
                silence=Silence.CALM,
                periods=LONGEST_HOURS * 12,
                among=LONGEST_HOURS * 12 + 2,
            )

    def _resource(self, entry: PythonFunction) -> CustomResource:
        prewarm = self.prewarm
        index_units = prewarm.index_write_units if isinstance(prewarm, ProvisionedPrewarm) else None
        resource = CustomResource(
            self,
            # CloudFormation refuses another service token for a resource of the same name. "Prewarm" is that of
            # releases before this one, which invoked the function without an alias.
            "Run",
            service_token=entry.live.function_arn,
            properties={
                "Way": prewarm.way,
                "WriteUnits": prewarm.write_units,
                "IndexWriteUnits": index_units or prewarm.write_units,
                "ReadUnits": prewarm.read_units,
                "IdempotencyWriteUnits": prewarm.idempotency_units,
                # Not read: a new index changes the request, so that it is sent again.
                "Indexes": len(schema.INDEX_SLOTS),
            },
        )
        created = resource.node.default_child
        assert isinstance(created, CfnResource)  # noqa: S101 -- a fact about CDK that types cannot say
        created.add_property_override("ServiceTimeout", CLOUDFORMATION_SECONDS)
        # It is deleted before these, and its deletion ends only when the table is on-demand.
        resource.node.add_dependency(self.machine, self._step, entry)
        return resource

    def _arn(self, service: str, resource: str, name: str) -> str:
        return self.format_arn(service=service, resource=resource, resource_name=name)
