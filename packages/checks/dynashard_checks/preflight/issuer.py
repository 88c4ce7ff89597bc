"""Whether API Gateway can verify the tokens of an issuer."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.client import HTTPException
from typing import Any, Final
from urllib.request import Request, urlopen

from dynashard_checks.preflight.finding import Finding

Fetch = Callable[[str], bytes]
"""Returns the content at an address; raises `OSError`, `HTTPException` or `ValueError` if there is none."""

SECONDS: Final = 5
MOST_BYTES: Final = 1_000_000
ALGORITHMS: Final = ("RS256", "RS384", "RS512")
"""What the authorizer verifies: RSA alone."""
DISCOVERY: Final = "issuer's discovery document"
KEYS: Final = "issuer's keys"


def fetch(url: str) -> bytes:
    """Return the first megabyte at an https address. Raises as `Fetch`."""
    if not url.startswith("https://"):
        raise ValueError("the address must start with https://")
    request = Request(url, headers={"Accept": "application/json"})  # noqa: S310 - checked above
    with urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - checked above
        content: bytes = answer.read(MOST_BYTES)
    return content


def findings(issuer: str, get: Fetch) -> Iterator[Finding]:
    """Yield what the authorizer needs of an issuer: its discovery document under its exact name, and RSA keys."""
    address = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    try:
        document = _object(get(address))
    except (OSError, HTTPException, ValueError) as error:
        yield Finding(DISCOVERY, address, str(error), "correct auth.issuer, or publish the document there")
        return
    name = str(document.get("issuer"))
    remedy = "" if name == issuer else f"set auth.issuer to {name}, exactly as the tokens' iss"
    yield Finding(DISCOVERY, issuer, name, remedy)
    yield _keys(str(document.get("jwks_uri")), get)


def _keys(address: str, get: Fetch) -> Finding:
    needed = f"a key for {ALGORITHMS[0]}"
    try:
        keys: Sequence[Mapping[str, Any]] = [key for key in _object(get(address))["keys"] if isinstance(key, dict)]
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        return Finding(KEYS, needed, f"{address}: {error}", "publish the key set at the document's jwks_uri")
    kinds = Counter(_kind(key) for key in keys)
    found = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "none"
    if any(_verifies(key) for key in keys):
        return Finding(KEYS, needed, found)
    return Finding(
        KEYS,
        needed,
        found,
        "API Gateway's JWT authorizer verifies RSA signatures only: let the issuer sign with "
        f"{', '.join(ALGORITHMS[:-1])} or {ALGORITHMS[-1]}, and publish the key with a kid",
    )


def _verifies(key: Mapping[str, Any]) -> bool:
    signs = key.get("use") in (None, "sig") and key.get("alg") in (None, *ALGORITHMS)
    return key.get("kty") == "RSA" and signs and bool(key.get("kid"))


def _kind(key: Mapping[str, Any]) -> str:
    kind = " ".join(str(part) for part in (key.get("kty"), key.get("alg"), key.get("crv")) if part)
    return kind + ("" if key.get("kid") else " without kid") + (" for encryption" if key.get("use") == "enc" else "")


def _object(content: bytes) -> Mapping[str, Any]:
    parsed = json.loads(content)
    if not isinstance(parsed, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - what is wrong is the content
    return parsed
