"""Settings: an error names the wrong setting, and sign-in has no default."""

import json
from pathlib import Path
from typing import Any

import pytest

from dynashard_cdk.sections import AuthSettings, UserPoolAuth
from dynashard_cdk.settings import UNRESERVED_CONCURRENCY, SettingsError, load

pytestmark = pytest.mark.infra

SIGN_IN = {"issuer": "https://login.example.com/", "audience": ["api"], "tenant_claim": "tenant"}
GOOD: dict[str, Any] = {"purpose": "development", "auth": SIGN_IN}
NATIVE = {"way": "native", "write_units": 8000, "ceiling_write_units": 10_000}
RESTORED = {
    "table": "table-back",
    "table_stream": "arn:aws:dynamodb:eu-west-1:111122223333:table/table-back/stream/2026-11-20T10:00:00.000",
    "topology": "topology-back",
    "topology_stream": "arn:aws:dynamodb:eu-west-1:111122223333:table/topology-back/stream/2026-11-20T10:00:00.000",
}
TABLE_QUOTA = 40_000
"""Request units of a table or index in an account whose quotas AWS has not raised; a maximum must be below."""
CDK_JSON = Path(__file__).resolve().parents[2] / "cdk.json"


def test_an_environment_with_a_sign_in_needs_nothing_else() -> None:
    settings = load({"dev": GOOD}, "dev")

    assert isinstance(settings.auth, AuthSettings)
    assert settings.auth.issuer == "https://login.example.com/"
    assert settings.prewarm is None
    assert settings.api.cors.origins == ()


def test_the_longest_operation_is_as_long_as_a_request_unless_something_takes_longer() -> None:
    short = load({"dev": {**GOOD, "api": {"timeout_seconds": 10}}}, "dev")
    longer = load({"dev": {**GOOD, "topology_operation_seconds": 60}}, "dev")

    assert (short.longest_operation_seconds, short.topology_skew_seconds) == (10, 1)
    assert longer.longest_operation_seconds == 60


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"auth": None}, "environments.dev.auth:"),
        ({"auth": {**SIGN_IN, "issuer": ""}}, "environments.dev.auth.issuer:"),
        ({"auth": {**SIGN_IN, "audience": []}}, "environments.dev.auth.audience:"),
        ({"auth": {**SIGN_IN, "tenant_claim": ""}}, "environments.dev.auth.tenant_claim:"),
        (
            {"auth": {**SIGN_IN, "tenant_pattern": "^(a+)+$"}},
            "environments.dev.auth.tenant_pattern: '^(a+)+$' is not allowed from position 1 on",
        ),
        ({"auth": {**SIGN_IN, "issuer": "http://login.example.com"}}, "must start with https://"),
        ({"transport": "pigeon"}, "environments.dev.transport: Input should be 'botocore' or 'direct'"),
        ({"colour": "blue"}, "environments.dev.colour: there is no such setting"),
        ({"api": {"memory": 512}}, "environments.dev.api.memory: there is no such setting"),
        ({"api": {"memory_mb": 64}}, "environments.dev.api.memory_mb:"),
        ({"api": {"memory_mb": "lots"}}, "environments.dev.api.memory_mb:"),
        ({"api": {"timeout_seconds": 30}}, "environments.dev.api.timeout_seconds:"),
        ({"api": {"cors": {"origins": ["*"]}}}, "environments.dev.api.cors.origins.0:"),
        ({"table": {"max_write_units": 0}}, "environments.dev.table.max_write_units:"),
        ({"log_retention_days": 8}, "environments.dev.log_retention_days:"),
        ({"purpose": "fun"}, "environments.dev.purpose:"),
        ({"account": "12"}, "environments.dev.account:"),
        ({"topology_lease_seconds": 0}, "environments.dev.topology_lease_seconds:"),
        ({"topology_skew_seconds": -1}, "environments.dev.topology_skew_seconds:"),
        (
            {"topology_operation_seconds": 28},
            "environments.dev: topology_operation_seconds 28 is below api.timeout_seconds 29",
        ),
        ({"commands": {"reserved_concurrency": 0}}, "environments.dev.commands.reserved_concurrency:"),
        (
            {"api": {"listings_burst": 50}},
            "environments.dev.api: listings_burst 50 is not below reserved_concurrency 50",
        ),
        ({"api": {"listings_per_second": 101}}, "listings_per_second 101 is above requests_per_second 100"),
        (
            {"reshard": {"reserved_concurrency": 7}},
            "environments.dev.reshard: reserved_concurrency 7 is below concurrency 8",
        ),
        (
            {"changes": {"reserved_concurrency": 3}},
            "environments.dev.changes: reserved_concurrency 3 is below changes.lanes 4",
        ),
        (
            {"api": {"reserved_concurrency": 900}},
            "reserve a concurrency of 992, and Lambda lets an account with a quota",
        ),
        ({"account_concurrency": 10}, "a quota of 10 reserve 0: lower reserved_concurrency of api,"),
        ({"changes": {"lanes": 11}}, "environments.dev.changes.lanes:"),
        ({"writer": {"concurrency": 1}}, "environments.dev.writer.concurrency:"),
        ({"growth": {"mode": "maybe"}}, "environments.dev.growth.mode:"),
        (
            {"monitoring": {"addresses": ["ops"]}},
            "environments.dev.monitoring.addresses: 'ops' is neither an e-mail address such as ops@example.com",
        ),
        ({"monitoring": {"addresses": ["http://example.com"]}}, "'http://example.com' is neither"),
        ({"monitoring": {"addresses": ["a@example.com", "a@example.com"]}}, "an address is there twice"),
        ({"restored": {**RESTORED, "table": "a b"}}, "environments.dev.restored.table:"),
        ({"restored": {**RESTORED, "topology": RESTORED["table"]}}, "table and topology are the same table"),
        (
            {"restored": {**RESTORED, "topology_stream": RESTORED["table_stream"]}},
            "is not the stream of topology-back: write the LatestStreamArn that `aws dynamodb describe-table",
        ),
        ({"restored": RESTORED, "prewarm": NATIVE}, "restored tables have the capacity with which they were restored"),
        ({"monitoring": {"latency_milliseconds": 0}}, "environments.dev.monitoring.latency_milliseconds:"),
        ({"monitoring": {"growths_per_hour": 0}}, "environments.dev.monitoring.growths_per_hour:"),
        ({"monitoring": {"runbooks": "wiki"}}, "environments.dev.monitoring.runbooks:"),
        ({"growth": {"cooldown_seconds": 0}}, "environments.dev.growth.cooldown_seconds:"),
        (
            {"growth": {"cooldown_seconds": 600, "quiet_seconds": 300}},
            "environments.dev.growth: quiet_seconds 300 is below cooldown_seconds 600",
        ),
        ({"prewarm": {**NATIVE, "way": "magic"}}, "environments.dev.prewarm:"),
        ({"prewarm": {**NATIVE, "write_units": 20_000}}, "write_units 20000 is above ceiling_write_units 10000"),
        (
            {"prewarm": {**NATIVE, "way": "provisioned", "index_write_units": 20_000}},
            "index_write_units 20000 is above ceiling_write_units 10000",
        ),
        (
            {"prewarm": {"way": "native", "write_units": 1}},
            "environments.dev.prewarm.native.ceiling_write_units: is req",
        ),
    ],
)
def test_a_wrong_setting_is_refused_in_one_line_that_names_it(changes: dict[str, Any], message: str) -> None:
    environments = {"dev": {**GOOD, **changes}}

    with pytest.raises(SettingsError) as caught:
        load(environments, "dev")

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_account_too_small_to_reserve_shares_its_concurrency() -> None:
    small = load({"dev": {**GOOD, "account_concurrency": 10, "reserve_concurrency": False}}, "dev")

    assert not small.reserve_concurrency


