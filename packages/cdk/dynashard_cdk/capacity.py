"""Capacity of the table and its indexes: billing, target tracking, and steps by schedule.

The table's resource registers the scalable targets of Application Auto Scaling itself. A template cannot add scheduled
actions to them, because CloudFormation refuses to create a target that exists. So EventBridge Scheduler takes the
steps: it calls RegisterScalableTarget with the bounds of each.
"""

from collections.abc import Iterator
from typing import Any, Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from dynashard_cdk.function import acknowledge
from dynashard_cdk.table_settings import RESOURCES, TABLE, WAYS, Bounds, ScheduleStep, TableSettings, Way

RETRY_SECONDS: Final = 900
"""How long a step is tried. A step that is carried out later could undo the next one."""
RETRIES: Final = 20


def billing(settings: TableSettings) -> dynamodb.Billing:
    """How the table is billed, with its bounds."""
    if not settings.provisioned:
        return dynamodb.Billing.on_demand(
            max_read_request_units=settings.max_read_units, max_write_request_units=settings.max_write_units
        )
    return dynamodb.Billing.provisioned(
        read_capacity=_tracked(settings, "read", TABLE), write_capacity=_tracked(settings, "write", TABLE)
    )


def index_capacity(settings: TableSettings, slot: str) -> dict[str, Any]:
    """Return the properties that give an index its capacity. An index does not inherit that of its table."""
    if not settings.provisioned:
        return {
            "max_read_request_units": settings.max_read_units,
            "max_write_request_units": settings.max_write_units,
        }
    return {f"{way}_capacity": _tracked(settings, way, slot) for way in WAYS}


def _tracked(settings: TableSettings, way: Way, resource: str) -> dynamodb.Capacity:
    bounds = settings.bounds(way, resource)
    return dynamodb.Capacity.autoscaled(
        min_capacity=bounds.lowest,
        max_capacity=bounds.highest,
        # Without it, CloudFormation refuses to change the mode of a table, and to roll such a change back.
        seed_capacity=settings.start(way, resource),
        target_utilization_percent=settings.target(resource),
    )


class CapacitySteps(Construct):
    """The steps of a schedule: each sets the bounds between which target tracking keeps the capacity."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        settings: TableSettings,
        table: dynamodb.ITableV2,
    ) -> None:
        super().__init__(scope, construct_id)
        self._settings = settings
        self._table = table
        self._group_name = f"dynashard-{environment}-capacity"
        self.group = scheduler.CfnScheduleGroup(self, "Group", name=self._group_name)
        self._role = self._scheduler_role(environment)
        for resource in RESOURCES:
            for way in WAYS:
                for number, (step, bounds) in enumerate(settings.steps(way, resource)):
                    self._schedule(f"{resource or 'Table'}{way.capitalize()}s{number}", way, resource, step, bounds)

    def dropped(self, period: Duration) -> cloudwatch.Metric:
        """How many steps were given up."""
        return cloudwatch.Metric(
            namespace="AWS/Scheduler",
            metric_name="InvocationDroppedCount",
            # Not a reference: what other stacks import could not be removed with the schedule.
            dimensions_map={"ScheduleGroup": self._group_name},
            statistic="Sum",
            period=period,
        )

    def _schedule(self, construct_id: str, way: Way, resource: str, step: ScheduleStep, bounds: Bounds) -> None:
        stack = Stack.of(self)
        schedule = scheduler.CfnSchedule(
            self,
            construct_id,
            group_name=self.group.ref,
            schedule_expression=step.at,
            schedule_expression_timezone=self._settings.zone,
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=f"arn:{stack.partition}:scheduler:::aws-sdk:applicationautoscaling:registerScalableTarget",
                role_arn=self._role.role_arn,
                input=stack.to_json_string(
                    {
                        "ServiceNamespace": "dynamodb",
                        "ResourceId": f"table/{self._table.table_name}{f'/index/{resource}' if resource else ''}",
                        "ScalableDimension": f"dynamodb:{'index' if resource else 'table'}:{way.capitalize()}"
                        "CapacityUnits",
                        "MinCapacity": bounds.lowest,
                        "MaxCapacity": bounds.highest,
                    }
                ),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=RETRY_SECONDS, maximum_retry_attempts=RETRIES
                ),
            ),
        )
        # A step that came between the table's change of mode and its scalable targets would register them itself.
        schedule.node.add_dependency(self._table, self._role)

    def _scheduler_role(self, environment: str) -> iam.Role:
        stack = Stack.of(self)
        role = iam.Role(
            self,
            "Role",
            description=f"Changes the table's capacity by schedule ({environment})",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com", conditions={"StringEquals": {"aws:SourceAccount": stack.account}}
            ),
        )
        for statement in self._statements():
            role.add_to_policy(statement)
        acknowledge(
            role,
            "AwsSolutions::AwsSolutions-IAM5[Resource::*]",
            "Application Auto Scaling chooses the names of scalable targets; the condition allows those of DynamoDB.",
        )
        return role

    def _statements(self) -> Iterator[iam.PolicyStatement]:
        yield iam.PolicyStatement(
            actions=["application-autoscaling:RegisterScalableTarget"],
            resources=["*"],
            conditions={"StringEquals": {"application-autoscaling:service-namespace": "dynamodb"}},
        )
        # Application Auto Scaling checks that its caller may change the table.
        yield iam.PolicyStatement(
            actions=["dynamodb:DescribeTable", "dynamodb:UpdateTable"], resources=[self._table.table_arn]
        )
