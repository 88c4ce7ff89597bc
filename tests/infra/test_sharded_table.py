"""`ShardedTable` in a stack that is not ours: the tables of the library, and a grant of exactly what it calls."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dynashard import schema
from tests.infra.templates import ROOT, of_type, short
from tests.shared import made_once

pytestmark = pytest.mark.infra


def shop(outdir: Path) -> None:
    """Synthesise a stack with two tables, one of them protected, and a stack with a table that has a key of its own."""
    # Loading CDK takes seconds of each process: of those that synthesise, not of all that collect tests.
    from aws_cdk import App, Environment, Stack  # noqa: PLC0415
    from aws_cdk import aws_dynamodb as dynamodb  # noqa: PLC0415
    from aws_cdk import aws_iam as iam  # noqa: PLC0415
    from aws_cdk import aws_kms as kms  # noqa: PLC0415

    from dynashard_cdk.sharded_table import ShardedTable  # noqa: PLC0415

    app = App(outdir=str(outdir), analytics_reporting=False)
    stack = Stack(app, "Shop")
    orders = ShardedTable(stack, "Orders", protect=True)
    carts = ShardedTable(stack, "Carts")
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    orders.allow_items(role)
    for tables in (orders, carts):
        for name, value in tables.variables.items():
            stack.export_value(value, name=f"{tables.node.id}-{name}".replace("_", "-"))
    billing = Stack(app, "Billing", env=Environment(region="eu-west-1"))
    key = dynamodb.TableEncryptionV2.customer_managed_key(kms.Key(billing, "Key"))
    biller = iam.Role(billing, "Biller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    ShardedTable(billing, "Invoices", encryption=key).allow_items(biller)
    app.synth()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "sharded-table", shop)


@pytest.fixture(scope="module")
def template(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "Shop.template.json").read_text())
    return found


def test_one_stack_can_have_several(template: dict[str, Any]) -> None:
    tables = of_type(template, "AWS::DynamoDB::GlobalTable")

    assert [name[:-8] for name in sorted(tables)] == ["CartsTable", "CartsTopology", "OrdersTable", "OrdersTopology"]
    assert {output["Export"]["Name"] for output in template["Outputs"].values()} == {
        f"{tables}-{name}" for tables in ("Orders", "Carts") for name in ("TABLE-NAME", "TOPOLOGY-TABLE")
    }


@pytest.mark.parametrize(("of", "kept"), [("Orders", True), ("Carts", False)])
def test_protected_tables_outlive_their_stack(template: dict[str, Any], of: str, kept: bool) -> None:  # noqa: FBT001
    tables = [each for name, each in of_type(template, "AWS::DynamoDB::GlobalTable").items() if name.startswith(of)]

    assert [each["DeletionPolicy"] for each in tables] == ["Retain" if kept else "Delete"] * 2
    assert [each["Properties"]["Replicas"][0]["DeletionProtectionEnabled"] for each in tables] == [kept] * 2


def test_both_tables_can_be_restored_and_have_a_stream(template: dict[str, Any]) -> None:
    for table in of_type(template, "AWS::DynamoDB::GlobalTable").values():
        (replica,) = table["Properties"]["Replicas"]

        assert replica["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
        assert table["Properties"]["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_items_are_allowed_on_the_one_table_its_indexes_and_its_topology(template: dict[str, Any]) -> None:
    (policy,) = of_type(template, "AWS::IAM::Policy").values()
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    flat = [
        short(resource)
        for statement in statements
        for resource in (statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]])
    ]

    assert all("Orders" in resource for resource in flat)
    assert [resource.rpartition("/")[2] for resource in flat if "/index/" in resource] == list(schema.INDEX_SLOTS)
    assert {action for statement in statements for action in statement["Action"]} >= {"dynamodb:BatchWriteItem"}
    assert "dynamodb:Scan" not in json.dumps(statements)


def test_who_may_use_items_may_use_their_key_through_dynamodb_alone(folder: Path) -> None:
    billing = json.loads((folder / "Billing.template.json").read_text())
    [key] = of_type(billing, "AWS::KMS::Key")
    (policy,) = of_type(billing, "AWS::IAM::Policy").values()
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    [using] = [each for each in statements if key in json.dumps(each["Resource"])]

    assert {"kms:Decrypt", "kms:Encrypt"} <= {*using["Action"]}
    assert not {"kms:*", "kms:CreateGrant"} & {*using["Action"]}
    assert using["Condition"] == {"StringEquals": {"kms:ViaService": ["dynamodb.eu-west-1.amazonaws.com"]}}


def test_capacity_of_an_index_that_does_not_exist_is_refused() -> None:
    from aws_cdk import App, Stack  # noqa: PLC0415 - as in `shop`

    from dynashard_cdk.sharded_table import ShardedTable  # noqa: PLC0415 - as in `shop`

    with pytest.raises(ValueError, match="index_capacity names GSI4; there are GSI1, GSI2, GSI3"):
        ShardedTable(Stack(App(), "Shop"), "Orders", index_capacity={"GSI4": {"max_write_request_units": 5}})


def test_the_page_of_own_tables_names_the_actions_of_the_roles() -> None:
    from dynashard_cdk import permissions as may  # noqa: PLC0415 - as in `shop`

    items, counts = page_of_permissions()

    assert items["reader"] | items["reader, while counts change"] == actions(may.ITEM_ACTIONS)
    assert items["writer"] == actions(may.BATCH_ACTIONS)
    assert items["resharder"] == actions([*may.MOVE_ACTIONS, *may.CHECK_ACTIONS, "dynamodb:DescribeTable"])
    assert counts["reader"] == counts["writer"] == actions(may.TOPOLOGY_ACTIONS)
    assert counts["resharder"] == actions(may.CONTROLLER_ACTIONS)


def actions(listed: Sequence[str]) -> set[str]:
    return {each.removeprefix("dynamodb:") for each in listed}


def page_of_permissions() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the actions on items and on shard counts in docs/tables.md, by the role."""
    text = (ROOT / "docs/tables.md").read_text().partition("## Permissions")[2].partition("## Cost")[0]
    rows = [line.split("|")[1:4] for line in text.splitlines() if line.startswith("| ")][1:]
    items, counts = ({row[0].strip(): set(re.findall(r"`(\w+)`", row[n])) for row in rows} for n in (1, 2))
    return items, counts
