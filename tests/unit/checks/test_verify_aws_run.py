"""A run of `dynashard verify-aws`: its choice of checks, the account, the budget, outcomes and what it cleans up."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from botocore.exceptions import ClientError

from dynashard_checks.verify_aws import deploying, verification
from dynashard_checks.verify_aws.account import confirm
from dynashard_checks.verify_aws.check import Check, Outcome, Verdict, differs, holds
from dynashard_checks.verify_aws.checks import CHECKS
from dynashard_checks.verify_aws.context import Answer, Clock, Context
from dynashard_checks.verify_aws.environment import Environment
from dynashard_checks.verify_aws.load import send
from dynashard_checks.verify_aws.report import document, lines
from dynashard_checks.verify_aws.runner import LOCAL_ONLY, NO_API, NO_TOKEN, run_checks, select, total_dollars
from dynashard_checks.verify_aws.scratch import PREFIX, TAG, Scratch
from dynashard_checks.verify_aws.sign_in import SignIn, refuse_if_signed_in
from dynashard_tools.environments import is_local
from dynashard_tools.failure import CommandError

pytestmark = pytest.mark.unit

ACCOUNT = "111122223333"


def error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "m"}}, "Op")


class Tables:
    """As much of DynamoDB, SQS and the logs as scratch resources use. Deleting a table fails with `refusals` first."""

    def __init__(self, *refusals: str) -> None:
        self.refusals = list(refusals)
        self.tables: dict[str, dict[str, Any]] = {}

    def __call__(self, service: str, *, retries: bool = True) -> "Tables":
        assert service in {"dynamodb", "sqs", "logs"}
        assert retries
        return self

    def create_table(self, TableName: str, **request: Any) -> None:  # noqa: N803 - as botocore
        self.tables[TableName] = request

    def describe_table(self, TableName: str) -> dict[str, Any]:  # noqa: N803
        if TableName not in self.tables:
            raise error("ResourceNotFoundException")
        return {"Table": {"TableStatus": "ACTIVE", "TableArn": TableName}}

    def delete_table(self, TableName: str) -> None:  # noqa: N803
        if self.refusals:
            raise error(self.refusals.pop(0))
        if TableName not in self.tables:
            raise error("ResourceNotFoundException")
        del self.tables[TableName]

    def list_tags_of_resource(self, ResourceArn: str) -> dict[str, Any]:  # noqa: N803
        return {"Tags": self.tables[ResourceArn].get("Tags", [])}

    def get_paginator(self, operation: str) -> "Tables":
        self.listed = operation
        return self

    def paginate(self, **_prefix: str) -> list[dict[str, Any]]:
        return [{"TableNames": list(self.tables)}] if self.listed == "list_tables" else [{"logGroups": []}]


@pytest.fixture
def now() -> list[float]:
    return [0.0]


@pytest.fixture
def clock(now: list[float]) -> Clock:
    def sleep(seconds: float) -> None:
        now[0] += seconds

    return Clock(lambda: now[0], sleep)


def context_of(tables: Tables, clock: Clock, token: str = "") -> Context:
    scratch = Scratch(tables, "r1", clock.now, clock.sleep)
    return Context(tables, scratch, Environment("dev", lambda _stack: {}, token), clock)


def check(name: str, run: Callable[[Context], Outcome] = lambda _context: holds("seen"), **more: Any) -> Check:
    return Check(name, f"{name} holds", run, **more)


def test_names_are_unique_and_optional_checks_are_those_that_are_long_or_expensive() -> None:
    names = [each.name for each in CHECKS]

    assert len(set(names)) == len(names)
    assert [each.name for each in CHECKS if each.optional] == [
        each.name for each in CHECKS if each.dollars > 1 or each.seconds > 3600
    ]
    assert total_dollars([each for each in CHECKS if not each.optional]) <= 1.6


def test_all_checks_but_optional_ones_are_selected_and_named_ones_once() -> None:
    checks = [check("a"), check("b", optional=True), check("c")]

    assert [each.name for each in select(checks, (), 1)] == ["a", "c"]
    assert [each.name for each in select(checks, ("b", "a", "b"), 1)] == ["b", "a"]


@pytest.mark.parametrize(
    ("names", "message"),
    [(("x",), "there is no check x"), ((), r"may cost \$2.50, and the budget is \$2.00")],
)
def test_an_unknown_check_and_one_beyond_the_budget_are_refused(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        select([check("a", dollars=2.5)], names, 2.0)


@pytest.mark.parametrize("environment", [None, "local"])
def test_the_local_stack_is_refused(environment: str | None) -> None:
    with pytest.raises(CommandError, match="--env dev"):
        verification.chosen(environment, (), 3.0)


@pytest.mark.parametrize(
    ("given", "assumed", "typed"), [(ACCOUNT, True, ""), (None, False, ACCOUNT), (ACCOUNT, False, f" {ACCOUNT} ")]
)
def test_the_account_is_confirmed_by_its_number(given: str | None, assumed: bool, typed: str) -> None:  # noqa: FBT001
    confirm(ACCOUNT, given, assumed=assumed, ask=lambda: typed)


@pytest.mark.parametrize(
    ("given", "assumed", "typed"),
    [("999988887777", True, ""), ("999988887777", False, ACCOUNT), (None, False, "y"), (None, False, "")],
)
def test_another_account_is_refused(given: str | None, assumed: bool, typed: str) -> None:  # noqa: FBT001
    with pytest.raises(CommandError, match="nothing was done"):
        confirm(ACCOUNT, given, assumed=assumed, ask=lambda: typed)


def test_a_script_has_to_name_the_account() -> None:
    with pytest.raises(CommandError, match="--yes needs --account"):
        confirm(ACCOUNT, None, assumed=True, ask=lambda: ACCOUNT)


def test_errors_of_a_check_are_its_outcome_and_others_go_on(clock: Clock) -> None:
    def refused(_context: Context) -> Outcome:
        raise error("AccessDeniedException")

    checks = [check("a", refused), check("b", lambda _context: differs("other")), check("c")]

    report = run_checks(checks, context_of(Tables(), clock), local=False, has_api=True)

    assert [each.outcome.verdict for each in report.results] == [Verdict.UNCLEAR, Verdict.DIFFERS, Verdict.HOLDS]
    assert "AccessDeniedException" in report.results[0].outcome.seen


@pytest.mark.parametrize(
    ("needs", "given", "why"),
    [
        ({}, {"local": True}, LOCAL_ONLY),
        ({"needs_api": True}, {"has_api": False}, NO_API),
        ({"needs_api": True, "needs_token": True}, {}, NO_TOKEN),
    ],
)
def test_a_check_that_could_show_nothing_is_not_run(
    needs: dict[str, Any], given: dict[str, bool], why: str, clock: Clock
) -> None:
    report = run_checks(
        [check("a", **needs)], context_of(Tables(), clock), **{"local": False, "has_api": True, **given}
    )

    assert (report.results[0].outcome.verdict, report.results[0].outcome.seen) == (Verdict.UNCLEAR, why)


def test_a_defect_of_a_check_is_its_outcome_too(clock: Clock) -> None:
    def defective(_context: Context) -> Outcome:
        raise KeyError("Missing")

    report = run_checks([check("a", defective), check("b")], context_of(Tables(), clock), local=False, has_api=True)

    assert [each.outcome.verdict for each in report.results] == [Verdict.UNCLEAR, Verdict.HOLDS]


def test_tables_have_prefix_and_tag_and_are_removed_after_an_error(clock: Clock) -> None:
    tables, made = Tables(), list[dict[str, Any]]()

    def failing(context: Context) -> Outcome:
        context.scratch.table("x", indexed=True)
        made.append({**tables.tables})
        raise TimeoutError("slow")

    report = run_checks([check("a", failing)], context_of(tables, clock), local=False, has_api=True)

    [(name, request)] = made[0].items()
    assert name == f"{PREFIX}r1-x"
    assert request["Tags"] == [{"Key": TAG, "Value": "r1"}]
    assert (tables.tables, report.left) == ({}, [])


def test_ctrl_c_removes_what_was_created_and_reports_what_did_not_run(clock: Clock) -> None:
    tables = Tables()

    def interrupted(context: Context) -> Outcome:
        context.scratch.table("x")
        raise KeyboardInterrupt

    checks = [check("a"), check("b", interrupted), check("c")]
    report = run_checks(checks, context_of(tables, clock), local=False, has_api=True)

    assert ([each.check.name for each in report.results], tables.tables) == (["a"], {})
    assert [each.name for each in report.not_run] == ["b", "c"]


def test_a_table_that_is_changing_is_deleted_when_it_has_changed(clock: Clock, now: list[float]) -> None:
    tables = Tables(*["ResourceInUseException"] * 5)
    context = context_of(tables, clock)
    context.scratch.table("x")

    assert context.scratch.remove_all() == []
    assert (tables.tables, now[0] > 0) == ({}, True)


def test_what_cannot_be_removed_is_reported_and_removed_by_a_later_run(clock: Clock) -> None:
    tables = Tables("AccessDeniedException", "AccessDeniedException")
    tables.tables = {f"{PREFIX}elses": {"Tags": []}, "users": {"Tags": [{"Key": TAG, "Value": "r1"}]}}
    context = context_of(tables, clock)

    def creating(context: Context) -> Outcome:
        context.scratch.table("x")
        return holds("seen")

    report = run_checks([check("a", creating)], context, local=False, has_api=True)
    removed, left = context_of(tables, clock).scratch.remove_leftovers()

    [what] = report.left
    assert what.startswith(f"table {PREFIX}r1-x: ")
    assert "could not be removed" in "\n".join(lines(report))
    assert (removed, left) == ([f"table {PREFIX}r1-x"], [])
    # Without the tag or the prefix a table is not ours.
    assert set(tables.tables) == {f"{PREFIX}elses", "users"}


def test_the_report_has_every_outcome_and_no_token(clock: Clock) -> None:
    context = context_of(Tables(), clock, token="eyJsecret")  # noqa: S106 - made up

    report = run_checks([check("a"), check("b", local=True)], context, local=True, has_api=True)
    whole = document(report, account=ACCOUNT, region="eu-west-1", environment="dev", local=True)

    assert [(each["name"], each["verdict"], each["counts"]) for each in whole["checks"]] == [
        ("a", "could not tell", False),
        ("b", "holds", True),
    ]
    text = json.dumps(whole) + "\n".join(lines(report)) + repr(context.environment)
    assert "eyJsecret" not in text


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("https://dynamodb.eu-west-1.amazonaws.com", False),
        ("https://dynamodb.cn-north-1.amazonaws.com.cn", False),
        ("https://111122223333.ddb.eu-west-1.amazonaws.com", False),
        ("http://127.0.0.1:4566", True),
        ("http://localhost:4566", True),
        ("https://amazonaws.com.example.org", True),
    ],
)
def test_a_local_aws_is_known_by_its_host(url: str, local: bool) -> None:  # noqa: FBT001
    assert is_local(url) is local


def test_a_failed_deployment_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploying, "CDK", Path("/no/cdk"))

    with pytest.raises(CommandError, match="make setup"):
        deploying.deploy("dev", ())


def test_an_ended_run_has_the_status_of_its_worst_outcome(clock: Clock) -> None:
    def status(*checks: Check) -> int:
        report = run_checks(checks, context_of(Tables(), clock), local=False, has_api=True)
        try:
            verification.end(report)
        except typer.Exit as ended:
            return ended.exit_code
        return 0

    good, bad, unknown = check("a"), check("b", lambda _context: differs("x")), check("c", needs_token=True)
    assert [status(good), status(good, unknown), status(bad, unknown)] == [0, 3, 1]


def test_requests_are_sent_at_the_rate_and_counted_by_second(clock: Clock) -> None:
    def request(number: int) -> Answer:
        throttle = {"ThrottlingReasons": [{"reason": "R", "resource": "A"}]}
        return Answer(throttle, "ThrottlingException") if number % 2 else Answer({})

    traffic = send(request, rate=10.0, seconds=4, clock=clock, workers=1)

    assert (traffic.sent, traffic.throttled, traffic.sent_rate) == (40, 20, 10.0)
    assert traffic.by_second == [5, 5, 5, 5]
    assert traffic.settled_rate == 5.0
    assert traffic.reasons == {("R", "A"): 20}


def test_a_machine_that_is_too_slow_sends_less_and_ends_in_time(clock: Clock, now: list[float]) -> None:
    def request(_number: int) -> Answer:
        clock.sleep(0.5)
        return Answer({})

    traffic = send(request, rate=10.0, seconds=4, clock=clock, workers=1)

    assert (traffic.sent_rate, now[0]) == (2.0, 4.0)


def test_a_scratch_sign_in_is_refused_if_the_environment_has_one() -> None:
    with pytest.raises(CommandError, match="local has a sign-in"):
        refuse_if_signed_in("local", deployed=False)
    with pytest.raises(CommandError, match="dev is deployed already"):
        refuse_if_signed_in("dev", deployed=True)
    refuse_if_signed_in("new", deployed=False)


def test_a_scratch_sign_in_gives_cdk_its_issuer_and_never_its_token() -> None:
    signed_in = SignIn("https://issuer", "client", "eyJsecret")

    assert signed_in.options == [
        "--context=issuer=https://issuer",
        "--context=audience=client",
        "--context=tenant_claim=cognito:username",
        "--context=scope_claim=cognito:groups",
    ]
    assert "eyJsecret" not in repr(signed_in)
