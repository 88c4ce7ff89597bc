"""The stop-loss of `provision-100000`: AWS deletes the table, whatever becomes of the process that provisioned it."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.session import get_session
from moto import mock_aws

from dynashard_checks.verify_aws.check import Verdict
from dynashard_checks.verify_aws.checks import CHECKS
from dynashard_checks.verify_aws.context import Clock, Context
from dynashard_checks.verify_aws.environment import Environment
from dynashard_checks.verify_aws.runner import run_checks
from dynashard_checks.verify_aws.scratch import PREFIX, Scratch
from dynashard_checks.verify_aws.stop_loss import BEGINS_AFTER_SECONDS, defer_leftovers

pytestmark = pytest.mark.infra

START = 1_800_000_000.0
TABLE = f"{PREFIX}run-much"
[CHECK] = [check for check in CHECKS if check.name == "provision-100000"]


class KilledError(BaseException):
    """The process was killed."""


class Account:
    """moto's services, with faults by the names of their methods, which are called before the method."""

    def __init__(self) -> None:
        self.now = START
        self.meanwhile: dict[str, Callable[[], None]] = {}

    def __call__(self, service: str, *, retries: bool = True) -> Any:
        assert retries
        return Disturbed(client_of(service), self.meanwhile)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def scratch(self, run: str = "run") -> Scratch:
        return Scratch(self, run, lambda: self.now, self.sleep)

    def context(self) -> Context:
        environment = Environment("dev", lambda _stack: {})
        return Context(self, self.scratch(), environment, Clock(lambda: self.now, self.sleep))

    @property
    def schedules(self) -> list[Mapping[str, Any]]:
        scheduler = self("scheduler")
        names = [each["Name"] for each in scheduler.list_schedules()["Schedules"]]
        return [scheduler.get_schedule(Name=name) for name in names]

    @property
    def roles(self) -> list[str]:
        return [each["RoleName"] for each in self("iam").list_roles()["Roles"]]

    @property
    def tables(self) -> list[str]:
        return list(self("dynamodb").list_tables()["TableNames"])

    @property
    def empty(self) -> bool:
        return (self.schedules, self.roles, self.tables) == ([], [], [])


@cache
def client_of(service: str) -> Any:
    """Return a client, which takes long to make. moto answers the clients that are made within its block."""
    return get_session().create_client(
        service,
        region_name="eu-west-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",  # noqa: S106
    )


class Disturbed:
    """A client whose methods are disturbed."""

    def __init__(self, client: Any, meanwhile: Mapping[str, Callable[[], None]]) -> None:
        self._client, self._meanwhile = client, meanwhile

    def __getattr__(self, name: str) -> Any:
        self._meanwhile.get(name, lambda: None)()
        return getattr(self._client, name)


def refused(code: str, *, times: int = 1_000_000) -> Callable[[], None]:
    """Return a fault that refuses so many calls."""
    left = [times]

    def refuse() -> None:
        if left[0]:
            left[0] -= 1
            raise ClientError({"Error": {"Code": code, "Message": "m"}}, "Op")

    return refuse


@pytest.fixture
def account() -> Iterator[Account]:
    with mock_aws():
        yield Account()


def test_the_stop_loss_is_set_before_anything_is_provisioned_and_removed_at_the_end(account: Account) -> None:
    seen: list[Mapping[str, Any]] = []
    account.meanwhile["update_table"] = lambda: seen.extend(account.schedules)

    report = run_checks([CHECK], account.context(), local=False, has_api=False)

    schedule, target = seen[0], seen[0]["Target"]
    assert report.results[0].outcome.verdict is Verdict.HOLDS
    assert (schedule["State"], schedule["ScheduleExpression"]) == ("ENABLED", "rate(5 minutes)")
    assert schedule["ActionAfterCompletion"] == "DELETE"
    assert schedule["StartDate"].timestamp() == START + BEGINS_AFTER_SECONDS
    assert target["Arn"] == "arn:aws:scheduler:::aws-sdk:dynamodb:deleteTable"
    assert json.loads(target["Input"]) == {"TableName": TABLE}
    assert account.empty


