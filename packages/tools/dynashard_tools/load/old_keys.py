"""Keys of a load that lie before the newest epoch of their partition, which more shards do not relieve."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dynashard import Entity
from dynashard.entity import EntityDefinition
from dynashard.topology import EpochState, TopologyTable, family_of, partition_key
from dynashard_tools.printing import utc_text
from dynashard_tools.topology.facts import Count, facts, shown

BEGIN_WITH_MORE: Final = (
    "A count of epochs grows for later keys only, so an import of old keys needs its shards from the start "
    "(docs/loading.md#old-keys)"
)


@dataclass(slots=True)
class OldKeys:
    """Counts the items of a load whose epoch is not the newest, and warns at the first.

    Attributes:
        entity: the entity; only of one whose placement is `epochs` anything is counted.
        topology: the shard counts, read once at the first items.
        warn: called once, with a sentence.
        number: of the items.
    """

    entity: EntityDefinition[Any]
    topology: TopologyTable
    warn: Callable[[str], None]
    number: int = 0
    _newest: dict[str | None, tuple[str, Count]] | None = field(default=None)

    def count(self, items: Sequence[Entity]) -> None:
        """Count items before they are written. Cost: at the first, that of `facts`; nothing of another placement."""
        if self.entity.time is None:
            return
        newest = self._newest = self._read() if self._newest is None else self._newest
        for item in items:
            key = self.entity.key_of(item)
            first, count = newest.get(partition_key(self.entity, key.partition)) or newest[None]
            if key.sort < first:
                self.number += 1
                if self.number == 1:
                    self.warn(self._warning(key.partition, key.sort, count))

    def _read(self) -> dict[str | None, tuple[str, Count]]:
        """Return the first key of the newest epoch, and the count: by partition, and of the others."""
        [found] = facts(self.topology, [self.entity])
        family = family_of(self.entity)
        own = {f"{family}:{name}": (_newest(count), count) for name, count in found.partitions.items()}
        newest: dict[str | None, tuple[str, Count]] = {None: (_newest(found.common), found.common)}
        return newest | own

    def _warning(self, partition: str, sort: str, count: Count) -> str:
        held = next(each for each in reversed(_confirmed(count)) if each["first"] <= sort)
        shards = "1 shard" if held["count"] == 1 else f"{shown(held['count'])} shards"
        since = utc_text(_confirmed(count)[-1]["since"])
        return (
            f"warning: the key {sort} of {partition} is from before {since}, where its newest epoch begins. It goes to "
            f"the {shards} of its time, and so do other old keys of this file. {BEGIN_WITH_MORE}"
        )


def _confirmed(count: Count) -> list[dict[str, Any]]:
    return [each for each in count.epochs if each["state"] == EpochState.CONFIRMED]


def _newest(count: Count) -> str:
    """Return the first sort key of the newest epoch; '', before which no key lies, while there is a single one."""
    return next((each["first"] for each in reversed(_confirmed(count))), "")
