"""Requests to the engine and its answers, as bytes."""

import re
from collections.abc import Awaitable, Callable
from typing import Final

import orjson

LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_HEAD: Final = b"HTTP/1.1 %d Answer\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: %d\r\n\r\n"

Send = Callable[[bytes, bytes], Awaitable[bytes]]
"""Sends the head and the body of a request to the engine, and returns its whole answer."""
Answer = Callable[[bytes, bytes, Send], Awaitable[bytes]]
"""Answers a request."""


def response(status: int, body: object) -> bytes:
    """Return an answer in the engine's form."""
    text = orjson.dumps(body)
    return _HEAD % (status, len(text)) + text


def with_length(head: bytes, length: int) -> bytes:
    """Return the line and headers of a request whose body now has this many bytes."""
    return LENGTH.sub(b"\r\ncontent-length: %d" % length, head)
