"""Attachments over HTTP: read when `?include=` asks for them, sent in bodies larger than those of other items."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from dynashard.errors import AnswerTooLargeError
from dynashard_serving.api.resource import Resource
from dynashard_serving.api.responses import JSON, Response
from dynashard_serving.limits import MAX_ANSWER_BYTES, MAX_BODY_BYTES

INCLUDE: Final = "include"
COMPRESSED_FROM: Final = 64 * 1024
"""Bytes from which an answer with attachments is compressed for clients that take it so."""


def body_limit(resource: Resource) -> int:
    """The largest body that a resource takes, in bytes, before Lambda's own limit."""
    return MAX_BODY_BYTES + sum(each.max_bytes for each in resource.definition.attachments.values())


def fitting(answer: Response[Any], headers: Mapping[str, str]) -> Response[Any]:
    """Return the answer, compressed if it is large and the client accepts that; refuse one that does not fit."""
    text = str(answer.body)
    if len(text) < COMPRESSED_FROM or answer.status_code != HTTPStatus.OK:
        return answer
    answer.headers["Vary"] = "Accept-Encoding"
    if takes_gzip(headers.get("accept-encoding", "")):
        import gzip  # noqa: PLC0415 - few answers are large

        squeezed = gzip.compress(text.encode(), compresslevel=6, mtime=0)
        if len(squeezed) * 4 / 3 <= MAX_ANSWER_BYTES:
            every = {**answer.headers, "Content-Encoding": "gzip"}
            return Response(answer.status_code, content_type=JSON, body=squeezed, headers=every)
    elif len(json.dumps(text)) <= MAX_ANSWER_BYTES:
        return answer
    raise AnswerTooLargeError(
        f"The answer has {len(text.encode())} bytes and does not fit into the 6 MB of one: "
        "ask with Accept-Encoding: gzip, or for fewer fields.",
    )


def takes_gzip(accepted: str) -> bool:
    """Whether an `Accept-Encoding` header takes gzip."""
    for each in accepted.lower().split(","):
        name, _, parameters = each.partition(";")
        if name.strip() in {"gzip", "*"}:
            return parameters.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False
