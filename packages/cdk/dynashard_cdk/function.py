"""Lambda functions: each has a role and a log of its own, is traced, and runs on Graviton."""

from collections.abc import Mapping, Sequence

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from dynashard.schema import TOPOLOGY_UNDERSTOOD
from dynashard_cdk.bundling import Bundle
from dynashard_cdk.encryption import key_statements
from dynashard_cdk.release import LIVE, RELEASE, UNDERSTANDS, describe
from dynashard_cdk.settings import Purpose, Settings

RUNTIME = lambda_.Runtime.PYTHON_3_13
ARCHITECTURE = lambda_.Architecture.ARM_64

PURPOSES: dict[Purpose, str] = {"local": "local", "development": "dev", "production": "prod"}
"""The purposes of environments as functions know them."""

WAITED_FOR = "Its caller waits for the answer and learns of a failure: there is no event to keep."
"""Why most functions have no queue for events that they could not handle."""


def log_group(scope: Construct, construct_id: str, settings: Settings) -> logs.LogGroup:
    """Add a log with the environment's retention; in production it is kept when its stack is deleted."""
    group = logs.LogGroup(
        scope,
        construct_id,
        removal_policy=RemovalPolicy.RETAIN if settings.production else RemovalPolicy.DESTROY,
    )
    resource = group.node.default_child
    assert isinstance(resource, logs.CfnLogGroup)  # noqa: S101 -- a fact about CDK that types cannot say
    resource.retention_in_days = settings.log_retention_days
    resource.kms_key_id = settings.encryption_key
    return group


def layers(scope: Construct, bundle: Bundle, names: Sequence[str]) -> list[lambda_.LayerVersion]:
    """Add layers of the bundle."""
    return [
        lambda_.LayerVersion(
            scope,
            f"{name.title()}Layer",
            code=bundle.layer(name),
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[ARCHITECTURE],
            description=f"Dynashard {name}",
            license="Apache-2.0",
        )
        for name in names
    ]


class PythonFunction(Construct):
    """A function, its role and its log group.

    Attributes:
        live: the alias that everything invokes. It points at the version of the last release, so code, layers and
            configuration change in one moment.

    Args:
        release: the mark of the release, which the versions carry.
        statements: what the role allows, besides writing the log and tracing.
        concurrency: most runs at once; reserved unless the settings say otherwise.
        unkept: why no queue keeps events that it could not handle.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        release: str,
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
        self._settings = settings
        self.log = log_group(self, "Log", settings)
        self.role = self._role(f"{description} ({settings.name})", statements)
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
                RELEASE: release,
                UNDERSTANDS: ",".join(TOPOLOGY_UNDERSTOOD),
                "LOG_LEVEL": settings.log_level,
                **environment,
            },
            memory_size=memory_mb,
            timeout=Duration.seconds(timeout_seconds),
            reserved_concurrent_executions=concurrency if settings.reserve_concurrency else None,
            # Traced by the service alone: the X-Ray SDK costs a tenth of a second at start and 16% of a call.
            tracing=lambda_.Tracing.ACTIVE,
            log_group=self.log,
            description=description,
            # Versions stay, so that the alias can point at an earlier one. Those of a failed deployment go.
            current_version_options=lambda_.VersionOptions(
                description=describe(release), removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
            ),
        )
        self.live = lambda_.Alias(self, "Live", alias_name=LIVE, version=self.function.current_version)
        self._acknowledge(unkept)

    def _role(self, description: str, statements: Sequence[iam.PolicyStatement]) -> iam.Role:
        # The managed policy for logs allows every log group of the account: a role of our own allows one.
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"), description=description)
        write_log = iam.PolicyStatement(
            actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[self.log.log_group_arn]
        )
        for statement in (write_log, *statements, *key_statements(self, self._settings)):
            role.add_to_policy(statement)
        return role

    def _acknowledge(self, unkept: str) -> None:
        acknowledge(
            self.role,
            "AwsSolutions::AwsSolutions-IAM5[Resource::*]",
            "xray:PutTraceSegments, xray:PutTelemetryRecords, where the growth policy runs cloudwatch:GetMetricData, "
            "and for the watch lambda:ListEventSourceMappings know no resources; every other action names its own.",
        )
        for rule in ("AwsSolutions::AwsSolutions-L1", "Serverless::Serverless-LambdaLatestVersion"):
            acknowledge(
                self.function,
                rule,
                "The bundle carries bytecode and wheels of Python 3.13, the newest whose bytecode can be built on any "
                "machine; it is supported by Lambda until 2029.",
            )
        acknowledge(self.function, "Serverless::Serverless-LambdaDLQ", unkept)


def acknowledge(construct: IConstruct, rule: str, reason: str) -> None:
    """Accept one finding of the template's checks at one construct and what is below it, with the reason."""
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))
