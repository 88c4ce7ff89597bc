"""Checks of a declaration against the fields of its class."""

import re
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel, JsonValue

from dynashard.entity.declaration import (
    DEFAULT_SEPARATOR,
    Key,
    OutOfLine,
    Shards,
    WrongDeclarationError,
    fresh_id,
    stamp_created,
    stamp_updated,
)
from dynashard.entity.mistakes import check_constant, check_filled
from dynashard.entity.record import Record
from dynashard.errors import InvalidKeyError
from dynashard.keys import KeyTemplate, TemplateError, TemplateField, parse
from dynashard.schema import MAX_ATTACHMENT_BYTES, SYSTEM_ATTRIBUTES

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/#-]*")
"""Names of entities, and prefixes of keys."""

_OWN_NAMES: Final = frozenset({"revision"})
_OWN_SEPARATORS: Final = "_-.~#/|+@,;="
_KEY_TYPES: Final = (str, int, UUID, date, Enum)
_NUMBER_SPEC: Final = re.compile(r"(0?[1-9]\d*)?[dxXob]")
_MOMENT: Final = datetime(2026, 12, 31, 23, 59, 58, 987654, UTC)
_SAMPLES: Final = {datetime: _MOMENT, date: _MOMENT.date(), UUID: UUID(int=0)}
"""Types whose key text has the same punctuation for every value."""


