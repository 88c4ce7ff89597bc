"""An entity as callers see it: its operations, and how its keys and values are read."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args, get_origin
from urllib.parse import quote

from pydantic import ConfigDict, ValidationError

from dynashard.entity import Entity, definition, plain_types
from dynashard.errors import DynashardError, FieldError, ValidationFailedError
from dynashard_serving.access import Caller
from dynashard_serving.documents import NO_TIME, REVISION, TENANT, Document, number_as_time, without
from dynashard_serving.exposure import RESERVED, Exposed
from dynashard_serving.operations.permits import FREE, NotPermittedError, Permit, admitted

if TYPE_CHECKING:
    from pydantic import TypeAdapter

NEEDS: Final[Mapping[str, Sequence[str]]] = {
    "create": ["create"],
    "get": ["get"],
    "put": ["put"],
    "update": ["update"],
    "delete": ["delete"],
    "list": ["list"],
    "count": ["list"],
    "batch_get": ["get"],
    "batch_write": ["put", "delete"],
    "batch": [],
}
"""The operations of `Exposed` that each operation needs, and so its caller. Each part of a `batch` needs its own."""
JUDGING: Final = frozenset({"create", "get", "put", "update", "delete", "list", "count", "batch_get"})
"""The operations that apply the rules about an item's owner. Others are refused to callers whom such a rule limits."""


class OperationError(DynashardError):
    """An entity is not served with this operation."""

    code = "method_not_allowed"
    status = 405


