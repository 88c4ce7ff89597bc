"""All templates: free of findings, and equal to their committed snapshots."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dynashard_cdk.settings import load
from tests.infra.conftest import Synthesised
from tests.infra.templates import GUARDED, ROOT, Templates, alarms_in, context, of_type, short

pytestmark = pytest.mark.infra

SNAPSHOTS = Path(__file__).parent / "snapshots"
CASES = [("dev", "native"), ("prod", "provisioned")]
LAMBDA = "AWS::Lambda::Function"
STACKS = ["Api", "Changes", "Commands", "Data", "Monitoring", "Prewarm", "Reshard", "Writer"]


def normalised(template: dict[str, Any], env: str) -> Any:
    """Return a template without hashes of code and of versions, and without the name of its environment."""
    text = json.dumps(template)
    text = re.sub(r"(CurrentVersion[0-9A-F]{8})[0-9a-f]{32}\b", r"\1<version>", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "<asset>", text)
    text = re.sub(r'"aws:asset:path": "[^"]*"', '"aws:asset:path": "<path>"', text)
    return json.loads(re.sub(rf"\b{env}\b", "<env>", text))


def differences(one: Any, other: Any, path: str = "") -> dict[str, list[Any]]:
    """Return the differences of two documents: both values by their path, with None for a missing one."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted(one.keys() | other.keys())
        return {k: v for n in names for k, v in differences(one.get(n), other.get(n), f"{path}/{n}").items()}
    return {} if one == other else {path: [one, other]}


def committed(name: str, now: Any) -> Any:
    """Return the committed snapshot of a name, after writing it if snapshots are to be updated."""
    path = SNAPSHOTS / f"{name}.json"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n")
    return json.loads(path.read_text())


@pytest.mark.parametrize("stack", STACKS)
def test_a_template_equals_the_committed_snapshot(synthesised: Synthesised, stack: str) -> None:
    [(env, prewarm), _] = CASES
    now = normalised(synthesised(env, prewarm)[stack], env)

    assert now == committed(stack, now), f"{stack} has changed: read the difference, then `make snapshot` and commit it"


def test_the_environments_differ_as_in_the_committed_snapshot(synthesised: Synthesised) -> None:
    dev, prod = [
        {stack: normalised(synthesised(env, prewarm)[stack], env) for stack in STACKS} for env, prewarm in CASES
    ]
    now = differences(dev, prod)

    assert now == committed("dev-to-prod", now), "read what differs now, then `make snapshot` and commit it"


def test_scheduled_capacity_differs_from_on_demand_as_in_the_committed_snapshot(
    dev: Templates, scheduled: Templates
) -> None:
    stacks = [stack for stack in STACKS if stack != "Prewarm"]
    on_demand, by_schedule = [{stack: normalised(each[stack], "dev") for stack in stacks} for each in (dev, scheduled)]
    now = differences(on_demand, by_schedule)

    assert now == committed("on-demand-to-scheduled", now), "read what differs now, then `make snapshot` and commit it"


def test_every_snapshot_has_a_stack() -> None:
    compared = ["dev-to-prod", "on-demand-to-scheduled"]

    assert sorted(path.stem for path in SNAPSHOTS.iterdir()) == sorted([*STACKS, *compared])


def test_every_function_reserves_its_concurrency_within_the_checked_sum(guarded: Templates) -> None:
    reserved = [
        each["Properties"]["ReservedConcurrentExecutions"]
        for stack in STACKS
        for each in of_type(guarded[stack], LAMBDA).values()
    ]

    assert len(reserved) == 12
    assert sum(reserved) == sum(load(context("prod", **GUARDED)["environments"], "prod").concurrency.values())


@pytest.mark.parametrize(("env", "prewarm"), CASES)
def test_functions_share_the_concurrency_of_a_new_account_as_shipped(
    synthesised: Synthesised, env: str, prewarm: str
) -> None:
    templates = synthesised(env, prewarm)

    functions = [each for stack in STACKS for each in of_type(templates[stack], LAMBDA).values()]

    assert len(functions) == 12
    assert not any("ReservedConcurrentExecutions" in each["Properties"] for each in functions)


@pytest.mark.parametrize(("env", "prewarm"), CASES)
def test_undelivered_events_of_rules_and_schedules_go_to_a_queue_with_an_alarm(
    synthesised: Synthesised, env: str, prewarm: str
) -> None:
    templates = synthesised(env, prewarm)
    template = templates["Reshard"]
    rules = of_type(template, "AWS::Events::Rule").values()
    targets = [target for rule in rules for target in rule["Properties"]["Targets"]]
    [asynchronous] = of_type(template, "AWS::Lambda::EventInvokeConfig").values()
    queue = asynchronous["Properties"]["DestinationConfig"]["OnFailure"]["Destination"]
    alarmed = [
        short(alarm["Dimensions"][0]["Value"])
        for alarm in alarms_in(templates["Monitoring"]).values()
        if alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible"
    ]

    assert len(targets) == 2
    for target in targets:
        assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 900, "MaximumRetryAttempts": 10}
        assert target["DeadLetterConfig"]["Arn"] == queue
    assert asynchronous["Properties"]["MaximumRetryAttempts"] == 2
    assert asynchronous["Properties"]["MaximumEventAgeInSeconds"] == 900
    exported = f"<ExportsOutputFnGetAtt{queue['Fn::GetAtt'][0]}QueueName"
    assert any(name.startswith(exported) for name in alarmed)


