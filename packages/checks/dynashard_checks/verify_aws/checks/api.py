"""Checks of the deployed API: smoke tests, the authorizer, paths and sizes of requests."""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx

from dynashard_checks.verify_aws.check import Check, Outcome, compare, differs, holds
from dynashard_checks.verify_aws.context import Context
from dynashard_checks.verify_aws.scratch import PREFIX

USER: Final = {"email": "verify@example.com", "display_name": "Verify"}
_USERS: Final = "/v1/users"
_HEADER_LIMIT: Final = 10_240
_MERGE_PATCH: Final = {"Content-Type": "application/merge-patch+json"}
_UNAUTHORIZED: Final = (401, "Unauthorized")


def smoke(context: Context) -> Outcome:
    """Create, read, list, change and delete a user."""
    call, path = context.environment.call, user_path(context, "smoke")
    seen: dict[str, Any] = {
        "health": call("GET", "/v1/health", token="").status_code,
        "put": call("PUT", path, json=USER).status_code,
        "get": call("GET", path).status_code,
        "list": call("GET", f"{_USERS}?prefix={PREFIX}&order=ordered&limit=1").status_code,
        "patch": call("PATCH", path, json={"display_name": "Verified"}, headers=_MERGE_PATCH).status_code,
        "delete": call("DELETE", path).status_code,
        "gone": call("GET", path).status_code,
    }
    return compare(dict(zip(seen, (200, 201, 200, 200, 200, 204, 404), strict=True)), seen)


def user_path(context: Context, name: str) -> str:
    """Return the path of a scratch user, which is removed after the check."""
    path = f"{_USERS}/{quote(f'{PREFIX}{context.scratch.run}-{name}', safe='')}"

    def remove() -> None:
        try:
            status = context.environment.call("DELETE", path).status_code
        except httpx.HTTPError as error:
            raise OSError(f"the API does not answer: {error}") from error
        if status not in (httpx.codes.NO_CONTENT, httpx.codes.NOT_FOUND):
            raise OSError(f"the API answers {status}")

    context.scratch.defer(f"user {path}", remove)
    return path


def authorizer(context: Context) -> Outcome:
    """Call the API without a token, with broken and forged ones, and with the caller's own."""
    tokens = {"no token": "", "no JWT": "garbage", **forged(context.environment.token)}
    seen = {name: _message(context.environment.call("GET", _USERS, token=token)) for name, token in tokens.items()}
    expected: dict[str, Any] = dict.fromkeys(seen, _UNAUTHORIZED)
    own = context.environment.call("GET", f"{_USERS}?limit=1")
    seen["own token"], expected["own token"] = (own.status_code, ""), (200, "")
    return compare(expected, seen)


def forged(token: str) -> Mapping[str, str]:
    """Return broken versions of a token: another signature, other claims, and no signature."""
    try:
        head, claims, signature = token.split(".")
        other = _encoded({**_decoded(claims), "sub": "somebody else"})
        unsigned = _encoded({**_decoded(head), "alg": "none"})
    except ValueError:
        return {}
    return {
        "other signature": f"{head}.{claims}.{signature[::-1]}",
        "changed claims": f"{head}.{other}.{signature}",
        "no signature": f"{unsigned}.{claims}.",
    }


def _decoded(part: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return document


def _encoded(document: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def _message(answer: httpx.Response) -> tuple[int, str]:
    try:
        return answer.status_code, str(answer.json().get("message", ""))
    except ValueError:
        return answer.status_code, ""


def escaped_paths(context: Context) -> Outcome:
    """Put users whose ids need escapes in a path, and compare the ids in the answers."""
    seen, expected = {}, {}
    for end in ("a%41", "a/b", "a b+c", "ä€"):
        path = user_path(context, end)
        answer = context.environment.call("PUT", path, json=USER)
        identifier = f"{PREFIX}{context.scratch.run}-{end}"
        seen[quote(end, safe="")] = answer.json().get("id") if answer.is_success else answer.status_code
        expected[quote(end, safe="")] = identifier
    return compare(expected, seen)


def header_sizes(context: Context) -> Outcome:
    """Send requests whose line and headers are below and above 10,240 bytes."""
    statuses = {
        size: context.environment.call("GET", "/v1/health", token="", headers={"X-Fill": "x" * size}).status_code
        for size in (_HEADER_LIMIT - 1_024, _HEADER_LIMIT + 1)
    }
    return judge_header_sizes(statuses)


def judge_header_sizes(statuses: Mapping[int, int]) -> Outcome:
    """Judge the statuses of requests with headers of two sizes, of which only the smaller should be accepted."""
    seen = ", ".join(f"{size:,} bytes: {status}" for size, status in sorted(statuses.items()))
    smaller, larger = (status for _, status in sorted(statuses.items()))
    if smaller != httpx.codes.OK:
        return differs(seen)
    if larger == httpx.codes.OK:
        return differs(f"{seen}; headers above the limit are accepted")
    return holds(seen)


CHECKS: Final = (
    Check(
        "smoke",
        "the deployed API creates, reads, lists, changes and deletes",
        smoke,
        local=True,
        needs_api=True,
        needs_token=True,
    ),
    Check(
        "jwt-authorizer",
        "the gateway refuses requests without a valid token with 401, and passes on those with one",
        authorizer,
        local=True,
        needs_api=True,
        needs_token=True,
    ),
    Check(
        "escaped-paths",
        "an escaped path arrives as it was sent: %25 stays a percent sign, %2F does not divide the path",
        escaped_paths,
        local=True,
        needs_api=True,
        needs_token=True,
    ),
    Check(
        "header-sizes",
        "the gateway refuses a request line and headers of more than 10,240 bytes",
        header_sizes,
        needs_api=True,
    ),
)
