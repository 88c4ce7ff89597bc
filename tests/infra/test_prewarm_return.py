"""The way back of the provisioned pre-warm: it counts only if it was proved, whatever DescribeTable answers late."""

from dataclasses import replace

import pytest

from tests.infra.prewarm_world import START, TABLE, Fault, World, config, switches
from tests.infra.templates import Templates, maxima, of_type

pytestmark = pytest.mark.infra


def recurring(here: World) -> bool:
    """Return whether the stop-loss still looks every five minutes."""
    (schedule,) = here.scheduler.list_schedules()["Schedules"]
    found = here.scheduler.get_schedule(Name=schedule["Name"])["ScheduleExpression"]
    return bool(found == "rate(5 minutes)")


@pytest.mark.parametrize("stale_seconds", [20, 90, 400])
def test_answers_from_before_a_change_do_not_end_the_run(here: World, stale_seconds: float) -> None:
    here.table.stale_seconds = stale_seconds

    execution = here.run()

    assert execution.status == "SUCCEEDED"
    assert switches(here) == ["PROVISIONED", "PAY_PER_REQUEST"]
    assert here.on_demand
    assert not recurring(here)


def test_an_answer_from_before_the_switch_is_not_taken_for_the_return(here: World) -> None:
    before = here.table.describe_table(TableName=TABLE)
    asked: list[bool] = []

    def answer_late(step: str) -> None:
        if step == "restore" and "restore" not in here.calls[:-1]:
            here.table._before, here.table.stale_until = before, here.clock.now + 900
        if step in ("stand_down", "report"):
            asked.append(here.on_demand)

    here.meanwhile = answer_late

    execution = here.run()

    assert execution.status == "SUCCEEDED"
    assert asked == [True, True]
    assert here.on_demand


@pytest.mark.parametrize("stale_seconds", [300, 3000])
def test_a_switch_whose_answer_is_lost_and_not_seen_keeps_the_stop_loss(here: World, stale_seconds: float) -> None:
    here.table.stale_seconds = stale_seconds
    here.faults = [Fault("switch", "lost")]

    execution = here.run()
    returned = here.on_demand
    kept = recurring(here)
    here.let_the_stop_loss_act()

    assert execution.status == "FAILED"
    assert returned or kept
    assert here.on_demand


def test_a_switch_that_was_not_executed_ends_the_run_and_keeps_the_stop_loss(here: World) -> None:
    here.faults = [Fault("switch", "refused")]

    execution = here.run()

    assert (execution.status, here.calls[-1]) == ("FAILED", "report")
    assert "not pre-warmed" in here.answers[0]["Reason"]
    assert here.clock.now - START < 1200
    assert recurring(here)


def test_a_table_that_is_switched_back_by_hand_ends_the_wait(here: World) -> None:
    def switch_back(step: str) -> None:
        if step == "allocate" and not here.table.busy and len(switches(here)) == 1:
            here.table.update_table(TableName=TABLE, BillingMode="PAY_PER_REQUEST")

    here.meanwhile = switch_back

    execution = here.run()

    assert execution.status == "FAILED"
    assert "was switched back" in here.answers[0]["Reason"]


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_the_stop_loss_calls_dynamodb_in_the_partition_of_its_role(partition: str) -> None:
    deployed = replace(config(), stop_loss_role=f"arn:{partition}:iam::123456789012:role/stop-loss")

    assert deployed.switch_back == f"arn:{partition}:scheduler:::aws-sdk:dynamodb:updateTable"


def test_the_way_back_sets_the_maxima_of_the_template(here: World, prod: Templates) -> None:
    variables = [
        each["Properties"]["Environment"]["Variables"]
        for each in of_type(prod["Prewarm"], "AWS::Lambda::Function").values()
    ]
    ((read, written),) = [
        (int(each["MAX_READ_UNITS"]), int(each["MAX_WRITE_UNITS"])) for each in variables if "MAX_READ_UNITS" in each
    ]
    here.config = replace(here.config, max_read_units=read, max_write_units=written)

    here.run()

    back = here.table.updates[1]
    indexes = [change["Update"] for change in back["GlobalSecondaryIndexUpdates"]]
    found = {"Table": back["OnDemandThroughput"], **{each["IndexName"]: each["OnDemandThroughput"] for each in indexes}}
    assert {
        name: (units["MaxReadRequestUnits"], units["MaxWriteRequestUnits"]) for name, units in found.items()
    } == maxima(prod)
