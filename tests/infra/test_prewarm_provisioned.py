"""The provisioned pre-warm: after any fault the table ends on-demand, and the failure is reported."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.depth import examples
from tests.infra.prewarm_world import REQUEST, START, TABLE, Fault, Mode, World, switches, wanted, world
from tests.infra.templates import Templates
from tests.roles import BY_LAMBDA, Role

pytestmark = pytest.mark.infra

STEPS = ("plan", "raise_idempotency", "arm", "switch", "allocate", "remember", "restore", "stand_down", "report")
MODES: tuple[Mode, ...] = ("refused", "lost", "timeout", "late")
DELETE = {"mode": "restore", "request": {**REQUEST, "RequestType": "Delete", "RequestId": "request-2"}}


def test_a_run_switches_to_provisioned_waits_and_returns_to_on_demand(here: World) -> None:
    execution = here.run()

    assert execution.status == "SUCCEEDED"
    assert switches(here) == ["PROVISIONED", "PAY_PER_REQUEST"]
    assert here.on_demand
    assert [answer["Status"] for answer in here.answers] == ["SUCCESS"]


def test_the_table_and_every_index_get_the_units_asked_for(here: World) -> None:
    here.run()

    units = {"ReadCapacityUnits": 12_000, "WriteCapacityUnits": 100_000}
    assert here.table.updates[0]["ProvisionedThroughput"] == units
    assert here.table.updates[0]["GlobalSecondaryIndexUpdates"] == [
        {"Update": {"IndexName": name, "ProvisionedThroughput": units}} for name in ("GSI1", "GSI2", "GSI3")
    ]


def test_a_run_returns_although_a_later_release_remembers_more(here: World) -> None:
    def switched(step: str) -> None:
        if step == "allocate":
            text = here.ssm.get_parameter(Name=here.config.memory)["Parameter"]["Value"]
            remembered = json.dumps({**json.loads(text), "zones": 3})
            here.ssm.put_parameter(Name=here.config.memory, Value=remembered, Type="String", Overwrite=True)

    here.meanwhile = switched

    assert here.run().status == "SUCCEEDED"
    assert here.on_demand


def test_the_declared_limits_of_the_table_are_restored(here: World) -> None:
    here.run()

    limits = {"MaxReadRequestUnits": 40_000, "MaxWriteRequestUnits": 30_000}
    assert here.table.updates[1]["OnDemandThroughput"] == limits
    assert [change["Update"] for change in here.table.updates[1]["GlobalSecondaryIndexUpdates"]] == [
        {"IndexName": name, "OnDemandThroughput": limits} for name in ("GSI1", "GSI2", "GSI3")
    ]


def test_the_maximum_cost_is_logged_before_anything_is_spent(here: World) -> None:
    said: list[str] = []
    here.meanwhile = lambda step: said.extend(here.log) if step == "arm" else None

    here.run()

    # 4 x (100,000 x $0.00065 + 12,000 x $0.00013) an hour, for at most 2 hours begun
    assert "at most $532.48" in said[0]
    assert here.answers[0]["Data"]["ExpectedDollars"] == "532.48"


def test_the_idempotency_table_is_raised_before_anything_is_switched_and_stays_on_demand(here: World) -> None:
    switched: list[int] = []
    here.meanwhile = lambda step: switched.append(len(here.table.updates)) if step == "raise_idempotency" else None

    here.run(wanted=wanted(idempotency=40_000))

    (update,) = here.table.beside
    assert switched == [0]
    assert update.keys() == {"TableName", "WarmThroughput"}
    assert here.answers[0]["Data"]["ExpectedDollars"] == f"{532.48 + 36_000 * 0.00065:.2f}"


def test_the_same_value_runs_once(here: World) -> None:
    here.run("run-1")

    again = here.run("run-2")

    assert again.status == "SUCCEEDED"
    assert switches(here) == ["PROVISIONED", "PAY_PER_REQUEST"]
    assert "was warmed to 100000 write units before" in here.answers[1]["Reason"]


def test_a_smaller_value_does_not_run_and_a_larger_one_does(here: World) -> None:
    here.run("run-1")

    here.run("run-2", wanted=wanted(write_units=50_000))
    here.run("run-3", wanted=wanted(write_units=150_000))

    assert [u.get("ProvisionedThroughput", {}).get("WriteCapacityUnits") for u in here.table.updates] == [
        100_000,
        None,
        150_000,
        None,
    ]


def test_a_new_table_of_the_same_name_is_warmed_again(here: World) -> None:
    here.run("run-1")
    here.ssm.put_parameter(
        Name=here.config.memory,
        Value=here.ssm.get_parameter(Name=here.config.memory)["Parameter"]["Value"].replace(TABLE, "an-older-table"),
        Overwrite=True,
    )

    here.run("run-2")

    assert switches(here) == ["PROVISIONED", "PAY_PER_REQUEST"] * 2


def test_above_the_ceiling_nothing_is_touched_and_the_deployment_fails(here: World) -> None:
    execution = here.run(wanted=wanted(write_units=200_001))

    assert execution.status == "FAILED"
    assert here.table.updates == []
    assert here.answers[0]["Status"] == "FAILED"
    assert "ceiling_write_units" in here.answers[0]["Reason"]
    assert here.calls.count("plan") == 1


def test_one_return_to_on_demand_is_always_kept_in_reserve(here: World) -> None:
    for number in range(1, 4):
        here.run(f"run-{number}", wanted=wanted(write_units=100_000 + number))

    fourth = here.run("run-4", wanted=wanted(write_units=150_000))

    assert fourth.status == "FAILED"
    assert switches(here).count("PROVISIONED") == 3
    assert "3 times in the last 24 hours" in here.answers[3]["Reason"]


def test_a_day_later_it_may_run_again(here: World) -> None:
    for number in range(1, 4):
        here.run(f"run-{number}", wanted=wanted(write_units=100_000 + number))
    here.clock.now = START + 2 * 86_400

    later = here.run("run-4", wanted=wanted(write_units=150_000))

    assert later.status == "SUCCEEDED"


def test_the_stop_loss_is_set_before_the_table_is_switched(here: World) -> None:
    schedules: list[int] = []
    here.meanwhile = lambda step: (
        schedules.append(len(here.scheduler.list_schedules()["Schedules"])) if step in ("arm", "switch") else None
    )

    here.run()

    assert schedules == [0, 1]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("times", [1, None], ids=["once", "always"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("step", STEPS)
def test_a_fault_in_any_step_leaves_the_table_on_demand(here: World, step: str, mode: Mode, times: int | None) -> None:
    here.faults = [Fault(step, mode, times)]

    execution = here.run()
    here.let_the_stop_loss_act()

    assert here.on_demand
    assert execution.status == "SUCCEEDED" or times is None
    assert execution.status != "SUCCEEDED" or step == "stand_down" or times == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("step", [step for step in STEPS if step not in ("restore", "report", "stand_down")])
def test_a_step_that_never_works_comes_back_without_the_stop_loss_and_fails_the_deployment(
    here: World, step: str
) -> None:
    here.faults = [Fault(step, "lost")]

    execution = here.run()

    assert here.on_demand
    assert execution.status == "FAILED"
    assert [answer["Status"] for answer in here.answers] == ["FAILED"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("step", STEPS)
def test_an_execution_killed_after_any_step_leaves_the_table_on_demand(here: World, step: str) -> None:
    here.stop_after = (step, 1)

    execution = here.run()
    here.let_the_stop_loss_act()

    assert execution.status == "ABORTED"
    assert here.on_demand


@pytest.mark.parametrize("step", ["switch", "allocate", "remember"])
def test_a_killed_execution_needs_the_stop_loss_and_it_acts(here: World, step: str) -> None:
    here.stop_after = (step, 1)
    here.run()
    provisioned = not here.on_demand

    acted = here.let_the_stop_loss_act()

    assert provisioned
    assert acted == 1


def test_a_restore_that_never_works_is_reported_and_the_stop_loss_returns_to_on_demand(here: World) -> None:
    here.faults = [Fault("restore", "refused")]

    execution = here.run()
    provisioned = not here.on_demand
    here.let_the_stop_loss_act()

    assert provisioned
    assert execution.status == "FAILED"
    assert "still provisioned" in here.answers[0]["Reason"]
    assert here.on_demand


def test_an_allocation_that_outlasts_every_wait_still_ends_on_demand(definition: dict[str, Any]) -> None:
    with world(definition, allocation_seconds=5 * 3600) as here:
        execution = here.run()
        here.let_the_stop_loss_act()

        assert execution.status == "FAILED"
        assert here.on_demand


def test_cloudformation_is_answered_before_it_stops_waiting(definition: dict[str, Any]) -> None:
    with world(definition, allocation_seconds=5 * 3600) as here:
        here.run()

        assert [answer["Status"] for answer in here.answers] == ["FAILED"]
        assert here.clock.now - START < 3600


def test_a_request_that_arrives_after_the_run_is_undone_by_the_last_look(here: World) -> None:
    here.run()
    here.clock.now += 60
    here.table.by_hand(
        "update_table",
        TableName=TABLE,
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 12_000, "WriteCapacityUnits": 100_000},
    )

    acted = here.let_the_stop_loss_act()

    assert acted == 1
    assert here.on_demand


def test_a_deletion_returns_the_table_to_on_demand_before_it_is_answered(here: World) -> None:
    here.stop_after = ("switch", 1)
    here.run("run-1")
    here.stop_after = None

    execution = here.run("run-2", **DELETE)

    assert execution.status == "SUCCEEDED"
    assert here.on_demand
    assert here.answers[-1]["Status"] == "SUCCESS"


def test_a_deletion_that_cannot_restore_the_table_keeps_the_machinery(here: World) -> None:
    here.stop_after = ("switch", 1)
    here.run("run-1")
    here.faults = [Fault("restore", "refused")]

    here.run("run-2", **DELETE)

    assert here.answers[-1]["Status"] == "FAILED"


def test_a_deletion_of_an_environment_without_its_table_succeeds(here: World) -> None:
    here.table.by_hand("delete_table", TableName=TABLE)

    execution = here.run("run-2", **DELETE)

    assert execution.status == "SUCCEEDED"


@pytest.mark.parametrize("step", ["arm", "switch", "allocate", "remember"])
def test_a_deletion_during_a_run_stops_the_run_from_switching(here: World, step: str) -> None:
    switched_before: list[int] = []

    def delete_once(running: str) -> None:
        if running == step and not switched_before:
            switched_before.append(switches(here).count("PROVISIONED"))
            here.run("run-2", **DELETE)

    here.meanwhile = delete_once

    execution = here.run("run-1")

    assert switches(here).count("PROVISIONED") == switched_before[0]
    assert execution.status == "FAILED"
    assert "run run-2 has the table now" in here.answers[-1]["Reason"]
    assert here.on_demand


def test_a_table_provisioned_by_hand_is_returned_to_on_demand(here: World) -> None:
    here.run("run-1")
    here.table.by_hand(
        "update_table",
        TableName=TABLE,
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
    )
    here.clock.now += 3600

    here.run("run-2")

    assert here.on_demand


def test_the_role_of_the_step_allows_what_a_run_needs_and_no_more(here: World, prod: Templates) -> None:
    here.role = Role.of(prod["Prewarm"], "StepRole")
    here.run(wanted=wanted(idempotency=40_000))
    here.run("run-2", **DELETE)

    granted = {each for each in here.role.all if each[1] not in BY_LAMBDA}
    # Scheduler asks for it when the schedule with its role is set.
    granted = {each for each in granted if each[1] != "iam:PassRole"}
    assert (here.used - granted, granted - here.used) == (set(), set())
    assert here.on_demand


faults = st.builds(Fault, st.sampled_from(STEPS), st.sampled_from(MODES), st.sampled_from([1, 2, None]))


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    injected=st.lists(faults, max_size=4),
    allocation=st.sampled_from([0, 40, 900, 7200]),
    killed=st.none() | st.tuples(st.sampled_from(STEPS), st.integers(1, 3)),
)
def test_any_faults_together_leave_the_table_on_demand(
    definition: dict[str, Any], injected: list[Fault], allocation: int, killed: tuple[str, int] | None
) -> None:
    with world(definition, allocation_seconds=allocation) as here:
        here.faults = injected
        here.stop_after = killed

        execution = here.run()
        here.let_the_stop_loss_act()

        assert here.on_demand
        assert execution.status in ("SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED")
        assert execution.status != "SUCCEEDED" or here.answers[-1]["Status"] == "SUCCESS"
