"""Single items: create, get, put, update, delete."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from dynashard import Collection, Entity
from dynashard.errors import (
    FieldError,
    NotFoundError,
    RevisionMismatchError,
    ValidationFailedError,
    WriteContendedError,
)
from dynashard.hosting.acceptance import refuse_past_expiry
from dynashard.hosting.documents import (
    TENANT,
    Document,
    patched,
    patched_fields,
    refuse_changed,
    refuse_read_only,
    representation,
    unasked,
    validated,
    with_fixed,
    without,
)
from dynashard.hosting.idempotency import MAX_KEY_LENGTH, Attempt, IdempotentCreates, usable
from functions.commands.request import Asked

WRITE_ATTEMPTS: Final = 5
"""How often a read-and-write is tried while other writers get in between."""

HANDLING: Final = "handling"
"""The member that names a level of care; see docs/promises.md."""

CollectionOf = Callable[[type[Entity]], Collection[Any]]


class Items:
    """The operations on single items.

    Args:
        collection_of: gives the items of an entity.
        idempotent: keeps what creates with an idempotency key answered.
        clock: wall clock, in epoch seconds.
    """

    def __init__(self, collection_of: CollectionOf, idempotent: IdempotentCreates, clock: Callable[[], float]) -> None:
        self._collection_of = collection_of
        self._idempotent = idempotent
        self._clock = clock

    def create(self, asked: Asked) -> Document:
        """Store a new item. Cost: 1 write; an idempotency key doubles it, and adds 2."""
        asked.only("item", "idempotency_key", HANDLING)
        body, key = asked.document("item"), asked.text("idempotency_key")
        item, items = new_item(asked, body), self._items(asked)
        _refuse_outside(asked, item, datetime.fromtimestamp(self._clock(), UTC))
        if key is None:
            refuse_past_expiry(item, self._clock())
            return _created(asked, shown(items.create(item, handling=asked.text(HANDLING))))
        if not usable(key):
            message = f"Use 1 to {MAX_KEY_LENGTH} printable ASCII characters."
            raise ValidationFailedError(FieldError("idempotency_key", message, "out_of_range"))
        attempt = Attempt(asked.tenant, key, body, item, asked.seconds, lambda: refuse_past_expiry(item, self._clock()))
        document, _ = self._idempotent.run(attempt, items)
        return _created(asked, document)

    def get(self, asked: Asked) -> Document:
        """Read an item. Cost: 1 read, and those of the detached fields that it includes."""
        asked.only("key", "consistent", "include")
        include = _included(asked)
        return shown(self._items(asked).get(asked.key(), consistent=asked.flag("consistent"), include=include))

    def put(self, asked: Asked) -> Mapping[str, Any]:
        """Replace an item, or create it. Cost: 1 write, and a read if the entity keeps a creation stamp."""
        asked.only("item", "if_match", HANDLING)
        item = whole_item(asked, asked.document("item"))
        refuse_past_expiry(item, self._clock())
        done = self._items(asked).put(item, if_match=asked.text("if_match"), handling=asked.text(HANDLING))
        document = shown(done.item)
        return {"item": _created(asked, document) if done.created else document, "created": done.created}

    def update(self, asked: Asked) -> Document:
        """Apply a JSON Merge Patch. Cost: 1 consistent read and 1 write a try."""
        asked.only("key", "patch", "if_match", HANDLING)
        key, patch, if_match = asked.key(), asked.document("patch"), asked.text("if_match")
        items, server_fields, model = self._items(asked), asked.served.server_fields, asked.served.entity
        include = patched_fields(model, patch)
        for _ in range(WRITE_ATTEMPTS):
            current = items.get(key, consistent=True, include=include)
            _demand(if_match, current.revision)
            item = validated(model, without(patched(model, representation(current, None), patch), server_fields))
            refuse_changed(item, key)
            if asked.served.definition.expires in patch:
                refuse_past_expiry(item, self._clock())
            kept = server_fields | (unasked(item) or set())
            fields = {name: value for name, value in item if name not in kept}
            try:
                return shown(
                    items.replace(
                        current.model_copy(update=fields), if_match=current.revision, handling=asked.text(HANDLING)
                    )
                )
            except RevisionMismatchError:
                continue
        raise WriteContendedError("Other writers kept changing this item: try again.")

    def delete(self, asked: Asked) -> None:
        """Delete an item. Cost: 1 write."""
        asked.only("key", "if_match", HANDLING)
        try:
            self._items(asked).delete(asked.key(), if_match=asked.text("if_match"), handling=asked.text(HANDLING))
        except RevisionMismatchError as error:
            if error.current is None:
                raise NotFoundError("No live item has this key.") from error
            raise

    def _items(self, asked: Asked) -> Collection[Any]:
        return self._collection_of(asked.served.entity)


def new_item(asked: Asked, body: Document) -> Entity:
    """The item that a create describes.

    Raises:
        ValidationFailedError: with every field at fault.
    """
    refuse_read_only(body, asked.served.server_fields)
    return _item(asked, body)


def _refuse_outside(asked: Asked, item: Entity, now: datetime) -> None:
    window = asked.served.exposed.window
    if window is not None and not window.holds(item, now):
        raise ValidationFailedError(FieldError(window.field, str(window), "outside_window"))


def whole_item(asked: Asked, body: Document) -> Entity:
    """The item that a put describes; what the server sets is left out, so that a read item can be sent back.

    Raises:
        ValidationFailedError: with every field at fault.
    """
    return _item(asked, without(body, asked.served.server_fields))


def _item(asked: Asked, body: Document) -> Entity:
    fixed = {TENANT: asked.tenant}
    item = validated(asked.served.entity, with_fixed(body, fixed))
    refuse_changed(item, fixed)
    asked.served.refuse_unaddressable(item)
    return item


def shown(item: Entity) -> Document:
    """The document of a stored item."""
    return representation(item, item.revision)


def _created(asked: Asked, document: Document) -> Document:
    """A new item as its creator is answered: large fields that it has just sent do not come back."""
    return without(document, asked.served.definition.detached)


def _included(asked: Asked) -> tuple[str, ...]:
    names, known = asked.texts("include") or [], tuple(asked.served.definition.detached)
    if any(name not in known for name in names):
        raise ValidationFailedError(FieldError("include", f"Use a list of {', '.join(known) or 'nothing'}.", "enum"))
    return tuple(dict.fromkeys(names))


def _demand(if_match: str | None, revision: str | None) -> None:
    if if_match is not None and if_match != revision:
        raise RevisionMismatchError("The item is not at the revision of if_match: read it again.", current=revision)
