"""Checks of a declaration against the fields of its class. Each yields the problems that it finds, as sentences."""

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, date, datetime
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from dynashard.cures import hint
from dynashard.entity.declaration import (
    DEFAULT_SEPARATOR,
    Key,
    OutOfLine,
    Retention,
    Shards,
    WrongDeclarationError,
    created_at,
    fresh_id,
    new_id,
    refuse,
    stamp_created,
    stamp_updated,
    updated_at,
)
from dynashard.entity.guarantee import WriteGuarantee
from dynashard.errors import InvalidKeyError
from dynashard.keys import KeyTemplate, TemplateError, TemplateField, parse
from dynashard.placement import PART_DIGITS, PARTS
from dynashard.record import Record
from dynashard.schema import MAX_ATTACHMENT_BYTES, MAX_FIELDS, SYSTEM_ATTRIBUTES

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/#-]*")
"""Names of entities, and prefixes of keys."""

_OTHER_SEPARATORS: Final = "_-.~#/|+@,;="
_KEY_TYPES: Final = (str, int, UUID, date, Enum)
_NUMBER_SPEC: Final = re.compile(r"(0?[1-9]\d*)?[dxXob]")
_PART: Final = re.compile(rf"\{{\w+:0{PART_DIGITS}d\}}")
_PART_EXAMPLE: Final = f"{{part:0{PART_DIGITS}d}}"
_CALLS: Final = {new_id: "str = new_id()", created_at: "datetime = created_at()", updated_at: "datetime = updated_at()"}
_SAMPLES: Final = {
    datetime: datetime(2026, 12, 31, 23, 59, 58, 987654, UTC),
    date: date(2026, 12, 31),
    UUID: UUID(int=0),
}
"""Types whose key text has the same punctuation for every value."""
_VALIDATED: Final[Mapping[tuple[str, str], type]] = {
    ("pydantic.networks", "EmailStr"): str,
    ("pydantic.types", "AwareDatetime"): datetime,
    ("pydantic.types", "PastDate"): date,
    ("pydantic.types", "PastDatetime"): datetime,
}
"""Types of pydantic that only validate, by name because one is slow to import, and the type of their values."""
_INSTEAD_OF_BRACES: Final = re.compile(r"(?:\W*[$<{%&@:\[(])(\w+)(?:[>})\]]\W*s?)?")
"""How other libraries write a field in a template: `$id`, `<id>`, `%(id)s`, `{{id}}`."""


def plain_types(annotation: Any) -> frozenset[type]:
    """Return the classes an annotation allows, None included as NoneType; empty if it consists of anything else."""
    origin = get_origin(annotation)
    inside = get_args(annotation)[0] if origin is Annotated else getattr(annotation, "__supertype__", None)
    if inside is not None:
        return plain_types(inside)
    if origin in (Union, UnionType):
        members = [plain_types(member) for member in get_args(annotation)]
        return frozenset().union(*members) if all(members) else frozenset()
    if origin is Literal:
        return frozenset(type(value) for value in get_args(annotation))
    if annotation is None:
        return frozenset({NoneType})
    if not isinstance(annotation, type):
        return frozenset()
    return frozenset({_VALIDATED.get((annotation.__module__, annotation.__qualname__), annotation)})


def holds_json(annotation: Any, seen: frozenset[Any] = frozenset()) -> bool:
    """Return whether values of this annotation may hold JSON of any kind, in which a fraction is a float."""
    if annotation is JsonValue:
        return True
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = {} if annotation in seen else annotation.model_fields
        return any(holds_json(field.annotation, seen | {annotation}) for field in fields.values())
    inside = (getattr(annotation, "__value__", None), *get_args(annotation))
    return any(holds_json(each, seen) for each in inside if each is not None)