class Served:
    """An entity that callers may name.

    Attributes:
        server_fields: those of an item's document that only the server sets, or computes.
        indexes: those that can be listed. An index of all tenants is not among them.
        address: the key's fields besides the tenant, in the order of an item's path.
    """

    def __init__(self, exposed: Exposed) -> None:
        self.exposed = exposed
        self.entity: type[Entity] = exposed.entity
        self.definition = definition(exposed.entity)
        computed = exposed.entity.model_computed_fields
        self.server_fields = frozenset({*self.definition.server_fields, *computed, REVISION})
        declared = self.definition.indexes.items()
        self.indexes = {n: i for n, i in declared if TENANT in i.partition.fields and not i.replica}
        self.key_fields = tuple(name for name in self.definition.key_fields if name != TENANT)
        self.address = exposed.address or self.key_fields
        allowed = exposed.operations
        single = any(name != "list" for name in allowed)
        self._able = tuple(n for n, needs in NEEDS.items() if (all(e in allowed for e in needs) if needs else single))
        self._texts = frozenset(name for name in self.key_fields if self._annotation(name) is str)
        self._operators: dict[str, tuple[str, ...]] = {}
        self._adapters: dict[tuple[str, bool], TypeAdapter[Any]] = {}

    @property
    def name(self) -> str:
        """The entity's name."""
        return self.definition.name

    def item_name(self, document: Mapping[str, Any]) -> str | None:
        """Return the path of an item below the version, such as `users/ada`; None unless the document has its key."""
        if any(document.get(name) is None for name in self.address):
            return None
        # A caller may send half a surrogate pair.
        values = (quote(str(document[name]), safe="", errors="surrogatepass") for name in self.address)
        return "/".join([self.exposed.path, *values])

    def serves(self, operation: str) -> bool:
        """Whether the entity is served with an operation of `NEEDS`."""
        return operation in self._able

    def permit(self, operation: str, caller: Caller | None = None) -> Permit:
        """Return what a caller may do by an operation, or refuse it. Every operation begins with this.

        Raises:
            OperationError: the entity is not served with it; the message names those it is served with.
            NotPermittedError: the caller does not have the right.
        """
        self.require(operation)
        rules = self.exposed.access
        if rules is None:
            return FREE
        permit = admitted(rules, self.name, NEEDS[operation], caller, whole=operation in ("list", "count"))
        if permit.narrow and operation not in JUDGING:
            raise NotPermittedError(f"{operation} of {self.name} is not served to callers whose items it must select.")
        return permit

    def require(self, operation: str) -> None:
        """Refuse an operation that the entity is not served with at all.

        Raises:
            OperationError: it names those it is served with.
        """
        if operation not in self._able:
            able = ", ".join(self._able) or "no operation"
            raise OperationError(f"{self.name} is not served with {operation}; it is with {able}.")

    def given(self, document: Document) -> Document:
        """Return what callers give of a document that they may have read: without what is computed or set for them."""
        plain = without(document, self.server_fields)
        if not self.definition.nested:
            return plain
        from dynashard_serving.computed_members import without_computed  # noqa: PLC0415 - only for writes

        return without_computed(self.entity, plain)

    def value(self, name: str, given: Any, place: str, *, checked: bool = True) -> Any:
        """Return a field's value, from text or from other JSON.

        Text is read as in a query string: a day is the time at which it begins in UTC, and `"7"` is a number if the
        field is one. Other JSON must have the field's own type.

        Args:
            name: the field.
            given: the value.
            place: its place in the request, for errors.
            checked: also check the field's own constraints. They are not checked for a key, so that items of an earlier
                declaration can still be read and deleted.

        Raises:
            ValidationFailedError: it is not a value of the field.
        """
        if not checked and name in self._texts and given.__class__ is str and given.isascii():
            return given
        adapter = self._adapter(name, checked=False)
        try:
            if isinstance(given, str):
                found = self._from_text(adapter, name, given)
                if number_as_time(given, found):
                    raise ValidationFailedError(FieldError(place, NO_TIME, "datetime_parsing"))
            else:
                found = adapter.validate_json(json.dumps(given), strict=True)
            # A day means its beginning in UTC. That comes first, because the field's constraints may require a zone.
            if isinstance(found, datetime) and found.tzinfo is None:
                found = found.replace(tzinfo=UTC)
            return self._adapter(name, checked=True).validate_python(found) if checked else found
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            raise ValidationFailedError(FieldError(place, first["msg"], first["type"])) from error

    def key(self, given: Mapping[str, Any], tenant: str, place: str = "key") -> Document:
        """Return a whole key, from the values of its fields besides the tenant.

        Raises:
            ValidationFailedError: a field is missing, unknown, of another tenant or invalid.
        """
        exactly(self.key_fields, given, tenant, place)
        return self.read_key(given, tenant, place)

    def read_key(self, given: Mapping[str, Any], tenant: str, place: str = "key") -> Document:
        """Return what `key` returns, if `given` certainly has each of the key's fields.

        Raises:
            ValidationFailedError: a field is invalid.
        """
        values = {name: self.value(name, given[name], f"{place}.{name}", checked=False) for name in self.key_fields}
        return {TENANT: tenant, **values}

    def partition_fields(self, index: str | None) -> list[str]:
        """The fields that choose a logical partition of the table or an index: those of its key without the tenant."""
        template = self.definition.partition if index is None else self.indexes[index].partition
        return [name for name in template.fields if name != TENANT]

    def sort_fields(self, index: str | None) -> list[str]:
        """The fields that choose the sort keys of a listing by name, from the first on.

        All of them look up one key of an index; on the table that is what an item's own address is for.
        """
        template = self.definition.sort if index is None else self.indexes[index].sort
        names = list(template.first_fields)
        if index is None and len(names) == len(template.fields):
            names = names[:-1]
        taken = {*self.partition_fields(index), *RESERVED, TENANT}
        return list(takewhile(lambda name: name not in taken, names))

    def operators(self, name: str) -> tuple[str, ...]:
        """The operators that a filter by a field takes, `eq` first."""
        from dynashard.reads.operators import operators_of  # noqa: PLC0415 - only for listings

        found = self._operators.get(name)
        if found is None:
            found = self._operators[name] = operators_of(self.definition, name)
        return found

    def ranged_fields(self, index: str | None) -> Mapping[str, tuple[str, ...]]:
        """The first sort fields of a listing that no filter is declared for, with the operators that read a range.

        None comes after a partition field: what chooses a partition, such as a day, does not choose a sort key.
        """
        from dynashard.reads.operators import ranged_words  # noqa: PLC0415 - only for listings

        template = self.definition.sort if index is None else self.indexes[index].sort
        partition, taken = self.partition_fields(index), {*self.exposed.filters, *RESERVED, TENANT}
        reached = takewhile(lambda name: name not in partition, template.fields[: len(template.first_fields) + 1])
        names = [name for name in reached if name not in taken]
        found = {name: ranged_words(self.definition, template, name) for name in names}
        return {name: words for name, words in found.items() if words}

    def projected(self, names: Sequence[str]) -> list[str]:
        """Return the fields that a request wants alone, each once.

        Raises:
            ValidationFailedError: there are none, or one is unknown or an attachment.
        """
        known = [name for name in self.entity.model_fields if name not in self.definition.attachments]
        if not names or any(name not in known for name in names):
            raise ValidationFailedError(FieldError("fields", f"Use a list of {', '.join(known)}.", "enum"))
        return list(dict.fromkeys(names))

    def refuse_outside_window(self, item: Entity, now: float) -> None:
        """Refuse a new item whose time lies too far from now.

        Raises:
            ValidationFailedError: with the field.
        """
        window = self.exposed.window
        if window is not None and not self.in_window(item, now):
            raise ValidationFailedError(FieldError(window.field, str(window), "outside_window"))

    @property
    def has_bounded_key_time(self) -> bool:
        """Whether the window bounds the time with which keys begin."""
        window = self.exposed.window
        return window is not None and window.field == self.definition.sort_fields[0]

    def in_window(self, item: Entity, now: float) -> bool:
        """Whether a new item's time lies in the entity's window."""
        window = self.exposed.window
        return window is None or window.holds(item, datetime.fromtimestamp(now, UTC))

    def _annotation(self, name: str) -> Any:
        return self.entity.model_fields[name].annotation

    def _from_text(self, adapter: "TypeAdapter[Any]", name: str, given: str) -> Any:
        try:
            return adapter.validate_strings(given)
        except ValidationError:
            # Pydantic knows the members of a `Literal` by texts only if they are texts.
            for member in _members(self._annotation(name)):
                if isinstance(member, int) and json.dumps(member) == given:
                    return member
            raise

    def _adapter(self, name: str, *, checked: bool) -> "TypeAdapter[Any]":
        found = self._adapters.get((name, checked))
        if found is None:
            from pydantic import TypeAdapter  # noqa: PLC0415 - most keys are plain text

            field = self.entity.model_fields[name]
            annotation: Any = Annotated[field.annotation, *field.metadata, None] if checked else field.annotation
            # Bytes are written in documents as the entity says, and pydantic takes settings only for plain types.
            form = self.entity.model_config.get("val_json_bytes", "utf8")
            settings = ConfigDict(val_json_bytes=form) if bytes in plain_types(field.annotation) else None
            found = self._adapters[name, checked] = TypeAdapter[Any](annotation, config=settings)
        return found


