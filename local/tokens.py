"""The local issuer: tokens for anybody who asks, checked exactly as API Gateway's JWT authorizer checks them."""

import base64
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from local.errors import LocalStackError

ALGORITHM: Final = "RS256"
KEY_FILE: Final = "token-key.pem"
LIFETIME_SECONDS: Final = 3600


class UnauthorizedError(Exception):
    """No token, or one that does not hold. `reason` is for the `WWW-Authenticate` header; empty without a token."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Issuer:
    """Issues and verifies tokens with the local key.

    Args:
        key: the private key; never leaves the machine.
        issuer: URL under which the discovery documents are served: the tokens' `iss`.
        audience: what the gateway accepts as `aud` or `client_id`; tokens are issued for the first.
        clock: epoch seconds.
    """

    key: rsa.RSAPrivateKey
    issuer: str
    audience: Sequence[str]
    clock: Callable[[], float] = time.time
    key_id: str = field(init=False)

    def __post_init__(self) -> None:
        public = self.key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        object.__setattr__(self, "key_id", sha256(public).hexdigest()[:16])

    def issue(
        self, claims: Mapping[str, Any], *, subject: str = "local", lifetime_seconds: int = LIFETIME_SECONDS
    ) -> str:
        """A bearer token with these claims; `iss`, `aud`, `sub`, `iat`, `nbf` and `exp` are set where not given."""
        now = int(self.clock())
        standard = {
            "iss": self.issuer,
            "aud": self.audience[0],
            "sub": subject,
            "iat": now,
            "nbf": now,
            "exp": now + lifetime_seconds,
        }
        return jwt.encode(
            standard | dict(claims), self.key, algorithm=ALGORITHM, headers={"kid": self.key_id}
        )

    def verify(self, authorization: str) -> dict[str, Any]:
        """The claims of the token in an `Authorization` header; `Bearer ` in front is optional, as on the gateway.

        Raises:
            UnauthorizedError: no token, another signer or algorithm, expired, not yet valid, wrong issuer or audience.
        """
        token = authorization.removeprefix("Bearer ").removeprefix("bearer ").strip()
        if not token:
            raise UnauthorizedError
        try:
            if jwt.get_unverified_header(token).get("kid") != self.key_id:
                raise UnauthorizedError("signing key not found")
            claims: dict[str, Any] = jwt.decode(
                token,
                self.key.public_key(),
                algorithms=[ALGORITHM],
                issuer=self.issuer,
                # Time and audience are checked below: by our clock, and with client_id in the place of aud.
                options={"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_aud": False},
            )
        except jwt.InvalidTokenError as error:
            raise UnauthorizedError(str(error).lower()) from None
        self._check_times(claims)
        self._check_audience(claims)
        return claims

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now = self.clock()
        for name, holds, reason in (
            ("exp", lambda at: now < at, "the token has expired"),
            ("nbf", lambda at: now >= at, "the token is not valid yet"),
            ("iat", lambda at: now >= at, "the token is issued in the future"),
        ):
            at = claims.get(name)
            if at is None and name == "nbf":
                continue
            if not isinstance(at, int | float) or isinstance(at, bool) or not holds(at):
                raise UnauthorizedError(reason if at is not None else f"the token has no {name}")

    def _check_audience(self, claims: Mapping[str, Any]) -> None:
        named = claims.get("aud", claims.get("client_id"))
        audience = named if isinstance(named, list) else [named]
        if not set(self.audience) & {entry for entry in audience if isinstance(entry, str)}:
            raise UnauthorizedError("the token is for another audience")

    def jwks(self) -> dict[str, Any]:
        """The public key as a JSON Web Key Set."""
        public = self.key.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": ALGORITHM, "kid": self.key_id}
        return {"keys": [key | {"n": _base64url(public.n), "e": _base64url(public.e)}]}

    def discovery(self) -> dict[str, Any]:
        """The OpenID Connect discovery document, so that other local tools can trust this issuer."""
        return {
            "issuer": self.issuer,
            "jwks_uri": f"{self.issuer}/.well-known/jwks.json",
            "token_endpoint": f"{self.issuer}/tokens",
            "id_token_signing_alg_values_supported": [ALGORITHM],
            "response_types_supported": ["token"],
            "subject_types_supported": ["public"],
        }


def local_key(data_dir: Path) -> rsa.RSAPrivateKey:
    """The key kept in the data folder; made at the first start, so that tokens outlive a restart.

    Raises:
        LocalStackError: the file holds no RSA key.
    """
    path = data_dir / KEY_FILE
    if path.exists():
        try:
            key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        except ValueError:
            key = None
        if not isinstance(key, rsa.RSAPrivateKey):
            raise LocalStackError(
                f"{path} holds no RSA key: remove it, and a new one is made at the next start."
            )
        return key
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    # Written whole or not at all: a start that is killed leaves no half a key behind.
    draft = path.with_suffix(".new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(pem)
    draft.replace(path)
    return key


def _base64url(number: int) -> str:
    return (
        base64.urlsafe_b64encode(number.to_bytes((number.bit_length() + 7) // 8, "big")).rstrip(b"=").decode()
    )
