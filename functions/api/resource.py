"""A REST resource: everything its routes and its documentation need to know, derived from an entity's declaration."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from domain import Exposed
from dynashard import Entity, definition
from dynashard.errors import ConfigurationError, NotFoundError
from dynashard.hosting.documents import REVISION, TENANT
from functions.api.incoming import Incoming, path_values
from functions.api.problems import FieldError, invalid_fields

__all__ = ["LIST_PARAMETERS", "PREFIX", "TENANT", "Resource"]

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


class Resource:
    """An entity under a path.

    Args:
        entity: the entity; `tenant_id` must be among its partition fields.
        path: its path below `/v1`, such as `users`.
        filters: fields a listing may be filtered by.

    Raises:
        ConfigurationError: the entity cannot be exposed so.
    """

    def __init__(self, entity: type[Entity], *, path: str, filters: Sequence[str] = ()) -> None:
        self.entity = entity
        self.path = path
        self.filters = tuple(filters)
        self.definition = definition(entity)
        self.server_fields = frozenset(self.definition.server_fields) | {REVISION}
        self.path_fields = tuple(name for name in self.definition.key_fields if name != TENANT)
        self.indexes = {
            name: index for name, index in self.definition.indexes.items() if TENANT in index.partition.fields
        }
        self._check()

    @classmethod
    def of(cls, exposed: Exposed) -> "Resource":
        """The resource the domain has declared."""
        return cls(exposed.entity, path=exposed.path, filters=exposed.filters)

    def _check(self) -> None:
        problem = None
        fields = self.entity.model_fields
        partition = {name for index in self.indexes.values() for name in index.partition.fields}
        parameters = {*self.filters, *self.definition.partition_fields, *partition}
        if TENANT not in self.definition.partition_fields:
            problem = f"{TENANT} must be a field of its partition key, or tenants would see each other's items"
        elif not self.path_fields:
            problem = f"its key has no field besides {TENANT}, so its items have no address"
        elif unknown := [name for name in self.filters if name not in fields]:
            problem = f"filters name fields it does not have: {', '.join(unknown)}"
        elif taken := sorted(parameters.intersection(LIST_PARAMETERS)):
            problem = f"fields are called like query parameters: {', '.join(taken)}"
        elif REVISION in fields:
            problem = f"a field is called {REVISION}, the name of the ETag's value"
        if problem:
            raise ConfigurationError(f"{self.definition.name} cannot be exposed as /{self.path}: {problem}")

    @cached_property
    def root(self) -> str:
        """The path of the whole resource, such as `/v1/users`."""
        return f"{PREFIX}/{self.path}"

    def lookup_field(self, index: str) -> str | None:
        """The field that alone is the sort key of an index, so that its value looks items up; None if none is."""
        template = self.indexes[index].sort
        if len(template.parts) != 1 or len(template.fields) != 1 or template.fields[0] in LIST_PARAMETERS:
            return None
        return template.fields[0]

    def index_fields(self, index: str) -> list[str]:
        """The fields by which callers ask an index: its partition's without the tenant, and the lookup field."""
        lookup = self.lookup_field(index)
        fields = [*self.indexes[index].partition.fields, *([lookup] if lookup else [])]
        return [name for name in dict.fromkeys(fields) if name != TENANT]

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

    def refuse_unaddressable(self, document: Mapping[str, Any]) -> None:
        """Refuse a new item that no path could address.

        An HTTP API decodes paths before it hands them over, and cuts them at a decoded `?`; clients resolve `.`
        and `..`.

        Raises:
            ValidationFailedError: with the key field.
        """
        errors = []
        for name in self.path_fields:
            value = str(document[name])
            inner_slash = "/" in value and name != self.path_fields[-1]
            if "?" in value or inner_slash or value in {".", ".."}:
                message = "No path can address this value: leave out ?, do not use . or .. alone"
                errors.append(FieldError(name, f"{message}, and / only in the last key field.", "unaddressable"))
        if errors:
            raise invalid_fields(*errors)

    def parse(self, name: str, value: str) -> Any:
        """A field's value from its text in a path or a query.

        Raises:
            ValidationError: the text is none of its values.
        """
        return self._adapters[name].validate_strings(value)

    @cached_property
    def _adapters(self) -> Mapping[str, TypeAdapter[Any]]:
        fields = self.entity.model_fields.items()
        return {name: TypeAdapter[Any](field.annotation) for name, field in fields if field.annotation is not None}
