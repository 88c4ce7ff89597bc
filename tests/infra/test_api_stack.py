"""The API stack: the gateway and its function."""

import json
from pathlib import Path
from typing import Any

import pytest

from dynashard_cdk.settings import SettingsError, load
from tests.infra.templates import SIGN_IN, Templates, context, of_type, statements
from tests.infra.test_monitoring_stack import used

pytestmark = pytest.mark.infra

OPENAPI = Path(__file__).parents[2] / "docs" / "openapi.json"
CLOSED = {"ANY /v1/{proxy+}": "JWT", "GET /v1/{collection}": "JWT", "HEAD /v1/{collection}": "JWT"}
PUBLIC_DOCS = ("GET /v1/openapi.json", "GET /v1/docs", "GET /v1/docs/{proxy+}")
TABLE = "<ExportsOutputFnGetAttTableArn48754775>"


def headers_in(part: Any) -> set[str]:
    """Return the names of the headers that answers have by an OpenAPI document."""
    if isinstance(part, list):
        return {name for each in part for name in headers_in(each)}
    if not isinstance(part, dict):
        return set()
    own = {name.lower() for name in part.get("headers", ())}
    return own.union(*map(headers_in, part.values()))


def routes(templates: Templates) -> dict[str, str]:
    found = of_type(templates["Api"], "AWS::ApiGatewayV2::Route").values()
    return {route["Properties"]["RouteKey"]: route["Properties"]["AuthorizationType"] for route in found}


def function(templates: Templates) -> dict[str, Any]:
    (only,) = of_type(templates["Api"], "AWS::Lambda::Function").values()
    properties: dict[str, Any] = only["Properties"]
    return properties


def stage(templates: Templates) -> dict[str, Any]:
    (only,) = of_type(templates["Api"], "AWS::ApiGatewayV2::Stage").values()
    properties: dict[str, Any] = only["Properties"]
    return properties


@pytest.mark.parametrize("env", ["dev", "prod"])
def test_no_route_is_public_but_health(env: str, request: pytest.FixtureRequest) -> None:
    templates: Templates = request.getfixturevalue(env)

    assert routes(templates) == {**CLOSED, "GET /v1/health": "NONE"}


def test_the_documentation_is_public_if_the_settings_say_so(adjusted: Templates) -> None:
    public = {route for route, authorization in routes(adjusted).items() if authorization == "NONE"}

    assert public == {"GET /v1/health", *PUBLIC_DOCS}


def test_production_refuses_to_publish_the_documentation() -> None:
    given = context("prod", api={"public_docs": True})

    with pytest.raises(SettingsError, match=r"environments\.prod\.api: public_docs is not for production"):
        load(given["environments"], "prod")


def test_the_authorizer_trusts_the_issuer_and_audience_of_the_settings(prod: Templates) -> None:
    (authorizer,) = of_type(prod["Api"], "AWS::ApiGatewayV2::Authorizer").values()

    assert authorizer["Properties"]["AuthorizerType"] == "JWT"
    assert authorizer["Properties"]["JwtConfiguration"] == {
        "Issuer": SIGN_IN["issuer"],
        "Audience": SIGN_IN["audience"],
    }


def test_the_function_may_do_exactly_what_the_layer_calls(dev: Templates) -> None:
    allowed = statements(dev["Api"], "ApiRole")
    queues = {name: allowed.pop(name) for name in list(allowed) if "Intake" in name or "Operations" in name}

    assert list(queues.values()) == [["sqs:SendMessage"]] * 2
    assert allowed == {
        "<ApiLogA9343957.Arn>": ["logs:CreateLogStream", "logs:PutLogEvents"],
        TABLE: [
            "dynamodb:BatchGetItem",
            "dynamodb:ConditionCheckItem",
            "dynamodb:DeleteItem",
            "dynamodb:DescribeTable",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
        ],
        f"{TABLE}/index/GSI1": ["dynamodb:Query"],
        f"{TABLE}/index/GSI2": ["dynamodb:Query"],
        f"{TABLE}/index/GSI3": ["dynamodb:Query"],
        "<ExportsOutputFnGetAttTopologyArn844F100E>": [
            "dynamodb:BatchGetItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
        ],
        "<ExportsOutputFnGetAttIdempotencyArnA57181EA>": [
            "dynamodb:DeleteItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
        ],
        "<CursorKeysBBA42BD5>": ["secretsmanager:GetSecretValue"],
        "*": ["cloudwatch:GetMetricData", "xray:PutTelemetryRecords", "xray:PutTraceSegments"],
    }


