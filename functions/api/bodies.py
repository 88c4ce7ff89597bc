"""JSON bodies of requests, read strictly."""

import json
import math
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from dynashard.errors import FieldError, ValidationFailedError
from dynashard.hosting.documents import (
    REVISION,
    Document,
    field_errors,
    merge_patch,
    refuse_changed,
    refuse_read_only,
    representation,
    validated,
    with_fixed,
    without,
    written,
)
from functions.api.incoming import GZIP, Incoming
from functions.api.problems import ProblemError

__all__ = [
    "JSON",
    "MAX_DEPTH",
    "MERGE_PATCH",
    "REVISION",
    "Document",
    "field_errors",
    "json_object",
    "json_value",
    "merge_patch",
    "parse_json",
    "refuse_changed",
    "refuse_read_only",
    "representation",
    "validated",
    "with_fixed",
    "without",
    "written",
]

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
MAX_DEPTH: Final = 32
"""Levels of nesting that DynamoDB stores."""
MAX_DIGITS: Final = 400


def json_object(incoming: Incoming, accepted: Sequence[str] = (JSON,)) -> Document:
    """The body as a JSON object.

    Args:
        incoming: the request.
        accepted: media types that are understood.

    Raises:
        ProblemError: 415 for another media type, 400 for bad JSON.
        ValidationFailedError: JSON that is no object.
    """
    document = json_value(incoming, accepted)
    if not isinstance(document, dict):
        raise ValidationFailedError(FieldError("", "The body must be a JSON object.", "object_type"))
    return document


def json_value(incoming: Incoming, accepted: Sequence[str] = (JSON,)) -> Any:
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
    """Parse JSON as RFC 8259 means it: UTF-8, no NaN, no name twice in an object, nothing behind the value.

    Raises:
        ProblemError: 400 that says where and why.
    """
    try:
        document = json.loads(
            raw.decode(),
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_integer,
        )
        _refuse_deep(document)
        if b"\\u" in raw:
            json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ProblemError("malformed_body", "The body holds half of a surrogate pair.") from error
    except UnicodeDecodeError as error:
        raise ProblemError("malformed_body", f"The body is no UTF-8 at byte {error.start}.") from error
    except json.JSONDecodeError as error:
        raise ProblemError(
            "malformed_body", f"The body is no JSON at line {error.lineno}, column {error.colno}: {error.msg}."
        ) from error
    except RecursionError as error:
        raise ProblemError("malformed_body", f"The body is nested deeper than {MAX_DEPTH} levels.") from error
    except ValueError as error:
        raise ProblemError("malformed_body", f"The body is no JSON we take: {error}") from error
    return document


def _unique(pairs: list[tuple[str, Any]]) -> Document:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice[:100]!a} stands twice in one object.")
    return document


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number.")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:40]} is too large.")
    return number


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"the number {digits[:40]}... has more than {MAX_DIGITS} digits.")
    return int(digits)


def _refuse_deep(document: Any) -> None:
    level = [document]
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for value in level
            if isinstance(value, dict | list)
            for child in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return
    raise RecursionError
