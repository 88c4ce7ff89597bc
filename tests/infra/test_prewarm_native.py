"""The native pre-warm: it only raises throughput, pays for the difference, and never fails a later deployment."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.infra.prewarm_world import REQUEST, TABLE, Fault, World, definition_in, wanted, world
from tests.infra.templates import Templates
from tests.roles import BY_LAMBDA, Role

pytestmark = pytest.mark.infra

UPDATE = {**REQUEST, "RequestType": "Update"}


@pytest.fixture(scope="module")
def definition(dev: Templates) -> dict[str, Any]:
    return definition_in(dev["Prewarm"])


@pytest.fixture
def here(definition: dict[str, Any]) -> Iterator[World]:
    with world(definition, allocation_seconds=0) as fresh:
        yield fresh


def warm(units: int) -> dict[str, Any]:
    return {"wanted": {**wanted("native", units), "ReadUnits": "20000"}}


def present(here: World) -> tuple[int, int]:
    described = here.described()["WarmThroughput"]
    return described["ReadUnitsPerSecond"], described["WriteUnitsPerSecond"]


def test_the_role_of_the_step_allows_what_a_run_needs_and_no_more(here: World, dev: Templates) -> None:
    here.role = Role.of(dev["Prewarm"], "StepRole")
    here.run(wanted=wanted("native", 40_000, 40_000))

    granted = {each for each in here.role.all if each[1] not in BY_LAMBDA}
    assert (here.used - granted, granted - here.used) == (set(), set())


def test_the_table_and_every_index_are_raised_and_stay_on_demand(here: World) -> None:
    execution = here.run(**warm(40_000))

    (update,) = here.table.updates
    raised = {"ReadUnitsPerSecond": 20_000, "WriteUnitsPerSecond": 40_000}
    assert execution.status == "SUCCEEDED"
    assert update["WarmThroughput"] == raised
    assert [change["Update"] for change in update["GlobalSecondaryIndexUpdates"]] == [
        {"IndexName": name, "WarmThroughput": raised} for name in ("GSI1", "GSI2", "GSI3")
    ]
    assert here.on_demand


def test_the_cost_is_that_of_the_added_throughput(here: World) -> None:
    here.run(**warm(40_000))

    # 4 x (36,000 x $0.00065 + 8,000 x $0.00013), once
    assert here.answers[0]["Data"]["ExpectedDollars"] == "97.76"
    assert "$97.76, once" in here.log[0]


def test_the_idempotency_table_is_raised_too(here: World) -> None:
    execution = here.run(wanted=wanted("native", 40_000, idempotency=20_000))

    (update,) = here.table.beside
    assert execution.status == "SUCCEEDED"
    assert update["WarmThroughput"] == {"WriteUnitsPerSecond": 20_000}
    # 4 x 36,000 x $0.00065 for the table and its indexes, and 16,000 x $0.00065
    assert here.answers[0]["Data"]["ExpectedDollars"] == "104.00"
    assert "idempotency table to 20000 write units; about $10.40, once" in here.log[0]


def test_the_idempotency_table_is_raised_even_if_the_table_is_warm(here: World) -> None:
    for run in ("run-1", "run-2"):
        here.run(run, wanted=wanted("native", 4_000, idempotency=20_000))

    assert here.table.updates == []
    assert len(here.table.beside) == 1
    assert [answer["Data"]["ExpectedDollars"] for answer in here.answers] == ["10.40", "0.00"]


def test_an_idempotency_table_that_cannot_be_raised_is_reported(here: World) -> None:
    here.faults = [Fault("raise_idempotency", "refused")]

    here.run(wanted=wanted("native", 40_000, idempotency=20_000))

    assert len(here.table.updates) == 1
    assert here.answers[0]["Status"] == "FAILED"


def test_a_request_of_an_earlier_release_leaves_the_idempotency_table(here: World) -> None:
    asked = wanted("native", 40_000)
    del asked["IdempotencyWriteUnits"]

    here.run(wanted=asked)

    assert here.table.beside == []
    assert here.answers[0]["Status"] == "SUCCESS"


def test_throughput_above_the_request_is_left_alone(here: World) -> None:
    here.dynamodb.update_table(
        TableName=TABLE, WarmThroughput={"ReadUnitsPerSecond": 90_000, "WriteUnitsPerSecond": 90_000}
    )

    here.run(**warm(40_000))

    (update,) = here.table.updates
    assert "WarmThroughput" not in update
    assert present(here) == (90_000, 90_000)


def test_reads_and_writes_are_raised_to_the_larger_of_request_and_present(here: World) -> None:
    here.dynamodb.update_table(
        TableName=TABLE, WarmThroughput={"ReadUnitsPerSecond": 90_000, "WriteUnitsPerSecond": 4_000}
    )

    here.run(**warm(40_000))

    assert here.table.updates[0]["WarmThroughput"] == {"ReadUnitsPerSecond": 90_000, "WriteUnitsPerSecond": 40_000}


def test_a_warm_table_is_not_touched(here: World) -> None:
    execution = here.run(wanted={**wanted("native", 4_000), "ReadUnits": "12000"})

    assert execution.status == "SUCCEEDED"
    assert here.table.updates == []
    assert "warm for 4000 write units already" in here.answers[0]["Reason"]


@pytest.mark.parametrize("step", ["plan", "raise"])
def test_a_failure_fails_the_first_deployment_and_never_a_later_one(here: World, step: str) -> None:
    here.faults = [Fault(step, "refused")]

    here.run("run-1", **warm(40_000))
    later = here.run("run-2", **warm(40_000), request=UPDATE)

    assert [answer["Status"] for answer in here.answers] == ["FAILED", "SUCCESS"]
    assert here.answers[1]["Data"]["Outcome"].startswith("not pre-warmed: ")
    assert later.status == "FAILED"


def test_a_lost_answer_does_not_raise_twice(here: World) -> None:
    here.faults = [Fault("raise", "lost", times=1)]

    execution = here.run(**warm(40_000))

    assert execution.status == "SUCCEEDED"
    assert len(here.table.updates) == 1


@pytest.mark.parametrize(("units", "idempotency"), [(200_001, 4_000), (40_000, 200_001)])
def test_above_the_ceiling_nothing_is_raised(here: World, units: int, idempotency: int) -> None:
    here.run(wanted=wanted("native", units, idempotency))

    assert (here.table.updates, here.table.beside) == ([], [])
    assert here.answers[0]["Status"] == "FAILED"


def test_a_deletion_has_nothing_to_undo(here: World) -> None:
    execution = here.run(mode="restore", request={**REQUEST, "RequestType": "Delete"})

    assert execution.status == "SUCCEEDED"
    assert here.calls == ["report"]


def test_a_provisioned_table_is_raised_and_keeps_its_mode_and_its_units(here: World) -> None:
    units = {"ReadCapacityUnits": 100, "WriteCapacityUnits": 50}
    here.dynamodb.update_table(TableName=TABLE, BillingMode="PROVISIONED", ProvisionedThroughput=units)

    execution = here.run(**warm(40_000))

    (update,) = here.table.updates
    assert execution.status == "SUCCEEDED"
    assert update.keys() == {"TableName", "WarmThroughput", "GlobalSecondaryIndexUpdates"}
    assert not here.on_demand
    assert here.described()["ProvisionedThroughput"]["WriteCapacityUnits"] == 50
