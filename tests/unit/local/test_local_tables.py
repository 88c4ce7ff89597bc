"""CreateTable requests from the template, and the differences of an existing table."""

import copy
from typing import Any

import pytest

from dynashard_local.engine.tables import difference, table_plans
from dynashard_local.template import Templates

pytestmark = pytest.mark.unit

GLOBAL_TABLE: dict[str, Any] = {
    "Type": "AWS::DynamoDB::GlobalTable",
    "DeletionPolicy": "Retain",
    "Properties": {
        "AttributeDefinitions": [
            {"AttributeName": "PK", "AttributeType": "S"},
            {"AttributeName": "SK", "AttributeType": "N"},
            {"AttributeName": "GSI1PK", "AttributeType": "S"},
        ],
        "KeySchema": [
            {"AttributeName": "PK", "KeyType": "HASH"},
            {"AttributeName": "SK", "KeyType": "RANGE"},
        ],
        "BillingMode": "PAY_PER_REQUEST",
        "WriteOnDemandThroughputSettings": {"MaxWriteRequestUnits": 100},
        "StreamSpecification": {"StreamViewType": "NEW_AND_OLD_IMAGES"},
        "SSESpecification": {"SSEEnabled": True},
        "TimeToLiveSpecification": {"AttributeName": "ExpiresAt", "Enabled": True},
        "Replicas": [{"Region": {"Ref": "AWS::Region"}, "PointInTimeRecoverySpecification": {}}],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "GSI1",
                "KeySchema": [{"AttributeName": "GSI1PK", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
                "WriteOnDemandThroughputSettings": {"MaxWriteRequestUnits": 100},
            }
        ],
    },
}
CREATE = {
    "TableName": "Data-Items",
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": GLOBAL_TABLE["Properties"]["AttributeDefinitions"],
    "KeySchema": GLOBAL_TABLE["Properties"]["KeySchema"],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "GSI1",
            "KeySchema": [{"AttributeName": "GSI1PK", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}


def test_a_global_table_keeps_keys_indexes_stream_and_ttl_and_loses_capacity() -> None:
    templates = Templates({"Data": {"Resources": {"Items": GLOBAL_TABLE}}})

    plans = table_plans(templates)

    assert [plan.create for plan in plans] == [CREATE]
    assert plans[0].ttl_attribute == "ExpiresAt"


def test_a_provisioned_table_with_a_name_and_a_switched_off_ttl_is_created_on_demand_without_ttl() -> None:
    properties = {
        "TableName": "named",
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "TimeToLiveSpecification": {"AttributeName": "at", "Enabled": False},
    }
    templates = Templates({"Data": {"Resources": {"T": {"Type": "AWS::DynamoDB::Table", "Properties": properties}}}})

    (plan,) = table_plans(templates)

    assert plan.name == "named"
    assert plan.create["BillingMode"] == "PAY_PER_REQUEST"
    assert "ProvisionedThroughput" not in plan.create
    assert plan.ttl_attribute is None


def test_a_table_with_the_wanted_indexes_or_more_fits() -> None:
    present = copy.deepcopy(CREATE)
    present["GlobalSecondaryIndexes"].append({"IndexName": "GSI9", "KeySchema": [], "Projection": {}})

    assert difference(CREATE, CREATE) == ""
    assert difference(CREATE, present) == ""


def test_a_difference_names_what_does_not_fit() -> None:
    without_index = {**CREATE, "GlobalSecondaryIndexes": []}
    other_keys = {**CREATE, "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}]}
    types = [{**d, "AttributeType": "B"} for d in CREATE["AttributeDefinitions"]]
    projection = copy.deepcopy(CREATE)
    projection["GlobalSecondaryIndexes"][0]["Projection"] = {"ProjectionType": "KEYS_ONLY"}
    index_keys = copy.deepcopy(CREATE)
    index_keys["GlobalSecondaryIndexes"][0]["KeySchema"] = [{"AttributeName": "SK", "KeyType": "HASH"}]

    assert difference(CREATE, without_index) == "index GSI1 is missing"
    assert difference(CREATE, other_keys) == "its keys are PK (S), not PK (S), SK (N)"
    assert (
        difference(CREATE, {**CREATE, "AttributeDefinitions": types})
        == "its keys are PK (B), SK (B), not PK (S), SK (N)"
    )
    assert difference(CREATE, projection) == "index GSI1 projects other attributes"
    assert difference(CREATE, index_keys) == "the keys of index GSI1 are SK (N)"
