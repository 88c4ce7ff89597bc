"""JSON bodies: read strictly, merged by RFC 7396, and turned into entities."""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json, to_jsonable_python

from functions.api.incoming import Incoming
from functions.api.problems import FieldError, ProblemError, invalid_fields

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
REVISION: Final = "revision"
"""Name of the ETag's value inside a representation; read-only."""

MAX_DEPTH: Final = 32
"""Levels of nesting that DynamoDB stores."""
MAX_DIGITS: Final = 400

Document = dict[str, Any]
Model = TypeVar("Model", bound=BaseModel)


def json_object(incoming: Incoming, accepted: Sequence[str] = (JSON,)) -> Document:
    """The body as a JSON object.

    Args:
        incoming: the request.
        accepted: media types that are understood.

    Raises:
        ProblemError: 415 for another media type, 400 for bad JSON, 422 for JSON that is no object.
    """
    media_type = incoming.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in accepted:
        raise ProblemError(
            "unsupported_media_type",
            f"Send the body as {' or '.join(accepted)} in the Content-Type header.",
            headers={"Accept-Patch": ", ".join(accepted)} if MERGE_PATCH in accepted else {},
        )
    document = parse_json(incoming.body)
    if not isinstance(document, dict):
        raise invalid_fields(FieldError("", "The body must be a JSON object.", "object_type"))
    return document


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


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON Merge Patch (RFC 7396): null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def validated(model: type[Model], document: Mapping[str, Any]) -> Model:
    """The model a document describes.

    Raises:
        ProblemError: 422 with every field at fault.
    """
    try:
        return model.model_validate_json(json.dumps(document))
    except ValidationError as error:
        raise invalid_fields(*field_errors(error)) from error


def field_errors(error: ValidationError) -> list[FieldError]:
    """The fields a validation error is about, without the values that were sent."""
    return [
        FieldError(".".join(str(part) for part in entry["loc"]), entry["msg"], entry["type"])
        for entry in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def representation(item: BaseModel, revision: str | None) -> Document:
    """The JSON document that stands for an item, its revision included."""
    document: Document = item.model_dump(mode="json")
    if revision is not None:
        document[REVISION] = revision
    return document


def written(document: Any) -> str:
    """A document as JSON text."""
    return to_json(document).decode()


def without(document: Mapping[str, Any], names: Collection[str]) -> Document:
    """The document without these names."""
    return {name: value for name, value in document.items() if name not in names}


def with_fixed(document: Mapping[str, Any], fixed: Mapping[str, Any]) -> Document:
    """The document with these fields filled in where it does not name them."""
    return {**{name: to_jsonable_python(value) for name, value in fixed.items()}, **document}


def refuse_read_only(document: Mapping[str, Any], names: Collection[str]) -> None:
    """Refuse a document that sets fields only the server sets.

    Raises:
        ProblemError: 422 with each of them.
    """
    sent = [name for name in document if name in names]
    if sent:
        raise invalid_fields(
            *(FieldError(name, "The server sets this field: leave it out.", "read_only") for name in sent)
        )


def refuse_changed(item: BaseModel, fixed: Mapping[str, Any]) -> None:
    """Refuse an item whose fixed fields (tenant, key) have another value.

    Raises:
        ProblemError: 422 with each of them.
    """
    changed = [name for name, value in fixed.items() if getattr(item, name) != value]
    if changed:
        raise invalid_fields(
            *(
                FieldError(name, "The address and the token decide this field: leave it out or as it is.", "immutable")
                for name in changed
            )
        )
