"""Answers of HTTP/1.1 as a state machine: bytes go in, an answer comes out. Nothing here reads a socket.

It takes what DynamoDB and its local engines send: a status line, headers, and a body with `Content-Length` or in
chunks. Anything that leaves a doubt about where an answer ends is refused as malformed, because a wrong length would
make one answer look like another. Bounds are checked before memory is used.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct

MAX_HEAD_BYTES: Final = 64 * 1024
"""Status line and headers together, those of interim answers included; also the lines around chunks."""
MAX_BODY_BYTES: Final = 128 * 1024 * 1024
"""DynamoDB returns at most 16 MB of items, which JSON may make six times as large."""
_END: Final = b"\r\n\r\n"
_LINE: Final = b"\r\n"
_LONGEST_SIZE: Final = 16
_BODILESS: Final = frozenset({204, 304})
_SINGLE: Final = frozenset({"content-length", "transfer-encoding", "x-amz-crc32"})
"""Headers that say whether an answer is complete: two different values leave a doubt."""
_TOKEN: Final = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")


class MalformedAnswerError(Exception):
    """The bytes are not an answer of HTTP/1.1, or are beyond a bound. Nothing of them is used."""


class Answer(Struct, frozen=True):
    """A complete answer.

    Attributes:
        status: of HTTP.
        headers: names in lower case; the last value of a name that is repeated.
        body: without chunk framing.
        reusable: whether the connection may serve another request.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | bytearray
    reusable: bool


class AnswerParser:
    """Parses one answer. Feed it what arrives until it returns the answer; then make another one."""

    # Most answers arrive in one piece, and then a parser keeps little of this.
    _buffer = b""
    _headers: dict[str, str] | None = None
    _status = 0
    _chunked = False
    _left = 0
    _read = 0
    _spent = 0
    _body: bytearray

    def feed(self, data: bytes) -> Answer | None:
        """Take bytes that arrived, and return the answer once it is complete; raises `MalformedAnswerError`."""
        if self._headers is None:
            rest = self._head(self._buffer + data if self._buffer else data)
            if rest is None:
                return None
            data = rest
        if self._chunked:
            return self._chunks(data)
        if not self._body and len(data) >= self._left:
            return self._answer(data[: self._left], clean=len(data) == self._left)
        return self._counted(data)

    def _head(self, data: bytes) -> bytes | None:
        """Parse heads until that of the final answer, and return what follows it; None if bytes are missing."""
        while True:
            end = data.find(_END)
            if self._spent + (len(data) if end < 0 else end) > MAX_HEAD_BYTES:
                raise MalformedAnswerError(f"the head is longer than {MAX_HEAD_BYTES} bytes")
            if end < 0:
                self._buffer = data
                return None
            status, headers = _parsed_head(data[:end].decode("latin-1"))
            data = data[end + len(_END) :]
            self._spent += end + len(_END)
            if status >= 200:  # noqa: PLR2004 - HTTP's own number
                self._buffer, self._body = b"", bytearray()
                self._begin_body(status, headers)
                return data
            if status == 101:  # noqa: PLR2004 - HTTP's own number
                raise MalformedAnswerError("the other side changes the protocol")

    def _begin_body(self, status: int, headers: dict[str, str]) -> None:
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if coding is not None:
            if coding.lower() != "chunked" or length is not None:
                raise MalformedAnswerError("the transfer encoding is not plainly chunked")
            self._chunked = True
        elif status in _BODILESS:
            self._left = 0
        elif length is None:
            raise MalformedAnswerError("the answer has no length")
        else:
            self._left = _length(length)
        self._status, self._headers = status, headers

    def _counted(self, data: bytes) -> Answer | None:
        """Collect a body of known length that arrives in pieces."""
        missing = self._left - len(self._body)
        self._body += data[:missing]
        if len(self._body) < self._left:
            return None
        return self._answer(self._body, clean=len(data) == missing)

    def _chunks(self, data: bytes) -> Answer | None:
        """Collect chunks. `_left` counts the bytes until the end of a chunk's data and its line break."""
        data = self._buffer + data if self._buffer else data
        at = 0
        while True:
            if self._left:
                taken = data[at : at + self._left]
                at += len(taken)
                self._take(taken)
                if self._left:
                    self._buffer = b""
                    return None
            end = data.find(_LINE, at)
            if end < 0:
                if len(data) - at > MAX_HEAD_BYTES:
                    raise MalformedAnswerError("a line between chunks has no end")
                self._buffer = data[at:]
                return None
            size = _chunk_size(data[at:end])
            self._spend(end - at)
            if size == 0:
                return self._trailer(data, at, end)
            self._read += size
            if self._read > MAX_BODY_BYTES:
                raise MalformedAnswerError(f"the body is longer than {MAX_BODY_BYTES} bytes")
            self._left, at = size + len(_LINE), end + len(_LINE)

    def _take(self, taken: bytes) -> None:
        """Keep the data of a chunk, and check the line break after it."""
        self._left -= len(taken)
        self._body += taken
        if self._left:
            return
        if not self._body.endswith(_LINE):
            raise MalformedAnswerError("a chunk does not end where its size says")
        del self._body[-len(_LINE) :]

    def _trailer(self, data: bytes, at: int, end: int) -> Answer | None:
        """Skip the headers after the last chunk; its line starts at `at` and ends at `end`."""
        last = data.find(_END, end)
        if last < 0:
            if len(data) - at > MAX_HEAD_BYTES:
                raise MalformedAnswerError("the trailer has no end")
            self._buffer = data[at:]
            return None
        for line in _lines(data[end + len(_LINE) : last].decode("latin-1")) if last > end else ():
            _header(line)
        return self._answer(self._body, clean=last + len(_END) == len(data))

    def _spend(self, count: int) -> None:
        """Bound the bytes of lines between chunks, so that tiny chunks with long extensions end."""
        self._spent += count
        if self._spent > MAX_BODY_BYTES:
            raise MalformedAnswerError("the lines between chunks are longer than a body may be")

    def _answer(self, body: bytes | bytearray, *, clean: bool) -> Answer:
        assert self._headers is not None  # noqa: S101 - the head was parsed before
        options = self._headers.get("connection", "").lower()
        keep = "keep-alive" in options if self._headers.pop(":version") == "HTTP/1.0" else "close" not in options
        # Bytes after an answer were asked for by nobody: the next request would take them for its answer.
        return Answer(self._status, self._headers, body, keep and clean)


