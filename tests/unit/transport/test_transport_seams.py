"""The replacement of a part of botocore has the same effect. A botocore without this part fails here."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.session import Session

from dynashard.errors import ConfigurationError
from dynashard.transport.client import open_client, replace_serializer
from dynashard.transport.interface import Settings

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
    return open_client(Settings(None, region, *KEYS))


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


def test_a_botocore_without_the_part_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="_serializer"):
        replace_serializer(SimpleNamespace(_endpoint=object()))


@pytest.mark.parametrize("service", ["sts", "sso", "sso-oidc", "signin"])
def test_credential_services_keep_the_parser_of_botocore(service: str) -> None:
    assert Session().get_service_model(service).resolved_protocol != "json"
