"""A key of the customer, and a budget: settings that are off as shipped."""

from typing import Any

import pytest

from dynashard_cdk.settings import SettingsError, load
from tests.infra.templates import KEY, Templates, context, of_type

pytestmark = pytest.mark.infra

STACKS = ("Api", "Changes", "Commands", "Data", "Reshard", "Writer")


def properties(templates: Templates, kind: str) -> list[dict[str, Any]]:
    return [each["Properties"] for stack in STACKS for each in of_type(templates[stack], kind).values()]


def test_tables_queues_logs_and_the_secret_are_encrypted_by_the_key(guarded: Templates) -> None:
    tables = properties(guarded, "AWS::DynamoDB::GlobalTable")

    assert [each["SSESpecification"] for each in tables] == [{"SSEEnabled": True, "SSEType": "KMS"}] * 3
    assert [each["Replicas"][0]["SSESpecification"] for each in tables] == [{"KMSMasterKeyId": KEY}] * 3
    assert {each["KmsMasterKeyId"] for each in properties(guarded, "AWS::SQS::Queue")} == {KEY}
    assert {each["KmsKeyId"] for each in properties(guarded, "AWS::Logs::LogGroup")} == {KEY}
    assert {each["KmsKeyId"] for each in properties(guarded, "AWS::SecretsManager::Secret")} == {KEY}


def test_every_function_may_use_the_key_through_the_services_that_hold_data_and_not_otherwise(
    guarded: Templates,
) -> None:
    for stack in STACKS[:3] + STACKS[4:]:
        functions = of_type(guarded[stack], "AWS::Lambda::Function")
        policies = of_type(guarded[stack], "AWS::IAM::Policy").values()
        using = [
            statement
            for policy in policies
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            if statement["Resource"] == KEY
        ]

        assert len(using) == len(functions)
        for each in using:
            services = {name.split(".")[0] for name in each["Condition"]["StringEquals"]["kms:ViaService"]}
            assert services == {"dynamodb", "secretsmanager", "sqs"}
            assert not {"kms:CreateGrant", "kms:*", "kms:PutKeyPolicy"} & {*each["Action"]}


def test_without_the_setting_nothing_names_a_key(prod: Templates) -> None:
    assert not any("KmsKeyId" in each for each in properties(prod, "AWS::Logs::LogGroup"))
    assert all(each["SqsManagedSseEnabled"] for each in properties(prod, "AWS::SQS::Queue"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encryption_key": "alias/mine"}, "environments.prod.encryption_key: String should match"),
        ({"encryption_key": KEY, "region": "us-east-1"}, "is not a key of us-east-1"),
        ({"encryption_key": KEY}, "encryption_key: tables with a key of yours .* set region to eu-west-1"),
        ({"budget": {"dollars_a_month": 0, "addresses": ["a@example.com"]}}, "budget.dollars_a_month"),
        ({"budget": {"dollars_a_month": 5, "addresses": []}}, "budget.addresses"),
        ({"budget": {"dollars_a_month": 5, "addresses": ["https://example.com"]}}, "budget.addresses.0"),
        ({"budget": {"dollars_a_month": 5, "addresses": ["a@example.com"] * 2}}, "budget: addresses has a value twice"),
        (
            {"budget": {"dollars_a_month": 5, "percents": [80, 80], "addresses": ["a@example.com"]}},
            "budget: percents has a value twice",
        ),
    ],
)
def test_a_wrong_key_or_budget_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load(context("prod", **changes)["environments"], "prod")


def test_the_budget_counts_what_carries_the_tag_of_the_environment(guarded: Templates) -> None:
    [budget] = of_type(guarded["Monitoring"], "AWS::Budgets::Budget").values()
    stated, notified = budget["Properties"]["Budget"], budget["Properties"]["NotificationsWithSubscribers"]

    assert stated["BudgetLimit"] == {"Amount": 500, "Unit": "USD"}
    assert (stated["BudgetName"], stated["TimeUnit"]) == ("dynashard-prod", "MONTHLY")
    assert stated["CostFilters"] == {"TagKeyValue": ["user:dynashard:environment$prod"]}
    assert [(each["Notification"]["NotificationType"], each["Notification"]["Threshold"]) for each in notified] == [
        ("ACTUAL", 80),
        ("ACTUAL", 100),
        ("FORECASTED", 100),
    ]
    assert {each["Address"] for one in notified for each in one["Subscribers"]} == {
        "ops@example.com",
        "cfo@example.com",
    }


def test_there_is_no_budget_as_shipped(prod: Templates) -> None:
    assert of_type(prod["Monitoring"], "AWS::Budgets::Budget") == {}


def test_calls_are_traced_only_if_the_settings_say_so(guarded: Templates, prod: Templates) -> None:
    def traced(templates: Templates) -> set[str | None]:
        functions = properties(templates, "AWS::Lambda::Function")
        return {each["Environment"]["Variables"].get("TRACE_CALLS") for each in functions}

    assert (traced(guarded), traced(prod)) == ({"true"}, {None})
