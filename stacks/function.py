"""A Lambda function the way every function here is made: its own role, its own log, traced, on Graviton."""

from collections.abc import Mapping, Sequence

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from stacks.bundling import Bundle
from stacks.settings import Purpose, Settings

RUNTIME = lambda_.Runtime.PYTHON_3_13
ARCHITECTURE = lambda_.Architecture.ARM_64

ENVIRONMENT_NAMES: dict[Purpose, str] = {"local": "local", "development": "dev", "production": "prod"}
"""The environment variables that describe where a function runs."""

WAITED_FOR = "Its caller waits for the answer and learns of a failure: there is no event to keep."
"""Why a function has no queue for events that it could not handle."""

_RETENTION = {
    1: logs.RetentionDays.ONE_DAY,
    3: logs.RetentionDays.THREE_DAYS,
    5: logs.RetentionDays.FIVE_DAYS,
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    60: logs.RetentionDays.TWO_MONTHS,
    90: logs.RetentionDays.THREE_MONTHS,
    120: logs.RetentionDays.FOUR_MONTHS,
    150: logs.RetentionDays.FIVE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
    400: logs.RetentionDays.THIRTEEN_MONTHS,
    545: logs.RetentionDays.EIGHTEEN_MONTHS,
    731: logs.RetentionDays.TWO_YEARS,
    1827: logs.RetentionDays.FIVE_YEARS,
    3653: logs.RetentionDays.TEN_YEARS,
}


def log_group(scope: Construct, construct_id: str, settings: Settings) -> logs.LogGroup:
    """A log with the environment's retention, kept in production when its stack goes."""
    return logs.LogGroup(
        scope,
        construct_id,
        retention=_RETENTION[settings.log_retention_days],
        removal_policy=RemovalPolicy.RETAIN if settings.production else RemovalPolicy.DESTROY,
    )


def layers(
    scope: Construct, bundle: Bundle, names: Sequence[str] = ("sharding", "patterns", "serving", "domain")
) -> list[lambda_.LayerVersion]:
    """Layers of the bundle."""
    return [_layer(scope, bundle, name) for name in names]


def _layer(scope: Construct, bundle: Bundle, name: str) -> lambda_.LayerVersion:
    return lambda_.LayerVersion(
        scope,
        f"{name.title()}Layer",
        code=bundle.layer(name),
        compatible_runtimes=[RUNTIME],
        compatible_architectures=[ARCHITECTURE],
        description=f"Dynashard {name}",
        license="Apache-2.0",
    )


class PythonFunction(Construct):
    """A function and a role that may write its log, be traced, and do what it was granted.

    Attributes:
        function: The Lambda function.
        role: Its role.
        log: Its log group.

    Args:
        concurrency: Most runs at once, reserved for it unless the settings say otherwise.
        unkept: Why no queue keeps events that it could not handle.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        code: lambda_.Code,
        handler: str,
        layers: Sequence[lambda_.ILayerVersion],
        environment: Mapping[str, str],
        statements: Sequence[iam.PolicyStatement],
        memory_mb: int,
        timeout_seconds: int,
        concurrency: int,
        description: str,
        unkept: str = WAITED_FOR,
    ) -> None:
        super().__init__(scope, construct_id)
        self.log = log_group(self, "Log", settings)
        # The managed policy for logs allows every log group of the account: a role of our own allows one.
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=f"{description} ({settings.name})",
        )
        for statement in (
            allow(["logs:CreateLogStream", "logs:PutLogEvents"], [self.log.log_group_arn]),
            *statements,
        ):
            self.role.add_to_policy(statement)
        self.function = lambda_.Function(
            self,
            "Function",
            runtime=RUNTIME,
            architecture=ARCHITECTURE,
            code=code,
            handler=handler,
            layers=list(layers),
            role=self.role,
            environment={
                "LOG_LEVEL": settings.log_level,
                "POWERTOOLS_LOG_LEVEL": settings.log_level,
                "POWERTOOLS_SERVICE_NAME": "dynashard",
                "POWERTOOLS_METRICS_NAMESPACE": "Dynashard",
                **environment,
            },
            memory_size=memory_mb,
            timeout=Duration.seconds(timeout_seconds),
            reserved_concurrent_executions=concurrency if settings.reserve_concurrency else None,
            # Traced by the service alone: the X-Ray SDK costs a tenth of a second at start and 16% of a call.
            tracing=lambda_.Tracing.ACTIVE,
            log_group=self.log,
            description=description,
        )
        self._acknowledge(unkept)

    def _acknowledge(self, unkept: str) -> None:
        acknowledge(
            self.role,
            "AwsSolutions::AwsSolutions-IAM5[Resource::*]",
            "xray:PutTraceSegments, xray:PutTelemetryRecords and, where the growth policy runs, "
            "cloudwatch:GetMetricData know no resources; every other action names its own.",
        )
        for rule in ("AwsSolutions::AwsSolutions-L1", "Serverless::Serverless-LambdaLatestVersion"):
            acknowledge(
                self.function,
                rule,
                "The bundle carries bytecode and wheels of Python 3.13, the newest whose bytecode can be built on any "
                "machine; it is supported by Lambda until 2029.",
            )
        acknowledge(
            self.function,
            "Serverless::Serverless-LambdaDLQ",
            unkept,
        )


def allow(actions: Sequence[str], resources: Sequence[str]) -> iam.PolicyStatement:
    """A statement that allows exactly these actions on exactly these resources."""
    return iam.PolicyStatement(actions=list(actions), resources=list(resources))


def metrics_read() -> iam.PolicyStatement:
    """A statement that allows to read metrics; CloudWatch knows no resources for that."""
    return allow(["cloudwatch:GetMetricData"], ["*"])


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept one finding of the template's checks at one construct and what is below it, with the reason."""
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))
