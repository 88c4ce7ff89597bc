"""DynamoDB's JSON over HTTP, for every transport: bodies of requests, and the meaning of answers."""

from collections.abc import Mapping
from typing import Any, Final
from zlib import crc32

import orjson

from dynashard.errors import EngineUnavailableError, InvalidValueError
from dynashard.transport.classification import DAMAGED, Refusal, classify, throttle_names
from dynashard.transport.deadline import remaining
from dynashard.transport.interface import Wire, record_throttle

_LONGEST_WAIT: Final = 7
"""Digits of the milliseconds that an answer may ask to wait: less than three hours."""


def body_of(operation: str, request: Mapping[str, Any]) -> bytes:
    """Return the body of a request; raises `InvalidValueError` if JSON cannot express a value of it."""
    try:
        return orjson.dumps(request)
    except TypeError as error:
        raise InvalidValueError(
            f"{operation} is not valid DynamoDB JSON ({error}): encode its values with dynashard.codec."
        ) from error


def parsed_answer(status: int, headers: Mapping[str, str], body: bytes | bytearray) -> Wire:
    """Return the body with `ResponseMetadata`, and that of an error with `{"Error": {"Code", "Message"}}` too."""
    # A head that was cut off reads like an answer without a body.
    answer = parsed_body(body) if body or headers.get("content-length") == "0" else None
    checksum = headers.get("x-amz-crc32")
    if checksum is not None and checksum != str(crc32(body)):
        answer = {"Error": {"Code": DAMAGED, "Message": "The answer fails its checksum."}}
    elif answer is None:
        code = DAMAGED if status < 300 else str(status)  # noqa: PLR2004 - HTTP's own number
        answer = {"Error": {"Code": code, "Message": "The answer is not a JSON object."}}
    elif status >= 300:  # noqa: PLR2004 - HTTP's own number
        # `com.amazonaws.dynamodb.v20120810#ValidationException` is `ValidationException`.
        code = str(answer.get("__type") or status).rsplit("#", 1)[-1].split(":", 1)[0]
        answer["Error"] = {"Code": code, "Message": str(answer.get("message") or answer.get("Message") or "")}
    answer["ResponseMetadata"] = {"HTTPStatusCode": status, "HTTPHeaders": headers}
    return answer


def parsed_body(body: bytes | bytearray) -> Wire | None:
    """Return the body of an answer; None if it is not a JSON object."""
    try:
        parsed = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError:
        return None
    return parsed if isinstance(parsed, dict) else None


def refusal_of(operation: str, answer: Mapping[str, Any], attempt: int = 1) -> Refusal:
    """Return what a parsed error answer says; `attempt` is the number of the attempt that it answers."""
    metadata, error = answer["ResponseMetadata"], answer["Error"]
    wait = str(metadata["HTTPHeaders"].get("x-amz-retry-after", ""))
    if not wait.isdecimal() or len(wait) > _LONGEST_WAIT:
        wait = "0"
    return Refusal(
        operation=operation,
        status=metadata["HTTPStatusCode"],
        code=error["Code"],
        message=error["Message"],
        body=answer,
        attempts=attempt,
        # From milliseconds to the whole seconds of HTTP's Retry-After.
        retry_after=max(1, -(-int(wait) // 1000)),
    )


def accepted(operation: str, answer: Wire, attempt: int) -> Wire:
    """Return a parsed answer without its metadata; raises the error that it says, and counts it if it is a throttle."""
    if "Error" in answer:
        refusal = refusal_of(operation, answer, attempt)
        for name in throttle_names(refusal):
            record_throttle(name)
        raise classify(refusal)
    del answer["ResponseMetadata"]
    return answer


def require_remaining(operation: str) -> float:
    """Return the seconds until the deadline in force; refuse to send after it, with `EngineUnavailableError`."""
    if (left := remaining()) <= 0:
        raise EngineUnavailableError(
            f"The operation's deadline has passed: {operation} was not sent. Try again.", operation=operation
        )
    return left
