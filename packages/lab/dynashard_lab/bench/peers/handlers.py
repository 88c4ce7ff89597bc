"""A Lambda handler in this process: the API's own, or the peer's, on the tables of the benchmark.

python -m dynashard_lab.bench.peers.handlers MODULE URL ID  # from the first import to the first answered GET, as JSON
"""

import os
import sys
import time
from importlib import import_module
from typing import Any, Final

from dynashard_lab.bench.apart import peak

OURS: Final = "functions.api.handler"
PEER: Final = "dynashard_lab.bench.peers.powertools_handler"
TENANT: Final = "acme"


class Context:
    """Lambda's context of one invocation."""

    function_name = "users"
    memory_limit_in_mb = 1024
    invoked_function_arn = "arn:aws:lambda:eu-west-1:000000000000:function:users"
    aws_request_id = "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        """Return the time that is left."""
        return 30_000


def variables(url: str, table: str, topology: str, region: str, key: str) -> dict[str, str]:
    """Return the environment variables of both handlers."""
    return {
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": key,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL_DYNAMODB": url,
        "CURSOR_KEYS": '["a secret of the benchmark"]',
        "DYNAMODB_ENDPOINT": url,
        "ENVIRONMENT": "dev",
        "GROWTH_MODE": "on",
        "IDEMPOTENCY_TABLE": "unused",
        "TABLE_NAME": table,
        "TOPOLOGY_TABLE": topology,
        "TRANSPORT": "direct",
    }


def event(path: str, query: str = "", *, tenant: str = TENANT, body: str | None = None) -> dict[str, Any]:
    """Return API Gateway's event with a verified token: of a GET, or of a POST with a body."""
    # Named here, because to read them would import the domain before the start that is measured.
    scope = "users:read users:write users:all"
    claims = {"tenant_id": tenant, "sub": "ada", "scope": scope, "iss": "https://issuer.example", "exp": "1795379284"}
    at = {"apiId": "a1b2c3", "accountId": "000000000000", "domainName": "api.example.com", "domainPrefix": "api"}
    method = "GET" if body is None else "POST"
    http = {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "bench"}
    request: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "ANY /v1/{proxy+}",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {
            "accept": "application/json",
            "authorization": "Bearer a.b.c",
            "content-length": str(len(body or "")),
            "host": "api.example.com",
            "user-agent": "bench",
            "x-forwarded-for": "192.0.2.1",
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
        },
        "requestContext": {
            **at,
            "authorizer": {"jwt": {"claims": claims, "scopes": None}},
            "http": http,
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "ANY /v1/{proxy+}",
            "stage": "$default",
            "time": "22/Nov/2026:20:00:00 +0000",
            "timeEpoch": 1795379284000,
        },
        "isBase64Encoded": False,
    }
    if body is not None:
        request["body"] = body
        request["headers"]["content-type"] = "application/json"
    if query:
        request["queryStringParameters"] = dict(part.split("=") for part in query.split("&"))
    return request


def main() -> None:
    """Import a handler, let it answer a GET, and print what that cost."""
    module, url, table, topology, region, key, identity = sys.argv[1:]
    os.environ.update(variables(url, table, topology, region, key))
    request, printed = event(f"/v1/users/{identity}"), sys.stdout
    wall, cpu = time.perf_counter(), time.process_time()
    with open(os.devnull, "w", encoding="utf-8") as log:  # noqa: PTH123 - pathlib would be imported for it
        sys.stdout = log
        answer = import_module(module).handler(request, Context())
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        sys.stdout = printed
    items = int(answer["statusCode"] == 200)  # noqa: PLR2004 - HTTP's own
    printed.write(f'{{"items": {items}, "cpu": {cpu}, "wall": {wall}, "megabytes": {peak()}}}\n')


if __name__ == "__main__":
    main()
