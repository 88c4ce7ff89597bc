"""What is decided about a write once the stored item is known: which item takes its place, or why none may."""

from dynashard.entity import Entity
from dynashard.errors import AlreadyExistsError, NotFoundError
from dynashard.transactions import steps
from dynashard_serving.documents import refuse_changed, representation, unasked, validated_over, without
from dynashard_serving.operations.accepting import refuse_past_expiry
from dynashard_serving.operations.conditions import Conditions
from dynashard_serving.operations.patching import document_after, fields_named
from dynashard_serving.operations.permits import NotPermittedError, Permit
from dynashard_serving.operations.requests import Create, Delete, Put, Update, Write
from dynashard_serving.operations.served import Served

Step = steps.Create | steps.Put | steps.Delete


def merged(served: Served, request: Update, current: Entity, now: float) -> Entity:
    """Return the stored item, with the attachments that `attachments_read` names, after a patch. Its stamps are kept.

    Raises:
        PatchConflictError: a JSON Patch does not fit the item.
        RevisionMismatchError, PreconditionFailedError: a condition does not hold.
        ValidationFailedError: with every field at fault.
    """
    request.conditions.demand(current.revision)
    before = representation(current, None)
    document = without(document_after(served, before, current.revision, request.patch), served.server_fields)
    item = validated_over(served.entity, document, before)
    refuse_changed(item, request.key)
    if served.definition.expires in fields_named(request.patch):
        refuse_past_expiry(item, now)
    return in_place_of(served, current, item)


def refuse_probe(permit: Permit, request: Write, current: Entity | None = None) -> None:
    """Refuse a JSON Patch of a caller who may not read the item: whether it fits would tell what the item holds.

    Raises:
        NotPermittedError: the caller may not read `current`, or without it, any item.
    """
    if isinstance(request, Update) and isinstance(request.patch, list) and not permit.reads(current):
        raise NotPermittedError("A JSON Patch needs the right to read the item. Send a JSON Merge Patch.")


def in_place_of(served: Served, current: Entity, item: Entity) -> Entity:
    """The new item with the stamps of the stored one, and the attachments that it was made without."""
    kept = served.server_fields | (unasked(item) or set())
    return current.model_copy(update={name: value for name, value in item if name not in kept})


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
            return steps.Create(item)
        case Put(), Entity():
            refuse_put(served, request.conditions, item, current, now)
            if current is None:
                return steps.Create(item)
            return steps.Put(in_place_of(served, current, item), over=current)
    if current is None:
        raise NotFoundError("No live item has this key.")
    if isinstance(request, Update):
        return steps.Put(merged(served, request, current, now), over=current)
    if isinstance(request, Delete):
        request.conditions.demand(current.revision)
        return steps.Delete(served.entity, current, if_match=current.revision or "")
    raise TypeError(f"{type(request).__name__} without an item")
