"""The local token issuer, and the refusals of its authorizer."""

from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from dynashard_local.errors import LocalStackError
from dynashard_local.gateway.tokens import Issuer, UnauthorizedError, local_key

pytestmark = pytest.mark.unit

NOW = 1_700_000_000
ISSUER = "http://127.0.0.1:8000/local"


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def issuer_at(key: rsa.RSAPrivateKey, now: float) -> Issuer:
    return Issuer(key, ISSUER, "dynashard", clock=lambda: now, scopes=lambda: ["things:read", "things:write"])


def test_an_issued_token_is_valid_with_its_claims(key: rsa.RSAPrivateKey) -> None:
    issuer = issuer_at(key, NOW)

    claims = issuer.verify("Bearer " + issuer.issue({"tenant_id": "abc"}, subject="ada"), ["other", "dynashard"])

    assert claims == {
        "tenant_id": "abc",
        "sub": "ada",
        "iss": ISSUER,
        "aud": "dynashard",
        "iat": NOW,
        "nbf": NOW,
        "exp": NOW + 3600,
        "scope": "things:read things:write",
    }


def test_a_token_has_other_scopes_if_its_claims_say_so(key: rsa.RSAPrivateKey) -> None:
    issuer = issuer_at(key, NOW)

    few, listed = (issuer.verify(issuer.issue(each), ["dynashard"]) for each in ({"scope": ""}, {"scp": ["a"]}))

    assert few["scope"] == ""
    assert "scope" not in listed


def test_the_word_bearer_may_be_left_out(key: rsa.RSAPrivateKey) -> None:
    issuer = issuer_at(key, NOW)

    assert issuer.verify(issuer.issue({}), ["dynashard"])["sub"] == "local"


def test_a_token_is_valid_until_the_second_of_its_expiry(key: rsa.RSAPrivateKey) -> None:
    token = issuer_at(key, NOW).issue({}, lifetime_seconds=60)

    issuer_at(key, NOW + 59.9).verify(token, ["dynashard"])

    with pytest.raises(UnauthorizedError, match="expired"):
        issuer_at(key, NOW + 60).verify(token, ["dynashard"])


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"iss": "http://elsewhere"}, "issuer"),
        ({"aud": "other"}, "audience"),
        ({"aud": ["other", 1, {"a": 1}]}, "audience"),
        ({"aud": None}, "audience"),
        ({"nbf": NOW + 1}, "not valid yet"),
        ({"iat": NOW + 1}, "iat"),
        ({"iat": None}, "iat"),
        ({"exp": None}, "no exp"),
        ({"exp": "never"}, "exp"),
        ({"exp": True}, "not a time"),
    ],
)
def test_a_token_with_wrong_standard_claims_is_refused(
    key: rsa.RSAPrivateKey, claims: dict[str, Any], reason: str
) -> None:
    issuer = issuer_at(key, NOW)

    with pytest.raises(UnauthorizedError, match=reason):
        issuer.verify(issuer.issue(claims), ["dynashard"])


def test_client_id_stands_in_for_a_missing_audience(key: rsa.RSAPrivateKey) -> None:
    issuer = issuer_at(key, NOW)
    claims = {"iss": ISSUER, "client_id": "dynashard", "iat": NOW, "exp": NOW + 1}
    token = jwt.encode(claims, key, algorithm="RS256", headers={"kid": issuer.key_id})

    assert issuer.verify(token, ["dynashard"])["client_id"] == "dynashard"


@pytest.mark.parametrize("authorization", ["", "Bearer ", "Bearer", "Bearer a.b.c", "Basic YTpi", "\u00eb", "a" * 9000])
def test_text_that_is_not_a_token_is_refused(key: rsa.RSAPrivateKey, authorization: str) -> None:
    with pytest.raises(UnauthorizedError):
        issuer_at(key, NOW).verify(authorization, ["dynashard"])


def test_a_token_signed_by_another_key_is_refused(key: rsa.RSAPrivateKey) -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    issuer = issuer_at(key, NOW)
    forged = jwt.encode(
        {"iss": ISSUER, "aud": "dynashard", "iat": NOW, "exp": NOW + 1},
        other,
        algorithm="RS256",
        headers={"kid": issuer.key_id},
    )

    with pytest.raises(UnauthorizedError, match="signature"):
        issuer.verify(forged, ["dynashard"])


@pytest.mark.parametrize("algorithm", ["none", "HS256", "PS256"])
def test_only_rs256_is_accepted(key: rsa.RSAPrivateKey, algorithm: str) -> None:
    issuer = issuer_at(key, NOW)
    signer: Any = {"none": None, "HS256": "s" * 64, "PS256": key}[algorithm]
    token = jwt.encode(
        {"iss": ISSUER, "aud": "dynashard", "iat": NOW, "exp": NOW + 1},
        signer,
        algorithm=algorithm,
        headers={"kid": issuer.key_id},
    )

    with pytest.raises(UnauthorizedError):
        issuer.verify(token, ["dynashard"])


def test_another_tool_can_verify_a_token_with_the_published_keys(key: rsa.RSAPrivateKey) -> None:
    issuer = issuer_at(key, NOW)
    token = issuer.issue({"tenant_id": "abc"})

    published = jwt.PyJWKSet.from_dict(issuer.jwks())[issuer.key_id]

    claims = jwt.decode(token, published, audience="dynashard", options={"verify_exp": False})
    assert claims["tenant_id"] == "abc"
    assert issuer.discovery()["jwks_uri"] == f"{ISSUER}/.well-known/jwks.json"


def test_the_key_is_created_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    first = local_key(tmp_path)

    again = local_key(tmp_path)

    assert again.private_numbers() == first.private_numbers()
    assert (tmp_path / "token-key.pem").stat().st_mode & 0o077 == 0


def test_a_damaged_key_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "token-key.pem").write_text("no key")

    with pytest.raises(LocalStackError, match=r"token-key\.pem does not contain an RSA key: remove it"):
        local_key(tmp_path)


def test_the_signature_of_a_token_is_verified_once_and_its_times_for_each_request(
    key: rsa.RSAPrivateKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [float(NOW)]
    issuer = Issuer(key, ISSUER, "dynashard", clock=lambda: clock[0])
    token = issuer.issue({"tenant_id": "abc"}, lifetime_seconds=60)
    decoded: list[Any] = []
    decode = jwt.decode

    def counted(*given: Any, **named: Any) -> Any:
        decoded.append(given)
        return decode(*given, **named)

    monkeypatch.setattr(jwt, "decode", counted)

    first = issuer.verify(token, ["dynashard"])
    first["tenant_id"] = "changed by its caller"

    assert issuer.verify(f"Bearer {token}", ["dynashard"])["tenant_id"] == "abc"
    assert len(decoded) == 1
    with pytest.raises(UnauthorizedError, match="another audience"):
        issuer.verify(token, ["other"])
    clock[0] += 60
    with pytest.raises(UnauthorizedError, match="expired"):
        issuer.verify(token, ["dynashard"])


def test_a_bounded_number_of_tokens_is_remembered(key: rsa.RSAPrivateKey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynashard_local.gateway.tokens.REMEMBERED", 2)
    issuer = issuer_at(key, NOW)
    tokens = [issuer.issue({"tenant_id": name}) for name in ("a", "b", "c")]

    found = [issuer.verify(token, ["dynashard"])["tenant_id"] for token in [*tokens, *tokens]]

    assert found == ["a", "b", "c", "a", "b", "c"]
    assert len(issuer._signed) == 2
