"""An entity as callers see it: what they may do with it, and how its fields are read from JSON."""

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from pydantic import TypeAdapter, ValidationError

from domain import Exposed
from dynashard import Entity, definition
from dynashard.errors import FieldError, InputError, ValidationFailedError
from dynashard.hosting.acceptance import refuse_unaddressable
from dynashard.hosting.documents import REVISION, TENANT, Document
from dynashard.hosting.limits import MAX_CHOICES


class Served:
    """An entity that can be asked for.

    Args:
        exposed: as the domain declares it.
    """

    def __init__(self, exposed: Exposed) -> None:
        self.exposed = exposed
        self.entity: type[Entity] = exposed.entity
        self.definition = definition(exposed.entity)
        self.server_fields = frozenset(self.definition.server_fields) | {REVISION}
        # Whoever asks for a tenant's items may not get another's: an index of all tenants is not listed.
        declared = self.definition.indexes.items()
        self.indexes = {n: i for n, i in declared if TENANT in i.partition.fields and not i.replica}

    @property
    def name(self) -> str:
        """The entity's name."""
        return self.definition.name

    def value(self, name: str, value: Any, place: str) -> Any:
        """A field's value from JSON.

        Raises:
            ValidationFailedError: it is none of the field's values; `place` says where it stood.
        """
        try:
            return self._adapters[name].validate_json(json.dumps(value))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            raise ValidationFailedError(FieldError(place, first["msg"], first["type"])) from error

    def key(self, given: Mapping[str, Any], tenant: str, place: str) -> Document:
        """The values of a key's fields besides the tenant.

        Raises:
            ValidationFailedError: a field is missing, unknown, another tenant's, or has none of its values.
        """
        fields = [name for name in self.definition.key_fields if name != TENANT]
        self._exactly(fields, given, tenant, place)
        return {name: self.value(name, given[name], f"{place}.{name}") for name in fields}

    def partitions(self, given: Mapping[str, Any], tenant: str, index: str | None) -> Any:
        """The logical partitions that fields name: one as its fields, several as a list of them.

        A field with a list of values names several partitions; two such fields, each with each.

        Raises:
            ValidationFailedError: as `key`; or a list is empty.
        """
        template = self.definition.partition if index is None else self.indexes[index].partition
        fields = [name for name in template.fields if name != TENANT]
        self._exactly(fields, given, tenant, "partition")
        listed = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
        count = prod(len(listed[name]) for name in fields)
        if count > MAX_CHOICES:
            message = f"These values name {count} logical partitions; one request may name at most {MAX_CHOICES}."
            raise ValidationFailedError(FieldError("partition", message, "out_of_range"))
        values = [self._choices(name, listed[name]) for name in fields]
        found = [{TENANT: tenant, **dict(zip(fields, chosen, strict=True))} for chosen in product(*values)]
        return found[0] if len(found) == 1 else found

    def _choices(self, name: str, given: list[Any]) -> list[Any]:
        place = f"partition.{name}"
        if not given:
            raise ValidationFailedError(FieldError(place, "Name at least one value.", "out_of_range"))
        return [self.value(name, each, place) for each in given]

    def sort_range(self, given: Mapping[str, Any], index: str | None) -> Mapping[str, str]:
        """The arguments of a listing for the sort keys that begin with these fields; exactly one with all of them.

        Raises:
            InputError: a field is none of the first of the sort key, or one before it is missing.
        """
        if not given:
            return {}
        template = self.definition.sort if index is None else self.indexes[index].sort
        for name in given:
            if name not in template.fields:
                message = f"The sort key has no such field; it has {', '.join(template.fields) or 'none'}."
                raise ValidationFailedError(FieldError(f"sort.{name}", message, "unknown_parameter"))
        text = template.leading({name: self.value(name, value, f"sort.{name}") for name, value in given.items()})
        # The text that comes just after another is that text and a NUL; the end of a range is left out.
        return {"start": text, "end": text + "\0"} if len(given) == len(template.fields) else {"prefix": text}

    def refuse_unaddressable(self, item: Entity) -> None:
        """Refuse an item that REST could not address, if it serves the entity.

        Raises:
            ValidationFailedError: with the key fields at fault.
        """
        fields = self.exposed.address or tuple(name for name in self.definition.key_fields if name != TENANT)
        refuse_unaddressable(fields, item.model_dump(mode="json", include=set(fields)))

    def _exactly(self, fields: Sequence[str], given: Mapping[str, Any], tenant: str, place: str) -> None:
        errors = [
            FieldError(f"{place}.{name}", "This field is needed.", "missing") for name in fields if name not in given
        ]
        known = ", ".join(fields) or "none"
        for name, value in given.items():
            if name == TENANT and value != tenant:
                errors.append(FieldError(f"{place}.{name}", "It is not the tenant of the request.", "immutable"))
            elif name not in (*fields, TENANT):
                message = f"There is no such field here; there are {known}."
                errors.append(FieldError(f"{place}.{name}", message, "unknown_parameter"))
        if errors:
            raise ValidationFailedError(*errors)

    @cached_property
    def _adapters(self) -> Mapping[str, TypeAdapter[Any]]:
        fields = self.entity.model_fields.items()
        return {name: TypeAdapter[Any](field.annotation) for name, field in fields if field.annotation is not None}


def served_by_name(exposed: Sequence[Exposed]) -> Mapping[str, Served]:
    """The entities by each name that callers may use: `user.v1.User`, and the outside one, `users`."""
    each = [Served(one) for one in exposed]
    return {name: one for one in each for name in (one.name, one.exposed.path)}


def find(entities: Mapping[str, Served], name: Any, systems: Collection[str] = ()) -> Served:
    """The entity that a request names; `systems` are what can be asked for besides.

    Raises:
        InputError: there is none of this name; the message lists those there are.
    """
    if not isinstance(name, str) or name not in entities:
        known = ", ".join(dict.fromkeys([*(one.name for one in entities.values()), *systems]))
        raise InputError(f"no entity is called {str(name)[:100]!r}; there are {known}", field="entity")
    return entities[name]
