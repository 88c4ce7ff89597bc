"""What is decided about a write once the stored item is known: which item takes its place, or why none may."""

from dynashard.entity import Entity
from dynashard.errors import AlreadyExistsError, FieldError, NotFoundError, ValidationFailedError
from dynashard.transactions import steps
from dynashard_serving.documents import given_part, refuse_changed, representation, unasked, validated_over
from dynashard_serving.operations.accepting import refuse_past_expiry
from dynashard_serving.operations.conditions import Conditions
from dynashard_serving.operations.patching import document_after, fields_named
from dynashard_serving.operations.permits import NotPermittedError, Permit
from dynashard_serving.operations.requests import Create, Delete, Put, Update, Write
from dynashard_serving.operations.served import Served
from dynashard_serving.transitions import begun, followed

Step = steps.Create | steps.Put | steps.Delete


def merged(served: Served, request: Update, current: Entity, now: float) -> Entity:
    """Return the stored item, with the attachments that `attachments_read` names, after a patch. Its stamps are kept.

    Raises:
        PatchConflictError: a JSON Patch does not fit the item.
        RevisionMismatchError, PreconditionFailedError: a condition does not hold.
        ValidationFailedError: with every field at fault.
    """
    request.conditions.demand(current.revision)
    # The paths of a JSON Patch are those of what a read answers, with what is computed.
    before = representation(current, current.revision) if isinstance(request.patch, list) else given_part(current)
    document = served.given(document_after(served, before, request.patch))
    item = validated_over(served.entity, document, before)
    refuse_changed(item, request.key)
    if served.definition.expires in fields_named(request.patch):
        refuse_past_expiry(item, now)
    return in_place_of(served, current, item, now)


def refuse_probe(permit: Permit, request: Update, current: Entity) -> None:
    """Refuse a JSON Patch of a caller who may not read the item: whether it fits would tell what the item holds.

    Raises:
        NotPermittedError: the caller may not read `current`.
    """
    if isinstance(request.patch, list) and not permit.reads(current):
        raise NotPermittedError("A JSON Patch needs the right to read the item. Send a JSON Merge Patch.")


def in_place_of(served: Served, current: Entity, item: Entity, now: float) -> Entity:
    """Return the new item with the stamps and the number of the stored one, and the attachments it was made without.

    Raises:
        TransitionRefusedError: its state cannot follow that of the stored one.
        ValidationFailedError: it has another number.
    """
    kept = served.server_fields | (unasked(item) or set())
    fields = served.entity.model_fields
    whole = current.model_copy(update={name: getattr(item, name) for name in fields if name not in kept})
    for name in whole.__dict__.keys() - fields.keys():
        # A cached property of the stored item, which may be another one now.
        del whole.__dict__[name]
    return followed(served.exposed.transitions, current, _same_number(served, current, whole), now)


def _same_number(served: Served, current: Entity, item: Entity) -> Entity:
    name = served.exposed.numbered
    if name is None or getattr(item, name) == getattr(current, name):
        return item
    if getattr(item, name):
        message = "The server set it when the item was created. Remove it, or send its stored value."
        raise ValidationFailedError(FieldError(name, message, "immutable"))
    return item.model_copy(update={name: getattr(current, name)})


def refuse_put(served: Served, conditions: Conditions, item: Entity, current: Entity | None, now: float) -> None:
    """Refuse a put that the stored item rules out.

    Raises:
        RevisionMismatchError, PreconditionFailedError: a condition does not hold.
        ValidationFailedError: it would create an item outside of its entity's window.
    """
    conditions.demand(None if current is None else current.revision)
    if current is None:
        served.refuse_outside_window(item, now)


def step_of(served: Served, request: Write, item: Entity | None, current: Entity | None, now: float) -> Step:
    """A write of an accepted request as a step of a transaction.

    Args:
        served: the entity, which must have no attachments.
        request: what was accepted.
        item: the item of a create or a put.
        current: the stored item, None if there is none.
        now: the time of acceptance, in epoch seconds.

    Raises:
        DynashardError: the request cannot be done, as things are.
    """
    match request, item:
        case Create(), Entity():
            if current is not None:
                raise AlreadyExistsError(f"{served.name} exists already")
            return steps.Create(begun(served.exposed.transitions, item, now))
        case Put(), Entity():
            refuse_put(served, request.conditions, item, current, now)
            if current is None:
                return steps.Create(begun(served.exposed.transitions, item, now))
            return steps.Put(in_place_of(served, current, item, now), over=current)
    if current is None:
        raise NotFoundError("No live item has this key.")
    if isinstance(request, Update):
        return steps.Put(merged(served, request, current, now), over=current)
    if isinstance(request, Delete):
        request.conditions.demand(current.revision)
        return steps.Delete(served.entity, current, if_match=current.revision or "")
    raise TypeError(f"{type(request).__name__} without an item")
