"""A canary: CodeDeploy moves the traffic of the API and of direct invocation, and alarms judge the new release."""

from typing import Any

import pytest

from dynashard_cdk.settings import SettingsError, load
from tests.infra.templates import Templates, alarms_in, context, of_type, short, statements
from tests.infra.test_releases import references
from tests.infra.test_templates import conclusions, lint

pytestmark = pytest.mark.infra

SHIFTED = {"Api": "api", "Commands": "commands"}
PREFIX = "dynashard-prod-"


def only(template: dict[str, Any], kind: str) -> dict[str, Any]:
    [found] = of_type(template, kind).values()
    return found


@pytest.mark.parametrize("stack", SHIFTED)
def test_codedeploy_carries_out_changes_of_the_alias(guarded: Templates, stack: str) -> None:
    alias = only(guarded[stack], "AWS::Lambda::Alias")
    [group] = of_type(guarded[stack], "AWS::CodeDeploy::DeploymentGroup")
    [application] = of_type(guarded[stack], "AWS::CodeDeploy::Application")
    steps = only(guarded[stack], "AWS::CodeDeploy::DeploymentConfig")["Properties"]

    assert alias["UpdatePolicy"] == {
        "CodeDeployLambdaAliasUpdate": {"ApplicationName": {"Ref": application}, "DeploymentGroupName": {"Ref": group}}
    }
    assert steps["TrafficRoutingConfig"] == {
        "Type": "TimeBasedLinear",
        "TimeBasedLinear": {"LinearInterval": 15, "LinearPercentage": 20},
    }


@pytest.mark.parametrize("stack", SHIFTED)
def test_the_judges_are_alarms_that_exist_and_one_that_sees_the_new_version_alone(
    guarded: Templates, stack: str
) -> None:
    group = only(guarded[stack], "AWS::CodeDeploy::DeploymentGroup")["Properties"]
    [version] = of_type(guarded[stack], "AWS::Lambda::Version")
    [(own, alarm)] = alarms_in(guarded[stack]).items()
    [resource] = of_type(guarded[stack], "AWS::CloudWatch::Alarm")

    judges = [each["Name"] for each in group["AlarmConfiguration"]["Alarms"]]

    assert group["AlarmConfiguration"]["Enabled"]
    assert "DEPLOYMENT_STOP_ON_ALARM" in group["AutoRollbackConfiguration"]["Events"]
    assert short(judges[0]) == f"<{resource}>"
    assert {each.removeprefix(PREFIX) for each in judges[1:]} <= alarms_in(guarded["Monitoring"]).keys()
    assert f"{PREFIX}function-failing-{SHIFTED[stack]}" in judges
    # CodeDeploy takes ten.
    assert len(judges) <= 10
    assert own == f"canary-{SHIFTED[stack]}"
    dimensions = {each["Name"]: each["Value"] for each in alarm["Dimensions"]}
    assert dimensions["ExecutedVersion"] == {"Fn::GetAtt": [version, "Version"]}
    assert short(dimensions["Resource"]).endswith(":live")
    assert alarm["TreatMissingData"] == "notBreaching"


@pytest.mark.parametrize("stack", SHIFTED)
def test_its_role_changes_one_alias(guarded: Templates, stack: str) -> None:
    allowed = statements(guarded[stack], "CanaryRole")
    [function] = of_type(guarded[stack], "AWS::Lambda::Function")

    assert allowed.pop("*") == ["cloudwatch:DescribeAlarms"]
    assert allowed.keys() == {f"<{function}.Arn>", f"<{function}.Arn>:live"}
    assert {action.split(":")[0] for actions in allowed.values() for action in actions} == {"lambda"}


def test_other_functions_change_at_once(guarded: Templates, prod: Templates) -> None:
    for stack in ("Changes", "Reshard", "Writer"):
        assert not any("UpdatePolicy" in each for each in of_type(guarded[stack], "AWS::Lambda::Alias").values())
    for stack in SHIFTED:
        assert "UpdatePolicy" not in only(prod[stack], "AWS::Lambda::Alias")


def test_both_rule_sets_found_nothing_in_it(guarded: Templates) -> None:
    assert conclusions(guarded) == {"AwsSolutions": "success", "Serverless": "success"}


@pytest.mark.parametrize(
    ("canary", "message"),
    [
        ({"percent": 60}, "canary.percent: Input should be less than or equal to 50"),
        ({"minutes": 1}, "canary.minutes: Input should be greater than or equal to 5"),
        ({"way": "linear", "percent": 1, "minutes": 30}, "99 steps of 30 minutes take 2970 minutes"),
        ({"way": "slowly"}, "canary.way: Input should be 'canary' or 'linear'"),
    ],
)
def test_a_canary_that_codedeploy_cannot_carry_out_is_refused(canary: dict[str, Any], message: str) -> None:
    given = context("prod", deploy={"canary": canary})

    with pytest.raises(SettingsError, match=message):
        load(given["environments"], "prod")


def test_the_local_stack_has_no_canary() -> None:
    with pytest.raises(SettingsError, match="canary is not for the local stack"):
        load(context("local", deploy={"canary": {}})["environments"], "local")


@pytest.mark.parametrize("stack", SHIFTED)
def test_the_group_does_not_wait_for_the_alias_that_waits_for_it(guarded: Templates, stack: str) -> None:
    resources = guarded[stack]["Resources"]
    [alias] = of_type(guarded[stack], "AWS::Lambda::Alias")
    [group] = of_type(guarded[stack], "AWS::CodeDeploy::DeploymentGroup")
    waiting, awaited = [group], set[str]()
    while waiting:
        name = waiting.pop()
        if name in awaited or name not in resources:
            continue
        awaited.add(name)
        depends = resources[name].get("DependsOn", [])
        waiting += [*references(resources[name]), *([depends] if isinstance(depends, str) else depends)]

    assert any("Policy" in name for name in awaited)
    assert alias not in awaited


@pytest.mark.deep
def test_cloudformation_accepts_its_templates(guarded: Templates) -> None:
    assert lint(guarded.files) == ""
