"""What Powertools' resolver does with a response and with the path of an event, without its general machinery.

A test compares both with the resolver's own.
"""

import base64
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import ResponseBuilder
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

DEFAULT_STAGE = "$default"


def path_of(event: Mapping[str, Any]) -> str:
    """Return the path of an event of an HTTP API, without its stage."""
    path, stage = str(event["rawPath"]), event["requestContext"]["stage"]
    return path if stage == DEFAULT_STAGE else path[len(f"/{stage}") :]


def answer_of(response: Response[Any], event: Mapping[str, Any]) -> dict[str, Any]:
    """Return a response as API Gateway expects it."""
    body = response.body
    if response.cookies or not isinstance(body, str | bytes) or (isinstance(body, bytes) and response.is_json()):
        builder: ResponseBuilder[APIGatewayProxyEventV2] = ResponseBuilder(response)
        return builder.build(APIGatewayProxyEventV2(dict(event)))
    encoded = isinstance(body, bytes)
    return {
        "statusCode": response.status_code,
        "body": base64.b64encode(body).decode() if isinstance(body, bytes) else body,
        "isBase64Encoded": encoded,
        "headers": {
            name: value if isinstance(value, str) else ", ".join(value)
            for name, value in response.headers.items()
            if value is not None
        },
        "cookies": [],
    }