def _parsed_head(head: str) -> tuple[int, dict[str, str]]:
    first, *lines = _lines(head)
    version, status = _parsed_status(first)
    headers = {":version": version}
    try:
        for line in lines:
            # As in `_header`, which would take as long to call as to run.
            name, value = line.split(":", 1)
            headers[_name(name)] = value.strip(" \t")
    except ValueError:
        raise MalformedAnswerError("a header line has no name") from None
    if len(headers) <= len(lines):
        # Besides the version there are fewer names than lines, so some name is repeated.
        _require_single(lines)
    return status, headers


def _require_single(lines: list[str]) -> None:
    """Refuse two different values of a header that leaves no choice."""
    seen: dict[str, str] = {}
    for name, value in map(_header, lines):
        if name in _SINGLE and seen.setdefault(name, value) != value:
            raise MalformedAnswerError(f"the header {name} has two values")


@lru_cache(maxsize=16)
def _parsed_status(line: str) -> tuple[str, int]:
    """Return the version and the status of a status line."""
    version, _, after = line.partition(" ")
    status, rest = after[:3], after[3:]
    if version not in ("HTTP/1.1", "HTTP/1.0") or (rest and rest[0] != " "):
        raise MalformedAnswerError("the status line is not one of HTTP/1.1")
    if not (status.isascii() and status.isdigit() and len(status) == 3) or status < "100":  # noqa: PLR2004 - HTTP's own
        raise MalformedAnswerError("the status is not a number of three digits")
    return version, int(status)


def _lines(text: str) -> list[str]:
    lines = text.split("\r\n")
    if text.count("\r") != len(lines) - 1 or text.count("\n") != len(lines) - 1 or "\0" in text:
        raise MalformedAnswerError("a header line contains a control character")
    return lines


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon:
        raise MalformedAnswerError("a header line has no name")
    return _name(name), value.strip(" \t")


@lru_cache(maxsize=256)
def _name(name: str) -> str:
    if not name or not _TOKEN.issuperset(name):
        raise MalformedAnswerError("a header's name is not one")
    return name.lower()


def _length(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > _LONGEST_SIZE:
        raise MalformedAnswerError("the length is not a number")
    length = int(text)
    if length > MAX_BODY_BYTES:
        raise MalformedAnswerError(f"the body is longer than {MAX_BODY_BYTES} bytes")
    return length


def _chunk_size(line: bytes) -> int:
    if b"\n" in line or b"\r" in line:
        raise MalformedAnswerError("a line between chunks contains a control character")
    size = line.partition(b";")[0].rstrip(b" \t")
    if not size or len(size) > _LONGEST_SIZE or not _HEX.issuperset(size):
        raise MalformedAnswerError("the size of a chunk is not a number")
    return int(size, 16)
