"""A deployment in operation: stored items, logs, metrics, and cursors signed with the keys of the secret."""

import json
from collections.abc import Iterator
from secrets import token_urlsafe
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError
from xxhash import xxh64_intdigest

from dynashard import schema
from tests.e2e.deployment import PREFIX, Deployment
from tests.waiting import until

pytestmark = pytest.mark.e2e

ADA = {"email": "ada@example.com", "display_name": "Ada"}
EVERYTHING = {"KeyConditionExpression": "id = :id", "ExpressionAttributeValues": {":id": {"S": "1"}}}


def test_the_function_runs_on_its_layers_as_the_template_says(deployment: Deployment) -> None:
    function = deployment.resource("Api", "AWS::Lambda::Function")
    versions = deployment.resources("Api", "AWS::Lambda::LayerVersion")

    configuration = deployment.aws.client("lambda").get_function_configuration(FunctionName=function)

    assert [name[:-8] for name in sorted(versions)] == [
        "DomainLayer",
        "PatternsLayer",
        "ServingLayer",
        "ShardingLayer",
    ]
    assert sorted(layer["Arn"] for layer in configuration["Layers"]) == sorted(versions.values())
    assert (configuration["Runtime"], configuration["Architectures"]) == ("python3.13", ["arm64"])
    assert configuration["TracingConfig"] == {"Mode": "Active"}
    assert configuration["Environment"]["Variables"]["TABLE_NAME"] == deployment.table
    assert "CURSOR_KEYS" not in configuration["Environment"]["Variables"]


def test_a_user_is_stored_under_its_calculated_shard(deployment: Deployment) -> None:
    deployment.tenant("stored").post("/v1/users", json={**ADA, "id": "77", "department": "eng"})
    shard = xxh64_intdigest(b"user.v1.User:stored:77") & 15
    key = {schema.PK: {"S": f"user.v1.User:stored:{shard}"}, schema.SK: {"S": "77"}}

    stored = deployment.aws.client("dynamodb").get_item(TableName=deployment.table, Key=key)["Item"]

    assert stored[schema.TYPE] == {"S": "user.v1.User"}
    assert stored["email"] == {"S": "ada@example.com"}
    assert stored[schema.index_pk("GSI1")] == {"S": "user.v1.User:stored"}
    assert stored[schema.index_sk("GSI1")] == {"S": "ada@example.com"}
    assert schema.index_pk("GSI3") not in stored


def written_by(deployment: Deployment, request_id: str) -> list[dict[str, Any]]:
    """Return the log lines of the function about a request, once there are any: answers do not wait for them."""
    function = deployment.resource("Api", "AWS::Lambda::Function")
    configuration = deployment.aws.client("lambda").get_function_configuration(FunctionName=function)
    about = {"logGroupName": configuration["LoggingConfig"]["LogGroup"], "filterPattern": f'"{request_id}"'}
    events: list[Any] = []

    def found() -> bool:
        events[:] = deployment.aws.client("logs").filter_log_events(**about)["events"]
        return bool(events)

    until(found)
    return [json.loads(event["message"]) for event in events]


