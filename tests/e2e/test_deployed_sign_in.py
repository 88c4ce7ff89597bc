"""The authorizer of the deployed gateway, with tokens of a real issuer."""

from collections.abc import Mapping
from dataclasses import replace
from time import time
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from dynashard_local.gateway.tokens import ALGORITHM
from tests.e2e.deployment import TENANT_CLAIM, Deployment

pytestmark = pytest.mark.e2e

UNAUTHORIZED = (401, {"message": "Unauthorized"})


@pytest.fixture(scope="module")
def anyone(deployment: Deployment) -> httpx.Client:
    return deployment.client()


def answer(client: httpx.Client, path: str = "/v1/users") -> tuple[int, Any]:
    answered = client.get(path)
    return answered.status_code, answered.json()


def test_health_needs_no_token(anyone: httpx.Client) -> None:
    health = anyone.get("/v1/health")

    assert (health.status_code, health.json()["status"]) == (200, "ok")
    assert health.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["/v1/users", "/v1/users/1", "/v1/openapi.json", "/v1/docs", "/v1/health/more", "/v1/x"]
)
def test_every_other_route_requires_a_token(anyone: httpx.Client, path: str) -> None:
    assert answer(anyone, path) == UNAUTHORIZED


def test_health_accepts_only_reads(anyone: httpx.Client) -> None:
    assert anyone.post("/v1/health").status_code == 401


def test_a_token_of_the_issuer_is_accepted(deployment: Deployment) -> None:
    client = deployment.tenant("welcome")

    assert answer(client) == (200, {"items": [], "cursor": None})
    assert client.get("/v1/openapi.json").json()["openapi"] == "3.1.0"
    assert "swagger" in client.get("/v1/docs").text.lower()


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1},
        {"exp": int(time()) - 1},
        {"nbf": int(time()) + 3600},
        {"iss": "https://elsewhere.example/"},
        {"aud": "another"},
        {"aud": ["another", "third"]},
    ],
    ids=["long expired", "just expired", "not yet valid", "other issuer", "other audience", "other audiences"],
)
def test_an_invalid_token_is_refused(deployment: Deployment, claims: Mapping[str, Any]) -> None:
    token = deployment.issuer.issue({TENANT_CLAIM: "welcome", **claims})

    assert answer(deployment.client(token)) == UNAUTHORIZED


def test_a_token_signed_by_somebody_else_under_the_issuers_key_id_is_refused(deployment: Deployment) -> None:
    issuer = deployment.issuer
    claims = jwt.decode(issuer.issue({TENANT_CLAIM: "welcome"}), options={"verify_signature": False})
    foreign = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    forged = jwt.encode(claims, foreign, algorithm=ALGORITHM, headers={"kid": issuer.key_id})

    assert answer(deployment.client(forged)) == UNAUTHORIZED


def test_a_token_of_an_unknown_key_is_refused(deployment: Deployment) -> None:
    foreign = replace(deployment.issuer, key=rsa.generate_private_key(public_exponent=65537, key_size=2048))

    assert answer(deployment.client(foreign.issue({TENANT_CLAIM: "welcome"}))) == UNAUTHORIZED


def test_claims_changed_after_signing_are_refused(deployment: Deployment) -> None:
    mine, theirs = (deployment.issuer.issue({TENANT_CLAIM: tenant}).split(".") for tenant in ("mine", "theirs"))
    mixed = ".".join([mine[0], theirs[1], mine[2]])

    assert answer(deployment.client(mixed)) == UNAUTHORIZED


def test_an_unsigned_token_is_refused(deployment: Deployment) -> None:
    issuer = deployment.issuer
    claims = jwt.decode(issuer.issue({TENANT_CLAIM: "welcome"}), options={"verify_signature": False})
    unsigned = jwt.encode(claims, "", algorithm="none", headers={"kid": issuer.key_id})

    assert answer(deployment.client(unsigned)) == UNAUTHORIZED


@pytest.mark.parametrize("claims", [{}, {TENANT_CLAIM: ""}, {TENANT_CLAIM: "a:b"}, {"tenant_id": "welcome"}])
def test_a_token_that_names_no_usable_tenant_is_403(deployment: Deployment, claims: Mapping[str, Any]) -> None:
    refused = deployment.client(deployment.issuer.issue(claims)).get("/v1/users")

    assert (refused.status_code, refused.json()["code"]) == (403, "tenant_missing")
    assert refused.headers["content-type"] == "application/problem+json"
