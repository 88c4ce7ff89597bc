"""Sign-in out of the box: `auth: {"user_pool": {}}` adds users with a tenant, whose tokens the gateway admits."""

import json
from typing import Any

import pytest

from dynashard_cdk.settings import SettingsError, load
from tests.infra.templates import SIGN_IN, Templates, context, of_type, short

pytestmark = pytest.mark.infra


def only(template: dict[str, Any], kind: str) -> dict[str, Any]:
    (found,) = of_type(template, kind).values()
    properties: dict[str, Any] = found["Properties"]
    return properties


def test_dev_as_shipped_has_a_pool_and_prod_with_an_issuer_has_none(dev: Templates, prod: Templates) -> None:
    assert len(of_type(dev["Data"], "AWS::Cognito::UserPool")) == 1
    assert of_type(prod["Data"], "AWS::Cognito::UserPool") == {}
    assert {"UserPoolId", "UserPoolClientId"} <= dev["Data"]["Outputs"].keys()


def test_the_gateway_admits_the_pools_tokens_for_its_client(dev: Templates) -> None:
    jwt = only(dev["Api"], "AWS::ApiGatewayV2::Authorizer")["JwtConfiguration"]

    assert "ProviderURL" in short(jwt["Issuer"])
    assert ["Client" in short(audience) for audience in jwt["Audience"]] == [True]


def test_the_tenant_is_the_claim_of_the_custom_attribute(dev: Templates) -> None:
    claims = [
        variables["TENANT_CLAIM"]
        for function in of_type(dev["Api"], "AWS::Lambda::Function").values()
        if "TENANT_CLAIM" in (variables := function["Properties"]["Environment"]["Variables"])
    ]

    assert claims == ["custom:tenant_id"]
    assert "custom:tenant_id" in only(dev["Data"], "AWS::Cognito::UserPoolClient")["ReadAttributes"]


def test_nobody_chooses_or_changes_a_tenant_but_an_administrator(dev: Templates) -> None:
    pool = only(dev["Data"], "AWS::Cognito::UserPool")
    (attribute,) = pool["Schema"]

    assert pool["AdminCreateUserConfig"] == {"AllowAdminCreateUserOnly": True}
    assert (attribute["Name"], attribute["Mutable"]) == ("tenant_id", False)
    assert only(dev["Data"], "AWS::Cognito::UserPoolClient")["WriteAttributes"] == ["email"]


def test_its_findings_are_acknowledged_with_reasons(dev: Templates) -> None:
    report = json.loads((dev.folder / "validation-report.json").read_text())
    suppressed = [found for entry in report["pluginReports"] for found in entry.get("suppressedViolations", [])]

    found = {each["ruleName"]: each["reason"] for each in suppressed if "/Users/" in each["acknowledgedAt"]}

    assert sorted(found) == ["AwsSolutions-COG2", "AwsSolutions-COG8"]
    assert min(map(len, found.values())) > 40


def test_users_of_production_outlive_their_stack(synthesised_pool: Templates) -> None:
    (pool,) = of_type(synthesised_pool["Data"], "AWS::Cognito::UserPool").values()

    assert pool["DeletionPolicy"] == "Retain"
    assert pool["Properties"]["DeletionProtection"] == "ACTIVE"


def test_an_issuer_on_the_command_line_replaces_the_pool() -> None:
    environments = context("dev", auth={"user_pool": {}})["environments"]

    auth = load(environments, "dev", issuer=str(SIGN_IN["issuer"]), audience="a", tenant_claim="org").auth

    assert auth.tenant_claim == "org"
    with pytest.raises(SettingsError, match=r"environments\.dev\.auth\.tenant_claim: is required"):
        load(environments, "dev", issuer=str(SIGN_IN["issuer"]), audience="a")


@pytest.mark.parametrize(
    ("env", "auth", "message"),
    [
        ("dev", {"user_pool": {"colour": "blue"}}, "environments.dev.auth.user_pool.colour: there is no such setting"),
        ("dev", {"user_pool": {}, "issuer": "x"}, "environments.dev.auth.issuer: there is no such setting"),
        ("dev", {"user_pool": {}, "tenant_pattern": "^(a+)+$"}, "environments.dev.auth.tenant_pattern:"),
        ("local", {"user_pool": {}}, "environments.local.auth: user_pool is not for the local stack"),
    ],
)
def test_a_wrong_pool_is_refused_by_name(env: str, auth: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(context(env, auth=auth)["environments"], env)

    assert str(caught.value).startswith(message)
