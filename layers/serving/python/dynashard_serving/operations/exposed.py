"""How entities are named outside: plain data for REST, direct invocation and the command line."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from importlib import import_module
from typing import Any, Final, NamedTuple, NoReturn

from dynashard.entity import Entity, EntityDefinition, definition
from dynashard.errors import DeclarationError

OPERATIONS: Final = ("list", "create", "get", "put", "update", "delete")
"""All that callers may do with an entity: over REST, `GET` and `POST` of the resource, then `GET`, `PUT`, `PATCH` and
`DELETE` of an item."""
READS: Final = ("list", "get")
"""For entities that the backend writes by itself."""


_UNITS: Final = ((timedelta(days=1), "day"), (timedelta(hours=1), "hour"), (timedelta(minutes=1), "minute"))


def _spelled(duration: timedelta) -> str:
    """A duration in the largest unit that it has a whole number of."""
    for unit, name in _UNITS:
        if duration and not duration % unit:
            return f"{duration // unit} {name}{'s' if duration > unit else ''}"
    return f"{duration.total_seconds():g} seconds"


class Window(NamedTuple):
    """How far from now the time of a new item may lie."""

    field: str
    past: timedelta
    ahead: timedelta

    def holds(self, item: Entity, now: datetime) -> bool:
        """Whether the time of an item lies in it."""
        at: datetime = getattr(item, self.field)
        return now - self.past <= at <= now + self.ahead

    def __str__(self) -> str:
        """What is asked of a time."""
        return f"The time must be at most {_spelled(self.past)} in the past or {_spelled(self.ahead)} in the future."


def loaded(model: type[Entity] | str) -> type[Entity]:
    """Return an entity class, which may be given by its place: `domain.users:User`."""
    if not isinstance(model, str):
        return model
    module, _, name = model.partition(":")
    found: type[Entity] = getattr(import_module(module), name)
    return found


@dataclass(frozen=True)
class Exposed:
    """An entity and its outside name.

    Attributes:
        model: the declared entity, or its place, `domain.users:User`: then its module is imported when `entity` is
            first asked for. A function that serves one entity need not build the models of all others.
        path: its REST path below `/v1` and its name on the command line, such as `users`.
        filters: fields by which a listing may be filtered. A filter is applied after reading, so it saves
            answers, not read units; a field that many listings filter by deserves an index.
        distinct: fields by which a listing over several logical partitions may leave out what it has shown already,
            such as the original of a copy.
        operations: what callers may do: `OPERATIONS`, or some of them, such as `READS`.
        queued: a create is accepted as soon as it lies on the queue, and done later.
        address: the order of the key fields in an item's path; that of the key if empty. Only the last may hold a `/`.
        window: bounds on the time of a new item, checked when it is created or accepted; None for none.
        tag: the heading of its routes in the OpenAPI document; the path if None.
        route: where REST serves an entity that has no operations, for error messages.

    Raises:
        DeclarationError: a name is not a field of the entity, or a part has the wrong type; it says what to write.
    """

    model: type[Entity] | str
    path: str
    filters: tuple[str, ...] = ()
    distinct: tuple[str, ...] = ()
    operations: tuple[str, ...] = OPERATIONS
    queued: bool = False
    window: Window | None = None
    address: tuple[str, ...] = ()
    tag: str | None = None
    route: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, str):
            self._check(self.model)

    @cached_property
    def entity(self) -> type[Entity]:
        """The declared entity; raises as the constructor."""
        model = loaded(self.model)
        if isinstance(self.model, str):
            self._check(model)
        return model

    def _check(self, model: type[Entity]) -> None:
        known = definition(model)
        self._check_filters(known)
        self._check_distinct(known)
        if odd := [name for name in self._names(known, "operations") if name not in OPERATIONS]:
            self._refuse(known, f"operations are some of {', '.join(OPERATIONS)}, not {', '.join(map(str, odd))}")
        if self._names(known, "address") and set(self.address) - set(known.key_fields):
            self._refuse(known, f"its address must name the fields of its key: {', '.join(known.key_fields)}")
        if self.window is not None and self.window.field not in model.model_fields:
            self._refuse(known, f"its window is of {self.window.field}, which is not a field: write one with a time")

    def _check_filters(self, known: EntityDefinition[Any]) -> None:
        for name in self._names(known, "filters"):
            if name not in known.model.model_fields:
                fields = ", ".join(known.model.model_fields)
                self._refuse(known, f"filters names {name!r}, which is not a field; write some of {fields}")
            if name in known.attachments:
                self._refuse(
                    known, f"filters names {name}, which is an attachment: listings do not read it; leave it out"
                )

    def _check_distinct(self, known: EntityDefinition[Any]) -> None:
        listed = [known.sort, *(index.sort for index in known.indexes.values() if not index.replica)]
        sorted_by = dict.fromkeys(name for template in listed for name in template.fields)
        for name in self._names(known, "distinct"):
            if name not in sorted_by:
                self._refuse(
                    known,
                    f"distinct names {name!r}, which is in no sort key of the table or an index; write some of "
                    f"{', '.join(sorted_by) or 'none'}",
                )

    def _names(self, known: EntityDefinition[Any], part: str) -> Sequence[str]:
        names = getattr(self, part)
        if isinstance(names, str) or not isinstance(names, Sequence):
            self._refuse(known, f'{part} is {names!r}: write a tuple of names, such as {part}=("{names}",)')
        return names

    def _refuse(self, known: EntityDefinition[Any], reason: str) -> NoReturn:
        raise DeclarationError(known.name, f"cannot be exposed as /{self.path}: {reason}")


class FamilyListing(NamedTuple):
    """Entities that share their logical partitions, listed as one: each item with its class in `type`.

    Attributes:
        models: the entities, or their places as in `Exposed`.
        path: the REST path of the listing below `/v1`, such as `on-call`.
        tag: as in `Exposed`.
    """

    models: tuple[type[Entity] | str, ...]
    path: str
    tag: str | None = None

    @property
    def entities(self) -> tuple[type[Entity], ...]:
        """The entities."""
        return tuple(map(loaded, self.models))


class ExposedEntities(Sequence[type[Entity]]):
    """The entities that are exposed; each is loaded when it is asked for."""

    def __init__(self, exposed: Sequence[Exposed]) -> None:
        self._exposed = exposed

    def __getitem__(self, number: Any) -> Any:
        """Return one, or a list of some."""
        found = self._exposed[number]
        return found.entity if isinstance(found, Exposed) else [each.entity for each in found]

    def __len__(self) -> int:
        return len(self._exposed)
