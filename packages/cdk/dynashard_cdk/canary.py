"""Moves the traffic of an alias to a new version in steps, and back if an alarm rings.

The alarms of the environment are in the monitoring stack, which needs this one, so they are named here and not
referred to. Their names are fixed (`alarm_name`). They see all requests, so a fault of a small share can stay below
their thresholds; the alarm that is added here sees the new version alone.
"""

from collections.abc import Sequence

from aws_cdk import (
    CfnCodeDeployLambdaAliasUpdate,
    CfnResource,
    CfnUpdatePolicy,
    Duration,
    Fn,
)
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_iam as iam
from constructs import Construct

from dynashard_cdk.alarms import alarm_name
from dynashard_cdk.deploy_settings import CanarySettings
from dynashard_cdk.function import PythonFunction, acknowledge
from dynashard_cdk.permissions import allow
from dynashard_cdk.release import LIVE
from dynashard_cdk.settings import Settings


class Canary(Construct):
    """Lets CodeDeploy carry out changes of a function's alias.

    Args:
        served: the function.
        name: of the part in the alarm's name, such as `api`.
        judges: names of further alarms that move the traffic back, without the beginning that all have.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        canary: CanarySettings,
        served: PythonFunction,
        name: str,
        judges: Sequence[str],
    ) -> None:
        super().__init__(scope, construct_id)
        self._served = served
        own = self._version_alarm(alarm_name(settings, f"canary-{name}"))
        application = codedeploy.CfnApplication(self, "Application", compute_platform="Lambda")
        steps = codedeploy.CfnDeploymentConfig(
            self, "Steps", compute_platform="Lambda", traffic_routing_config=_routing(canary)
        )
        role = self._role(settings.name)
        group = codedeploy.CfnDeploymentGroup(
            self,
            "Group",
            application_name=application.ref,
            service_role_arn=role.role_arn,
            deployment_config_name=steps.ref,
            deployment_style=codedeploy.CfnDeploymentGroup.DeploymentStyleProperty(
                deployment_type="BLUE_GREEN", deployment_option="WITH_TRAFFIC_CONTROL"
            ),
            alarm_configuration=codedeploy.CfnDeploymentGroup.AlarmConfigurationProperty(
                enabled=True,
                alarms=[
                    codedeploy.CfnDeploymentGroup.AlarmProperty(name=each)
                    for each in (own.alarm_name, *(alarm_name(settings, judge) for judge in judges))
                ],
            ),
            auto_rollback_configuration=codedeploy.CfnDeploymentGroup.AutoRollbackConfigurationProperty(
                enabled=True, events=["DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_ALARM", "DEPLOYMENT_STOP_ON_REQUEST"]
            ),
        )
        # A deployment begins with the role's statements in place.
        group.node.add_dependency(role)
        alias = served.live.node.default_child
        assert isinstance(alias, CfnResource)  # noqa: S101 -- a fact about CDK that types cannot say
        alias.cfn_options.update_policy = CfnUpdatePolicy(
            code_deploy_lambda_alias_update=CfnCodeDeployLambdaAliasUpdate(
                application_name=application.ref, deployment_group_name=group.ref
            )
        )

    def _version_alarm(self, name: str) -> cloudwatch.Alarm:
        """Add an alarm that rings at a failed run of the version that gets the traffic."""
        served = self._served.function
        errors = cloudwatch.Metric(
            namespace="AWS/Lambda",
            metric_name="Errors",
            dimensions_map={
                "FunctionName": served.function_name,
                "Resource": Fn.join("", [served.function_name, ":", LIVE]),
                "ExecutedVersion": served.current_version.version,
            },
            statistic="Sum",
            period=Duration.minutes(1),
        )
        return cloudwatch.Alarm(
            self,
            "Failing",
            alarm_name=name,
            alarm_description="The version that a deployment moves traffic to fails. CodeDeploy moves it back.",
            metric=errors,
            threshold=1,
            evaluation_periods=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            # Errors are only written about requests.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )

    def _role(self, environment: str) -> iam.Role:
        # The managed policy for this allows every function and topic of the account.
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("codedeploy.amazonaws.com"),
            description=f"Moves traffic to a new release ({environment})",
        )
        # Not the alias's own ARN: the alias waits for the group, and the group for this role.
        function = self._served.function.function_arn
        role.add_to_policy(
            allow(
                ["lambda:GetAlias", "lambda:GetProvisionedConcurrencyConfig", "lambda:UpdateAlias"],
                [function, Fn.join("", [function, ":", LIVE])],
            )
        )
        role.add_to_policy(allow(["cloudwatch:DescribeAlarms"], ["*"]))
        acknowledge(
            role,
            "AwsSolutions::AwsSolutions-IAM5[Resource::*]",
            "CodeDeploy asks for the state of alarms by a call that lists them, and that it makes for all at once.",
        )
        return role


def _routing(canary: CanarySettings) -> codedeploy.CfnDeploymentConfig.TrafficRoutingConfigProperty:
    of = codedeploy.CfnDeploymentConfig
    if canary.way == "linear":
        steps = of.TimeBasedLinearProperty(linear_interval=canary.minutes, linear_percentage=canary.percent)
        return of.TrafficRoutingConfigProperty(type="TimeBasedLinear", time_based_linear=steps)
    step = of.TimeBasedCanaryProperty(canary_interval=canary.minutes, canary_percentage=canary.percent)
    return of.TrafficRoutingConfigProperty(type="TimeBasedCanary", time_based_canary=step)
