"""What the topology table says of a logical partition, an index, or all partitions of a family of entities."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from dynashard.codec import decode_value, encode_value
from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.errors import UndecodableItemError
from dynashard.placement import UNSHARDED
from dynashard.schema import (
    MAX_SHARDS,
    TOPOLOGY_ACTIVE,
    TOPOLOGY_CHANGE,
    TOPOLOGY_COUNT,
    TOPOLOGY_DIFFER,
    TOPOLOGY_FORMER_LEASE,
    TOPOLOGY_HISTORY,
    TOPOLOGY_HISTORY_LENGTH,
    TOPOLOGY_KEY,
    TOPOLOGY_LEASE,
    TOPOLOGY_LOWERED,
    TOPOLOGY_PHASE,
    TOPOLOGY_SINCE,
    TOPOLOGY_SWEPT,
    TOPOLOGY_TARGET,
    TOPOLOGY_UPDATED,
)
from dynashard.topology.views import Phase, View
from dynashard.transport.interface import Wire

DEFAULT_LEASE: Final = 30.0
"""Seconds."""
_TICK: Final = Decimal("0.000001")


def family_of(entity: EntityDefinition[Any]) -> str:
    """The family that an entity shares its logical partitions with: its prefix.

    One without a prefix is a family by itself, named `=` and its name: no prefix begins so.
    """
    return entity.prefix or f"={entity.name}"


def partition_key(entity: EntityDefinition[Any], partition: str) -> str:
    """The key of the record of a single logical partition. Never that of a family: it holds a colon."""
    return partition if entity.prefix else f"{family_of(entity)}:{partition}"


def index_key(entity: EntityDefinition[Any], index: IndexDefinition) -> str:
    """The key of the record of an index. Never that of a partition or family, whose names hold no bar."""
    return f"{family_of(entity)}|{index.slot}"


@dataclass(frozen=True, slots=True)
class Record:
    """A record of the topology table.

    Attributes:
        key: its key.
        count: the shard count, until a change has settled the one before it.
        updated: when it was last changed, in epoch seconds: what a conditional update compares.
        lease: the longest time anybody may use a view, in seconds. The family's record decides for all records of its
            family, because every view is read together with it; 0 stands for `DEFAULT_LEASE`.
        history: the newest counts as `epoch:count`.
        phase: where a change stands.
        since: when the phase was published, in epoch seconds.
        target: the count that a change leads to; None without one. With a stable phase, the change waits to begin.
        swept: whether the marks of the last change are gone.
        change: what the controller keeps about the change.
        differ_since: of a family: since when single partitions may have records of their own; None if none has.
        active: of a family: keys of its records that are changing or not swept.
        former_lease: of a family: the longest lease that was given out before the lease was lowered, in seconds;
            0 if it never was.
        lowered_at: of a family: when the lowered lease was seen in the record, in epoch seconds; None if nobody has
            looked yet. A request that lowers a lease may arrive long after it was sent.
    """

    key: str
    count: int
    updated: Decimal
    lease: float
    history: frozenset[str] = frozenset()
    phase: Phase = Phase.STABLE
    since: float = 0.0
    target: int | None = None
    swept: bool = True
    change: Mapping[str, Any] = field(default_factory=dict)
    differ_since: float | None = None
    active: frozenset[str] = frozenset()
    former_lease: float = 0.0
    lowered_at: float | None = None

    @property
    def granted(self) -> float:
        """The lease that this record grants, in seconds."""
        return self.lease if self.lease > 0 else DEFAULT_LEASE

    @property
    def busy(self) -> bool:
        """Whether a change is wanted, under way or not swept."""
        return self.target is not None or not self.swept

    def view(self, expires: float, *, marks: bool, version: str = "") -> View:
        """What it says to those who route."""
        target = None if self.phase is Phase.STABLE else self.target
        return View(self.count, self.phase, target, expires, marks, changed=len(self.history) > 1, version=version)

    def changed(self, now: float, **fields: Any) -> "Record":
        """The record after a change of its fields, with a later `updated`; a new count goes into the history."""
        updated = max(_stamp(now), self.updated + _TICK)
        history = self.history
        if fields.get("count", self.count) != self.count:
            history = _entered(history, int(updated), fields["count"])
        return replace(self, updated=updated, **{"history": history, **fields})


def first_record(key: str, count: int, *, now: float, lease: float) -> Record:
    """The first record of a key."""
    return Record(key, count, _stamp(now), lease, frozenset({f"{int(now)}:{count}"}), since=now)


def _stamp(now: float) -> Decimal:
    return Decimal(str(now)).quantize(_TICK)


def _entered(history: frozenset[str], epoch: int, count: int) -> frozenset[str]:
    """The history with a new count. Every entry is later than those before it, however quickly they follow."""
    dated = sorted((int(entry.partition(":")[0]), entry) for entry in history)
    epoch = max(epoch, dated[-1][0] + 1) if dated else epoch
    kept = [entry for _, entry in dated][-(TOPOLOGY_HISTORY_LENGTH - 1) :]
    return frozenset({*kept, f"{epoch}:{count}"})


def encode(record: Record) -> Wire:
    """The record as it is stored."""
    wire: Wire = {
        TOPOLOGY_KEY: {"S": record.key},
        TOPOLOGY_COUNT: {"N": str(record.count)},
        TOPOLOGY_UPDATED: {"N": str(record.updated)},
        TOPOLOGY_LEASE: {"N": repr(record.lease)},
        TOPOLOGY_PHASE: {"S": record.phase.value},
        TOPOLOGY_SINCE: {"N": repr(record.since)},
        TOPOLOGY_SWEPT: {"BOOL": record.swept},
    }
    if record.history:
        wire[TOPOLOGY_HISTORY] = {"SS": sorted(record.history)}
    if record.target is not None:
        wire[TOPOLOGY_TARGET] = {"N": str(record.target)}
    if record.change:
        wire[TOPOLOGY_CHANGE] = encode_value(dict(record.change), path=TOPOLOGY_CHANGE)
    if record.differ_since is not None:
        wire[TOPOLOGY_DIFFER] = {"N": repr(record.differ_since)}
    if record.active:
        wire[TOPOLOGY_ACTIVE] = {"SS": sorted(record.active)}
    if record.former_lease:
        wire[TOPOLOGY_FORMER_LEASE] = {"N": repr(record.former_lease)}
    if record.lowered_at is not None:
        wire[TOPOLOGY_LOWERED] = {"N": repr(record.lowered_at)}
    return wire


def decode(wire: Mapping[str, Any]) -> Record:
    """The record that is stored. One that only has a key and a count is whole: the rest is as in a quiet time.

    Raises:
        UndecodableItemError: it was changed by something else than the layer, and nobody can tell where items are.
    """
    try:
        record = _decoded(wire)
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        raise _unusable(wire, f"{type(error).__name__} {error}") from error
    if not UNSHARDED <= record.count <= MAX_SHARDS:
        raise _unusable(wire, f"{record.count} shards")
    if record.phase is not Phase.STABLE and record.target is None:
        raise _unusable(wire, f"{record.phase} without a target")
    return record


def _decoded(wire: Mapping[str, Any]) -> Record:
    differ = wire.get(TOPOLOGY_DIFFER)
    target = wire.get(TOPOLOGY_TARGET)
    lowered = wire.get(TOPOLOGY_LOWERED)
    return Record(
        key=wire[TOPOLOGY_KEY]["S"],
        count=int(wire[TOPOLOGY_COUNT]["N"]),
        updated=Decimal(wire.get(TOPOLOGY_UPDATED, {"N": "0"})["N"]),
        lease=float(wire.get(TOPOLOGY_LEASE, {"N": "0"})["N"]),
        history=frozenset(wire.get(TOPOLOGY_HISTORY, {"SS": ()})["SS"]),
        phase=Phase(wire.get(TOPOLOGY_PHASE, {"S": Phase.STABLE})["S"]),
        since=float(wire.get(TOPOLOGY_SINCE, {"N": "0"})["N"]),
        target=None if target is None else int(target["N"]),
        swept=wire.get(TOPOLOGY_SWEPT, {"BOOL": True})["BOOL"],
        change=decode_value(wire.get(TOPOLOGY_CHANGE, {"M": {}})),
        differ_since=None if differ is None else float(differ["N"]),
        active=frozenset(wire.get(TOPOLOGY_ACTIVE, {"SS": ()})["SS"]),
        former_lease=float(wire.get(TOPOLOGY_FORMER_LEASE, {"N": "0"})["N"]),
        lowered_at=None if lowered is None else float(lowered["N"]),
    )


def _unusable(wire: Mapping[str, Any], reason: str) -> UndecodableItemError:
    key = wire.get(TOPOLOGY_KEY, {}).get("S")
    return UndecodableItemError(f"the topology record {key} cannot be used ({reason}): put back what it was before")
