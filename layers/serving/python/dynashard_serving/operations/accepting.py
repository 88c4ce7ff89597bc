"""Decide about a write before the stored item is known, in the same way for writes that are done at once or later."""

from collections.abc import Mapping
from typing import Any

from dynashard.entity import Entity
from dynashard.errors import FieldError, InvalidValueError, ValidationFailedError
from dynashard_serving.acceptance import refuse_past, refuse_past_expiry
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
from dynashard_serving.operations.requests import Create, Put, Update, Write
from dynashard_serving.operations.served import Served


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
        return _item(served, without(request.item, served.server_fields), fixed)
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
    if isinstance(request, Update) and name is not None and request.patch.get(name) is not None:
        refuse_past(name, served.definition.assignment.check(name, request.patch[name]), now)


def _refuse_patch(served: Served, request: Update) -> None:
    """Refuse a patch that is wrong whatever the item is. The merged item is checked as a whole later."""
    patch, fields = without(request.patch, served.server_fields), served.entity.model_fields
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
    served.refuse_unaddressable(item)
    return item


def _wrong_values(model: type[Entity], document: Document) -> list[FieldError]:
    """Return the errors of a part of an item. Other fields may be missing, because they are stored."""
    try:
        validated(model, document)
    except ValidationFailedError as error:
        return [each for each in error.errors if each.field.partition(".")[0] in document or each.code == MANY_ERRORS]
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