def test_its_role_may_delete_this_table_alone_and_serves_schedules_of_this_account(account: Account) -> None:
    seen: list[Any] = []

    def look() -> None:
        iam = account("iam")
        seen.append(iam.get_role(RoleName=TABLE)["Role"]["AssumeRolePolicyDocument"]["Statement"])
        [name] = iam.list_role_policies(RoleName=TABLE)["PolicyNames"]
        seen.append(iam.get_role_policy(RoleName=TABLE, PolicyName=name)["PolicyDocument"]["Statement"])

    account.meanwhile["update_table"] = look
    CHECK.run(account.context())

    [trust], [allowed] = seen[:2]
    assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": "123456789012"}}
    assert (allowed["Action"], allowed["Resource"]) == (
        "dynamodb:DeleteTable",
        f"arn:aws:dynamodb:eu-west-1:123456789012:table/{TABLE}",
    )


@pytest.mark.parametrize("method", ["create_role", "put_role_policy", "create_schedule", "get_schedule"])
def test_nothing_is_provisioned_without_a_stop_loss(account: Account, method: str) -> None:
    def provision() -> None:
        raise AssertionError("provisioned")

    account.meanwhile = {method: refused("AccessDeniedException"), "update_table": provision, "create_table": provision}

    report = run_checks([CHECK], account.context(), local=False, has_api=False)
    account.meanwhile.clear()

    outcome = report.results[0].outcome
    assert outcome.verdict is Verdict.UNCLEAR
    assert "the stop-loss cannot be set, so nothing was provisioned" in outcome.seen
    assert (report.left, account.empty) == ([], True)


def test_a_role_that_is_not_known_yet_is_waited_for(account: Account) -> None:
    account.meanwhile["create_schedule"] = refused("ValidationException", times=4)

    assert CHECK.run(account.context()).verdict is Verdict.HOLDS


def test_a_killed_run_leaves_a_stop_loss_that_deletes_the_table(account: Account) -> None:
    updates = iter([None, KilledError()])

    def die_at_the_return() -> None:
        if error := next(updates):
            raise error

    account.meanwhile["update_table"] = die_at_the_return
    with pytest.raises(KilledError):
        CHECK.run(account.context())
    [schedule] = account.schedules
    provisioned = account.tables
    account("dynamodb").delete_table(**json.loads(schedule["Target"]["Input"]))

    assert (provisioned, account.tables) == ([TABLE], [])


def test_the_stop_loss_stays_while_its_table_cannot_be_deleted(account: Account) -> None:
    account.meanwhile["delete_table"] = refused("AccessDeniedException")

    report = run_checks([CHECK], account.context(), local=False, has_api=False)

    assert [line.partition(": ")[0] for line in report.left] == [f"stop-loss of {TABLE}", f"table {TABLE}"]
    assert [each["Name"] for each in account.schedules] == account.roles == account.tables == [TABLE]


def test_a_later_run_removes_the_table_and_then_its_stop_loss(account: Account) -> None:
    context = account.context()
    account.meanwhile["delete_table"] = refused("AccessDeniedException")
    run_checks([CHECK], context, local=False, has_api=False)
    account.meanwhile.clear()
    later = account.scratch("later")

    defer_leftovers(later)
    removed, left = later.remove_leftovers()

    assert (removed, left) == ([f"stop-loss of {TABLE}", f"table {TABLE}"], [])
    assert account.empty


def test_the_schedule_of_a_pre_warm_is_not_taken_for_a_leftover(account: Account) -> None:
    account("scheduler").create_schedule(
        Name=f"{PREFIX}stop-loss",
        ScheduleExpression="rate(5 minutes)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": "arn:aws:scheduler:::aws-sdk:dynamodb:updateTable", "RoleArn": "arn:aws:iam::1:role/r"},
    )
    scratch = account.scratch()

    defer_leftovers(scratch)

    assert scratch.present == []


def test_credentials_that_may_not_list_schedules_find_none(account: Account) -> None:
    account.meanwhile["get_paginator"] = refused("AccessDeniedException", times=1)
    scratch = account.scratch()

    defer_leftovers(scratch)

    assert scratch.present == []
