"""The data stack: tables, and their protection."""

from typing import Any

import pytest

from dynashard import schema
from tests.infra.templates import Templates, maxima, of_type

pytestmark = pytest.mark.infra


def table(templates: Templates, name: str = "Table") -> dict[str, Any]:
    resource: dict[str, Any] = templates["Data"]["Resources"][name]
    return resource


def replica(templates: Templates, name: str = "Table") -> dict[str, Any]:
    (only,) = table(templates, name)["Properties"]["Replicas"]
    assert isinstance(only, dict)
    return only


def test_there_are_three_tables_with_names_that_do_not_change(dev: Templates) -> None:
    tables = of_type(dev["Data"], "AWS::DynamoDB::GlobalTable")

    assert sorted(tables) == ["Idempotency", "Table", "Topology"]


def test_each_table_is_in_one_region(dev: Templates) -> None:
    tables = of_type(dev["Data"], "AWS::DynamoDB::GlobalTable").values()

    assert [each["Properties"]["Replicas"][0]["Region"] for each in tables] == [{"Ref": "AWS::Region"}] * 3
    assert [len(each["Properties"]["Replicas"]) for each in tables] == [1] * 3


def test_the_table_has_the_keys_of_the_stored_format(dev: Templates) -> None:
    properties = table(dev)["Properties"]

    assert properties["KeySchema"] == [
        {"AttributeName": schema.PK, "KeyType": "HASH"},
        {"AttributeName": schema.SK, "KeyType": "RANGE"},
    ]
    assert {entry["AttributeType"] for entry in properties["AttributeDefinitions"]} == {"S"}


def test_every_index_slot_projects_everything(dev: Templates) -> None:
    indexes = table(dev)["Properties"]["GlobalSecondaryIndexes"]

    assert [index["IndexName"] for index in indexes] == list(schema.INDEX_SLOTS)
    for index in indexes:
        assert [part["AttributeName"] for part in index["KeySchema"]] == [
            schema.index_pk(index["IndexName"]),
            schema.index_sk(index["IndexName"]),
        ]
        assert index["Projection"] == {"ProjectionType": "ALL"}


def test_the_side_tables_have_the_keys_their_readers_expect(dev: Templates) -> None:
    keys = {name: table(dev, name)["Properties"]["KeySchema"] for name in ("Topology", "Idempotency")}

    assert keys == {
        "Topology": [{"AttributeName": schema.TOPOLOGY_KEY, "KeyType": "HASH"}],
        "Idempotency": [{"AttributeName": schema.IDEMPOTENCY_KEY, "KeyType": "HASH"}],
    }


def test_items_and_idempotency_records_expire_but_topology_does_not(dev: Templates) -> None:
    expiry = {
        name: table(dev, name)["Properties"].get("TimeToLiveSpecification", {}).get("AttributeName")
        for name in ("Table", "Topology", "Idempotency")
    }

    assert expiry == {"Table": schema.EXPIRES_AT, "Topology": None, "Idempotency": schema.IDEMPOTENCY_TTL}


@pytest.mark.parametrize("name", ["Table", "Topology"])
def test_irreplaceable_tables_can_be_recovered_for_35_days(dev: Templates, name: str) -> None:
    assert replica(dev, name)["PointInTimeRecoverySpecification"] == {
        "PointInTimeRecoveryEnabled": True,
        "RecoveryPeriodInDays": 35,
    }


@pytest.mark.parametrize("name", ["Table", "Topology", "Idempotency"])
def test_every_table_is_on_demand_and_encrypted_with_an_audited_key(dev: Templates, name: str) -> None:
    properties = table(dev, name)["Properties"]

    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["SSESpecification"] == {"SSEEnabled": True, "SSEType": "KMS"}


def test_insights_show_throttled_keys_of_the_table_and_every_index(dev: Templates) -> None:
    throttled = {"Enabled": True, "Mode": "THROTTLED_KEYS"}

    assert replica(dev)["ContributorInsightsSpecification"] == throttled
    assert {
        index["IndexName"]: index["ContributorInsightsSpecification"]
        for index in replica(dev)["GlobalSecondaryIndexes"]
    } == dict.fromkeys(schema.INDEX_SLOTS, throttled)


def test_the_settings_limit_on_demand_throughput_of_the_table_and_of_every_index(
    dev: Templates, prod: Templates
) -> None:
    names = ("Table", *schema.INDEX_SLOTS)

    assert maxima(dev) == dict.fromkeys(names, (4000, 4000))
    assert maxima(prod) == dict.fromkeys(names, (30_000, 30_000))


@pytest.mark.parametrize("name", ["Table", "Topology", "Idempotency"])
def test_production_keeps_and_protects_its_tables_and_development_does_not(
    dev: Templates, prod: Templates, name: str
) -> None:
    assert table(prod, name)["DeletionPolicy"] == table(prod, name)["UpdateReplacePolicy"] == "Retain"
    assert replica(prod, name)["DeletionProtectionEnabled"] is True
    assert table(dev, name)["DeletionPolicy"] == table(dev, name)["UpdateReplacePolicy"] == "Delete"
    assert replica(dev, name)["DeletionProtectionEnabled"] is False


def test_no_table_declares_a_warm_throughput(dev: Templates) -> None:
    tables = of_type(dev["Data"], "AWS::DynamoDB::GlobalTable")

    assert [name for name, resource in tables.items() if "WarmThroughput" in str(resource)] == []
