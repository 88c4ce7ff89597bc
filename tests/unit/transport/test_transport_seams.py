"""Each replacement of a part of botocore has the same effect. A botocore without these parts fails here."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.session import Session

from dynashard.errors import ConfigurationError
from dynashard.transport.client import open_client
from dynashard.transport.interface import Settings
from dynashard.transport.seams import replace_parts

pytestmark = pytest.mark.unit

KEYS = ("access", "secret")
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("GetItem", {"TableName": "users", "Key": {"PK": {"S": "ä"}}, "ConsistentRead": True}),
    (
        "Query",
        {
            "TableName": "users",
            "KeyConditionExpression": "PK = :pk",
            "ExpressionAttributeValues": {":pk": {"S": 'quoted "text"\u2028'}, ":n": {"N": "1.50"}},
            "Limit": 3,
        },
    ),
    ("DescribeTable", {"TableName": "users"}),
]


def botocores_own(region: str) -> Any:
    return Session().create_client(
        "dynamodb",
        region_name=region,
        aws_access_key_id=KEYS[0],
        aws_secret_access_key=KEYS[1],
    )


def ours(region: str) -> Any:
    return open_client(Settings(None, region, *KEYS)).client


@pytest.mark.parametrize(("operation", "request_"), REQUESTS)
def test_a_request_is_built_as_botocore_builds_it(operation: str, request_: dict[str, Any]) -> None:
    theirs, own = botocores_own("eu-west-1"), ours("eu-west-1")
    model = theirs.meta.service_model.operation_model(operation)

    expected = theirs._serializer.serialize_to_request(request_, model)
    built = own._serializer.serialize_to_request(request_, model)

    assert json.loads(built.pop("body")) == json.loads(expected.pop("body"))
    assert {name.lower(): value for name, value in built.pop("headers").items()} == {
        name.lower(): value for name, value in expected.pop("headers").items()
    }
    assert built == {name: expected[name] for name in built}


@pytest.mark.parametrize("region", ["us-east-1", "eu-west-1", "cn-north-1", "us-gov-west-1", "il-central-1"])
def test_the_endpoint_is_the_one_that_botocore_resolves(region: str) -> None:
    theirs, own = botocores_own(region), ours(region)
    model = theirs.meta.service_model.operation_model("GetItem")

    expected = theirs._ruleset_resolver.construct_endpoint(model, {"TableName": "users"}, {})
    first = own._ruleset_resolver.construct_endpoint(model, {"TableName": "users"}, {})
    second = own._ruleset_resolver.construct_endpoint(model, {"TableName": "others"}, {})

    assert first.url == expected.url == own.meta.endpoint_url
    assert first.headers == expected.headers
    assert second is first


@pytest.mark.parametrize("missing", ["_serializer", "_ruleset_resolver"])
def test_a_botocore_without_the_parts_is_refused(missing: str) -> None:
    parts = {"_serializer": object(), "_ruleset_resolver": object()}
    del parts[missing]

    with pytest.raises(ConfigurationError, match=missing):
        replace_parts(SimpleNamespace(**parts))


@pytest.mark.parametrize("service", ["sts", "sso", "sso-oidc", "signin"])
def test_credential_services_keep_the_parser_of_botocore(service: str) -> None:
    assert Session().get_service_model(service).resolved_protocol != "json"
