"""DynamoDB's answers: the JSON body parsed once, without botocore's walk along the service model."""

from collections.abc import Mapping
from typing import Any

import orjson
from botocore.parsers import ResponseParserFactory

from dynashard.transport.classification import DAMAGED


class WireParser:
    """Parses JSON answers.

    An answer is its body with `ResponseMetadata` added. An error also gets botocore's `{"Error": {"Code", "Message"}}`.
    """

    def parse(self, response: Mapping[str, Any], shape: Any) -> dict[str, Any]:
        """Parse one answer: botocore calls this with `status_code`, `headers` and `body`."""
        status = response["status_code"]
        answer = _parsed(response["body"])
        if answer is None:
            code = DAMAGED if status < 300 else str(status)  # noqa: PLR2004 - HTTP's own number
            answer = {"Error": {"Code": code, "Message": "The answer is not a JSON object."}}
        elif status >= 300:  # noqa: PLR2004 - HTTP's own number
            if shape is not None and shape.metadata.get("exception"):
                return {}  # Botocore parses an error twice, for fields that are all there already.
            # `com.amazonaws.dynamodb.v20120810#ValidationException` is `ValidationException`.
            code = str(answer.get("__type") or status).rsplit("#", 1)[-1].split(":", 1)[0]
            answer["Error"] = {"Code": code, "Message": str(answer.get("message") or answer.get("Message") or "")}
        answer["ResponseMetadata"] = {"HTTPStatusCode": status, "HTTPHeaders": response["headers"]}
        return answer


class WireParserFactory(ResponseParserFactory):  # type: ignore[misc]
    """Returns the lean parser for DynamoDB's protocol, and botocore's own for every other.

    Credential providers create clients of other services (STS, SSO) in the same session; none of them uses `json`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._json = WireParser()

    def create_parser(self, protocol_name: str) -> Any:
        """Botocore calls this once for each answer."""
        return self._json if protocol_name == "json" else super().create_parser(protocol_name)


def _parsed(body: bytes) -> dict[str, Any] | None:
    if not body:
        return {}
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return parsed if isinstance(parsed, dict) else None