def test_a_request_leaves_one_line_with_its_metrics(deployment: Deployment) -> None:
    client = deployment.tenant("logged")
    # The first request may also create a record of the topology.
    client.get("/v1/users", params={"limit": 5})
    answered = client.get("/v1/users", params={"limit": 5})

    [log] = written_by(deployment, answered.headers["x-request-id"])

    assert (log["level"], log["message"], log["service"]) == ("INFO", "request", "dynashard-api")
    assert (log["tenant"], log["method"], log["route"], log["status"]) == ("logged", "GET", "/v1/users", 200)
    assert "code" not in log
    assert log["QueriesPerPage"] == [16]
    # A new environment, or one whose lease has ended, also reads records of the topology.
    more = log["requests"] - 16
    assert more in {0, 1, 2}
    assert log["read_units"] == log["ReadUnits"][0]
    assert 8 <= log["read_units"] <= 8 + 2 * more
    assert log["environment"] == "dev"
    (directive,) = log["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Dynashard"
    assert (log["ItemsListed"], log["ListingReadUnits"]) == ([0], [8])
    requests = {"ReadUnits", "WriteUnits", "Latency", "ServerErrors", "OutcomeUnknown"}
    pages = {"QueriesPerPage", "ItemsListed", "ListingReadUnits"}
    assert {each["Name"] for each in directive["Metrics"]} == requests | pages


def test_logs_name_the_item_and_the_problem_but_no_token(deployment: Deployment) -> None:
    client = deployment.tenant("logged")
    refused = client.get("/v1/users/a-secret-id")

    written = written_by(deployment, refused.headers["x-request-id"])

    assert [written[0][name] for name in ("route", "status", "code")] == ["/v1/users/{id}", 404, "not_found"]
    assert written[0]["item"] == "users/a-secret-id"
    assert client.headers["authorization"].rpartition(".")[2] not in json.dumps(written)


class CursorSecret:
    """The deployed secret, and a function that has to read it anew."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment, self._aws = deployment, deployment.aws
        self._function = deployment.resource("Api", "AWS::Lambda::Function")
        self._secret = deployment.resource("Api", "AWS::SecretsManager::Secret")

    def read(self) -> dict[str, Any]:
        secret: dict[str, Any] = json.loads(
            self._aws.client("secretsmanager").get_secret_value(SecretId=self._secret)["SecretString"]
        )
        return secret

    def put(self, current: str, previous: list[str]) -> None:
        """Store keys, and make the next request start a new execution environment."""
        text = json.dumps({"current": current, "previous": previous})
        self._aws.client("secretsmanager").put_secret_value(SecretId=self._secret, SecretString=text)
        configured = self._aws.client("lambda").get_function_configuration(FunctionName=self._function)
        self._deployment.configure(self._function, MemorySize=configured["MemorySize"] + 1)


@pytest.fixture
def secret(deployment: Deployment) -> Iterator[CursorSecret]:
    secret = CursorSecret(deployment)
    before = secret.read()
    yield secret
    secret.put(**before)


def test_cursors_are_signed_with_the_generated_secret_and_outlive_its_rotation(
    deployment: Deployment, secret: CursorSecret
) -> None:
    client = deployment.tenant("rotated")
    for number in range(3):
        assert client.post("/v1/users", json={**ADA, "id": str(number)}).status_code == 201
    generated, rotated = secret.read(), token_urlsafe(48)

    def page(cursor: str | None = None) -> httpx.Response:
        following = {} if cursor is None else {"cursor": cursor}
        return client.get("/v1/users", params={"limit": "1", "order": "ordered", **following})

    old = page().json()["cursor"]
    secret.put(rotated, [generated["current"]])
    after_rotation = page(old)
    new = page().json()["cursor"]
    secret.put(rotated, [])
    without_the_old_key = page(old)

    assert (len(generated["current"]), generated["previous"]) == (64, [])
    assert [item["id"] for item in after_rotation.json()["items"]] == ["1"]
    assert (without_the_old_key.status_code, without_the_old_key.json()["code"]) == (400, "invalid_cursor")
    assert [item["id"] for item in page(new).json()["items"]] == ["1"]


def test_the_function_may_do_only_what_its_role_allows(deployment: Deployment) -> None:
    function = deployment.resource("Api", "AWS::Lambda::Function")
    role = deployment.aws.client("lambda").get_function_configuration(FunctionName=function)["Role"]
    acting = deployment.acting_as(role)
    table, secret = deployment.table, deployment.resource("Api", "AWS::SecretsManager::Secret")

    attempts: list[tuple[str, str, dict[str, Any]]] = [
        ("dynamodb", "scan", {"TableName": table}),
        ("dynamodb", "delete_table", {"TableName": table}),
        ("dynamodb", "query", {"TableName": deployment.outputs[f"{PREFIX}-Data"]["IdempotencyName"], **EVERYTHING}),
        ("dynamodb", "delete_item", {"TableName": deployment.outputs[f"{PREFIX}-Data"]["TopologyName"], "Key": {}}),
        ("secretsmanager", "put_secret_value", {"SecretId": secret, "SecretString": "{}"}),
        ("lambda", "list_functions", {}),
        ("s3", "list_buckets", {}),
    ]

    for service, operation, parameters in attempts:
        with pytest.raises(ClientError, match="not authorized to perform"):
            getattr(acting(service), operation)(**parameters)
    assert acting("secretsmanager").get_secret_value(SecretId=secret)["SecretString"]