@pytest.mark.parametrize(("env", "prewarm"), [pytest.param(*CASES[0], marks=pytest.mark.deep), CASES[1]])
def test_cloudformation_accepts_every_template(synthesised: Synthesised, env: str, prewarm: str) -> None:
    templates = synthesised(env, prewarm).files

    assert lint(templates) == ""
    assert len(templates) == len(STACKS)


@pytest.mark.deep
def test_cloudformation_accepts_scheduled_capacity(scheduled: Templates) -> None:
    assert lint([path for path in scheduled.files if "-Data." in path.name]) == ""


def lint(templates: list[Path]) -> str:
    """Return what cfn-lint finds in templates; it must not fail without a finding."""
    # W3005: CDK writes the dependencies of a policy out in full, also those that a reference implies.
    linted = subprocess.run(  # noqa: S603 -- our own command line
        [Path(sys.executable).with_name("cfn-lint"), "--ignore-checks", "W3005", "--template", *map(str, templates)],
        capture_output=True,
        text=True,
        check=False,
    )
    found = linted.stdout + linted.stderr
    assert (linted.returncode == 0) == (found == "")
    return found


@pytest.mark.parametrize(("env", "prewarm"), CASES)
def test_both_rule_sets_ran_and_found_nothing(synthesised: Synthesised, env: str, prewarm: str) -> None:
    assert conclusions(synthesised(env, prewarm)) == {"AwsSolutions": "success", "Serverless": "success"}


def test_both_rule_sets_found_nothing_in_scheduled_capacity(scheduled: Templates) -> None:
    assert conclusions(scheduled) == {"AwsSolutions": "success", "Serverless": "success"}


def conclusions(templates: Templates) -> dict[str, str | None]:
    """Return what each of our rule sets concluded."""
    report = json.loads((templates.folder / "validation-report.json").read_text())
    plugins = {entry["pluginName"]: entry["conclusion"] for entry in report["pluginReports"]}
    return {name: plugins.get(name) for name in ("AwsSolutions", "Serverless")}


def test_every_acknowledged_finding_exists_and_has_a_reason(prod: Templates) -> None:
    report = json.loads((prod.folder / "validation-report.json").read_text())
    suppressed = [found for entry in report["pluginReports"] for found in entry.get("suppressedViolations", [])]

    reasons = {
        (found["acknowledgedAt"].removeprefix("Dynashard-prod-"), found["ruleName"]): found["reason"]
        for found in suppressed
    }

    queues = ("Intake", "Operations")
    resharding = ("Advance", "Dispatch", "Operator", "Stop", "Watch", "Work")
    functions = (
        "Api/Api",
        "Changes/Follow",
        "Commands/Commands",
        "Prewarm/Entry",
        "Prewarm/Step",
        *(f"Reshard/{name}" for name in resharding),
        "Writer/Worker",
    )
    rules = ("AwsSolutions-L1", "Serverless-LambdaLatestVersion", "Serverless-LambdaDLQ")
    assert set(reasons) == {
        ("Api/CursorKeys", "AwsSolutions-SMG4"),
        ("Api/Gateway/GET--v1--health", "AwsSolutions-APIG4"),
        ("Prewarm/Machine", "AwsSolutions-IAM5[Resource::*]"),
        ("Reshard/Machine", "AwsSolutions-IAM5[Resource::*]"),
        ("Changes/Dead", "AwsSolutions-SQS3"),
        ("Changes/Dead", "Serverless-SQSRedrivePolicy"),
        ("Reshard/Lost", "AwsSolutions-SQS3"),
        ("Reshard/Lost", "Serverless-SQSRedrivePolicy"),
        *((f"Writer/{name}DeadLetters", "Serverless-SQSRedrivePolicy") for name in queues),
        *((f"Writer/{name}Mapping", "Serverless-LambdaEventSourceMappingDestination") for name in queues),
        ("Reshard/Missed", "AwsSolutions-SQS3"),
        ("Reshard/Missed", "Serverless-SQSRedrivePolicy"),
        *((f"{function}/Role", "AwsSolutions-IAM5[Resource::*]") for function in functions),
        *((f"{function}/Function", rule) for function in functions for rule in rules),
    }
    assert min(len(reason) for reason in reasons.values()) > 40


def test_a_finding_fails_the_synthesis(tmp_path: Path) -> None:
    # Loading CDK takes seconds of each process: of those that synthesise, not of all that collect tests.
    from aws_cdk import App, Stack  # noqa: PLC0415
    from aws_cdk.aws_s3 import Bucket  # noqa: PLC0415

    from stacks.backend import add_backend  # noqa: PLC0415

    app = App(outdir=str(tmp_path), context=context("dev"))
    add_backend(app, ROOT)
    Bucket(Stack(app, "Careless"), "Bucket", public_read_access=False)

    with pytest.raises(RuntimeError, match="ValidationFailed"):
        app.synth()
