"""What depends on an item, so that it cannot be deleted: as a domain declares it.

    TEAM_DEPENDANTS = Dependants(Team, (
        Dependant("schedules", Schedule, {"team_id": "{team_id}"}),
        Dependant("open incidents", Participation, {"participant": "team_{team_id}", "state": "OPEN"}),
    ))

A delete looks for dependants, and then deletes the item at the revision that it has read. It deletes the item or
nothing.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final

from msgspec import Struct

from dynashard.entity import Entity, definition
from dynashard.errors import DeclarationError, DynashardError, InvalidKeyError
from dynashard.service import Collection
from dynashard_serving.documents import TENANT

CollectionOf = Callable[[type[Entity]], Collection[Any]]
MOST_COUNTED: Final = 100
"""Dependants of one kind that are counted."""
_FIELD: Final = re.compile(r"\{(\w+)\}")
_OF: "Final[dict[type[Entity], list[Dependants]]]" = {}


class HasDependantsError(DynashardError):
    """Other items depend on the item; `dependants` has their kinds and numbers."""

    code = "has_dependants"
    status = 409
    in_details: ClassVar[tuple[str, ...]] = ("dependants",)

    def __init__(self, name: str, found: "Sequence[Counted]") -> None:
        super().__init__(f"{name} has {', '.join(map(str, found))}. Delete them first; nothing was deleted.")
        self.dependants = [
            {"kind": each.kind, "count": each.count, **({"more": True} if each.more else {})} for each in found
        ]


class Counted(Struct, frozen=True):
    """How many dependants of a kind there are; with `more`, at least so many."""

    kind: str
    count: int
    more: bool = False

    def __str__(self) -> str:
        """Return the number and the kind, such as `2 schedules`."""
        return f"{'at least ' if self.more else ''}{self.count} {self.kind}"


class Dependant(Struct, frozen=True):
    """A kind of items that may depend on an item.

    Attributes:
        kind: what they are called, in the plural.
        entity: their entity.
        fields: fields that select a listing of them, as `Collection.list` takes them, with templates of the item's
            fields. The tenant is added.
    """

    kind: str
    entity: type[Entity]
    fields: Mapping[str, str]


class Dependants(Struct, frozen=True):
    """The kinds of items that depend on the items of an entity, which cannot be deleted while there are any.

    Attributes:
        of: the entity.
        kinds: the kinds.

    Raises:
        DeclarationError: a template names what is not a field of the entity.
    """

    of: type[Entity]
    kinds: tuple[Dependant, ...]

    def __post_init__(self) -> None:
        name, fields = definition(self.of).name, self.of.model_fields
        for each in self.kinds:
            for template in each.fields.values():
                if unknown := [field for field in _FIELD.findall(template) if field not in fields]:
                    reason = f"dependants {each.kind} name {unknown[0]!r}, which is not a field of it"
                    raise DeclarationError(name, f"{reason}; write some of {', '.join(fields)}")
        _OF.setdefault(self.of, []).append(self)


def dependants_of(model: type[Entity]) -> list[Dependant]:
    """Return the kinds of items that may depend on items of an entity, as far as their modules are imported."""
    return [kind for each in _OF.get(model, ()) for kind in each.kinds]


def refuse_dependants(item: Entity, collection_of: CollectionOf) -> None:
    """Refuse to delete an item on which others depend.

    Raises:
        HasDependantsError: with every kind and number.

    Cost: a listing of at most 100 items for each kind, consistent unless it is of an index.
    """
    found = [_counted(kind, item, collection_of) for kind in dependants_of(type(item))]
    if there := [each for each in found if each.count]:
        raise HasDependantsError(definition(type(item)).name, there)


def _counted(kind: Dependant, item: Entity, collection_of: CollectionOf) -> Counted:
    def filled(template: str) -> str:
        return _FIELD.sub(lambda found: str(getattr(item, found[1])), template)

    items = collection_of(kind.entity)
    selected = {TENANT: getattr(item, TENANT), **{field: filled(text) for field, text in kind.fields.items()}}
    of_the_table = selected.keys() >= set(definition(kind.entity).partition_fields)
    options: dict[str, Any] = {"consistent": True} if of_the_table else {}
    count = 0
    # No key of a dependant can name an item whose fields are invalid in it, so there is none.
    with suppress(InvalidKeyError):
        for page in items.pages(limit=MOST_COUNTED, **options, **selected):
            # An item that does not fit is stored there all the same.
            count += len(page.items) + len(page.undecodable)
            if count >= MOST_COUNTED:
                return Counted(kind.kind, MOST_COUNTED, more=count > MOST_COUNTED or page.cursor is not None)
    return Counted(kind.kind, count)
