"""Preflight: each limit of an account with what an environment needs, over botocore's own shapes of AWS's answers."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest
from botocore.session import get_session
from botocore.stub import Stubber
from typer.testing import CliRunner

from dynashard_cdk.settings import Settings, load
from dynashard_checks.preflight import checks, command, issuer
from dynashard_checks.preflight.account import Account
from dynashard_checks.preflight.finding import Finding, lines
from dynashard_tools.commands import app

pytestmark = pytest.mark.unit

ISSUER = "https://login.example.com/"
SIGN_IN = {"issuer": ISSUER, "audience": ["api"], "tenant_claim": "tenant"}
LIMITS = {
    "AccountMaxReadCapacityUnits": 80_000,
    "AccountMaxWriteCapacityUnits": 80_000,
    "TableMaxReadCapacityUnits": 40_000,
    "TableMaxWriteCapacityUnits": 40_000,
}
PROVISIONED = {
    "mode": "provisioned",
    "min_read_units": 1,
    "max_read_units": 10_000,
    "min_write_units": 1,
    "max_write_units": 10_000,
}
MISSING = {"scheduler": "ResourceNotFoundException", "ssm": "ParameterNotFound"}


@cache
def client(service: str) -> Any:
    """Return a client that never sends; making one takes long."""
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    return get_session().create_client(service, region_name="us-east-1", **keys)


@dataclass
class Answers:
    """What an account answers, in its order, by service."""

    stubs: dict[str, Stubber] = field(default_factory=dict)

    def stub(self, service: str) -> Stubber:
        if service not in self.stubs:
            self.stubs[service] = Stubber(client(service))
            self.stubs[service].activate()
        return self.stubs[service]

    def add(self, service: str, method: str, answer: dict[str, Any]) -> "Answers":
        self.stub(service).add_response(method, answer)
        return self

    def refuse(self, service: str, method: str, code: str) -> "Answers":
        self.stub(service).add_client_error(method, service_error_code=code)
        return self

    @property
    def account(self) -> Account:
        return Account(lambda service: self.stub(service).client)


@pytest.fixture
def answers() -> Iterator[Answers]:
    here = Answers()
    yield here
    for stub in here.stubs.values():
        stub.deactivate()
    for stub in here.stubs.values():
        stub.assert_no_pending_responses()


def settings(**changes: Any) -> Settings:
    given = {"purpose": "development", "auth": SIGN_IN, "reserve_concurrency": False, **changes}
    return load({"dev": given}, "dev")


def concurrency(quota: int, unreserved: int) -> dict[str, Any]:
    return {"AccountLimit": {"ConcurrentExecutions": quota, "UnreservedConcurrentExecutions": unreserved}}


def deployed(answers: Answers, functions: dict[str, str]) -> None:
    """Answer for the stacks of the environment: each has the function of its name, or does not exist."""
    for stack in checks.FUNCTION_STACKS:
        if stack not in functions:
            answers.refuse("cloudformation", "list_stack_resources", "ValidationError")
            continue
        summaries = [resource("AWS::IAM::Role", "role"), resource("AWS::Lambda::Function", functions[stack])]
        answers.add("cloudformation", "list_stack_resources", {"StackResourceSummaries": summaries})


def resource(kind: str, name: str) -> dict[str, Any]:
    """Return a resource as CloudFormation lists it."""
    return {
        "LogicalResourceId": "Resource",
        "PhysicalResourceId": name,
        "ResourceType": kind,
        "ResourceStatus": "CREATE_COMPLETE",
        "LastUpdatedTimestamp": datetime(2026, 11, 22, tzinfo=UTC),
    }


def unfit(found: list[Finding]) -> dict[str, str]:
    return {each.limit: each.remedy for each in found if not each.fits}


def test_the_credentials_must_be_those_of_the_account(answers: Answers) -> None:
    answers.add("sts", "get_caller_identity", {"Account": "111122223333"})

    (found,) = checks.identity(settings(account="444455556666"), answers.account)

    assert (found.needed, found.found) == ("444455556666", "111122223333")
    assert found.remedy == "use credentials of 444455556666"


@pytest.mark.parametrize(("version", "fits"), [("21", True), ("5", False)])
def test_the_account_must_be_bootstrapped(answers: Answers, version: str, fits: bool) -> None:  # noqa: FBT001 - a parameter
    answers.add("ssm", "get_parameter", {"Parameter": {"Value": version}})

    (found,) = checks.bootstrap(settings(), answers.account)

    assert found.fits is fits


def test_an_account_without_bootstrap_gets_the_command(answers: Answers) -> None:
    answers.refuse("ssm", "get_parameter", "ParameterNotFound")

    (found,) = checks.bootstrap(settings(), answers.account)

    assert (found.found, found.remedy) == ("none", "run `node_modules/.bin/cdk bootstrap`")


def test_a_new_account_fits_if_functions_share_its_concurrency(answers: Answers) -> None:
    answers.add("lambda", "get_account_settings", concurrency(10, 10))

    (found,) = checks.concurrency(settings(), answers.account)

    assert found == Finding("Lambda concurrency of the account", "shared", "10")


def test_reserved_concurrency_must_fit_into_what_others_leave(answers: Answers) -> None:
    answers.add("lambda", "get_account_settings", concurrency(1000, 200))
    deployed(answers, {})

    found = list(checks.concurrency(settings(reserve_concurrency=True), answers.account))

    assert [(each.needed, each.found, each.fits) for each in found] == [("1000", "1000", True), ("142", "100", False)]


def test_what_the_environment_has_reserved_already_counts_as_free(answers: Answers) -> None:
    answers.add("lambda", "get_account_settings", concurrency(1000, 200))
    deployed(answers, {"Api": "Dynashard-dev-Api-ApiFunction6BF808ED-x"})
    answers.add("lambda", "get_function_concurrency", {"ReservedConcurrentExecutions": 50})

    *_, found = checks.concurrency(settings(reserve_concurrency=True), answers.account)

    assert (found.found, found.fits) == ("150", True)


def test_a_quota_below_the_stated_one_is_reported(answers: Answers) -> None:
    answers.add("lambda", "get_account_settings", concurrency(500, 500))
    deployed(answers, {})

    found, _ = checks.concurrency(settings(reserve_concurrency=True), answers.account)

    assert found.remedy.startswith("set account_concurrency to 500, or ask for more")


@pytest.mark.parametrize(("maximum", "fits"), [(39_999, True), (40_000, False)])
def test_a_maximum_of_on_demand_units_must_be_below_the_quota(answers: Answers, maximum: int, fits: bool) -> None:  # noqa: FBT001 - a parameter
    answers.add("dynamodb", "describe_limits", LIMITS)

    (found,) = checks.units(settings(table={"max_write_units": maximum}), answers.account)

    assert found.limit == "DynamoDB write units of a table"
    assert found.fits is fits
    if not fits:
        assert found.remedy.endswith("or set table.max_write_units to 39999 or less")


def test_provisioned_units_must_fit_with_those_of_all_tables(answers: Answers) -> None:
    other = {
        "ProvisionedThroughput": {"ReadCapacityUnits": 10, "WriteCapacityUnits": 39_000},
        "GlobalSecondaryIndexes": [
            {"IndexName": "GSI1", "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 1_001}}
        ],
    }
    answers.add("dynamodb", "describe_limits", LIMITS)
    answers.add("dynamodb", "list_tables", {"TableNames": ["Dynashard-dev-Data-Table", "other"]})
    answers.add("dynamodb", "describe_table", {"Table": other})

    found = {each.limit: each for each in checks.units(settings(table=PROVISIONED), answers.account)}

    assert {limit: (each.needed, each.found, each.fits) for limit, each in found.items()} == {
        "DynamoDB read units of a table": ("10,000", "40,000", True),
        "DynamoDB read units of all tables": ("40,015", "80,000", True),
        "DynamoDB write units of a table": ("10,000", "40,000", True),
        "DynamoDB write units of all tables": ("80,001", "80,000", False),
    }


def test_the_highest_step_of_a_schedule_counts(answers: Answers) -> None:
    steps = [{"at": "17:00", "max_write_units": 50_000}]
    answers.add("dynamodb", "describe_limits", LIMITS).add("dynamodb", "list_tables", {"TableNames": []})

    found = list(checks.units(settings(table={**PROVISIONED, "schedule": steps}), answers.account))

    assert [each.needed for each in found if not each.fits] == ["50,000", "200,000"]


def test_a_provisioned_pre_warm_counts_for_the_account(answers: Answers) -> None:
    prewarm = {"way": "provisioned", "write_units": 30_000, "index_write_units": 1_000, "ceiling_write_units": 30_000}
    answers.add("dynamodb", "describe_limits", LIMITS).add("dynamodb", "list_tables", {"TableNames": []})

    found = {each.limit: each.needed for each in checks.units(settings(prewarm=prewarm), answers.account)}

    assert found == {
        "DynamoDB read units of a table, pre-warm": "12,000",
        "DynamoDB read units of all tables": "48,000",
        "DynamoDB write units of a table, pre-warm": "30,000",
        "DynamoDB write units of all tables": "33,000",
    }


@pytest.mark.parametrize(
    ("prewarm", "setting"),
    [
        ({"way": "provisioned", "write_units": 1, "index_write_units": 50_000}, "index_write_units"),
        ({"way": "native", "write_units": 1, "idempotency_write_units": 50_000}, "idempotency_write_units"),
    ],
)
def test_the_most_units_of_a_pre_warm_must_be_within_the_quota_of_a_table(
    answers: Answers, prewarm: dict[str, Any], setting: str
) -> None:
    answers.add("dynamodb", "describe_limits", LIMITS)
    if prewarm["way"] == "provisioned":
        answers.add("dynamodb", "list_tables", {"TableNames": []})

    found = list(checks.units(settings(prewarm={**prewarm, "ceiling_write_units": 50_000}), answers.account))

    [wrong] = [each for each in found if each.limit == "DynamoDB write units of a table, pre-warm"]
    assert (wrong.needed, wrong.fits) == ("50,000", False)
    assert wrong.remedy.endswith(f"or lower prewarm.{setting}")


def test_an_account_with_ten_log_policies_has_no_room_for_log_delivery(answers: Answers) -> None:
    policies = [{"policyName": f"p{number}", "policyDocument": "{}"} for number in range(10)]
    answers.add("logs", "describe_resource_policies", {"resourcePolicies": policies})

    (found,) = checks.log_policies(settings(), answers.account)

    assert (found.needed, found.found, found.fits) == ("1", "0", False)


@pytest.mark.parametrize(("used", "fits"), [(4_000, True), (4_900, False)])
def test_the_policy_of_log_delivery_must_have_room_for_our_logs(answers: Answers, used: int, fits: bool) -> None:  # noqa: FBT001 - a parameter
    policy = {"policyName": checks.DELIVERY_POLICY, "policyDocument": "x" * used}
    answers.add("logs", "describe_resource_policies", {"resourcePolicies": [policy]})

    (found,) = checks.log_policies(settings(), answers.account)

    assert found.fits is fits


def test_a_stop_loss_that_is_set_must_end_before_capacity_is_provisioned(answers: Answers) -> None:
    answers.add("scheduler", "get_schedule", {"Name": "dynashard-dev-stop-loss"})

    (found,) = checks.stop_loss(settings(table=PROVISIONED), answers.account)

    assert found.remedy.startswith("remove the pre-warm stack and wait")
    assert list(checks.stop_loss(settings(), answers.account)) == []


def test_a_limit_that_the_account_does_not_tell_does_not_fit(answers: Answers) -> None:
    for service, method in (
        ("sts", "get_caller_identity"),
        ("ssm", "get_parameter"),
        ("lambda", "get_account_settings"),
        ("dynamodb", "describe_limits"),
        ("logs", "describe_resource_policies"),
        ("scheduler", "get_schedule"),
    ):
        answers.refuse(service, method, "AccessDeniedException")

    found = checks.findings(settings(table=PROVISIONED), answers.account)

    assert {each.found for each in found} == {"not known"}
    assert [each.remedy.rpartition("; ")[2] for each in found] == [
        "allow sts:GetCallerIdentity",
        "allow ssm:GetParameter",
        "allow lambda:GetAccountSettings",
        "allow dynamodb:DescribeLimits",
        "allow logs:DescribeResourcePolicies",
        "allow scheduler:GetSchedule",
    ]


DISCOVERY = "https://login.example.com/.well-known/openid-configuration"
JWKS = "https://login.example.com/keys"
RSA = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1"}


def publishes(keys: list[dict[str, str]], name: str = ISSUER) -> Callable[[str], bytes]:
    """Return what fetches the documents of an issuer with these keys."""
    documents = {DISCOVERY: {"issuer": name, "jwks_uri": JWKS}, JWKS: {"keys": keys}}
    return lambda url: json.dumps(documents[url]).encode()


@pytest.mark.parametrize(
    "keys",
    [[RSA], [{"kty": "RSA", "kid": "1"}], [{"kty": "EC", "kid": "2"}, {**RSA, "alg": "RS512"}]],
    ids=["RS256", "any use", "one of several"],
)
def test_an_issuer_with_an_rsa_key_is_accepted(keys: list[dict[str, str]]) -> None:
    assert unfit(list(issuer.findings(ISSUER, publishes(keys)))) == {}


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ([{"kty": "EC", "alg": "ES256", "crv": "P-256", "kid": "1"}], "1 EC ES256 P-256"),
        ([{**RSA, "alg": "PS256"}], "1 RSA PS256"),
        ([{**RSA, "use": "enc"}], "1 RSA RS256 for encryption"),
        ([{"kty": "RSA", "alg": "RS256"}], "1 RSA RS256 without kid"),
        ([], "none"),
    ],
)
def test_keys_that_the_authorizer_cannot_use_are_refused(keys: list[dict[str, str]], found: str) -> None:
    *_, last = issuer.findings(ISSUER, publishes(keys))

    assert last.found == found
    assert "verifies RSA signatures only: let the issuer sign with RS256" in last.remedy


def test_the_issuer_must_have_exactly_the_name_of_its_document() -> None:
    found = list(issuer.findings("https://login.example.com", publishes([RSA])))

    assert unfit(found) == {
        "issuer's discovery document": "set auth.issuer to https://login.example.com/, exactly as the tokens' iss"
    }


@pytest.mark.parametrize("content", [b"<html>", b"[]"])
def test_an_issuer_without_discovery_is_refused(content: bytes) -> None:
    (found,) = issuer.findings(ISSUER, lambda _url: content)

    assert found.remedy == "correct auth.issuer, or publish the document there"


def test_only_https_is_fetched() -> None:
    with pytest.raises(ValueError, match="must start with https"):
        issuer.fetch("http://login.example.com")


def test_the_table_shows_every_limit_and_the_remedies_below() -> None:
    found = [Finding("one", "1", "10"), Finding("another limit", "2,000", "1,000", "ask for more")]

    assert list(lines(found)) == [
        "limit          needed  found",
        "one            1       10     ok",
        "another limit  2,000   1,000  NO",
        "another limit: ask for more.",
    ]


def run(monkeypatch: pytest.MonkeyPatch, answers: Answers, *more: str, quota: int = 40_000) -> Any:
    """Run the command for dev over an account that lets everything fit, unless its table quota is smaller."""
    answers.add("sts", "get_caller_identity", {"Account": "111122223333"})
    answers.add("ssm", "get_parameter", {"Parameter": {"Value": "21"}})
    answers.add("lambda", "get_account_settings", concurrency(1000, 1000))
    answers.add("dynamodb", "describe_limits", {**LIMITS, "TableMaxWriteCapacityUnits": quota})
    answers.add("logs", "describe_resource_policies", {"resourcePolicies": []})
    monkeypatch.setattr(command, "_client", lambda service, _region: answers.stub(service).client)
    monkeypatch.setattr(issuer, "fetch", publishes([RSA]))
    sign_in = ["--issuer", ISSUER, "--audience", "api", "--tenant-claim", "tenant"]
    return CliRunner().invoke(app, ["preflight", "--env", "dev", *sign_in, *more])


def test_an_environment_that_fits_ends_with_success(monkeypatch: pytest.MonkeyPatch, answers: Answers) -> None:
    result = run(monkeypatch, answers)

    assert result.exit_code == 0
    assert "NO" not in result.output
    assert "DynamoDB write units of a table above 4,000 40,000 ok" in " ".join(result.output.split())


def test_an_environment_that_does_not_fit_ends_with_failure(monkeypatch: pytest.MonkeyPatch, answers: Answers) -> None:
    result = run(monkeypatch, answers, "--json", quota=4_000)

    printed = json.loads(result.output)
    assert str(result.exception) == "1 of 8 limits do not fit dev; nothing was deployed"
    assert not printed["fits"]
    assert [each["limit"] for each in printed["findings"] if not each["fits"]] == ["DynamoDB write units of a table"]


def test_the_local_environment_has_no_account() -> None:
    result = CliRunner().invoke(app, ["preflight", "--env", "local"])

    assert "local is for this machine only" in str(result.exception)