def name_problems(name: str, key: Key, shards: Shards | None) -> Iterator[str]:
    """Check that names, prefixes and separators keep keys distinguishable."""
    if not NAME.fullmatch(name):
        yield f"name is {name!r}; it must consist of letters, digits and ._/#-, such as user.v1.User"
    if shards is not None and shards.placement == PARTS.name and not _PART.fullmatch(key.sort or ""):
        yield f"has the placement {PARTS.name}, so its sort key is one number: write sort={_PART_EXAMPLE!r}"
    if key.separator == DEFAULT_SEPARATOR:
        if key.prefix is not None and not NAME.fullmatch(key.prefix):
            yield f"prefix is {key.prefix!r}; it must consist of letters, digits and ._/#-"
        return
    if key.separator not in _OTHER_SEPARATORS or len(key.separator) != 1:
        yield f"separator is {key.separator!r}; it must be one character of {_OTHER_SEPARATORS}"
    if key.prefix != "" or shards is None:
        yield f"the separator {key.separator!r} needs an empty prefix and shards"
    elif shards.adopt:
        yield (
            f"adopts unsharded items with the separator {key.separator!r}: only keys joined by {DEFAULT_SEPARATOR!r} "
            "distinguish a shard from the bare partition"
        )
    if DEFAULT_SEPARATOR in key.partition:
        yield (
            f"partition {key.partition!r} is joined by {key.separator!r} and may not contain {DEFAULT_SEPARATOR!r}, "
            "which divides all other keys"
        )


def field_problems(model: type[Record]) -> Iterator[str]:
    """Check that fields are stored by their names, and collide with no system attribute."""
    if len(model.model_fields) > MAX_FIELDS:
        yield f"has {len(model.model_fields)} fields, and {MAX_FIELDS} is the most: move some into a nested model"
    for name, field in model.model_fields.items():
        if name in SYSTEM_ATTRIBUTES:
            yield f"field {name} has the name of a system attribute; write another, such as {name.lower()}_"
        if name == "revision":
            yield "field revision hides the revision of the item; write another, such as revision_number"
        if field.alias or field.validation_alias or field.serialization_alias:
            yield f"field {name} has an alias: stored attributes are named like their fields; leave the alias out"


def default_problems(model: type[Record]) -> Iterator[str]:
    """Check that ids and stamps are declared rightly, and that defaults of enums are values of theirs."""
    for name, field in model.model_fields.items():
        for function, call in _CALLS.items():
            if field.default is function or field.default_factory is function:
                yield f"field {name} is the function {function.__name__}: write `{name}: {call}`"
        if field.default_factory is fresh_id and plain_types(field.annotation) != {str}:
            yield f"field {name} is filled with a text; write `{name}: str = new_id()`"
        if field.default_factory in (stamp_created, stamp_updated) and plain_types(field.annotation) != {datetime}:
            yield f"field {name} is a stamp: declare it as a datetime"
        if not (field.validate_default or model.model_config.get("validate_default")):
            yield from _enum_problems(name, field)


def _enum_problems(name: str, field: FieldInfo) -> Iterator[str]:
    """Check that the default of a field of an enum is one of its values, or the text of one.

    Readers let others pass, because a later release may have written them.
    """
    kinds, default = plain_types(field.annotation) - {NoneType}, field.get_default()
    enums = [kind for kind in kinds if issubclass(kind, Enum)]
    if default in (None, PydanticUndefined) or len(enums) != 1 or len(kinds) > 1:
        return
    try:
        enums[0](default)
    except ValueError:
        members, of = list(enums[0]), enums[0].__name__
        near = next((member for member in members if member.name == default), members[0])
        yield f"the default of field {name} is {default!r}, which is not a value of {of}: write {of}.{near.name}"


def unknown_field_problems(model: type[Record]) -> Iterator[str]:
    """Check that the entity refuses unknown fields, because it stores none."""
    if (extra := model.model_config.get("extra")) != "forbid":
        yield f"has extra={extra!r}: unknown fields are not stored, so what callers send would be lost; leave it out"


def expiry_problems(model: type[Record], expires: str | None) -> Iterator[str]:
    """Check that `expires` names a field that can hold the time of expiry, and that no other field has a retention."""
    fields = model.model_fields
    for name, field in fields.items():
        if name != expires and any(isinstance(each, Retention) for each in field.metadata):
            yield f'field {name} has a Retention, which is for the expiry: write expires="{name}"'
    if expires is None:
        return
    if expires not in fields:
        yield f"expires names {expires}, which is not a field; write `{expires}: datetime | None = None`"
    if plain_types(fields[expires].annotation) != {datetime, NoneType} or fields[expires].default is not None:
        yield f"expires names {expires}: declare it as `datetime | None = None`"
    for each in fields[expires].metadata:
        if isinstance(each, Retention):
            yield from _retention_problems(fields, expires, each)


