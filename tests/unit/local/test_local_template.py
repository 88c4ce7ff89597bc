"""References of the templates become names and ARNs of the local stack."""

from typing import Any

import pytest

from dynashard_local.errors import LocalStackError
from dynashard_local.template import Templates

pytestmark = pytest.mark.unit

STACKS: dict[str, Any] = {
    "Data": {
        "Parameters": {"Size": {"Type": "Number", "Default": 5}, "Secret": {"Type": "String"}},
        "Resources": {
            "Table": {"Type": "AWS::DynamoDB::GlobalTable", "Properties": {}},
            "Key": {"Type": "AWS::SecretsManager::Secret"},
        },
        "Outputs": {"T": {"Value": {"Ref": "Table"}, "Export": {"Name": {"Fn::Join": [":", ["Data", "Table"]]}}}},
    },
    "Api": {"Resources": {"Function": {"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": "api"}}}},
}


@pytest.mark.parametrize(
    ("stack", "value", "resolved"),
    [
        ("Data", "plain", "plain"),
        ("Data", {"Ref": "Table"}, "Data-Table"),
        ("Data", {"Ref": "Size"}, 5),
        ("Data", {"Ref": "AWS::StackName"}, "Data"),
        ("Data", {"Fn::GetAtt": ["Table", "Arn"]}, "arn:aws:dynamodb:us-east-1:000000000000:table/Data-Table"),
        ("Data", {"Fn::GetAtt": ["Key", "Name"]}, "Data-Key-Name"),
        ("Api", {"Ref": "Function"}, "api"),
        ("Api", {"Fn::ImportValue": "Data:Table"}, "Data-Table"),
        ("Api", {"a": [{"Fn::Join": ["/", [{"Ref": "AWS::Region"}, "x"]]}], "b": 1}, {"a": ["us-east-1/x"], "b": 1}),
    ],
)
def test_references_become_local_names_and_arns(stack: str, value: Any, resolved: Any) -> None:
    assert Templates(STACKS).resolve(stack, value) == resolved


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"Ref": "Nothing"}, "Nothing"),
        ({"Ref": "Secret"}, "Secret"),
        ({"Fn::ImportValue": "Data:Nothing"}, "imports Data:Nothing"),
        ({"Fn::Cidr": ["10.0.0.0/16"]}, "Fn::Cidr"),
    ],
)
def test_a_template_value_without_a_local_meaning_is_named(value: Any, named: str) -> None:
    with pytest.raises(LocalStackError, match=named):
        Templates(STACKS).resolve("Data", value)
