"""The deployed environment: its outputs, and calls of its API."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

_TIMEOUT_SECONDS: Final = 35.0
"""The gateway gives up after 30 seconds."""

Outputs = Callable[[str], Mapping[str, str]]
"""Returns the outputs of a stack."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A deployed environment.

    Attributes:
        name: in cdk.json.
        outputs: returns the outputs of a stack by the stack's name.
        token: a bearer token of its issuer, which is never shown; empty if the caller gave none.
        through: the URL of a local AWS that serves the API by its `Host` header; empty on AWS.
    """

    name: str
    outputs: Outputs
    token: str = field(default="", repr=False)
    through: str = ""

    def stack(self, name: str) -> Mapping[str, str]:
        """Return the outputs of one of its stacks, such as `Api`."""
        return self.outputs(f"Dynashard-{self.name}-{name}")

    def call(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
    ) -> httpx.Response:
        """Send a request to the API.

        Args:
            method: of HTTP.
            path: below the host, such as `/v1/users`, with its escapes.
            token: the bearer token; the caller's own if left out, none if empty.
            headers: more headers.
            json: the body.
        """
        sent = self.token if token is None else token
        url = urlsplit(self.stack("Api")["ApiUrl"])
        all_headers = dict(headers or {}) | ({"Authorization": f"Bearer {sent}"} if sent else {})
        base = f"{url.scheme}://{url.netloc}"
        if self.through:
            base, all_headers["Host"] = self.through, url.netloc
        with httpx.Client(timeout=_TIMEOUT_SECONDS, trust_env=not self.through) as client:
            return client.request(method, f"{base}{path}", headers=all_headers, json=json)
