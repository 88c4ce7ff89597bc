"""The local token issuer. It verifies tokens as API Gateway's JWT authorizer does."""

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from dynashard_local.data_folder import kept_file
from dynashard_local.errors import LocalStackError
from dynashard_serving.access import SCOPE
from dynashard_serving.domain import declared

ALGORITHM: Final = "RS256"
KEY_FILE: Final = "token-key.pem"
LIFETIME_SECONDS: Final = 3600
REMEMBERED: Final = 1024
"""How many tokens' signatures are remembered."""


class UnauthorizedError(Exception):
    """The token is missing or not valid; `reason` is for the `WWW-Authenticate` header, and empty without a token."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


def domain_scopes() -> Sequence[str]:
    """Return every scope that the domain of this process names; none without a domain."""
    try:
        return declared().declarations.scopes
    except ModuleNotFoundError:
        return ()


@dataclass(frozen=True)
class Issuer:
    """Issues and verifies tokens with the local key. `issuer` is their `iss`, which has the discovery document.

    Tokens have every scope that the domain names, unless their claims say otherwise.
    """

    key: rsa.RSAPrivateKey
    issuer: str
    audience: str
    clock: Callable[[], float] = time.time
    scopes: Callable[[], Sequence[str]] = domain_scopes
    _signed: dict[str, dict[str, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The claims of tokens whose signature and issuer were verified."""

    @cached_property
    def key_id(self) -> str:
        """The beginning of the key's fingerprint."""
        public = self.key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return sha256(public).hexdigest()[:16]

    def issue(
        self, claims: Mapping[str, Any], *, subject: str = "local", lifetime_seconds: int = LIFETIME_SECONDS
    ) -> str:
        """Return a bearer token with these claims. Standard ones are set if they are not given, and `scope` too."""
        now = int(self.clock())
        scopes = {} if claims.keys() & {SCOPE, "scp"} else {SCOPE: " ".join(self.scopes())}
        standard = {
            "iss": self.issuer,
            "aud": self.audience,
            "sub": subject,
            "iat": now,
            "nbf": now,
            "exp": now + lifetime_seconds,
        }
        return jwt.encode(standard | scopes | dict(claims), self.key, algorithm=ALGORITHM, headers={"kid": self.key_id})

    def verify(self, authorization: str, audience: Sequence[str]) -> dict[str, Any]:
        """Return the claims of the token in an `Authorization` header, with or without `Bearer `, as on the gateway.

        Cost: 150 us for a new token, 2 us for a token whose signature is remembered.

        Raises:
            UnauthorizedError: no token, another signer or algorithm, expired, not yet valid, another issuer or
                audience.
        """
        token = authorization.removeprefix("Bearer ").removeprefix("bearer ").strip()
        if not token:
            raise UnauthorizedError
        claims = self._signed.get(token) or self._verified(token)
        self._check_times(claims)
        _check_audience(claims, audience)
        return dict(claims)

    def _verified(self, token: str) -> dict[str, Any]:
        try:
            if jwt.get_unverified_header(token).get("kid") != self.key_id:
                raise UnauthorizedError("signing key not found")
            claims: dict[str, Any] = jwt.decode(
                token,
                self.key.public_key(),
                algorithms=[ALGORITHM],
                issuer=self.issuer,
                # Time and audience are checked for each request, by our clock, and with client_id in place of aud.
                options={"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_aud": False},
            )
        except jwt.InvalidTokenError as error:
            raise UnauthorizedError(str(error).lower()) from None
        if len(self._signed) >= REMEMBERED:
            del self._signed[next(iter(self._signed))]
        self._signed[token] = claims
        return claims

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now = self.clock()
        expires, begins, issued = (_time(claims, name) for name in ("exp", "nbf", "iat"))
        if expires is None or now >= expires:
            raise UnauthorizedError("the token has expired" if expires is not None else "the token has no exp")
        if begins is not None and now < begins:
            raise UnauthorizedError("the token is not valid yet")
        if issued is None or now < issued:
            raise UnauthorizedError("the token has no iat, or one in the future")

    def jwks(self) -> dict[str, Any]:
        """The public key as a JSON Web Key Set."""
        public = self.key.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": ALGORITHM, "kid": self.key_id}
        return {"keys": [key | {"n": _base64url(public.n), "e": _base64url(public.e)}]}

    def discovery(self) -> dict[str, Any]:
        """The OpenID Connect discovery document, by which other local tools can trust this issuer."""
        return {
            "issuer": self.issuer,
            "jwks_uri": f"{self.issuer}/.well-known/jwks.json",
            "token_endpoint": f"{self.issuer}/tokens",
            "id_token_signing_alg_values_supported": [ALGORITHM],
            "response_types_supported": ["token"],
            "subject_types_supported": ["public"],
        }


def local_key(data_dir: Path) -> rsa.RSAPrivateKey:
    """Return the key in the data folder, made at the first start, so that tokens outlive a restart.

    Raises:
        LocalStackError: the file does not contain an RSA key.
    """
    path = data_dir / KEY_FILE
    try:
        key = serialization.load_pem_private_key(kept_file(path, _new_key), password=None)
    except ValueError:
        key = None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise LocalStackError(f"{path} does not contain an RSA key: remove it, and the next start makes a new one.")
    return key


def _new_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise UnauthorizedError(f"{name} is not a time")
    return value


def _check_audience(claims: Mapping[str, Any], accepted: Sequence[str]) -> None:
    named = claims.get("aud", claims.get("client_id"))
    audience = named if isinstance(named, list) else [named]
    if not any(entry in accepted for entry in audience):
        raise UnauthorizedError("the token is for another audience")


def _base64url(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes((number.bit_length() + 7) // 8, "big")).rstrip(b"=").decode()
