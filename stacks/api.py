"""The API stack: the gateway that lets in only verified callers, and the function behind it."""

import json
from typing import Any

from aws_cdk import CfnOutput, Duration, Stack
from aws_cdk import aws_apigatewayv2 as gateway
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secrets
from constructs import Construct

from dynashard import schema
from stacks.alarms import Alarms
from stacks.bundling import Bundle
from stacks.data import DataStack
from stacks.function import PythonFunction, acknowledge, allow, layers, log_group, metrics_read
from stacks.settings import Settings

ITEM_ACTIONS = (
    "dynamodb:BatchGetItem",
    "dynamodb:BatchWriteItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
)
"""What the layer calls on the table, transactions included. No Scan: everything it lists is a Query."""
IDEMPOTENCY_ACTIONS = ("dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
TOPOLOGY_ACTIONS = ("dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem")
"""Read views; put the first record of an entity, and resize requests. Only the controller writes anything else."""

METHODS = (
    gateway.HttpMethod.GET,
    gateway.HttpMethod.HEAD,
    gateway.HttpMethod.POST,
    gateway.HttpMethod.PUT,
    gateway.HttpMethod.PATCH,
    gateway.HttpMethod.DELETE,
)

LISTINGS = "/v1/{collection}"
"""Paths of listings and sums: the one segment below the version. A whole path goes before the greedy one."""
LISTING_METHODS = (gateway.HttpMethod.GET, gateway.HttpMethod.HEAD)

DOCUMENTATION = ("/v1/openapi.json", "/v1/docs", "/v1/docs/{proxy+}")
"""Paths of the API's own description."""

MOST_SERVER_ERRORS = 5
"""Answers of 5xx within five minutes before an alarm rings: one may be a hiccup that its caller repeats."""

ACCESS_LOG = {
    "requestId": "$context.requestId",
    "time": "$context.requestTime",
    "ip": "$context.identity.sourceIp",
    "method": "$context.httpMethod",
    "route": "$context.routeKey",
    "path": "$context.path",
    "status": "$context.status",
    "bytes": "$context.responseLength",
    "milliseconds": "$context.responseLatency",
    "integrationMilliseconds": "$context.integrationLatency",
    "integrationError": "$context.integrationErrorMessage",
    "authorizerError": "$context.authorizer.error",
}


class ApiStack(Stack):
    """The REST API of one environment.

    Attributes:
        api: The HTTP API.
        function: The function that answers.
        cursor_secret: The keys that sign cursors.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        data: DataStack,
        bundle: Bundle,
        **kwargs: Any,
    ) -> None:
        super().__init__(scope, construct_id, description=f"Dynashard API ({settings.name})", **kwargs)
        self.settings = settings
        self.cursor_secret = self._cursor_secret()
        self.function = self._function(data, bundle)
        self.api = self._gateway()
        self._routes()
        self._stage()
        self._alarms()
        CfnOutput(self, "ApiUrl", value=f"{self.api.api_endpoint}/v1")
        # The name, not the keys: a caller that lists with them needs the right to read the secret.
        CfnOutput(self, "CursorSecretArn", value=self.cursor_secret.secret_arn)

    def _cursor_secret(self) -> secrets.Secret:
        """Keys are `{"current": ..., "previous": [...]}`: rotating keeps the old one until its cursors are gone."""
        secret = secrets.Secret(
            self,
            "CursorKeys",
            description="Signs list cursors. To rotate: move `current` into `previous` and put a new one.",
            generate_secret_string=secrets.SecretStringGenerator(
                secret_string_template=json.dumps({"previous": []}),
                generate_string_key="current",
                password_length=64,
                exclude_punctuation=True,
            ),
        )
        acknowledge(
            secret,
            "AwsSolutions::AwsSolutions-SMG4",
            "Signs cursors of lists and opens no access; a rotation keeps the old key, as docs/security.md describes.",
        )
        return secret

    def _function(self, data: DataStack, bundle: Bundle) -> PythonFunction:
        settings = self.settings
        return PythonFunction(
            self,
            "Api",
            settings=settings,
            description="Dynashard REST API",
            code=bundle.function("api"),
            handler="functions.api.handler.handler",
            layers=layers(self, bundle),
            environment={
                **data.variables,
                "IDEMPOTENCY_TABLE": data.idempotency.table_name,
                "MAX_QUERIES_PER_REQUEST": str(settings.api.max_queries_per_request),
                "TENANT_CLAIM": settings.auth.tenant_claim,
                "TENANT_PATTERN": settings.auth.tenant_pattern,
                "CURSOR_SECRET_ARN": self.cursor_secret.secret_arn,
            },
            statements=serving_statements(data, self.cursor_secret),
            memory_mb=settings.api.memory_mb,
            timeout_seconds=settings.api.timeout_seconds,
            concurrency=settings.concurrency["api"],
        )

    def _gateway(self) -> gateway.HttpApi:
        auth = self.settings.auth
        cors = self.settings.api.cors
        return gateway.HttpApi(
            self,
            "Gateway",
            api_name=f"dynashard-{self.settings.name}",
            create_default_stage=False,
            # A route is closed unless it says otherwise.
            default_authorizer=authorizers.HttpJwtAuthorizer("Jwt", auth.issuer, jwt_audience=list(auth.audience)),
            cors_preflight=gateway.CorsPreflightOptions(
                allow_origins=list(cors.origins),
                allow_methods=[gateway.CorsHttpMethod[method.value] for method in METHODS],
                allow_headers=[
                    "authorization",
                    "content-type",
                    "idempotency-key",
                    "if-match",
                    "if-none-match",
                    "prefer",
                ],
                expose_headers=[
                    "allow",
                    "etag",
                    "idempotency-replayed",
                    "link",
                    "location",
                    "preference-applied",
                    "retry-after",
                    "x-request-id",
                ],
                max_age=Duration.seconds(cors.max_age_seconds),
            )
            if cors.origins
            else None,
        )

    def _routes(self) -> None:
        integration = integrations.HttpLambdaIntegration("Lambda", self.function.function)
        self.api.add_routes(
            path="/v1/{proxy+}",
            # `ANY` would also catch a browser's preflight and ask it for a token that it never carries.
            methods=list(METHODS) if self.settings.api.cors.origins else [gateway.HttpMethod.ANY],
            integration=integration,
        )
        self._listings = self.api.add_routes(path=LISTINGS, methods=list(LISTING_METHODS), integration=integration)
        self._public("/v1/health", integration, "A monitor has no token, and the answer holds no data.")
        if self.settings.api.public_docs:
            for path in DOCUMENTATION:
                self._public(path, integration, "A browser carries no token to a page, and the page holds no data.")

    def _public(self, path: str, integration: integrations.HttpLambdaIntegration, reason: str) -> None:
        (route,) = self.api.add_routes(
            path=path,
            methods=[gateway.HttpMethod.GET],
            integration=integration,
            authorizer=gateway.HttpNoneAuthorizer(),
        )
        acknowledge(route, "AwsSolutions::AwsSolutions-APIG4", reason)

    def _stage(self) -> None:
        limits = self.settings.api
        stage = gateway.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name="$default",
            auto_deploy=True,
            detailed_metrics_enabled=True,
            throttle=gateway.ThrottleSettings(rate_limit=limits.requests_per_second, burst_limit=limits.burst),
        )
        resource = stage.node.default_child
        assert isinstance(resource, gateway.CfnStage)  # noqa: S101 -- a fact about CDK that types cannot say
        # Listings are refused before single items: their buckets are smaller, and their own.
        throttle = {"ThrottlingRateLimit": limits.listings_per_second, "ThrottlingBurstLimit": limits.listings_burst}
        resource.route_settings = {
            f"{method.value} {LISTINGS}": {"DetailedMetricsEnabled": True, **throttle} for method in LISTING_METHODS
        }
        # A stage cannot have settings of a route that does not exist yet.
        stage.node.add_dependency(*self._listings)
        resource.access_log_settings = gateway.CfnStage.AccessLogSettingsProperty(
            destination_arn=log_group(self, "AccessLog", self.settings).log_group_arn, format=json.dumps(ACCESS_LOG)
        )

    def _alarms(self) -> None:
        function, alarms = self.function.function, Alarms(self, self.settings, "docs/deploying.md")
        alarms.add(
            "Failing",
            "The API's function fails or times out. Read its log.",
            function.metric_errors(period=alarms.period),
        )
        alarms.add(
            "Crowded",
            "Lambda refuses requests: all the concurrency that the API's function may have is taken.",
            function.metric_throttles(period=alarms.period),
        )
        alarms.add(
            "ServerErrors",
            "Callers are answered by 5xx. The function's log names the requests.",
            self.api.metric_server_error(period=alarms.period, statistic="Sum"),
            threshold=MOST_SERVER_ERRORS,
        )


def serving_statements(data: DataStack, cursor_secret: secrets.ISecret) -> list[iam.PolicyStatement]:
    """What a function may do that serves items to callers."""
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
