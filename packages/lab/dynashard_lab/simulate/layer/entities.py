"""The entity of a demand: its declaration, its items, and their sizes."""

from random import Random
from types import new_class
from typing import Any, Final

from dynashard import Entity, Key, Registry, Shards
from dynashard.codec import item_size
from dynashard.entity import definition
from dynashard.schema import PK, REV, SK, TYPE
from dynashard_lab.simulate.scenario import DemandSpec, LayerSpec
from dynashard_tools.failure import CommandError

_ID_LENGTH: Final = 27
_REVISION_LENGTH: Final = 16
_LONGEST_SHARD: Final = ":1023"
FIRST_VERSION: Final = 0
_VERSION_DIGITS: Final = 8


class Item(Entity):
    """The fields of all items that a simulation writes."""

    tenant_id: str
    id: str
    data: str


class Items:
    """Makes the items of one demand: with rising or random ids, and of exactly the size that the scenario names."""

    def __init__(self, name: str, demand: DemandSpec, layer: LayerSpec, random: Random) -> None:
        prefix, _, tenant = demand.partition.partition(":")
        if demand.operation != "write" or demand.entries or demand.transactional or not demand.shards:
            raise CommandError(
                f"{name}: through the layer, all items have shards, and shares names the operations; set shards, and "
                "leave operation, entries and transactional out"
            )
        declared = {
            "name": prefix,
            "key": Key(partition="{tenant_id}", sort="{id}"),
            "shards": Shards(demand.shards, layer.placement, max=max(layer.most_shards, demand.shards)),
            "registry": Registry(),
        }
        self.model: type[Item] = new_class("Item", (Item,), declared)
        self.entity = definition(self.model)
        several = demand.partitions > 1
        self.tenants = [f"{tenant}{number}" for number in range(demand.partitions)] if several else [tenant]
        self._rising = demand.sort == "rising"
        self._random = random
        self._numbers = 0
        filling = max(0, demand.item_bytes - self._size_without_data(prefix) - _VERSION_DIGITS)
        self._filling = "x" * filling
        self._first_data = self.data(FIRST_VERSION)

    def _size_without_data(self, prefix: str) -> int:
        tenant = max(self.tenants, key=len)
        values = {"tenant_id": tenant, "id": "0" * _ID_LENGTH, "data": ""}
        system: dict[str, Any] = {
            PK: {"S": f"{prefix}:{tenant}{_LONGEST_SHARD}"},
            SK: {"S": "0" * _ID_LENGTH},
            TYPE: {"S": prefix},
            REV: {"S": "0" * _REVISION_LENGTH},
        }
        return item_size({**system, **self.entity.encode(values)})

    def make(self, tenant: str, now: float) -> Item:
        """Return a new item; `now` in seconds. Ids rise with time, as those of `new_id()` do, or are random."""
        self._numbers += 1
        chance = self._random.getrandbits(52)
        start = f"{int(now * 1e3):09x}{self._numbers & 0xFFFFF:05x}" if self._rising else f"{chance * 7919:014x}"[-14:]
        return self.model(tenant_id=tenant, id=f"{start}{chance:013x}", data=self._first_data)

    def data(self, version: int) -> str:
        """Return the data of an item, which begins with the number of its value."""
        return f"{version:0{_VERSION_DIGITS}d}{self._filling}"


def version_of(data: str) -> int:
    """Return the number in an item's data."""
    return int(data[:_VERSION_DIGITS])
