"""A REST resource: everything its routes and its documentation need to know, derived from an entity's declaration."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from itertools import takewhile
from typing import Annotated, Any, Final
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from domain import Exposed
from domain.fields import in_utc
from dynashard import Entity, definition
from dynashard.errors import ConfigurationError, NotFoundError
from dynashard.hosting.acceptance import refuse_unaddressable
from dynashard.hosting.documents import REVISION, TENANT
from functions.api.incoming import Incoming, path_values

__all__ = ["LIST_PARAMETERS", "PREFIX", "RESERVED", "TENANT", "Resource"]

PREFIX: Final = "/v1"
LIST_PARAMETERS: Final = (
    "limit",
    "order",
    "direction",
    "prefix",
    "from",
    "to",
    "cursor",
    "index",
    "fields",
    "consistent",
)
RESERVED: Final = frozenset({*LIST_PARAMETERS, "distinct", "include"})
"""Names that no field may have by which callers ask."""


class Resource:
    """An entity under a path.

    Args:
        exposed: the entity and its outside name; `tenant_id` must be among its partition fields.

    Raises:
        ConfigurationError: the entity cannot be exposed so.
    """

    def __init__(self, exposed: Exposed) -> None:
        self.entity: type[Entity] = exposed.entity
        self.path = exposed.path
        self.filters = exposed.filters
        self.distinct = exposed.distinct
        self.operations = exposed.operations
        self.queued = exposed.queued
        self.window = exposed.window
        self.tag = exposed.tag or exposed.path
        self.definition = definition(self.entity)
        self.server_fields = frozenset(self.definition.server_fields) | {REVISION}
        key_fields = tuple(name for name in self.definition.key_fields if name != TENANT)
        self.path_fields = exposed.address or key_fields
        self.indexes = {
            name: index
            for name, index in self.definition.indexes.items()
            if TENANT in index.partition.fields and not index.replica
        }
        self._check(key_fields)

    def _check(self, key_fields: tuple[str, ...]) -> None:
        problem = None
        fields = self.entity.model_fields
        partition = {name for index in self.indexes.values() for name in index.partition.fields}
        parameters = {*self.filters, *self.definition.partition_fields, *partition}
        if TENANT not in self.definition.partition_fields:
            problem = f"{TENANT} must be a field of its partition key, or tenants would see each other's items"
        elif not self.path_fields:
            problem = f"its key has no field besides {TENANT}, so its items have no address"
        elif sorted(self.path_fields) != sorted(key_fields):
            problem = f"its address must name the fields of its key: {', '.join(key_fields)}"
        elif taken := sorted(parameters.intersection(RESERVED)):
            problem = f"fields are called like query parameters: {', '.join(taken)}"
        elif REVISION in fields:
            problem = f"a field is called {REVISION}, the name of the ETag's value"
        if problem:
            raise ConfigurationError(f"{self.definition.name} cannot be exposed as /{self.path}: {problem}")

    @cached_property
    def root(self) -> str:
        """The path of the whole resource, such as `/v1/users`."""
        return f"{PREFIX}/{self.path}"

    def partition_fields(self, index: str | None) -> list[str]:
        """The fields that choose a logical partition of the table or an index: those of its key without the tenant."""
        template = self.definition.partition if index is None else self.indexes[index].partition
        return [name for name in template.fields if name != TENANT]

    def sort_fields(self, index: str | None) -> list[str]:
        """The fields that choose the sort keys of a listing, from the first on: they say how such keys begin.

        All of them look up one key of an index; on the table that is what an item's own path is for.
        """
        template = self.definition.sort if index is None else self.indexes[index].sort
        names = list(template.leading_fields)
        if index is None and len(names) == len(template.fields):
            names = names[:-1]
        taken = {*self.partition_fields(index), *RESERVED, TENANT}
        return list(takewhile(lambda name: name not in taken, names))

    def key_text(self, index: str | None, values: Mapping[str, Any]) -> tuple[str, bool]:
        """What sort keys with these first fields begin with, and whether that is all of the key.

        Raises:
            InvalidKeyError: a field before one of them is missing, or cannot stand in a key.
        """
        template = self.definition.sort if index is None else self.indexes[index].sort
        return template.leading(values), len(values) == len(template.fields)

    def key_of(self, incoming: Incoming) -> dict[str, Any]:
        """The key a path and a token address.

        Raises:
            NotFoundError: the path is not the address of any item.
        """
        values = path_values(incoming.path, f"{self.root}/", len(self.path_fields))
        if values is None:
            raise NotFoundError(f"{incoming.path} is not the address of an item: {self.template}")
        key: dict[str, Any] = {TENANT: incoming.tenant}
        for name, value in zip(self.path_fields, values, strict=True):
            try:
                key[name] = self.parse(name, value)
            except ValidationError as error:
                raise NotFoundError(f"No item has the {name} {value!r}.") from error
        return key

    @cached_property
    def template(self) -> str:
        """The path of one item, such as `/v1/users/{id}`."""
        return "/".join([self.root, *(f"{{{name}}}" for name in self.path_fields)])

    def location(self, document: Mapping[str, Any]) -> str:
        """The path that addresses the item a document stands for."""
        return "/".join([self.root, *(quote(str(document[name]), safe="") for name in self.path_fields)])

    def refuse_unaddressable(self, values: Mapping[str, Any]) -> None:
        """Refuse an item that no path could address.

        Args:
            values: a document, or the JSON values of key fields.

        Raises:
            ValidationFailedError: with the key fields at fault.
        """
        refuse_unaddressable(self.path_fields, values)

    def parse(self, name: str, value: str, *, checked: bool = False) -> Any:
        """A field's value from its text in a path or a query.

        Args:
            name: the field.
            value: its text.
            checked: also check the field's own constraints. They are not checked for a path, so that items of an
                earlier declaration can still be read and deleted.

        Raises:
            ValidationError: the text is none of its values.
        """
        found = self._adapters[name].validate_strings(value)
        # A day means its beginning in UTC. That comes first, because the field's own constraints may require a zone.
        found = in_utc(found) if isinstance(found, datetime) else found
        return self._checked[name].validate_python(found) if checked else found

    @cached_property
    def _checked(self) -> Mapping[str, TypeAdapter[Any]]:
        fields = self.entity.model_fields.items()
        return {name: _adapter(Annotated[field.annotation, *field.metadata, None]) for name, field in fields}

    @cached_property
    def _adapters(self) -> Mapping[str, TypeAdapter[Any]]:
        fields = self.entity.model_fields.items()
        return {name: _adapter(field.annotation) for name, field in fields}


def _adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation)
