"""The path of an event of API Gateway, and the answer that it expects; a test compares both with Powertools'."""

import base64
from collections.abc import Mapping
from typing import Any

from dynashard_serving.api.responses import Response

DEFAULT_STAGE = "$default"


def path_of(event: Mapping[str, Any]) -> str:
    """Return the path of an event of an HTTP API, without its stage."""
    path, stage = str(event["rawPath"]), event["requestContext"]["stage"]
    return path if stage == DEFAULT_STAGE else path[len(f"/{stage}") :]


def answer_of(response: Response[Any]) -> dict[str, Any]:
    """Return a response as API Gateway expects it."""
    body = response.body
    encoded = isinstance(body, bytes)
    return {
        "statusCode": response.status_code,
        "body": base64.b64encode(body).decode() if isinstance(body, bytes) else body,
        "isBase64Encoded": encoded,
        "headers": dict(response.headers),
        "cookies": [],
    }
