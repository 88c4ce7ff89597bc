"""Capacity in the templates: each mode, the steps of a schedule, and a change of the mode in place."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from moto import mock_aws

from dynashard import schema
from tests.infra.prewarm_world import TABLE, client, create_table
from tests.infra.templates import PRIME_TIME, Templates, context, of_type, short, statements

pytestmark = pytest.mark.infra

Data = Callable[..., dict[str, Any]]
NAMES = ("Table", *schema.INDEX_SLOTS)
SCHEDULE = "AWS::Scheduler::Schedule"
IMMUTABLE = ("AttributeDefinitions", "KeySchema", "TableName", "LocalSecondaryIndexes", "SSESpecification")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    """The template of dev's tables, with these settings of the table."""
    # Loading CDK takes seconds of each process: of those that synthesise, not of all that collect tests.
    from aws_cdk import App  # noqa: PLC0415

    from dynashard_cdk.data import DataStack  # noqa: PLC0415
    from dynashard_cdk.deployment import settings_of  # noqa: PLC0415

    def template(**table: Any) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp("data")
        app = App(outdir=str(folder), context=context("dev", table=table), analytics_reporting=False)
        DataStack(app, "Data", settings=settings_of(app.node))
        app.synth()
        synthesised: dict[str, Any] = json.loads((folder / "Data.template.json").read_text())
        return synthesised

    return template


def tracked(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Settings of target tracking of the table and each index, by name and direction."""
    properties = template["Resources"]["Table"]["Properties"]
    (replica,) = properties["Replicas"]
    found = {}
    for way, at in (("Write", properties), ("Read", replica)):
        for name, each in {"Table": at, **{i["IndexName"]: i for i in at["GlobalSecondaryIndexes"]}}.items():
            found[f"{name} {way}"] = each[f"{way}ProvisionedThroughputSettings"][f"{way}CapacityAutoScalingSettings"]
    return found


def steps(template: dict[str, Any]) -> list[dict[str, Any]]:
    """What each step asks Application Auto Scaling for, with its time."""
    schedules = [each["Properties"] for each in of_type(template, SCHEDULE).values()]
    return [{**json.loads(short(each["Target"]["Input"])), "at": each["ScheduleExpression"]} for each in schedules]


def test_a_provisioned_table_tracks_its_target_in_the_table_and_every_index(scheduled: Templates) -> None:
    found = tracked(scheduled["Data"])

    target = {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": 60}}
    reads = {"MinCapacity": 100, "MaxCapacity": 4000, "SeedCapacity": 100, **target}
    writes = {"MinCapacity": 500, "MaxCapacity": 2000, "SeedCapacity": 500, **target}
    little = {"MinCapacity": 5, "MaxCapacity": 50, "SeedCapacity": 5, **target}
    assert found == {
        **{f"{name} Read": reads for name in NAMES},
        **{f"{name} Write": little if name == "GSI3" else writes for name in NAMES},
    }


def test_every_step_is_given_to_the_table_and_each_index_that_it_changes(scheduled: Templates) -> None:
    found = steps(scheduled["Data"])

    resources = {"table/<Table>": "table", "table/<Table>/index/GSI1": "index", "table/<Table>/index/GSI2": "index"}
    assert sorted(found, key=str) == sorted(
        (
            {
                "ServiceNamespace": "dynamodb",
                "ResourceId": resource,
                "ScalableDimension": f"dynamodb:{kind}:WriteCapacityUnits",
                "MinCapacity": lowest,
                "MaxCapacity": highest,
                "at": at,
            }
            for resource, kind in resources.items()
            for at, lowest, highest in (("cron(0 17 * * ? *)", 1500, 3000), ("cron(0 23 * * ? *)", 50, 500))
        ),
        key=str,
    )


def test_a_step_is_in_the_time_zone_and_never_carried_out_late(scheduled: Templates) -> None:
    for schedule in of_type(scheduled["Data"], SCHEDULE).values():
        properties = schedule["Properties"]
        assert properties["ScheduleExpressionTimezone"] == "America/New_York"
        assert properties["FlexibleTimeWindow"] == {"Mode": "OFF"}
        assert properties["Target"]["RetryPolicy"]["MaximumEventAgeInSeconds"] == 900
        assert "Table" in schedule["DependsOn"]


def test_the_role_of_the_steps_may_do_nothing_but_change_capacity(scheduled: Templates) -> None:
    assert statements(scheduled["Data"], "CapacityRole") == {
        "*": ["application-autoscaling:RegisterScalableTarget"],
        "<Table.Arn>": ["dynamodb:DescribeTable", "dynamodb:UpdateTable"],
    }


def test_application_auto_scaling_accepts_a_step_and_overwrites_the_bounds(scheduled: Templates) -> None:
    with mock_aws():
        create_table(client("dynamodb"))
        scaling = client("application-autoscaling")
        asked = [each for each in steps(scheduled["Data"]) if each["ResourceId"] == "table/<Table>"]
        for each in asked:
            each.pop("at")
            scaling.register_scalable_target(**{**each, "ResourceId": f"table/{TABLE}"})

        (target,) = scaling.describe_scalable_targets(ServiceNamespace="dynamodb")["ScalableTargets"]

    assert len(asked) == 2
    assert (target["MinCapacity"], target["MaxCapacity"]) == (50, 500)


def test_steps_need_nothing_if_the_schedule_changes_nothing(data: Data) -> None:
    bounds = {key: value for key, value in PRIME_TIME.items() if key not in ("schedule", "time_zone", "indexes")}
    template = data(**bounds, schedule=[{"at": "12:00", "min_read_units": 100}])

    assert of_type(template, SCHEDULE) == {}


def test_a_change_of_the_mode_is_an_update_of_the_table_in_place(data: Data) -> None:
    on_demand = data(max_read_units=4000, max_write_units=4000)
    provisioned = data(**{key: value for key, value in PRIME_TIME.items() if key not in ("schedule", "time_zone")})
    scheduled = data(**PRIME_TIME)

    for template in (provisioned, scheduled):
        for name, before in of_type(on_demand, "AWS::DynamoDB::GlobalTable").items():
            after = template["Resources"][name]
            assert after["Type"] == before["Type"]
            assert {key: after["Properties"].get(key) for key in IMMUTABLE} == {
                key: before["Properties"].get(key) for key in IMMUTABLE
            }
        assert template["Resources"]["Topology"] == on_demand["Resources"]["Topology"]
        assert template["Resources"]["Idempotency"] == on_demand["Resources"]["Idempotency"]
    assert provisioned["Outputs"] == on_demand["Outputs"]
    more = {name: each for name, each in scheduled["Outputs"].items() if name not in on_demand["Outputs"]}
    assert scheduled["Outputs"] == {**on_demand["Outputs"], **more}
    assert [each["Value"] for each in more.values()] == [{"Ref": "CapacityGroup6E2E2F34"}]
    kinds = {each["Type"] for name, each in scheduled["Resources"].items() if name not in on_demand["Resources"]}
    assert kinds == {
        "AWS::IAM::Policy",
        "AWS::IAM::Role",
        SCHEDULE,
        "AWS::Scheduler::ScheduleGroup",
    }
    assert "AWS::ApplicationAutoScaling::ScalableTarget" not in str(scheduled)