def plain_types(annotation: Any) -> frozenset[type]:
    """The classes an annotation allows, None included as NoneType; empty if it is not made of classes."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return plain_types(get_args(annotation)[0])
    if origin in (Union, UnionType):
        members = [plain_types(member) for member in get_args(annotation)]
        return frozenset().union(*members) if all(members) else frozenset()
    if origin is Literal:
        return frozenset(type(value) for value in get_args(annotation))
    if annotation is None:
        return frozenset({NoneType})
    if supertype := getattr(annotation, "__supertype__", None):
        return plain_types(supertype)
    return frozenset({annotation}) if isinstance(annotation, type) else frozenset()


def holds_json(annotation: Any, seen: frozenset[Any] = frozenset()) -> bool:
    """Return whether values of this annotation may hold JSON of any kind, in which a fraction is a float."""
    if annotation is JsonValue:
        return True
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation in seen:
            return False
        fields = annotation.model_fields.values()
        return any(holds_json(field.annotation, seen | {annotation}) for field in fields)
    inside = (getattr(annotation, "__value__", None), *get_args(annotation))
    return any(holds_json(each, seen) for each in inside if each is not None)


def check_names(name: str, key: Key, shards: Shards | None) -> None:
    """Refuse names, prefixes and separators that keys could not be told apart by.

    Raises:
        WrongDeclarationError: with the reason.
    """
    if not NAME.fullmatch(name):
        raise WrongDeclarationError("an entity's name is made of letters, digits and ._/#-, such as user.v1.User")
    if key.separator != DEFAULT_SEPARATOR:
        if key.separator not in _OWN_SEPARATORS or len(key.separator) != 1:
            raise WrongDeclarationError(f"separator {key.separator!r}: use one character of {_OWN_SEPARATORS}")
        if key.prefix != "" or shards is None:
            raise WrongDeclarationError("a separator of its own needs an empty prefix and shards")
        if shards.adopt:
            raise WrongDeclarationError(
                f"adopts unsharded items with the separator {key.separator!r}: only keys joined by "
                f"{DEFAULT_SEPARATOR!r} tell a shard from the bare partition"
            )
        if DEFAULT_SEPARATOR in key.partition:
            raise WrongDeclarationError(
                f"partition {key.partition!r} has a separator of its own and may not contain {DEFAULT_SEPARATOR!r}, "
                "which divides all other keys"
            )
    elif key.prefix is not None and not NAME.fullmatch(key.prefix):
        raise WrongDeclarationError(f"prefix {key.prefix!r} may hold letters, digits and ._/#-")


def check_fields(model: type[Record], expires: str | None) -> None:
    """Refuse fields that collide with system attributes, and wrong expiry or stamp fields.

    Raises:
        WrongDeclarationError: with the reason.
    """
    fields = model.model_fields
    for name, field in fields.items():
        if name in SYSTEM_ATTRIBUTES:
            raise WrongDeclarationError(
                f"field {name} has the name of a system attribute; write another, such as {name.lower()}_"
            )
        if name in _OWN_NAMES:
            raise WrongDeclarationError(
                f"field {name} hides what every item has under this name; write another, such as {name}_number"
            )
        check_filled(name, field)
        if field.default_factory is fresh_id and plain_types(field.annotation) != {str}:
            raise WrongDeclarationError(f"field {name} is filled with a text; write `{name}: str = new_id()`")
        if field.default_factory in (stamp_created, stamp_updated) and plain_types(field.annotation) != {datetime}:
            raise WrongDeclarationError(f"field {name} is a stamp: declare it as a datetime")
        if field.alias or field.validation_alias or field.serialization_alias:
            raise WrongDeclarationError(f"field {name} has an alias: stored attributes are named like their fields")
    if expires is None:
        return
    if expires not in fields:
        raise WrongDeclarationError(
            f"expires names {expires}, which is no field; write `{expires}: datetime | None = None`"
        )
    if plain_types(fields[expires].annotation) != {datetime, NoneType} or fields[expires].default is not None:
        raise WrongDeclarationError(f"expires names {expires}: declare it as `datetime | None = None`")


def check_attachments(
    model: type[Record], attachments: Mapping[str, OutOfLine], *, taken: Collection[str | None], shards: Shards | None
) -> None:
    """Refuse attachments that could not be kept beside the item.

    Args:
        model: the entity's class.
        attachments: the fields.
        taken: fields that the item itself needs: those of its keys, and its expiry.
        shards: its declared shards.

    Raises:
        WrongDeclarationError: with the reason.
    """
    for name, declared in attachments.items():
        field = model.model_fields[name]
        if name in taken:
            raise WrongDeclarationError(f"field {name} is an attachment, so no key and no expiry can be made of it")
        if field.is_required() or field.default is not None or field.default_factory is not None:
            raise WrongDeclarationError(
                f"field {name} is an attachment: give it None as its default, which is 'not there'"
            )
        if not 1 <= declared.max_bytes <= MAX_ATTACHMENT_BYTES:
            raise WrongDeclarationError(
                f"field {name} is an attachment with max_bytes={declared.max_bytes}: use 1 to {MAX_ATTACHMENT_BYTES}"
            )
    if shards is not None and not shards.rule.fixed:
        raise WrongDeclarationError(
            f"has attachments and {shards.placement} placement: they need one that gives each key one home"
        )


def check_template(
    model: type[Record],
    what: str,
    text: str,
    *,
    reserved: frozenset[str] = frozenset(),
    optional: bool = False,
    ordered: bool = False,
    unpadded: Collection[str] = (),
) -> KeyTemplate:
    """Parse a template and check it against the fields it names.

    Args:
        model: the entity's class.
        what: what the template is, for messages.
        text: the template.
        reserved: characters that no value may contain, because they divide the key around the template.
        optional: fields may be None (an index leaves such items out).
        ordered: items are listed in the order of its texts, so numbers need a fixed width.
        unpadded: fields whose numbers may have no fixed width even so.

    Raises:
        WrongDeclarationError: with the reason.
    """
    fields = model.model_fields
    kinds = {name: plain_types(field.annotation) for name, field in fields.items()}
    try:
        template = parse(
            text, reserved=reserved, numeric=lambda name: kinds.get(name, frozenset()) - {NoneType} == {int}
        )
    except TemplateError as error:
        raise WrongDeclarationError(f"{what}: {error}") from error
    for part in template.parts:
        if isinstance(part, TemplateField):
            if part.name not in fields:
                raise WrongDeclarationError(
                    f"{what} template {text!r} names {part.name}, which is no field; there are {', '.join(fields)}"
                )
            _check_kinds(what, part, kinds[part.name], optional=optional)
            if ordered and part.name not in unpadded:
                _check_order(what, part, kinds[part.name] - {NoneType})
    check_constant(what, text, fields)
    if unknown := [name for name in unpadded if name not in template.fields]:
        raise WrongDeclarationError(f"{what} template {text!r} has no field {unknown[0]}, which unpadded names")
    check_samples(model, what, template)
    return template


def check_samples(model: type[Record], what: str, template: KeyTemplate) -> None:
    """Refuse a template that could take no value of a field, whose text always has a character that ends it.

    Raises:
        WrongDeclarationError: with the reason.
    """
    for part in template.parts:
        if isinstance(part, str):
            continue
        [kind] = plain_types(model.model_fields[part.name].annotation) - {NoneType}
        if kind not in _SAMPLES:
            continue
        try:
            template.field_text(part, {part.name: _SAMPLES[kind]})
        except InvalidKeyError as error:
            raise WrongDeclarationError(
                f"{what} {template.text!r} could take no {kind.__name__}: {error}. Give {part.name} a format without "
                "it, such as %Y%m%dT%H%M%SZ, or other text beside it"
            ) from error


def _check_kinds(what: str, part: TemplateField, kinds: frozenset[type], *, optional: bool) -> None:
    if NoneType in kinds and not optional:
        raise WrongDeclarationError(
            f"{what} names {part.name}, which may be None: a key needs it; write its type without None"
        )
    present = kinds - {NoneType}
    if not present or not all(issubclass(kind, _KEY_TYPES) and kind is not bool for kind in present):
        raise WrongDeclarationError(
            f"{what} names {part.name}: keys are made of text, int, UUID, date, datetime, enum; write one of these "
            "types, such as an int of the smallest unit for an amount"
        )
    if len(present) > 1:
        raise WrongDeclarationError(
            f"{what} names {part.name}, which is of several types: 1 and '1' would be one key; write one type"
        )
    [kind] = present
    if issubclass(kind, Enum):
        _check_members(what, part.name, kind)
    if part.spec and not _spec_fits(part.spec, kind):
        raise WrongDeclarationError(
            f"{what}: the format {part.spec!r} of {part.name} is not one for keys: use 012d for numbers, "
            "%Y-%m-%d and the like for dates, none for text"
        )


def _check_order(what: str, part: TemplateField, kinds: frozenset[type]) -> None:
    """Refuse numbers whose texts do not sort as they do: 10 would be listed before 9."""
    [kind] = kinds
    if issubclass(kind, Enum):
        texts = [str(member.value) for member in kind if isinstance(member.value, int)]
        if any(text.startswith("-") or len(text) != len(texts[0]) for text in texts):
            raise WrongDeclarationError(
                f"{what} names {part.name}, and the numbers of {kind.__name__} do not sort as text: write an int with "
                f"a fixed width, {{{part.name}:04d}}, or values of one width"
            )
    elif issubclass(kind, int) and part.width is None:
        raise WrongDeclarationError(
            f"{what} names {part.name}, an int without a fixed width, so that 10 is listed before 9: write "
            f'{{{part.name}:012d}}. For keys that are stored so already, write unpadded=("{part.name}",)'
        )


def _check_members(what: str, name: str, kind: type[Enum]) -> None:
    values = [member.value for member in kind]
    if any(isinstance(value, bool) or not isinstance(value, str | int) for value in values):
        raise WrongDeclarationError(f"{what} names {name}: the values of {kind.__name__} must be text or int")
    if len({str(value) for value in values}) < len(values):
        raise WrongDeclarationError(f"{what} names {name}: two values of {kind.__name__} are one text in keys")


def _spec_fits(spec: str, kind: type) -> bool:
    if issubclass(kind, date):
        return "%" in spec
    return issubclass(kind, int) and not issubclass(kind, Enum) and bool(_NUMBER_SPEC.fullmatch(spec))