@pytest.mark.parametrize("env", ["dev", "prod"])
def test_the_shipped_values_deploy_in_a_new_account(env: str) -> None:
    shipped = json.loads(CDK_JSON.read_text())["context"]["environments"][env]
    settings = load({env: {**shipped, "auth": SIGN_IN}}, env)

    assert settings.table.max_read_units is not None
    assert settings.table.max_write_units is not None
    assert max(settings.table.max_read_units, settings.table.max_write_units) < TABLE_QUOTA
    assert not settings.reserve_concurrency


@pytest.mark.parametrize("others", [(), ("dev",)], ids=["alone", "beside dev"])
def test_the_concurrency_of_prod_fits_an_account_of_the_usual_quota(others: tuple[str, ...]) -> None:
    shipped = json.loads(CDK_JSON.read_text())["context"]["environments"]
    sums = [
        sum(load({name: {**shipped[name], "auth": SIGN_IN}}, name).concurrency.values()) for name in ("prod", *others)
    ]

    assert sum(sums) <= 1000 - UNRESERVED_CONCURRENCY


def test_a_missing_sign_in_is_reported_with_the_settings_to_add() -> None:
    with pytest.raises(SettingsError) as caught:
        load({"dev": {"purpose": "development"}}, "dev")

    assert str(caught.value).startswith("environments.dev.auth: nothing is public")
    assert '{"issuer": ' in str(caught.value)


@pytest.mark.parametrize("missing", ["issuer", "audience", "tenant_claim"])
def test_no_part_of_the_sign_in_has_a_default(missing: str) -> None:
    sign_in = {key: value for key, value in SIGN_IN.items() if key != missing}

    with pytest.raises(SettingsError, match=rf"environments\.dev\.auth\.{missing}: is required"):
        load({"dev": {**GOOD, "auth": sign_in}}, "dev")


def test_a_sign_in_can_be_given_on_the_command_line() -> None:
    environments = {"dev": {"purpose": "development"}}

    settings = load(environments, "dev", issuer="https://a.example.com", audience="one, two", tenant_claim="org")

    assert isinstance(settings.auth, AuthSettings)
    assert settings.auth.audience == ("one", "two")
    assert settings.auth.tenant_claim == "org"


def test_an_unknown_environment_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=r"environments\.stage does not exist .* There are: dev"):
        load({"dev": GOOD}, "stage")


@pytest.mark.parametrize("environments", [None, {}, "dev", {"dev": "yes"}])
def test_a_context_without_environments_is_refused(environments: object) -> None:
    with pytest.raises(SettingsError, match="environments"):
        load(environments, "dev")


def test_settings_cannot_be_changed_after_they_were_checked() -> None:
    settings = load({"dev": GOOD}, "dev")

    with pytest.raises(ValueError, match="frozen"):
        settings.log_level = "DEBUG"  # type: ignore[misc]


def test_the_repository_ships_a_user_pool_for_dev_and_no_sign_in_for_prod() -> None:
    environments = json.loads(CDK_JSON.read_text())["context"]["environments"]

    refused = [name for name in environments if "auth" not in environments[name]]

    assert sorted(environments) == ["dev", "local", "prod"]
    assert refused == ["prod"]
    assert isinstance(load(environments, "dev").auth, UserPoolAuth)
    assert load(environments, "local").local