def _retention_problems(fields: Mapping[str, FieldInfo], expires: str, retention: Retention) -> Iterator[str]:
    """Check that an expiry can be counted from another field."""
    after, names = retention.after, list(fields)
    for unit, amount, least in (("days", retention.days, 1), ("months", retention.months, 0)):
        if amount is not None and (not isinstance(amount, int) or isinstance(amount, bool) or amount < least):
            yield f"{expires} is counted in {unit}, and {unit} is {amount!r}: write a whole number from {least}"
    if (retention.days is None) is (retention.months is None):
        yield f'{expires} is counted in days or in months: write Retention("{after}", months=3)'
    if after not in fields:
        yield f"{expires} is counted from {after}, which is not a field"
    elif after == expires:
        yield f"{expires} is counted from itself: name the field of a time, above it"
    elif not plain_types(fields[after].annotation) <= {datetime, NoneType}:
        yield f"{expires} is counted from {after}: declare {after} as a datetime"
    elif names.index(after) > names.index(expires):
        yield f"{expires} is counted from {after}: declare {after} above it"
    if not fields[expires].validate_default:
        yield (
            f"{expires} is counted from {after} only if its default is validated: write "
            f'`Annotated[datetime | None, Retention("{after}", ...), Field(validate_default=True)] = None`'
        )


def attachment_problems(
    model: type[Record], attachments: Mapping[str, OutOfLine], *, taken: Collection[str | None], shards: Shards | None
) -> Iterator[str]:
    """Check that attachments can be stored out of line; `taken` are the fields of keys and of the expiry."""
    for name, declared in attachments.items():
        field = model.model_fields[name]
        if name in taken:
            yield f"field {name} is an attachment, so no key and no expiry can use it"
        if field.is_required() or field.default is not None or field.default_factory is not None:
            yield f"field {name} is an attachment: give it None as its default, which means that there is none"
        if not 1 <= declared.max_bytes <= MAX_ATTACHMENT_BYTES:
            yield f"field {name} is an attachment with max_bytes={declared.max_bytes}: use 1 to {MAX_ATTACHMENT_BYTES}"
    if attachments and shards is not None and not shards.rule.fixed:
        yield f"has attachments and {shards.placement} placement: they need one that gives each key one home"


def guarantee_problems(
    guarantee: WriteGuarantee, *, attachments: Collection[str], shards: Shards | None
) -> Iterator[str]:
    """Check that the writes of an entity can be transactions, if that is declared."""
    if guarantee is not WriteGuarantee.EXACTLY_ONCE:
        return
    if attachments:
        yield (
            f'has handling="{guarantee}" and the attachment {min(attachments)}: a write of attachments takes several '
            f'requests, which are not one transaction; write handling="{WriteGuarantee.GUARDED}", or keep the '
            "attachment in an entity of its own"
        )
    if shards is not None and not shards.rule.fixed:
        yield (
            f'has handling="{guarantee}" and {shards.placement} placement: a transaction does not know where the items '
            'are; write placement="calculated", or another guarantee'
        )


def checked_template(
    model: type[Record],
    what: str,
    text: str,
    *,
    reserved: frozenset[str] = frozenset(),
    optional: bool = False,
    unpadded: Collection[str] | None = None,
) -> KeyTemplate:
    """Parse a template and check it against the fields it names; `what` names it in messages.

    `reserved` characters divide the key around the template, so no value may contain them. Fields may be None only if
    they are `optional`, because an index leaves such items out. Numbers in a sort template need a fixed width, except
    `unpadded` fields; a partition template, whose texts need no order, has None.
    """
    kinds = {name: plain_types(field.annotation) for name, field in model.model_fields.items()}

    def problems() -> Iterator[str]:
        for part in template.parts:
            if isinstance(part, str):
                continue
            if part.name not in kinds:
                yield f"template {text!r} names {part.name}, which is not a field; {_fields_instead(model, part.name)}"
            yield from _kind_problems(part, kinds[part.name], optional=optional)
            if unpadded is not None and part.name not in unpadded:
                yield from _order_problems(part, kinds[part.name] - {NoneType})
        meant = text if text in kinds else _INSTEAD_OF_BRACES.fullmatch(template.literals())
        name = meant[1] if isinstance(meant, re.Match) else meant
        if name in kinds and not template.fields:
            yield f"{text!r} is the same text for every item: write '{{{name}}}' for the field"
        for name in unpadded or ():
            if name not in template.fields:
                yield f"template {text!r} has no field {name}, which unpadded names"
        yield from sample_problems(model, template)

    try:
        template = parse(
            text, reserved=reserved, numeric=lambda name: kinds.get(name, frozenset()) - {NoneType} == {int}
        )
    except TemplateError as error:
        raise WrongDeclarationError(f"{what}: {error}") from error
    refuse(f"{what} {problem}" for problem in problems())
    return template


