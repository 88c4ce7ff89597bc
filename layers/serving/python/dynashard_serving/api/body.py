"""The body of a request: decoded, decompressed, and read as JSON."""

import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dynashard_serving.api.problems import ProblemError
from dynashard_serving.limits import MAX_BODY_BYTES

GZIP: Final = "application/gzip"
"""The media type of JSON that was compressed by gzip."""
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
_GZIP_CODINGS: Final = ("gzip", "x-gzip")
"""Two names of one coding (RFC 9110, section 8.4.1.3)."""
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS


def body_of(event: Mapping[str, Any], headers: Mapping[str, str], limit: int = MAX_BODY_BYTES) -> bytes:
    """Return the body of an event, decompressed; `headers` are those of the event by lower-case name.

    Raises:
        ProblemError: 413 if it is larger than `limit` bytes, 400 if it cannot be decoded, 415 for another encoding.
    """
    body = event.get("body") or ""
    encoded = bool(event.get("isBase64Encoded"))
    # Four characters of base64 are at most three bytes, a character of text is at least one.
    if (len(body) * 3 // 4 - 2 if encoded else len(body)) > limit:
        raise _too_large(limit)
    try:
        raw = base64.b64decode(body, validate=True) if encoded else body.encode()
    except (binascii.Error, ValueError) as error:
        raise ProblemError("malformed_body", "The body cannot be decoded.") from error
    encoding = headers.get("content-encoding", "identity").strip().lower()
    # A gateway hands JSON over as text, whatever its encoding: compressed bodies arrive whole under another type.
    if encoding in _GZIP_CODINGS or media_type_of(headers) == GZIP:
        raw = _inflated(raw, limit)
        if raw.startswith(_GZIP_MAGIC):
            raise ProblemError("unsupported_media_type", f"The body is compressed twice. Compress it once, as {GZIP}.")
    elif encoding != "identity":
        raise ProblemError(
            "unsupported_media_type",
            f"Send the body uncompressed, or compressed once as {GZIP}.",
        )
    if len(raw) > limit:
        raise _too_large(limit)
    return raw


def media_type_of(headers: Mapping[str, str]) -> str:
    """Return the media type of a body, without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def json_value(raw: bytes, headers: Mapping[str, str], accepted: Sequence[str]) -> Any:
    """Return a body as JSON. Refuse another media type (415), bad JSON (400) and too many values (413)."""
    if media_type_of(headers) not in (*accepted, GZIP):
        raise ProblemError(
            "unsupported_media_type",
            f"Send the body as {' or '.join(accepted)} in the Content-Type header.",
            headers={"Accept-Patch": ", ".join(accepted)} if MERGE_PATCH in accepted else {},
        )
    return parse_json(raw)


def parse_json(raw: bytes) -> Any:
    """Parse JSON as `json_input.read_json` does; bad JSON is a `ProblemError` with the place and the reason."""
    from dynashard_serving.json_input import MalformedJsonError, read_json  # noqa: PLC0415 - a GET has no body

    try:
        return read_json(raw)
    except MalformedJsonError as error:
        raise ProblemError("malformed_body", f"The body {error}") from error


def _too_large(limit: int) -> ProblemError:
    return ProblemError(
        "body_too_large", f"The body has more than {limit} bytes ({limit // 1024} KB); send less in one request."
    )


def _inflated(raw: bytes, limit: int) -> bytes:
    unzip = zlib.decompressobj(_GZIP_WINDOW)
    try:
        # One byte over the limit shows that there is more, and no more than that is decompressed.
        inflated = unzip.decompress(raw, limit + 1)
    except zlib.error as error:
        raise ProblemError("malformed_body", f"The body is not gzip; send it as {GZIP}, or uncompressed.") from error
    if len(inflated) <= limit and (not unzip.eof or unzip.unused_data):
        raise ProblemError("malformed_body", "The body is not one whole gzip stream.")
    return inflated
