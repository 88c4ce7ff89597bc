"""The functions of the template in the local stack."""

import json
from pathlib import Path
from typing import Any

import pytest

from dynashard_local.errors import LocalStackError
from dynashard_local.functions.specs import cursor_key, function_specs
from dynashard_local.settings import Settings
from dynashard_local.template import Templates

pytestmark = pytest.mark.unit


def templates_of(**properties: Any) -> Templates:
    function = {
        "Handler": "functions.api.handler.handler",
        "Timeout": 29,
        "MemorySize": 1769,
        "Environment": {
            "Variables": {"TABLE_NAME": {"Ref": "Table"}, "CURSOR_SECRET_ARN": {"Ref": "Keys"}, "TENANT_CLAIM": "tid"}
        },
    }
    return Templates(
        {
            "S": {
                "Resources": {
                    "F": {"Type": "AWS::Lambda::Function", "Properties": {**function, **properties}},
                    "Other": {"Type": "AWS::Lambda::Function", "Properties": {"Handler": "index.handler"}},
                    "Table": {"Type": "AWS::DynamoDB::GlobalTable", "Properties": {"TableName": "items"}},
                    "Keys": {"Type": "AWS::SecretsManager::Secret"},
                }
            }
        }
    )


def test_a_function_runs_with_the_variables_of_the_template_and_local_replacements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "mine")
    settings = Settings(topology_lease_seconds=5, growth_mode="off", transport="direct", caller_required=True)

    (spec,) = function_specs(
        templates_of(), ["S-F"], settings=settings, endpoint="http://127.0.0.1:8001", cursor_key="secret"
    )

    assert (spec.name, spec.handler) == ("S-F", "functions.api.handler:handler")
    assert (spec.timeout_seconds, spec.memory_mb) == (29, 1769)
    assert spec.environment["TABLE_NAME"] == "items"
    assert spec.environment["TENANT_CLAIM"] == "tid"
    assert spec.environment["TOPOLOGY_LEASE_SECONDS"] == "5"
    assert (spec.environment["TOPOLOGY_OPERATION_SECONDS"], spec.environment["TOPOLOGY_SKEW_SECONDS"]) == ("4", "0")
    assert (spec.environment["GROWTH_MODE"], spec.environment["GROWTH_COOLDOWN_SECONDS"]) == ("off", "300")
    assert spec.environment["TRANSPORT"] == "direct"
    assert spec.environment["CALLER_REQUIRED"] == "true"
    assert spec.environment["DYNAMODB_ENDPOINT"] == "http://127.0.0.1:8001"
    assert spec.environment["AWS_LAMBDA_FUNCTION_NAME"] == "S-F"
    assert json.loads(spec.environment["CURSOR_KEYS"]) == ["secret"]
    assert not {"CURSOR_SECRET_ARN", "AWS_PROFILE"} & set(spec.environment)


def test_a_handler_outside_the_checkout_is_named() -> None:
    with pytest.raises(LocalStackError, match=r"S-F has handler index\.handler, which is not in functions/"):
        function_specs(
            templates_of(Handler="index.handler"), ["S-F"], settings=Settings(), endpoint="http://x", cursor_key="k"
        )


def test_the_cursor_key_is_created_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    first = cursor_key(tmp_path / "new")

    assert cursor_key(tmp_path / "new") == first
    assert len(first) >= 43
    assert (tmp_path / "new" / "cursor-key").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 40])
def test_a_damaged_cursor_key_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cursor-key").write_bytes(content)

    with pytest.raises(LocalStackError, match=r"cursor-key does not contain a key of 16 bytes or more: remove it"):
        cursor_key(tmp_path)


def test_a_cursor_key_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "cursor-key").mkdir()

    with pytest.raises(LocalStackError, match=r"cursor-key cannot be read \(Is a directory\)"):
        cursor_key(tmp_path)
