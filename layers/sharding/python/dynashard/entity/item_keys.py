"""The keys of items, in the table and in indexes: rendered from fields by the templates of a declaration."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

from msgspec import Struct

from dynashard.entity.declaration import DEFAULT_SEPARATOR, Shards
from dynashard.keys import KeyTemplate, storable_key
from dynashard.schema import MAX_PARTITION_KEY_BYTES, MAX_SORT_KEY_BYTES

_SHARD_SUFFIX_BYTES: Final = len(":1024")


class ItemKey(NamedTuple):
    """Where an item lives under any shard count: its logical partition (`user.v1.User:abc`) and its sort key."""

    partition: str
    sort: str


class KeyTemplates:
    """The templates of a key, and the text around them."""

    prefix: str
    separator: str
    partition: KeyTemplate
    sort: KeyTemplate

    def logical_partition(self, values: Mapping[str, Any]) -> str:
        """Return the logical partition for these fields, such as `user.v1.User:abc`; raises as `KeyTemplate.render`."""
        text = self.partition.render(values)
        joined = f"{self.prefix}{self.separator}{text}" if self.prefix else text
        return storable_key(joined, "partition", MAX_PARTITION_KEY_BYTES - _SHARD_SUFFIX_BYTES)

    def _key(self, values: Mapping[str, Any], what: str) -> ItemKey:
        sort = storable_key(self.sort.render(values), what, MAX_SORT_KEY_BYTES)
        return ItemKey(self.logical_partition(values), sort)


class IndexDefinition(KeyTemplates, Struct, frozen=True, dict=True):
    """A compiled `Index`; `prefix` is resolved."""

    name: str
    slot: str
    partition: KeyTemplate
    sort: KeyTemplate
    shards: Shards | None
    by_item_key: bool
    prefix: str
    replica: bool
    backfill: bool
    separator: str = DEFAULT_SEPARATOR

    @cached_property
    def fields(self) -> frozenset[str]:
        """The fields in its keys."""
        return frozenset(self.partition.fields + self.sort.fields)

    def entry(self, values: Mapping[str, Any]) -> ItemKey | None:
        """Return the item's key in this index; None if one of its fields is not set, so that the item is left out."""
        for name in self.fields:
            if values.get(name) is None:
                return None
        return self._key(values, f"{self.name} sort")
