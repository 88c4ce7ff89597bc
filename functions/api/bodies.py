"""JSON bodies of requests, read strictly."""

from collections.abc import Sequence
from typing import Any, Final

from dynashard.errors import FieldError, ValidationFailedError
from dynashard_serving.documents import Document
from dynashard_serving.json_input import MalformedJsonError, read_json
from functions.api.problems import ProblemError
from functions.api.request import GZIP, ApiRequest

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"


def json_object(incoming: ApiRequest, accepted: Sequence[str] = (JSON,)) -> Document:
    """The body as a JSON object.

    Raises:
        ProblemError: 415 for another media type, 400 for bad JSON.
        RequestTooLargeError: it holds too many values.
        ValidationFailedError: JSON that is no object.
    """
    document = json_value(incoming, accepted)
    if not isinstance(document, dict):
        raise ValidationFailedError(FieldError("", "The body must be a JSON object.", "object_type"))
    return document


def json_value(incoming: ApiRequest, accepted: Sequence[str] = (JSON,)) -> Any:
    """The body as JSON of any kind.

    Raises:
        ProblemError: 415 for another media type, 400 for bad JSON.
    """
    media_type = incoming.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in (*accepted, GZIP):
        raise ProblemError(
            "unsupported_media_type",
            f"Send the body as {' or '.join(accepted)} in the Content-Type header.",
            headers={"Accept-Patch": ", ".join(accepted)} if MERGE_PATCH in accepted else {},
        )
    return parse_json(incoming.body)


def parse_json(raw: bytes) -> Any:
    """Parse JSON as RFC 8259 means it; see `json_input.read_json`.

    Raises:
        ProblemError: 400 that says where and why.
        RequestTooLargeError: it holds too many values.
    """
    try:
        return read_json(raw)
    except MalformedJsonError as error:
        raise ProblemError("malformed_body", f"The body {error}") from error
