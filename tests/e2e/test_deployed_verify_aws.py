"""`dynashard verify-aws` as a process, against a whole deployment on a local AWS."""

import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import jwt
import pytest

from dynashard_checks.verify_aws.checks import CHECKS, logs
from dynashard_checks.verify_aws.context import Clock, Context
from dynashard_checks.verify_aws.environment import Environment
from dynashard_checks.verify_aws.scratch import PREFIX, Scratch
from dynashard_checks.verify_aws.sign_in import pools, scratch_sign_in
from dynashard_local.account import ACCOUNT_ID
from tests.e2e.deployment import TENANT_CLAIM, Deployment
from tests.e2e.local_process import ROOT
from tests.processes import STOPS, signals_as_by_default
from tests.waiting import HANG_SECONDS, until

pytestmark = pytest.mark.e2e

LOCAL = {check.name for check in CHECKS if check.local}
DIFFERENT = {
    "numbers": "exact sum: False instead of True",
    "query-bounds": "units of small items: 1.0 instead of 3.0; "
    "units with a filter that passes none: 1.0 instead of 3.0",
}
"""What ministack 1.5.33 does otherwise: it adds numbers as floats, and a Query costs 1 unit. The engine's tests show
both facts."""


def command(*arguments: str, account: str = ACCOUNT_ID) -> list[str]:
    program = [str(ROOT / ".venv" / "bin" / "dynashard"), "verify-aws", "--env", "dev", "--no-deploy"]
    return [*program, "--yes", "--account", account, "--json", *arguments]


def environment(deployment: Deployment) -> dict[str, str]:
    return {**deployment.aws.environment, "DYNASHARD_TOKEN": deployment.issuer.issue({TENANT_CLAIM: "verify"})}


def verify_aws(deployment: Deployment, *arguments: str, account: str = ACCOUNT_ID) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command line
        command(*arguments, account=account),
        env=environment(deployment),
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


@pytest.mark.deep
def test_every_check_that_a_local_aws_can_answer_holds_and_nothing_is_left(deployment: Deployment) -> None:
    ended = verify_aws(deployment, *(word for name in sorted(LOCAL) for word in ("--check", name)))
    report = json.loads(ended.stdout)

    assert {name: seen for name, (verdict, seen) in by_name(report).items() if verdict != "holds"} == DIFFERENT
    assert by_name(report).keys() == LOCAL
    assert (ended.returncode, report["left"], report["account"]) == (1, [], ACCOUNT_ID)
    assert scratch_names(deployment) == []
    assert "eyJ" not in ended.stdout + ended.stderr


@pytest.mark.deep
def test_what_only_aws_can_show_is_not_run_on_a_local_aws(deployment: Deployment) -> None:
    ended = verify_aws(deployment, "--check", "key-range-throttle")

    assert ended.returncode == 3
    assert by_name(json.loads(ended.stdout))["key-range-throttle"][0] == "could not tell"


@pytest.mark.deep
def test_another_account_is_refused_before_anything_is_created(deployment: Deployment) -> None:
    ended = verify_aws(deployment, "--check", "key-sizes", account="111122223333")

    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"account {ACCOUNT_ID}, not of 111122223333" in ended.stderr


@pytest.mark.deep
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


@pytest.mark.deep
@pytest.mark.parametrize("stop", STOPS)
def test_an_interrupted_run_removes_its_tables_and_reports(stop: signal.Signals, deployment: Deployment) -> None:
    with signals_as_by_default():
        process = subprocess.Popen(  # noqa: S603 - our own command line
            command("--check", "transactional-reads"),
            env=environment(deployment),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    until(lambda: bool(scratch_names(deployment)), pause=0.2)

    process.send_signal(stop)
    out, _ = process.communicate(timeout=HANG_SECONDS)

    report = json.loads(out)
    assert (process.returncode, report["not_run"], report["left"]) == (3, ["transactional-reads"], [])
    assert scratch_names(deployment) == []


@pytest.fixture
def context(deployment: Deployment) -> Iterator[Context]:
    aws, clock = deployment.aws, Clock(sleep=lambda _seconds: None)

    def client(service: str, *, retries: bool = True) -> Any:
        assert isinstance(retries, bool)
        return aws.client(service)

    token = deployment.issuer.issue({TENANT_CLAIM: "verify"})
    scratch = Scratch(client, "e2e", clock.now, clock.sleep)
    yield Context(client, scratch, Environment("dev", deployment.outputs.__getitem__, token, aws.url), clock)
    assert scratch.remove_all() == []


@pytest.mark.parametrize(
    ("name", "verdict", "seen"),
    [
        ("stream-filter", "holds", "state: ['Enabled']"),
        ("access-log", "differs", "no line arrived within 0 seconds; the account has 0 of 10"),
        ("header-sizes", "differs", "10,241 bytes: 200"),
    ],
)
def test_a_check_of_the_deployment_reads_what_the_local_aws_says(
    name: str, verdict: str, seen: str, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_ARRIVAL_SECONDS", 0)
    [check] = [check for check in CHECKS if check.name == name]

    outcome = check.run(context)

    assert outcome.verdict.value == verdict, outcome.seen
    assert seen in outcome.seen


def test_a_scratch_sign_in_issues_a_token_of_its_user_and_is_removed(context: Context, deployment: Deployment) -> None:
    signed_in = scratch_sign_in(context.client, context.scratch)
    claims = jwt.decode(signed_in.token, options={"verify_signature": False})
    removed = context.scratch.remove_all()

    assert (claims["cognito:username"], claims["aud"]) == ("verify", signed_in.audience)
    assert signed_in.issuer.endswith(claims["iss"].rpartition("/")[2])
    assert (removed, pools(deployment.aws.client("cognito-idp"), PREFIX)) == ([], [])