def _members(annotation: Any) -> Iterator[Any]:
    """Yield the members of the `Literal` that a field's type is, or has among others."""
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    else:
        for each in get_args(annotation):
            yield from _members(each)


def served_by_name(exposed: Sequence[Exposed]) -> Mapping[str, Served]:
    """Return the entities by each name that callers may use: `user.v1.User`, and its path `users`."""
    each = [Served(one) for one in exposed]
    return {name: one for one in each for name in (one.name, one.exposed.path)}


def exactly(fields: Sequence[str], given: Mapping[str, Any], tenant: str, place: str) -> None:
    """Refuse an object unless it has exactly these fields, and optionally the tenant.

    Raises:
        ValidationFailedError: with each field that is missing, unknown, or another tenant's.
    """
    errors = [
        FieldError(f"{place}.{name}", "This field is required.", "missing") for name in fields if name not in given
    ]
    known = ", ".join(fields) or "none"
    for name, value in given.items():
        if name == TENANT and value != tenant:
            errors.append(FieldError(f"{place}.{name}", "It is not the tenant of the request.", "immutable"))
        elif name not in (*fields, TENANT):
            message = f"Unknown field; known are {known}."
            errors.append(FieldError(f"{place}.{name}", message, "unknown_parameter"))
    if errors:
        raise ValidationFailedError(*errors)
