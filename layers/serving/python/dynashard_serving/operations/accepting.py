"""Decide about a write before the stored item is known, in the same way for writes that are done at once or later."""

import unicodedata
from collections.abc import Mapping, Sequence
from math import floor
from typing import Any, Final

from dynashard.entity import Entity, definition
from dynashard.errors import FieldError, InvalidValueError, ValidationFailedError
from dynashard_serving.declare import item_reads_of
from dynashard_serving.documents import (
    MANY_ERRORS,
    TENANT,
    Document,
    immutable,
    refuse_changed,
    refuse_read_only,
    validated,
    with_fixed,
    without,
)
from dynashard_serving.idempotency import MAX_KEY_LENGTH, usable
from dynashard_serving.operations.item_reads import Key
from dynashard_serving.operations.patching import refuse_malformed
from dynashard_serving.operations.requests import Create, Put, Update, Write
from dynashard_serving.operations.served import Served

_DOTS: Final = frozenset({".", ".."})
"""Clients resolve these segments of a path, encoded or not."""
_PAST: Final = "The time is in the past, and an expired item cannot be stored. Send a later time, or null."


def accept(served: Served, request: Write) -> Entity | Key:
    """Refuse a write that is wrong whatever is stored. `refuse_untimely` checks its times.

    Returns:
        The item of a create or a put, or the key of an update or a delete.

    Raises:
        ValidationFailedError: with every field at fault.
    """
    match request:
        case Create() | Put():
            return item_of(served, request)
        case Update():
            _refuse_patch(served, request)
    return request.key


def item_of(served: Served, request: Create | Put) -> Entity:
    """Return the item of a create or a put.

    A create must not set fields that only the server sets. A put may, because callers send back what they read; the
    values are ignored.

    Raises:
        ValidationFailedError: with every field at fault; or the idempotency key is invalid.
    """
    if isinstance(request, Put):
        fixed = {TENANT: request.tenant} if request.key is None else request.key
        return _item(served, served.given(request.item), fixed)
    refuse_read_only(request.item, served.server_fields)
    item = _item(served, request.item, {TENANT: request.tenant})
    if request.idempotency_key is not None and not usable(request.idempotency_key):
        message = f"Use 1 to {MAX_KEY_LENGTH} printable ASCII characters."
        raise ValidationFailedError(FieldError("idempotency_key", message, "out_of_range"))
    return item


def refuse_untimely(served: Served, request: Write, about: Entity | Key, now: float) -> None:
    """Refuse a write whose times are unacceptable now. Do not call it for a repeat of an accepted write.

    Args:
        served: the entity.
        request: the write. Whether a put creates, so that a window applies, is known when the stored item is.
        about: the result of `accept`.
        now: the time of acceptance, in epoch seconds.

    Raises:
        ValidationFailedError: with the field.
    """
    if isinstance(about, Entity):
        if isinstance(request, Create):
            served.refuse_outside_window(about, now)
        refuse_past_expiry(about, now)
    name = served.definition.expires
    if not isinstance(request, Update) or name is None or not isinstance(request.patch, dict):
        # What a JSON Patch sets is known when it has been applied.
        return
    if request.patch.get(name) is not None:
        refuse_past(name, served.definition.assignment.check(name, request.patch[name]), now)


def refuse_past_expiry(item: Entity, now: float) -> None:
    """Refuse an item if its sender set a time of expiry that has passed. A time that the model derives is accepted.

    Raises:
        ValidationFailedError: with the field.
    """
    name = definition(type(item)).expires
    if name is not None and name in item.model_fields_set:
        refuse_past(name, getattr(item, name), now)


def refuse_past(name: str, expires: Any, now: float) -> None:
    """Refuse a time of expiry that has passed. None and times without a zone are accepted here.

    Raises:
        ValidationFailedError: with the field.
    """
    # Expiry is stored in whole seconds, and readers see an item only before that second.
    if expires is not None and expires.tzinfo is not None and floor(expires.timestamp()) <= now:
        raise ValidationFailedError(FieldError(name, _PAST, "datetime_future"))


def refuse_unaddressable(fields: Sequence[str], values: Mapping[str, Any], below: Sequence[str] = ()) -> None:
    """Refuse ids that a path cannot carry, so that every item that is listed can also be read.

    An HTTP API decodes paths before it passes them on, and cuts them at a decoded `?`. A decoded `/` looks like
    a separator, so only the last id may hold one. Clients resolve `.` and `..`, and proxies refuse control
    characters. `below` are the paths of something else below that of an item.

    Raises:
        ValidationFailedError: with each field at fault.
    """
    errors = []
    for name in fields:
        value = str(values[name])
        problem = None
        if value in _DOTS:
            problem = f"A URL cannot carry {value!r}, because clients resolve it. Use another value."
        elif "?" in value:
            problem = "A URL cannot carry a ? here, because the gateway cuts the path at it. Remove it."
        elif "/" in value and name != fields[-1]:
            problem = f"A URL cannot carry a / here. Only {fields[-1]}, the last field of the address, may hold one."
        elif name == fields[-1] and (taken := [each for each in below if value.endswith(f"/{each}")]):
            problem = f"A URL that ends with /{taken[0]} leads to something else. Use another value."
        elif any(unicodedata.category(character) == "Cc" for character in value):
            problem = "A URL cannot carry control characters, such as line breaks. Remove them."
        if problem:
            errors.append(FieldError(name, problem, "unaddressable"))
    if errors:
        raise ValidationFailedError(*errors)


def _refuse_patch(served: Served, request: Update) -> None:
    """Refuse a patch that is wrong whatever the item is. The merged item is checked as a whole later."""
    if isinstance(request.patch, list):
        refuse_malformed(served, request.patch)
        return
    patch, fields = served.given(request.patch), served.entity.model_fields
    message = "The field is required: it cannot be removed."
    errors = [
        FieldError(name, message, "missing")
        for name, value in patch.items()
        if value is None and name in fields and fields[name].is_required()
    ]
    # An object is merged into what is stored, and null resets to the default.
    plain = {n: v for n, v in patch.items() if n not in fields or not (v is None or isinstance(v, dict))}
    errors += _wrong_values(served.entity, plain)
    wrong = {error.field.partition(".")[0] for error in errors}
    errors += _moves(served, request.key, without(plain, wrong))
    if errors:
        raise ValidationFailedError(*errors)


def _item(served: Served, body: Document, fixed: Mapping[str, Any]) -> Entity:
    item = validated(served.entity, with_fixed(body, fixed))
    refuse_changed(item, fixed)
    address = item.model_dump(mode="json", include=set(served.address))
    refuse_unaddressable(served.address, address, [each.path for each in item_reads_of(served.entity)])
    return item


def _wrong_values(model: type[Entity], document: Document) -> list[FieldError]:
    """Return the errors of a part of an item. Other fields may be missing, because they are stored."""
    try:
        validated(model, document)
    except ValidationFailedError as error:
        return [each for each in error.errors if each.field.partition(".")[0] in document or each.code == MANY_ERRORS]
    except (KeyError, TypeError, AttributeError):
        if not definition(model).assignment.checks_whole(document):
            raise
        # A validator misses fields that are stored. The merged item decides.
    return []


def _moves(served: Served, key: Key, patch: Document) -> list[FieldError]:
    """Return the fields of the key that a patch changes."""
    errors = []
    for name in key.keys() & patch.keys():
        try:
            changed = served.definition.assignment.check(name, patch[name]) != key[name]
        except InvalidValueError:
            changed = True
        if changed:
            errors.append(immutable(name))
    return errors
