"""The API stack: a gateway that admits verified callers only, and the function behind it."""

import json
from typing import Any

from aws_cdk import CfnOutput, Duration
from aws_cdk import aws_apigatewayv2 as gateway
from aws_cdk import aws_apigatewayv2_authorizers as authorizers
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_secretsmanager as secrets
from constructs import Construct

from dynashard_cdk.canary import Canary
from dynashard_cdk.data import DataStack
from dynashard_cdk.encryption import customer_key
from dynashard_cdk.function import PythonFunction, acknowledge, log_group
from dynashard_cdk.permissions import ITEM_ACTIONS
from dynashard_cdk.sections import AuthSettings
from dynashard_cdk.settings import Settings
from dynashard_cdk.stack import FunctionStack

METHODS = (
    gateway.HttpMethod.GET,
    gateway.HttpMethod.HEAD,
    gateway.HttpMethod.POST,
    gateway.HttpMethod.PUT,
    gateway.HttpMethod.PATCH,
    gateway.HttpMethod.DELETE,
)

LISTINGS = "/v1/{collection}"
"""Paths of listings and sums, with one segment below the version. The gateway prefers them to the greedy path."""
LISTING_METHODS = (gateway.HttpMethod.GET, gateway.HttpMethod.HEAD)

DOCUMENTATION = ("/v1/openapi.json", "/v1/docs", "/v1/docs/{proxy+}")
"""Paths of the API's own description."""

JUDGES = ("function-failing-api", "server-errors", "server-errors-rate", "latency", "outcome-unknown")
"""Alarms that move the API's traffic back to the release before."""

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


class ApiStack(FunctionStack):
    """The REST API of one environment.

    Attributes:
        access_log: the log of the gateway.
    """

    def __init__(self, scope: Construct, construct_id: str, **kwargs: Any) -> None:
        super().__init__(scope, construct_id, purpose="API", **kwargs)
        self.cursor_secret = self._cursor_secret()
        self.function = self._function()
        self.api = self._gateway()
        self._routes()
        self.access_log = self._stage()
        if self.settings.deploy.canary is not None:
            Canary(
                self,
                "Canary",
                settings=self.settings,
                canary=self.settings.deploy.canary,
                served=self.function,
                name="api",
                judges=JUDGES,
            )
        CfnOutput(self, "ApiUrl", value=f"{self.api.api_endpoint}/v1")
        # The name, not the keys: reading them needs the right to read the secret.
        CfnOutput(self, "CursorSecretArn", value=self.cursor_secret.secret_arn)

    def _cursor_secret(self) -> secrets.Secret:
        """Keys are `{"current": ..., "previous": [...]}`: a rotation keeps the old key for its cursors."""
        secret = secrets.Secret(
            self,
            "CursorKeys",
            encryption_key=customer_key(self, self.settings),
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

    def _function(self) -> PythonFunction:
        settings = self.settings
        made = self.python_function(
            "Api",
            "api",
            "REST API",
            environment={
                **serving_variables(settings, self.data, self.cursor_secret),
                "TENANT_CLAIM": settings.auth.tenant_claim,
                "SCOPE_CLAIM": settings.auth.scope_claim,
            },
            statements=self.data.allow_serving(self.cursor_secret, ITEM_ACTIONS),
            memory_mb=settings.api.memory_mb,
            timeout_seconds=settings.api.timeout_seconds,
            concurrency=settings.concurrency["api"],
        )
        if settings.api.snap_start:
            resource = made.function.node.default_child
            assert isinstance(resource, lambda_.CfnFunction)  # noqa: S101 -- a fact about CDK that types cannot say
            resource.snap_start = lambda_.CfnFunction.SnapStartProperty(apply_on="PublishedVersions")
        return made

    def _gateway(self) -> gateway.HttpApi:
        cors = self.settings.api.cors
        return gateway.HttpApi(
            self,
            "Gateway",
            api_name=f"dynashard-{self.settings.name}",
            create_default_stage=False,
            # A route needs a token unless it says otherwise.
            default_authorizer=self._authorizer(),
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
                    "ratelimit",
                    "ratelimit-policy",
                    "retry-after",
                    "undecodable-items",
                    "www-authenticate",
                    "x-request-id",
                ],
                max_age=Duration.seconds(cors.max_age_seconds),
            )
            if cors.origins
            else None,
        )

    def _authorizer(self) -> authorizers.HttpJwtAuthorizer:
        auth, pool = self.settings.auth, self.data.user_pool
        if isinstance(auth, AuthSettings):
            return authorizers.HttpJwtAuthorizer("Jwt", auth.issuer, jwt_audience=list(auth.audience))
        assert pool is not None  # noqa: S101 -- the data stack has it by the same setting
        return authorizers.HttpJwtAuthorizer("Jwt", pool.issuer, jwt_audience=[pool.audience])

    def _routes(self) -> None:
        integration = integrations.HttpLambdaIntegration("Lambda", self.function.live)
        self.api.add_routes(
            path="/v1/{proxy+}",
            # `ANY` would also match preflight requests, which carry no token.
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

    def _stage(self) -> logs.LogGroup:
        limits = self.settings.api
        stage = gateway.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name="$default",
            auto_deploy=True,
            detailed_metrics_enabled=False,
            throttle=gateway.ThrottleSettings(rate_limit=limits.requests_per_second, burst_limit=limits.burst),
        )
        resource = stage.node.default_child
        assert isinstance(resource, gateway.CfnStage)  # noqa: S101 -- a fact about CDK that types cannot say
        # Listings have smaller buckets of their own, so they are refused before single items.
        limited = {
            # Metrics of each route cost money, and nothing reads them: the logs have the routes.
            "DetailedMetricsEnabled": False,
            "ThrottlingRateLimit": limits.listings_per_second,
            "ThrottlingBurstLimit": limits.listings_burst,
        }
        resource.route_settings = {f"{method.value} {LISTINGS}": limited for method in LISTING_METHODS}
        # A stage cannot have settings for a route that does not exist yet.
        stage.node.add_dependency(*self._listings)
        log = log_group(self, "AccessLog", self.settings)
        resource.access_log_settings = gateway.CfnStage.AccessLogSettingsProperty(
            destination_arn=log.log_group_arn, format=json.dumps(self._access_log())
        )
        return log

    def _access_log(self) -> dict[str, str]:
        """Return the members of the access log, without the path if logs are to name no items."""
        return {name: value for name, value in ACCESS_LOG.items() if name != "path" or self.settings.logs.item_keys}


def serving_variables(settings: Settings, data: DataStack, cursor_secret: secrets.ISecret) -> dict[str, str]:
    """The environment variables of a function that serves items to callers."""
    return {
        **data.variables,
        "IDEMPOTENCY_TABLE": data.idempotency.table_name,
        "MAX_QUERIES_PER_REQUEST": str(settings.api.max_queries_per_request),
        "TENANT_PATTERN": settings.auth.tenant_pattern,
        # One secret for REST and direct invocation: either continues a listing that began over the other.
        "CURSOR_SECRET_ARN": cursor_secret.secret_arn,
    }
