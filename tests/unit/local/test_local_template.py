"""The synthesised templates are read and cached until one of their inputs changes."""

from pathlib import Path
from typing import Any

import pytest

from local.errors import LocalStackError
from local.template import Templates, inputs_digest, synthesised

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


def checkout(tmp_path: Path, app: str) -> Path:
    root = tmp_path / "checkout"
    for path, text in {
        "app.py": app,
        "cdk.json": '{"context": {"own": "yes"}}',
        "layers/sharding/python/dynashard/schema.py": "PK = 'PK'",
        "stacks/data.py": "",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


COUNTING_APP = """
import json, os, pathlib
with open("runs", "a") as runs: runs.write("x")
context = json.loads(os.environ["CDK_CONTEXT_JSON"])
template = {"Resources": {"T": {"Type": context["env"], "Properties": {"TableName": context["own"]}}}}
pathlib.Path(os.environ["CDK_OUTDIR"], "S.template.json").write_text(json.dumps(template))
"""


def test_a_second_synthesis_is_read_from_the_cache_until_an_input_changes(tmp_path: Path) -> None:
    root, cache = checkout(tmp_path, COUNTING_APP), tmp_path / "cache"

    first = synthesised(cache, root=root)
    synthesised(cache, root=root)
    runs_before = (root / "runs").read_text()
    (root / "stacks/data.py").write_text("# changed")
    synthesised(cache, root=root)

    assert [resource.name for resource in first.of_type("local")] == ["yes"]
    assert runs_before == "x"
    assert (root / "runs").read_text() == "xx"
    assert [path.name for path in cache.iterdir() if path.is_dir()] == [inputs_digest(root)]


def test_a_failed_synthesis_is_reported_in_one_line_and_not_cached(tmp_path: Path) -> None:
    root = checkout(tmp_path, "import sys; sys.exit('dynashard: environments.local.auth: is required')")

    for _ in range(2):
        with pytest.raises(LocalStackError, match=r"cannot be synthesised: dynashard: environments\.local\.auth"):
            synthesised(tmp_path / "cache", root=root)
