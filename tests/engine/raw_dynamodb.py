"""Requests to DynamoDB without the layer."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.waiting import HANG_SECONDS

# The engine wants a signature but does not check it.
_HEADERS = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host;x-amz-date, Signature=0",
    "X-Amz-Date": "20260101T000000Z",
    "Content-Type": "application/x-amz-json-1.0",
}


@dataclass(frozen=True, slots=True)
class RawDynamoDB:
    """Sends requests unchanged."""

    client: httpx.Client

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        """Send a request, and return its answer. Fails the test with the engine's message if it is refused."""
        status, answer = self._send(operation, request)
        assert status == httpx.codes.OK, answer
        return answer

    def refusal(self, operation: str, **request: Any) -> str:
        """Send a request that is refused, and return the engine's message. Fails the test if it is not refused."""
        status, answer = self._send(operation, request)
        assert status == httpx.codes.BAD_REQUEST, answer
        return str(answer["message"])

    def _send(self, operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        answer = self.client.post("/", json=request, headers={"X-Amz-Target": f"DynamoDB_20120810.{operation}"})
        return answer.status_code, answer.json()


@contextmanager
def raw_dynamodb(endpoint: str) -> Iterator[RawDynamoDB]:
    """Open a connection to the engine at `endpoint` within the block."""
    with httpx.Client(base_url=endpoint, headers=_HEADERS, timeout=HANG_SECONDS) as client:
        yield RawDynamoDB(client)