def test_no_role_has_a_managed_policy(dev: Templates, prod: Templates) -> None:
    roles = [
        role
        for templates in (dev, prod)
        for stack in ("Data", "Api", "Prewarm")
        for role in of_type(templates[stack], "AWS::IAM::Role").values()
    ]

    assert roles
    assert [role for role in roles if "ManagedPolicyArns" in role["Properties"]] == []


def test_the_function_runs_the_bundle_on_graviton_and_is_traced(dev: Templates) -> None:
    properties = function(dev)

    assert properties["Runtime"] == "python3.13"
    assert properties["Architectures"] == ["arm64"]
    assert properties["Handler"] == "functions.api.handler.handler"
    assert properties["TracingConfig"] == {"Mode": "Active"}
    assert len(properties["Layers"]) == 4


def test_the_function_gets_the_names_of_its_resources(dev: Templates, prod: Templates) -> None:
    variables = function(dev)["Environment"]["Variables"]

    assert {name for name, value in variables.items() if not isinstance(value, str)} == {
        "TABLE_NAME",
        "TOPOLOGY_TABLE",
        "IDEMPOTENCY_TABLE",
        "CURSOR_SECRET_ARN",
        "QUEUE_URL",
        "OPERATIONS_QUEUE_URL",
    }
    assert function(prod)["Environment"]["Variables"]["TENANT_CLAIM"] == SIGN_IN["tenant_claim"]
    assert variables["TENANT_PATTERN"] == "^[A-Za-z0-9_-]{1,64}$"
    assert variables["TOPOLOGY_LEASE_SECONDS"] == "30"
    assert variables["ENVIRONMENT"] == "dev"
    assert function(prod)["Environment"]["Variables"]["ENVIRONMENT"] == "prod"


def test_the_template_contains_no_secret(dev: Templates) -> None:
    (secret,) = of_type(dev["Api"], "AWS::SecretsManager::Secret").values()

    assert "SecretString" not in secret["Properties"]
    assert secret["Properties"]["GenerateSecretString"]["GenerateStringKey"] == "current"
    assert secret["Properties"]["GenerateSecretString"]["PasswordLength"] >= 32


def test_size_and_concurrency_come_from_the_settings(adjusted: Templates) -> None:
    assert (function(adjusted)["MemorySize"], function(adjusted)["ReservedConcurrentExecutions"]) == (512, 26)


def test_the_gateway_throttles_as_the_settings_say(dev: Templates, prod: Templates) -> None:
    limits = [
        (
            stage(t)["DefaultRouteSettings"]["ThrottlingRateLimit"],
            stage(t)["DefaultRouteSettings"]["ThrottlingBurstLimit"],
        )
        for t in (dev, prod)
    ]

    assert limits == [(200, 100), (2000, 1000)]


@pytest.mark.parametrize(("env", "rate", "burst"), [("dev", 50, 25), ("prod", 500, 50)])
def test_listings_have_a_smaller_rate_limit_and_never_use_every_environment(
    env: str, rate: int, burst: int, request: pytest.FixtureRequest
) -> None:
    templates: Templates = request.getfixturevalue(env)
    limits = {"ThrottlingRateLimit": rate, "ThrottlingBurstLimit": burst, "DetailedMetricsEnabled": False}

    assert stage(templates)["RouteSettings"] == {
        "GET /v1/{collection}": limits,
        "HEAD /v1/{collection}": limits,
    }
    assert burst < load(context(env)["environments"], env).api.reserved_concurrency


def test_the_gateway_writes_no_metrics_of_each_route_because_nothing_reads_them(dev: Templates) -> None:
    settings = stage(dev)
    read = {dimensions for namespace, _, dimensions in used(dev) if namespace == "AWS/ApiGateway"}

    assert read == {frozenset({"ApiId"})}
    assert settings["DefaultRouteSettings"]["DetailedMetricsEnabled"] is False
    assert not any(each["DetailedMetricsEnabled"] for each in settings["RouteSettings"].values())


