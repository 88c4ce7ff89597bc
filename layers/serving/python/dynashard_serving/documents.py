"""Items as JSON documents: merged by RFC 7396, checked, turned into entities and back."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from functools import partial
from typing import Any, Final, TypeVar

import orjson
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json, to_jsonable_python

from dynashard.entity import Entity, definition
from dynashard.errors import MOST_FIELD_ERRORS, FieldError, ValidationFailedError
from dynashard.record import holding

REVISION: Final = "revision"
"""Name of the revision inside a document; read-only."""
MANY_ERRORS: Final = "too_many_errors"
"""The code of a document with more errors than are listed."""
TENANT: Final = "tenant_id"
"""The field that partitions every entity of the API; its value comes from the caller's identity."""

_NUMBER: Final = re.compile(r"\s*[-+]?[0-9.]+\s*")
_ONLY_JSON: Final = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
"""Orjson refuses values that it writes in other ways than pydantic."""
_MOST_BUILT: Final = 2000
"""The most errors of one document that are listed. Pydantic can only list all of them."""
_RAISED: Final = "Value error, "
"""What pydantic puts before the message of an error that a model's own code raises."""

NO_TIME: Final = "Write a time such as 2026-11-20T10:15:00Z, or a day such as 2026-11-20."
"""The message for a time that is given as a number."""

Document = dict[str, Any]
Model = TypeVar("Model", bound=BaseModel)


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


def patched(model: type[Entity], document: Document, patch: Mapping[str, Any]) -> Document:
    """A document after a JSON Merge Patch. An attachment that is set to null is named, so that it is removed."""
    emptied = {name: None for name in definition(model).attachments if name in patch and patch[name] is None}
    merged: Document = merge_patch(document, patch)
    return {**merged, **emptied}


def patched_fields(model: type[Entity], patch: Mapping[str, Any]) -> tuple[str, ...]:
    """The attachments that a patch can only be merged with if they are read."""
    return tuple(name for name in definition(model).attachments if isinstance(patch.get(name), dict))


def validated(model: type[Model], document: Mapping[str, Any], *, strict: bool = True) -> Model:
    """Return the model that a JSON document describes.

    With `strict`, accept only the JSON type that the OpenAPI document names for a field: not `true` for 1, nor a number
    for a time.

    Raises:
        ValidationFailedError: with every field at fault.
    """
    _refuse_unknown(model, document)
    try:
        return model.model_validate_json(json.dumps(document), strict=strict)
    except ValidationError as error:
        raise ValidationFailedError(*field_errors(error)) from error


def validated_over(model: type[Entity], document: Document, before: Document) -> Entity:
    """Return the entity of a document that was made from that of a stored item, `before`; raises as `validated`.

    Values of another version that the stored item has are accepted if they are unchanged.
    """
    try:
        return validated(model, document)
    except ValidationFailedError as refused:
        theirs = [each for each in refused.errors if _of_another_version(each, document, before)]
        if len(theirs) == len(refused.errors) and not refused.omitted:
            names = {each.field.partition(".")[0] for each in theirs}
            text = json.dumps(_without_nulls(document, [each.field for each in theirs]))
            if (made := definition(model).tolerance.document(text, names)) is not None:
                return made
        others = [each for each in refused.errors if each not in theirs]
        raise ValidationFailedError(*(others or refused.errors), omitted=refused.omitted) from refused


def _of_another_version(error: FieldError, document: Any, before: Any) -> bool:
    """Whether a field at fault is as it was before: a member of an enum, or nothing, that another version stored."""
    from dynashard.entity.tolerance import TOLERATED  # noqa: PLC0415 - only refused documents need it

    if not error.field:
        # The item as a whole is refused, which no version has stored.
        return False
    for name in error.field.split("."):
        document, before = _member(document, name), _member(before, name)
    return bool(document == before and (error.code in TOLERATED or document is None))


def _member(document: Any, name: str) -> Any:
    if isinstance(document, list) and name.isdecimal() and int(name) < len(document):
        return document[int(name)]
    return document.get(name) if isinstance(document, dict) else None


def _without_nulls(document: Document, paths: Iterable[str]) -> Document:
    """The document without these nested members where they are null: they are not stored."""
    copied: Document = json.loads(json.dumps(document))
    for path in paths:
        *parents, name = path.split(".")
        inside: Any = copied
        for parent in parents:
            inside = _member(inside, parent)
        if isinstance(inside, dict) and inside.get(name) is None:
            inside.pop(name, None)
    return copied


def _refuse_unknown(model: type[BaseModel], document: Mapping[str, Any]) -> None:
    """Refuse a document with more unknown fields than an error names, before each of them becomes an error."""
    if model.model_config.get("extra") != "forbid" or len(document) <= MOST_FIELD_ERRORS:
        return
    known = {name for field, info in model.model_fields.items() for name in (field, info.alias)}
    unknown = [name for name in document if name not in known]
    if len(unknown) > MOST_FIELD_ERRORS:
        errors = [FieldError(name, "Unknown field.", "extra_forbidden") for name in unknown[:MOST_FIELD_ERRORS]]
        raise ValidationFailedError(*errors, omitted=len(unknown) - len(errors))


