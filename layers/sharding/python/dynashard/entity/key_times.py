"""The format of the time that an entity's sort keys begin with, by which its items are placed in epochs."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic.fields import FieldInfo

from dynashard.entity.checks import plain_types
from dynashard.entity.declaration import WrongDeclarationError, fresh_id
from dynashard.key_time import KSUID, ULID, UUID7, TimeFormat, moment_format
from dynashard.keys import KeyTemplate
from dynashard.record import Record

Ulid = Annotated[str, ULID]
"""A text field with a ULID in upper case, which the caller makes."""

_KNOWN = "`id: str = new_id()`, a UUID (version 7), a Ulid, or a datetime whose format sorts"


def time_format(model: type[Record], sort: KeyTemplate) -> TimeFormat:
    """Return the format of the time with which sort keys of a template begin.

    Raises `WrongDeclarationError` with the reason if they begin with something else.
    """
    first = sort.parts[0]
    if isinstance(first, str):
        raise WrongDeclarationError(
            f"has epochs placement, and its sort key {sort.text!r} begins with the text {first!r}: it must begin with "
            f"the field that holds the item's time, such as {_KNOWN}"
        )
    field = model.model_fields[first.name]
    try:
        found = _format_of(field, first.spec)
    except ValueError as error:
        raise WrongDeclarationError(
            f"has epochs placement, and its sort key begins with {first.name} in the format {first.spec!r}: {error}"
        ) from None
    if found is None:
        raise WrongDeclarationError(
            f"has epochs placement, and its sort key begins with {first.name}, which carries no time: a count that "
            f"depends on the time of a key needs {_KNOWN}. Keys that callers choose freely are placed by "
            'placement="calculated"'
        )
    return found


def _format_of(field: FieldInfo, spec: str) -> TimeFormat | None:
    kinds: frozenset[type[Any]] = plain_types(field.annotation)
    if kinds == {datetime}:
        return moment_format(spec)
    if kinds == {UUID} and not spec:
        return UUID7
    if kinds != {str}:
        return None
    if field.default_factory is fresh_id:
        return KSUID
    return next((each for each in field.metadata if isinstance(each, TimeFormat)), None)
