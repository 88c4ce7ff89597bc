"""Requests to the engine and its answers, as bytes."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import orjson

LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_LINE: Final = re.compile(rb"%s [!-~]+ HTTP/1\.([01])" % _TOKEN)
_FIELD: Final = re.compile(rb"(%s):([^\r\n\0]*)" % _TOKEN)
_ONCE: Final = frozenset({b"host", b"content-length", b"x-amz-target"})
"""Headers whose readers may each take another one if they are sent twice."""
_HEAD: Final = b"HTTP/1.1 %d Answer\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: %d\r\n\r\n"

Send = Callable[[bytes, bytes], Awaitable[bytes]]
"""Sends the head and the body of a request to the engine, and returns its whole answer."""
Answer = Callable[[bytes, bytes, Send], Awaitable[bytes]]
"""Answers a request."""


@dataclass(frozen=True, slots=True)
class Head:
    """The line and the headers of a request; names are in lower case.

    Attributes:
        keeps: whether the client may send another request on the connection.
    """

    headers: Mapping[bytes, bytes]
    keeps: bool

    @classmethod
    def parse(cls, text: bytes) -> "Head | None":
        """Read the text up to the empty line; None if two readers could understand it differently."""
        first, *rest = text.removesuffix(b"\r\n\r\n").split(b"\r\n")
        line, fields = _LINE.fullmatch(first), [_FIELD.fullmatch(each) for each in rest]
        named = [(each[1].lower(), each[2].strip(b" \t")) for each in fields if each is not None]
        headers = dict(named)
        repeated = len([name for name, _ in named if name in _ONCE]) > len(_ONCE & headers.keys())
        if line is None or len(named) < len(fields) or repeated:
            return None
        closes = any(name == b"connection" and b"close" in value.lower() for name, value in named)
        return cls(headers, keeps=line[1] == b"1" and not closes)


def response(status: int, body: object) -> bytes:
    """Return an answer in the engine's form."""
    text = orjson.dumps(body)
    return _HEAD % (status, len(text)) + text


def with_length(head: bytes, length: int) -> bytes:
    """Return the line and headers of a request whose body now has this many bytes."""
    return LENGTH.sub(b"\r\ncontent-length: %d" % length, head)
