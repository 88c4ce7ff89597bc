"""A response, its form for API Gateway, and its compression if it is large."""

import base64
import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, Generic, TypeVar

from dynashard.errors import AnswerTooLargeError
from dynashard_serving.documents import written
from dynashard_serving.limits import MAX_ANSWER_BYTES

JSON: Final = "application/json"
UNDECODABLE: Final = "Undecodable-Items"
"""The header with the number of stored items that an answer leaves out; absent if there are none."""
COMPRESSED_FROM: Final = 64 * 1024
"""Bytes from which an answer with attachments is compressed for clients that take it so."""
Body = TypeVar("Body", bound=str | bytes)


class Response(Generic[Body]):
    """An answer.

    Attributes:
        status_code: HTTP's.
        content_type: the media type of the body; None if there is no body.
        body: text or bytes.
        headers: by name, the content type included.
        items: how many items a page has, for the metrics; None for any other answer.
        described: what the log says of each request of a batch; empty for any other answer.
    """

    def __init__(
        self,
        status_code: int,
        content_type: str | None = None,
        body: Body | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        items: int | None = None,
        described: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.status_code = int(status_code)
        self.content_type = content_type
        self.body = body
        self.headers = dict(headers or {})
        self.items = items
        self.described = described
        if content_type:
            self.headers.setdefault("Content-Type", content_type)


def json_response(
    document: Any, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Response[str]:
    """Return a response with a document."""
    return Response(status, content_type=JSON, body=written(document), headers=headers)


def computed_response(document: Any, *, many: bool) -> Response[str]:
    """Return the response with what a domain has computed; raises `AnswerTooLargeError` if Lambda cannot answer it."""
    from dynashard_serving.operations.pages import answer_bytes  # noqa: PLC0415 - a first GET reads an item

    response = json_response({"items": document} if many else document)
    if answer_bytes(str(response.body)) > MAX_ANSWER_BYTES:
        raise AnswerTooLargeError("The answer is larger than 6 MB: ask for less at a time.")
    return response


def gateway_answer(response: Response[Any]) -> dict[str, Any]:
    """Return a response as API Gateway expects it; a test compares it with Powertools'."""
    body = response.body
    encoded = isinstance(body, bytes)
    return {
        "statusCode": response.status_code,
        "body": base64.b64encode(body).decode() if isinstance(body, bytes) else body,
        "isBase64Encoded": encoded,
        "headers": dict(response.headers),
        "cookies": [],
    }


def fitting(response: Response[Any], headers: Mapping[str, str]) -> Response[Any]:
    """Return a response, compressed if it is large and the client's headers accept that.

    Raises:
        AnswerTooLargeError: Lambda cannot answer with it.
    """
    text = str(response.body)
    if len(text) < COMPRESSED_FROM or response.status_code != HTTPStatus.OK:
        return response
    response.headers["Vary"] = "Accept-Encoding"
    if takes_gzip(headers.get("accept-encoding", "")):
        import gzip  # noqa: PLC0415 - few answers are large

        squeezed = gzip.compress(text.encode(), compresslevel=6, mtime=0)
        if len(squeezed) * 4 / 3 <= MAX_ANSWER_BYTES:
            every = {**response.headers, "Content-Encoding": "gzip"}
            return Response(response.status_code, content_type=JSON, body=squeezed, headers=every)
    elif len(json.dumps(text)) <= MAX_ANSWER_BYTES:
        return response
    raise AnswerTooLargeError(
        f"The answer has {len(text.encode())} bytes and does not fit into the 6 MB of one: "
        "ask with Accept-Encoding: gzip, or for fewer fields.",
    )


def takes_gzip(accepted: str) -> bool:
    """Return whether an `Accept-Encoding` header takes gzip. What it says of gzip comes before what it says of `*`."""
    weights = {}
    for each in accepted.lower().split(","):
        name, _, parameters = each.partition(";")
        weights[name.strip()] = parameters.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return weights.get("gzip", weights.get("*", False))
