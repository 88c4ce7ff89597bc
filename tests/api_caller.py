"""Call the API function in this process, with the events that API Gateway would send it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from dynashard_local.gateway.events import HttpRequest, Invocation, build_event, build_response
from dynashard_serving.api.app import App
from dynashard_serving.domain import declared

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
TENANT = "abc"

ALL_SCOPES = " ".join(declared().declarations.scopes)
Query = Mapping[str, str] | str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as a caller gets it."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def code(self) -> str:
        """The code of the problem."""
        assert self.headers["content-type"] == "application/problem+json", self.content
        return str(self.json["code"])

    @property
    def fields(self) -> dict[str, str]:
        """The codes of a 422, by field."""
        assert self.status == 422, self.content
        return {error["field"]: error["code"] for error in self.json["errors"]}

    @property
    def etag(self) -> str:
        return self.headers["etag"]


def claims_of(tenant: str) -> dict[str, str]:
    """Return the claims of a caller with every scope."""
    return {"tenant_id": tenant, "sub": "tester", "scope": ALL_SCOPES}


@dataclass(frozen=True)
class Caller:
    """A caller with a verified token. `claims` are those that the authorizer passes on; None without a token."""

    app: App
    claims: Mapping[str, Any] | None = field(default_factory=lambda: claims_of(TENANT))

    def of(self, tenant: str) -> "Caller":
        """Return a caller of another tenant."""
        return Caller(self.app, claims_of(tenant))

    def who(self, subject: str, *scopes: str, **claims: Any) -> "Caller":
        """Return another caller of the tenant, with these scopes alone."""
        tenant = (self.claims or {})["tenant_id"]
        return Caller(self.app, {"tenant_id": tenant, "sub": subject, "scope": " ".join(scopes), **claims})

    def event(
        self,
        method: str,
        path: str,
        *,
        query: Query = "",
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        request = HttpRequest(
            method=method,
            path=path,
            query=query if isinstance(query, str) else urlencode(query),
            headers=[("host", "127.0.0.1:8000"), *(headers or {}).items()],
            body=body,
        )
        return build_event(request, Invocation("request-1", 1_780_000_000.0, "ANY /v1/{proxy+}", claims=self.claims))

    def send(
        self,
        method: str,
        path: str,
        document: Any = None,
        *,
        query: Query = "",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a document or raw bytes, and return the answer as it would be sent over HTTP."""
        sent = dict(headers or {})
        if document is not None:
            sent.setdefault("content-type", MERGE_PATCH if method == "PATCH" else JSON)
            body = json.dumps(document).encode()
        event = self.event(method, path, query=query, body=body or b"", headers=sent)
        answer = json.loads(json.dumps(self.app.handle(event)))
        response = build_response(answer)
        return Answer(response.status, dict(response.headers), response.body)

    def get(self, path: str, **options: Any) -> Answer:
        return self.send("GET", path, **options)

    def post(self, path: str, document: Any = None, **options: Any) -> Answer:
        return self.send("POST", path, document, **options)

    def put(self, path: str, document: Any = None, **options: Any) -> Answer:
        return self.send("PUT", path, document, **options)

    def patch(self, path: str, document: Any = None, **options: Any) -> Answer:
        return self.send("PATCH", path, document, **options)

    def delete(self, path: str, **options: Any) -> Answer:
        return self.send("DELETE", path, **options)


def a_user(**fields: Any) -> dict[str, Any]:
    """Return the body of a request that creates a user."""
    return {"email": "ada@example.com", "display_name": "Ada", **fields}
