"""Entities that share their logical partitions, listed as one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dynashard.entity import Entity, definition
from dynashard.errors import FieldError, ValidationFailedError
from dynashard.reads import Filter
from dynashard_serving.access import Access
from dynashard_serving.declare import Exposed, FamilyListing
from dynashard_serving.documents import TENANT, item_texts, list_text
from dynashard_serving.operations.choosing import Options, paged, partitions, ranged
from dynashard_serving.operations.narrowing import family_permits, judged, refuse_unjudged
from dynashard_serving.operations.pages import Answer, page_that_fits
from dynashard_serving.operations.requests import Choice, Paging
from dynashard_serving.operations.served import Served


class Family:
    """Entities that are listed as one. Safe to share between threads.

    Args:
        listing: the entities, and the listing's name outside.
        access_of: returns the rules of an entity, which hold for it here too.

    Attributes:
        models: the entities, the one with the longest key first.
        nested: the fields that choose a part of the listing: the item they are the key of, and what is below it.
    """

    def __init__(self, listing: FamilyListing, access_of: Callable[[type[Entity]], Access | None]) -> None:
        found = sorted(map(definition, listing.entities), key=lambda each: len(each.key_fields), reverse=True)
        self.models: list[type[Entity]] = [each.model for each in found]
        self.members = [Served(_listed(model, listing.path, access_of(model))) for model in self.models]
        partition = {TENANT, *found[0].partition_fields}
        self._owners = {
            tuple(field for field in each.key_fields if field not in partition): each.model for each in found
        }
        deepest = next(iter(self._owners))
        self.nested = [field for depth, field in enumerate(deepest, 1) if self._has_more_below(deepest[:depth])]

    def _has_more_below(self, fields: tuple[str, ...]) -> bool:
        below = [owner for owner in self._owners if owner[: len(fields)] == fields and owner != fields]
        return fields in self._owners and bool(below)

    def page(self, collection_of: Callable[..., Any], choice: Choice, paging: Paging) -> Answer:
        """Return a page of all items, or of one item and everything below it, which `choice.sort` names.

        Raises:
            ValidationFailedError, InvalidKeyError: with the member at fault.
            NotPermittedError: the caller may not list one of the entities.

        Cost: one Query for a page of one shard.
        """
        partition = partitions(self.members[0], choice.partition, choice.tenant, None)
        permits = family_permits(self.members, choice.caller, partition)
        options = {
            "partition": partition,
            "consistent": choice.consistent,
            "strict": choice.strict,
            **paged(paging),
            **ranged(choice, self._below(choice.sort)),
        }
        read = collection_of(*self.models).list
        if any(permit.narrow for permit in permits.values()):
            for permit in permits.values():
                refuse_unjudged(permit, strict=choice.strict)
            read = judged(read, permits)
        return page_that_fits(read, options, _text)

    def _below(self, given: Mapping[str, Any]) -> Options:
        """Return the prefix of an item and everything below it, and filters against keys that begin so by chance."""
        known = self.nested
        if unknown := [name for name in given if name not in known]:
            message = f"Unknown field; known are {', '.join(known) or 'none'}."
            raise ValidationFailedError(*(FieldError(f"sort.{n}", message, "unknown_parameter") for n in unknown))
        names = [name for name in known if name in given]
        if not names:
            return {}
        owner = self._owner(names)
        served = next(each for each in self.members if each.entity is owner)
        values = {name: served.value(name, given[name], f"sort.{name}") for name in names}
        prefix = definition(owner).sort.render(values)
        return {"prefix": prefix, "filters": [Filter(name, "=", value) for name, value in values.items()]}

    def _owner(self, names: Sequence[str]) -> type[Entity]:
        """The entity whose key these nested fields are, given in their order."""
        above = tuple(self.nested[: len(names)])
        if tuple(names) != above:
            missing = next(name for name in above if name not in names)
            raise ValidationFailedError(
                FieldError(f"sort.{missing}", f"{names[-1]} is below it: send both.", "missing")
            )
        return self._owners[above]


def _listed(model: type[Entity], path: str, access: Access | None) -> Exposed:
    """Return how an entity is served in a listing of several: the rules of its other operations are not needed."""
    return Exposed(model, path, access=access)


def _text(items: Sequence[Any]) -> bytes:
    return list_text(item_texts(items, with_type=True))
