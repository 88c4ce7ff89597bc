"""The entity of a demand: its declaration, its items, and their sizes."""

from random import Random
from types import new_class
from typing import Any, Final

from dynashard import Entity, Key, Registry, Shards
from dynashard.codec import item_size
from dynashard.entity import Ulid, definition
from dynashard.key_time import ULID
from dynashard.placement import PLACEMENTS
from dynashard.schema import PK, REV, SK, TYPE
from dynashard_lab.simulate.actors import EPOCH
from dynashard_lab.simulate.scenario import DemandSpec, LayerSpec
from dynashard_tools.failure import CommandError

_ID_LENGTH: Final = 27
_TIMED_ID_LENGTH: Final = 26
_REVISION_LENGTH: Final = 16
_LONGEST_SHARD: Final = ":1023"
FIRST_VERSION: Final = 0
_VERSION_DIGITS: Final = 8


class Item(Entity):
    """The fields of all items that a simulation writes."""

    tenant_id: str
    id: str
    data: str


class TimedItem(Item):
    """The same with ids that say when they were made."""

    id: Ulid


class Items:
    """Makes the items of one demand: with rising or random ids, and of exactly the size that the scenario names."""

    def __init__(self, name: str, demand: DemandSpec, layer: LayerSpec, random: Random) -> None:
        prefix, _, tenant = demand.partition.partition(":")
        if demand.operation != "write" or demand.entries or demand.transactional or not demand.shards:
            raise CommandError(
                f"{name}: through the layer, all items have shards, and shares names the operations; set shards, and "
                "leave operation, entries and transactional out"
            )
        self._timed = PLACEMENTS[layer.placement].by_time
        self._rising = demand.sort == "rising"
        if self._timed and not self._rising:
            raise CommandError(f"{name}: epochs placement needs sort keys that rise with time; set sort to rising")
        declared = {
            "name": prefix,
            "key": Key(partition="{tenant_id}", sort="{id}"),
            "shards": Shards(demand.shards, layer.placement, max=max(layer.most_shards, demand.shards)),
            "registry": Registry(),
        }
        self.model: type[Item] = new_class("Item", (TimedItem if self._timed else Item,), declared)
        self.entity = definition(self.model)
        several = demand.partitions > 1
        self.tenants = [f"{tenant}{number}" for number in range(demand.partitions)] if several else [tenant]
        self._random = random
        self._numbers = 0
        filling = max(0, demand.item_bytes - self._size_without_data(prefix) - _VERSION_DIGITS)
        self._filling = "x" * filling
        self._first_data = self.data(FIRST_VERSION)

    def _size_without_data(self, prefix: str) -> int:
        tenant = max(self.tenants, key=len)
        id_ = "0" * (_TIMED_ID_LENGTH if self._timed else _ID_LENGTH)
        values = {"tenant_id": tenant, "id": id_, "data": ""}
        system: dict[str, Any] = {
            PK: {"S": f"{prefix}:{tenant}{_LONGEST_SHARD}"},
            SK: {"S": id_},
            TYPE: {"S": prefix},
            REV: {"S": "0" * _REVISION_LENGTH},
        }
        return item_size({**system, **self.entity.encode(values)})

    def make(self, tenant: str, now: float) -> Item:
        """Return a new item; `now` in epoch seconds. Ids rise with time, as those of `new_id()` do, or are random."""
        self._numbers += 1
        chance = self._random.getrandbits(52)
        if self._timed:
            id_ = f"{ULID.first(now)}{self._numbers & 0xFFFFF:05X}{chance & 0xFFFFFFFFFFF:011X}"
        elif self._rising:
            id_ = f"{int((now - EPOCH) * 1e3):09x}{self._numbers & 0xFFFFF:05x}{chance:013x}"
        else:
            id_ = f"{chance * 7919:014x}"[-14:] + f"{chance:013x}"
        return self.model(tenant_id=tenant, id=id_, data=self._first_data)

    def data(self, version: int) -> str:
        """Return the data of an item, which begins with the number of its value."""
        return f"{version:0{_VERSION_DIGITS}d}{self._filling}"


def version_of(data: str) -> int:
    """Return the number in an item's data."""
    return int(data[:_VERSION_DIGITS])