def _fields_instead(model: type[Record], name: str) -> str:
    """Return what a template can name in place of what is not a field."""
    if isinstance(vars(model).get(name), property) or name in model.model_computed_fields:
        return "it is computed when it is read, and keys have what is stored: make it a field that a validator fills"
    if not model.model_fields:
        return f"declare it, such as `{name}: str`"
    return f"there are {', '.join(model.model_fields)}{hint(name, model.model_fields)}"


def sample_problems(model: type[Record], template: KeyTemplate) -> Iterator[str]:
    """Check that a template can take values of its fields: some texts always have a character that ends the field."""
    for part in template.parts:
        if isinstance(part, str):
            continue
        [kind] = plain_types(model.model_fields[part.name].annotation) - {NoneType}
        try:
            if kind in _SAMPLES:
                template.field_text(part, {part.name: _SAMPLES[kind]})
        except InvalidKeyError as error:
            yield (
                f"{template.text!r} cannot hold a {kind.__name__}: {error}. Give {part.name} a format without it, such "
                "as %Y%m%dT%H%M%SZ, or other text next to it"
            )


def _kind_problems(part: TemplateField, kinds: frozenset[type], *, optional: bool) -> Iterator[str]:
    if NoneType in kinds and not optional:
        yield f"names {part.name}, which may be None: a key needs it; write its type without None"
    present = kinds - {NoneType}
    if not present or not all(issubclass(kind, _KEY_TYPES) and kind is not bool for kind in present):
        yield (
            f"names {part.name}: a key field must be text, int, UUID, date, datetime or enum; write one of these, "
            "such as an int of the smallest unit for an amount"
        )
    if len(present) > 1:
        yield f"names {part.name}, which is of several types: 1 and '1' would be one key; write one type"
    [kind] = present
    if issubclass(kind, Enum):
        values = [member.value for member in kind]
        if any(isinstance(value, bool) or not isinstance(value, str | int) for value in values):
            yield f"names {part.name}: the values of {kind.__name__} must be text or int"
        if len({str(value) for value in values}) < len(values):
            yield f"names {part.name}: two values of {kind.__name__} are one text in keys"
    if part.spec and not _spec_fits(part.spec, kind):
        yield (
            f"names {part.name}: the format {part.spec!r} of {part.name} is not one for keys: use 012d for numbers, "
            "%Y-%m-%d and the like for dates, none for text"
        )


def _order_problems(part: TemplateField, kinds: frozenset[type]) -> Iterator[str]:
    """Check that texts of numbers sort as the numbers do: 10 would be listed before 9."""
    [kind] = kinds
    if issubclass(kind, Enum):
        texts = [str(member.value) for member in kind if isinstance(member.value, int)]
        if any(text.startswith("-") or len(text) != len(texts[0]) for text in texts):
            yield (
                f"names {part.name}, and the numbers of {kind.__name__} do not sort as text: write an int with "
                f"a fixed width, {{{part.name}:04d}}, or values of one width"
            )
    elif issubclass(kind, int) and part.width is None:
        yield (
            f"names {part.name}, an int without a fixed width, so that 10 is listed before 9: write "
            f'{{{part.name}:012d}}. For keys that are stored so already, write unpadded=("{part.name}",)'
        )


def _spec_fits(spec: str, kind: type) -> bool:
    if issubclass(kind, date):
        return "%" in spec
    return issubclass(kind, int) and not issubclass(kind, Enum) and bool(_NUMBER_SPEC.fullmatch(spec))
