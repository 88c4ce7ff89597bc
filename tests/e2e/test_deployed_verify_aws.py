"""`dynashard verify-aws` as a process, against a whole deployment on a local AWS."""

import json
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from local.events import ACCOUNT_ID
from local.settings import ROOT
from tests.e2e.deployment import TENANT_CLAIM, Deployment
from tests.waiting import HANG_SECONDS
from tools.verify_aws.checks import CHECKS
from tools.verify_aws.scratch import PREFIX

pytestmark = pytest.mark.e2e

LOCAL = {check.name for check in CHECKS if check.local}
DIFFERENT = {"numbers": "exact sum: False instead of True"}
"""What ministack 1.5.33 does otherwise: it adds numbers as floats. The engine's test shows that fact."""


def verify_aws(deployment: Deployment, *arguments: str, account: str = ACCOUNT_ID) -> subprocess.CompletedProcess[str]:
    token = deployment.issuer.issue({TENANT_CLAIM: "verify"})
    command = [str(ROOT / ".venv" / "bin" / "dynashard"), "verify-aws", "--env", "dev", "--no-deploy"]
    return subprocess.run(  # noqa: S603 - our own command line
        [*command, "--yes", "--account", account, "--json", *arguments],
        env={**deployment.aws.environment, "DYNASHARD_TOKEN": token},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )


def scratch_names(deployment: Deployment) -> list[str]:
    tables = deployment.aws.client("dynamodb").list_tables()["TableNames"]
    queues = deployment.aws.client("sqs").list_queues().get("QueueUrls", [])
    return [name for name in (*tables, *queues) if PREFIX in name]


def by_name(report: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    return {each["name"]: (each["verdict"], each["seen"]) for each in report["checks"]}


def test_every_check_that_a_local_aws_can_answer_holds_and_nothing_is_left(deployment: Deployment) -> None:
    ended = verify_aws(deployment, *(word for name in sorted(LOCAL) for word in ("--check", name)))
    report = json.loads(ended.stdout)

    assert {name: seen for name, (verdict, seen) in by_name(report).items() if verdict != "holds"} == DIFFERENT
    assert by_name(report).keys() == LOCAL
    assert (ended.returncode, report["left"], report["account"]) == (1, [], ACCOUNT_ID)
    assert scratch_names(deployment) == []
    assert "eyJ" not in ended.stdout + ended.stderr


def test_what_only_aws_can_show_is_not_run_on_a_local_aws(deployment: Deployment) -> None:
    ended = verify_aws(deployment, "--check", "key-range-throttle")

    assert ended.returncode == 3
    assert by_name(json.loads(ended.stdout))["key-range-throttle"][0] == "could not tell"


def test_another_account_is_refused_before_anything_is_created(deployment: Deployment) -> None:
    ended = verify_aws(deployment, "--check", "key-sizes", account="111122223333")

    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"account {ACCOUNT_ID}, not of 111122223333" in ended.stderr


def test_leftovers_of_a_killed_run_are_removed(deployment: Deployment) -> None:
    dynamodb = deployment.aws.client("dynamodb")
    dynamodb.create_table(
        TableName=f"{PREFIX}killed",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
        Tags=[{"Key": "dynashard-verify-aws", "Value": "killed"}],
    )

    ended = verify_aws(deployment, "--clean")

    assert (ended.returncode, json.loads(ended.stdout)) == (0, {"removed": [f"table {PREFIX}killed"], "left": []})
    assert scratch_names(deployment) == []