def field_errors(error: ValidationError) -> list[FieldError]:
    """Return the fields of a validation error without the sent values; for thousands of them, only their number."""
    if error.error_count() > _MOST_BUILT:
        return [
            FieldError(
                "",
                f"{error.error_count()} values are not accepted.",
                MANY_ERRORS,
            )
        ]
    return [
        FieldError(".".join(str(part) for part in entry["loc"]), entry["msg"].removeprefix(_RAISED), entry["type"])
        for entry in error.errors(include_url=False, include_context=False, include_input=False)
        # A default that follows from a field at fault is not a fault of its own.
        if entry["type"] != "default_factory_not_called"
    ]


def number_as_time(text: str, value: object) -> bool:
    """Return whether a text became a time as a number of seconds: `2026` would be a moment of the year 1970."""
    return isinstance(value, date) and _NUMBER.fullmatch(text) is not None


def representation(item: BaseModel, revision: str | None) -> Document:
    """Return the JSON document of an item, with its revision and without attachments that were not included."""
    document: Document = item.model_dump(mode="json", exclude=unasked(item), warnings=False)
    if revision is not None:
        document[REVISION] = revision
    return document


def given_part(item: BaseModel) -> Document:
    """Return the JSON document of what callers give of an item: without its revision, and what models compute."""
    document: Document = item.model_dump(
        mode="json", exclude=unasked(item), exclude_computed_fields=True, warnings=False
    )
    return document


def item_texts(items: Iterable[Entity], *, with_type: bool = False) -> list[bytes]:
    """Return the JSON of what `representation` returns of each stored item, by one pass over its fields.

    `with_type` puts the name of its entity first, as the member `type`. Cost: 1 us for an item of ten short fields.
    """
    found, model, head, complete = [], None, b"{", frozenset[str]()
    for item in items:
        if item.__class__ is not model:
            model, known = item.__class__, definition(item.__class__)
            complete = known.complete
            to_json_of = partial(model.__pydantic_serializer__.to_json, warnings=False)
            head = b'{"type":%b,' % to_json(known.name) if with_type else b"{"
        whole = complete <= item.__pydantic_fields_set__
        text = to_json_of(item) if whole else to_json_of(item, exclude=unasked(item))
        revision = item.revision
        tail = b"}" if revision is None else b',"%b":%b}' % (REVISION.encode(), to_json(revision))
        found.append(head + text[1:-1] + tail)
    return found


def list_text(texts: Iterable[bytes]) -> bytes:
    """Return the JSON list of these texts."""
    return b"[%b]" % b",".join(texts)


def part(model: type[Entity], values: Mapping[str, Any]) -> Document:
    """The JSON document of some fields of an item."""
    # The other fields are None, because a default may follow from a missing field.
    partial = holding(model, {**dict.fromkeys(model.model_fields), **values})
    document: Document = partial.model_dump(mode="json", include=set(values), warnings=False)
    return document


def unasked(item: BaseModel) -> set[str] | None:
    """Return what an item was read or made without, None if nothing: attachments, and what another version left out."""
    return set(definition(type(item)).complete - item.model_fields_set) or None if isinstance(item, Entity) else None


def written(document: Any) -> str:
    """A document as JSON text."""
    try:
        return orjson.dumps(document, option=_ONLY_JSON).decode()
    except TypeError:
        # Pydantic takes several times as long for the same text. It also writes models, times and large integers.
        return to_json(document).decode()


def without(document: Mapping[str, Any], names: Collection[str]) -> Document:
    """The document without these names."""
    return {name: value for name, value in document.items() if name not in names}


def with_fixed(document: Mapping[str, Any], fixed: Mapping[str, Any]) -> Document:
    """Return the document with these fields added if it does not have them."""
    return {**{name: to_jsonable_python(value) for name, value in fixed.items()}, **document}


def refuse_read_only(document: Mapping[str, Any], names: Collection[str]) -> None:
    """Refuse a document that sets fields only the server sets.

    Raises:
        ValidationFailedError: with each of them.
    """
    sent = [name for name in document if name in names]
    if sent:
        raise ValidationFailedError(
            *(FieldError(name, "The server sets this field. Remove it.", "read_only") for name in sent)
        )


def refuse_changed(item: BaseModel, fixed: Mapping[str, Any]) -> None:
    """Refuse an item whose fixed fields (tenant, key) have another value.

    Raises:
        ValidationFailedError: with each of them.
    """
    changed = [name for name, value in fixed.items() if getattr(item, name) != value]
    if changed:
        raise ValidationFailedError(*map(immutable, changed))


def immutable(name: str) -> FieldError:
    """Return the error of a field that the address or the token sets."""
    return FieldError(name, "The address and the token set it. Remove it, or send its stored value.", "immutable")