def test_the_stage_is_made_after_the_routes_that_it_limits(dev: Templates) -> None:
    [made] = of_type(dev["Api"], "AWS::ApiGatewayV2::Stage").values()
    limited = [
        name
        for name, route in of_type(dev["Api"], "AWS::ApiGatewayV2::Route").items()
        if route["Properties"]["RouteKey"] in made["Properties"]["RouteSettings"]
    ]

    assert len(limited) == 2
    assert set(limited) <= set(made["DependsOn"])


def test_every_request_is_in_the_access_log_without_tokens_or_bodies(dev: Templates) -> None:
    settings = stage(dev)["AccessLogSettings"]

    assert settings["DestinationArn"]["Fn::GetAtt"][0].startswith("AccessLog")
    assert "$context.requestId" in settings["Format"]
    assert "authorization" not in settings["Format"].lower()


def test_every_log_is_kept_as_long_as_the_settings_say(dev: Templates, prod: Templates) -> None:
    def days(templates: Templates) -> set[int]:
        return {
            group["Properties"]["RetentionInDays"]
            for stack in ("Api", "Prewarm")
            for group in of_type(templates[stack], "AWS::Logs::LogGroup").values()
        }

    assert days(dev) == {14}
    assert days(prod) == {365}


def test_browsers_are_refused_by_default(dev: Templates) -> None:
    (api,) = of_type(dev["Api"], "AWS::ApiGatewayV2::Api").values()

    assert "CorsConfiguration" not in api["Properties"]


def test_an_origin_of_the_settings_is_let_in_and_its_preflight_needs_no_token(adjusted: Templates) -> None:
    (api,) = of_type(adjusted["Api"], "AWS::ApiGatewayV2::Api").values()

    cors = api["Properties"]["CorsConfiguration"]
    assert cors["AllowOrigins"] == ["https://app.example.com"]
    assert "AllowCredentials" not in cors
    assert {"if-match", "prefer"} <= set(cors["AllowHeaders"])
    documented = headers_in(json.loads(OPENAPI.read_text()))
    assert {"etag", "undecodable-items"} <= documented
    assert {*documented, "ratelimit", "ratelimit-policy"} <= set(cors["ExposeHeaders"])
    assert routes(adjusted) == {
        **dict.fromkeys(["GET /v1/health", *PUBLIC_DOCS], "NONE"),
        "GET /v1/{collection}": "JWT",
        "HEAD /v1/{collection}": "JWT",
        **{f"{method} /v1/{{proxy+}}": "JWT" for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")},
    }


def test_environments_start_from_a_snapshot_of_a_published_version_if_the_settings_say_so(adjusted: Templates) -> None:
    [(alias_id, alias)] = of_type(adjusted["Api"], "AWS::Lambda::Alias").items()
    [version_id] = of_type(adjusted["Api"], "AWS::Lambda::Version")
    [integration] = of_type(adjusted["Api"], "AWS::ApiGatewayV2::Integration").values()
    assert function(adjusted)["SnapStart"] == {"ApplyOn": "PublishedVersions"}
    assert alias["Properties"]["FunctionVersion"] == {"Fn::GetAtt": [version_id, "Version"]}
    assert integration["Properties"]["IntegrationUri"] == {"Ref": alias_id}


def test_the_local_stack_refuses_snapshots() -> None:
    local = {"local": {"purpose": "local", "auth": SIGN_IN, "api": {"snap_start": True}}}

    with pytest.raises(SettingsError, match="snap_start is not for the local stack"):
        load(local, "local")


def test_versions_have_no_snapshots_unless_the_settings_say_so(dev: Templates) -> None:
    assert "SnapStart" not in function(dev)


def test_without_item_keys_neither_functions_nor_the_gateway_log_them(dev: Templates, adjusted: Templates) -> None:
    def switches(templates: Templates) -> set[str]:
        return {
            each["Properties"]["Environment"]["Variables"]["LOG_ITEM_KEYS"]
            for stack in ("Api", "Commands", "Writer", "Changes")
            for each in of_type(templates[stack], "AWS::Lambda::Function").values()
        }

    assert (switches(dev), switches(adjusted)) == ({"true"}, {"false"})
    assert "$context.path" in stage(dev)["AccessLogSettings"]["Format"]
    assert "$context.path" not in stage(adjusted)["AccessLogSettings"]["Format"]
