"""What the compiled reader and writer need to know of an entity, which stands on the floor above."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from dynashard.keys import KeyTemplate
from dynashard.placement import Placement
from dynashard.record import Record

Wire = Mapping[str, Any]
"""Stored attributes in DynamoDB's JSON."""


class Templates(Protocol):
    """The templates of a key, and the text around them."""

    @property
    def prefix(self) -> str:
        """The first part of partition keys; may be empty."""
        ...

    @property
    def separator(self) -> str:
        """The text between the parts of a partition key."""
        ...

    @property
    def partition(self) -> KeyTemplate:
        """The template of the logical partition."""
        ...

    @property
    def sort(self) -> KeyTemplate:
        """The template of the sort key."""
        ...


class DeclaredIndex(Templates, Protocol):
    """An index of an entity."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def slot(self) -> str:
        """Its slot, such as `GSI1`."""
        ...

    @property
    def shards(self) -> object | None:
        """Its declared shards; None if it is not sharded."""
        ...

    @property
    def by_item_key(self) -> bool:
        """Whether the hash of the item's key decides about an entry's shard."""
        ...

    @property
    def replica(self) -> bool:
        """Whether it is a read replica of the table."""
        ...

    @property
    def fields(self) -> frozenset[str]:
        """The fields in its keys."""
        ...


class DeclaredVersions(Protocol):
    """The version of a declaration."""

    @property
    def stored(self) -> dict[str, Any]:
        """The system attribute of items that are written; empty for version 1."""
        ...


class Reference(Protocol):
    """The reader that takes every item."""

    def value(self, name: str, attribute: Any) -> Any:
        """Return the value of a stored attribute, before its field validates it."""
        ...


class Declared(Templates, Protocol):
    """A compiled declaration."""

    name: str
    rule: Placement
    expires: str | None
    optional: frozenset[str]
    created_fields: frozenset[str]
    updated_fields: frozenset[str]
    key_fields: tuple[str, ...]
    nested: bool
    typed_dicts: bool
    checks: dict[str, Callable[[Mapping[str, Any]], object]]

    @property
    def versions(self) -> DeclaredVersions:
        """Its version."""
        ...

    @property
    def model(self) -> type[Record]:
        """The class of its items."""
        ...

    @property
    def reference(self) -> Reference:
        """Its reference reader."""
        ...

    @property
    def rewritten(self) -> frozenset[str]:
        """The fields whose values may be read as objects of another form than they are stored in."""
        ...

    @property
    def attachments(self) -> Mapping[str, object]:
        """The fields that are stored out of line."""
        ...

    @property
    def indexes(self) -> Mapping[str, DeclaredIndex]:
        """Its indexes by name."""
        ...

    def left_out(self, name: str, value: object) -> bool:
        """Whether a value is not stored."""
        ...

    def encode_field(self, name: str, value: Any) -> dict[str, Any]:
        """Return a value as a field stores it."""
        ...


def key_fields(*keys: Templates) -> set[str]:
    """Return the fields in some keys."""
    return {name for key in keys for name in (*key.partition.fields, *key.sort.fields)}
