"""The commands stack: a function with the permissions of the API's, invoked only through IAM."""

import pytest

from tests.infra.templates import Templates, of_type, short, statements
from tests.roles import Role

pytestmark = pytest.mark.infra


def test_its_role_allows_what_the_role_of_the_api_allows_and_batches_of_writes(dev: Templates) -> None:
    allowed, api = Role.of(dev["Commands"], "CommandsRole"), Role.of(dev["Api"], "ApiRole")

    assert allowed.grants - api.grants == {("Table", "BatchWriteItem")}
    assert allowed.grants >= api.grants
    assert ("CursorKeys", "secretsmanager:GetSecretValue") in allowed.others & api.others


@pytest.mark.parametrize(
    ("stack", "role"), [("Api", "ApiRole"), ("Commands", "CommandsRole"), ("Writer", "WorkerRole")]
)
def test_roles_that_write_in_transactions_may_check_their_outcome(dev: Templates, stack: str, role: str) -> None:
    """They send a transaction with the same token that deletes an item which never exists."""
    allowed = statements(dev[stack], role)
    [table] = [actions for name, actions in allowed.items() if "GetAttTableArn" in name and "/index/" not in name]
    records = [actions for name, actions in allowed.items() if "IdempotencyArn" in name]

    assert {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"} <= {*table}
    assert len(records) == (stack != "Writer")
    assert all({"dynamodb:PutItem", "dynamodb:GetItem"} <= {*actions} for actions in records)


def test_no_resource_policy_allows_invocation(dev: Templates) -> None:
    template = dev["Commands"]

    assert of_type(template, "AWS::Lambda::Permission") == {}
    assert of_type(template, "AWS::Lambda::Url") == {}
    assert not any(role["Properties"].get("ManagedPolicyArns") for role in of_type(template, "AWS::IAM::Role").values())


def test_it_gets_the_names_of_its_resources_and_its_own_name_is_an_output(dev: Templates) -> None:
    template = dev["Commands"]
    [function] = of_type(template, "AWS::Lambda::Function").values()
    variables = function["Properties"]["Environment"]["Variables"]

    assert {name for name, value in variables.items() if not isinstance(value, str)} == {
        "TABLE_NAME",
        "TOPOLOGY_TABLE",
        "IDEMPOTENCY_TABLE",
        "CURSOR_SECRET_ARN",
    }
    assert function["Properties"]["Handler"] == "functions.commands.handler.handler"
    # The name with the alias, as FunctionName of an invocation takes it.
    assert short(template["Outputs"]["CommandsFunction"]["Value"]).endswith(":live")


def test_its_memory_its_share_of_the_account_and_its_strictness_are_settings(
    dev: Templates, adjusted: Templates
) -> None:
    [larger], [shipped] = (of_type(each["Commands"], "AWS::Lambda::Function").values() for each in (adjusted, dev))

    sizes = [
        (each["Properties"]["MemorySize"], each["Properties"].get("ReservedConcurrentExecutions"))
        for each in (larger, shipped)
    ]
    assert sizes == [(512, 30), (1769, None)]
    required = [each["Properties"]["Environment"]["Variables"]["CALLER_REQUIRED"] for each in (larger, shipped)]
    assert required == ["true", "false"]
