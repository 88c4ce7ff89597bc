"""`Events`: a declared value that says which changes of an entity are published, and what their events contain."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NoReturn, get_args

from dynashard.entity import Entity, definition
from dynashard.errors import DeclarationError
from dynashard_patterns.changes import Change, Consumer, Kind
from dynashard_serving.documents import Document, part, representation, unasked
from dynashard_serving.events.event import Event, identifier, revision_of
from dynashard_serving.events.publishing import Publish

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Events:
    """The changes of one entity that are published, in a domain's module.

        INCIDENT_EVENTS = Events(of=Incident, before=True)

    Attributes:
        of: the entity.
        kinds: the kinds of changes, some of `KINDS`.
        before: whether an event has the item as it was before.
        after: whether an event has the item as it is after the change.
        fields: the fields of both; all if empty. Attachments are never part of an event.

    Raises:
        DeclarationError: a kind or a field does not exist, or fields are named that no event would have.
    """

    of: type[Entity]
    kinds: tuple[Kind, ...] = KINDS
    before: bool = False
    after: bool = True
    fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        known = definition(self.of)
        for name in ("kinds", "fields"):
            given = getattr(self, name)
            if not isinstance(given, tuple):
                self._refuse(f"its {name} are {given!r}: write a tuple of texts")
        if not self.kinds or (odd := [kind for kind in self.kinds if kind not in KINDS]):
            wrong = "are empty" if not self.kinds else f"name {odd[0]!r}"
            self._refuse(f"its kinds {wrong}: write some of {', '.join(KINDS)}")
        fields = [name for name in known.model.model_fields if name not in known.attachments]
        if unknown := [name for name in self.fields if name not in fields]:
            self._refuse(f"its fields name {unknown[0]!r}: write some of {', '.join(fields)}")
        if self.fields and not (self.before or self.after):
            self._refuse("it names fields, and shows items neither before nor after: set one, or leave the fields out")

    @property
    def name(self) -> str:
        """What it is called in logs and dead letters."""
        return f"events of {definition(self.of).name}"

    def consumer(self, publish: Publish) -> Consumer:
        """Return the stream consumer that publishes. Cost: none on the table; see docs/events.md for the bus."""
        return Consumer(self.name, (self.of,), partial(self._handle, publish))

    def event(self, change: Change[Any]) -> Event:
        """Return what is published of a change."""
        known = definition(self.of)
        document: Document = {
            "version": 1,
            "id": identifier(known.name, change),
            "entity": known.name,
            "kind": change.kind,
            "key": part(self.of, change.key),
            "revision": revision_of(change.new),
            "previous": revision_of(change.old),
        }
        if self.before and change.old is not None:
            document["before"] = self._shown(change.old)
        if self.after and change.new is not None:
            document["after"] = self._shown(change.new)
        return Event(f"{known.name} {change.kind}", document, change.at)

    def _handle(self, publish: Publish, changes: Sequence[Change[Any]]) -> None:
        publish([self.event(change) for change in changes if change.kind in self.kinds])

    def _shown(self, item: Entity) -> Document:
        if not self.fields:
            return representation(item, None)
        left_out = unasked(item) or ()
        return part(self.of, {name: getattr(item, name) for name in self.fields if name not in left_out})

    def _refuse(self, wrong: str) -> NoReturn:
        raise DeclarationError(definition(self.of).name, f"cannot be published: {wrong}")
