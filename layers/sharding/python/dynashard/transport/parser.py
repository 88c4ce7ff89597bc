"""DynamoDB's answers as they came: the JSON body, parsed once, without a walk along the service model."""

from collections.abc import Mapping
from typing import Any

import orjson
from botocore.parsers import ResponseParserFactory

from dynashard.transport.classification import DAMAGED


class WireParser:
    """Parses JSON answers into what botocore's retries need, and nothing more.

    A good answer is the body itself with `ResponseMetadata` added. An error is its body with botocore's
    `{"Error": {"Code", "Message"}}` added, so that retries see its code.
    """

    def parse(self, response: Mapping[str, Any], shape: Any) -> dict[str, Any]:
        """Parse one answer: botocore calls this with `status_code`, `headers` and `body`."""
        status = response["status_code"]
        answer = _parsed(response["body"])
        if answer is None:
            code = DAMAGED if status < 300 else str(status)  # noqa: PLR2004 - HTTP's own number
            answer = {"Error": {"Code": code, "Message": "The answer is no JSON object."}}
        elif status >= 300:  # noqa: PLR2004 - HTTP's own number
            if shape is not None and shape.metadata.get("exception"):
                return {}  # Botocore's second look at an error, for fields that are all there already.
            answer["Error"] = {"Code": _code(answer, status), "Message": _message(answer)}
        answer["ResponseMetadata"] = {"HTTPStatusCode": status, "HTTPHeaders": response["headers"]}
        return answer


class WireParserFactory(ResponseParserFactory):  # type: ignore[misc]
    """Gives DynamoDB's protocol the lean parser, and every other protocol its own.

    Credential providers create clients of other services (STS, SSO) in the same session; none of them speaks
    plain `json`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._json = WireParser()

    def create_parser(self, protocol_name: str) -> Any:
        """Botocore asks for a parser once an answer."""
        return self._json if protocol_name == "json" else super().create_parser(protocol_name)


def _parsed(body: bytes) -> dict[str, Any] | None:
    if not body:
        return {}
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _code(answer: Mapping[str, Any], status: int) -> str:
    """`com.amazonaws.dynamodb.v20120810#ValidationException` is `ValidationException`."""
    full = str(answer.get("__type") or status)
    return full.rsplit("#", 1)[-1].split(":", 1)[0]


def _message(answer: Mapping[str, Any]) -> str:
    return str(answer.get("message") or answer.get("Message") or "")
