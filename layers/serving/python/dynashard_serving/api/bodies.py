"""JSON bodies of requests, read strictly."""

from collections.abc import Sequence
from typing import Any, Final

from dynashard.errors import FieldError, ValidationFailedError
from dynashard_serving.api.problems import ProblemError
from dynashard_serving.api.request import GZIP, ApiRequest
from dynashard_serving.api.responses import JSON
from dynashard_serving.documents import Document
from dynashard_serving.json_input import MalformedJsonError, read_json

MERGE_PATCH: Final = "application/merge-patch+json"


def json_object(incoming: ApiRequest, accepted: Sequence[str] = (JSON,)) -> Document:
    """Return the body as a JSON object; see `json_value`."""
    document = json_value(incoming, accepted)
    if not isinstance(document, dict):
        raise ValidationFailedError(FieldError("", "The body must be a JSON object.", "object_type"))
    return document


def json_value(incoming: ApiRequest, accepted: Sequence[str] = (JSON,)) -> Any:
    """Return the body as JSON. Refuse another media type (415), bad JSON (400) and too many values (413)."""
    media_type = incoming.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in (*accepted, GZIP):
        raise ProblemError(
            "unsupported_media_type",
            f"Send the body as {' or '.join(accepted)} in the Content-Type header.",
            headers={"Accept-Patch": ", ".join(accepted)} if MERGE_PATCH in accepted else {},
        )
    return parse_json(incoming.body)


def parse_json(raw: bytes) -> Any:
    """Parse JSON as `json_input.read_json` does; bad JSON is a `ProblemError` with the place and the reason."""
    try:
        return read_json(raw)
    except MalformedJsonError as error:
        raise ProblemError("malformed_body", f"The body {error}") from error
