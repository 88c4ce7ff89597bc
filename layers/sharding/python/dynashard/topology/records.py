"""Records of the topology table: of a logical partition, an index, or all partitions of a family of entities."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dynashard import schema
from dynashard.codec import decode_value, encode_value
from dynashard.entity import EntityDefinition, IndexDefinition
from dynashard.errors import UndecodableItemError
from dynashard.placement import UNSHARDED
from dynashard.topology.epochs import EpochState, History, epochs_of, published, read, settled, stored
from dynashard.topology.views import Phase, View
from dynashard.transport.interface import Wire

DEFAULT_LEASE: Final = 30.0
"""Seconds."""
_TICK: Final = Decimal("0.000001")


def family_of(entity: EntityDefinition[Any]) -> str:
    """Return the family of an entity: the prefix of its logical partitions, or `=` and its name without a prefix."""
    return entity.prefix or f"={entity.name}"


def partition_key(entity: EntityDefinition[Any], partition: str) -> str:
    """Return the key of the record of a single logical partition. It holds a colon, which no family's does."""
    return partition if entity.prefix else f"{family_of(entity)}:{partition}"


def index_key(entity: EntityDefinition[Any], index: IndexDefinition) -> str:
    """Return the key of the record of an index. It holds a bar, which no partition's or family's does."""
    return f"{family_of(entity)}|{index.slot}"


class Record(Struct, frozen=True):
    """A record of the topology table.

    Attributes:
        count: the shard count, until a resize has settled the one before it.
        updated: when it was last changed, in epoch seconds: what a conditional update compares.
        lease: the longest time that a view may be used, in seconds; 0 stands for `DEFAULT_LEASE`. The family's record
            decides, because every view is read together with it.
        history: the newest counts as `epoch:count`.
        since: when the phase was published, in epoch seconds.
        target: the count that a resize leads to; None without one. With a stable phase, the resize waits to begin.
        swept: whether the markers of the last resize are gone.
        differ_since: of a family: since when single partitions may have records of their own; None if none has.
        active: of a family: keys of its records that are changing or not swept.
        former_lease: of a family: the longest lease that was granted before the lease was lowered, in seconds;
            0 if it never was.
        lowered_at: of a family: when the lowered lease was read from the record, in epoch seconds; None until then. A
            request that lowers a lease may arrive long after it was sent.
        epochs: counts by key time, if there was ever more than one; `count` is then the last one that is confirmed.
        former: of an index: the counts before it grew for new entries alone, by which older entries may still stand.
        backfilled: of a family: the goals that backfills have reached, by what they are about; see `backfilled`.
        others: stored attributes that only another release knows, in their stored form. They stay as they are.
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
    resize: Mapping[str, Any] = {}
    differ_since: float | None = None
    active: frozenset[str] = frozenset()
    former_lease: float = 0.0
    lowered_at: float | None = None
    epochs: History = ()
    former: frozenset[int] = frozenset()
    backfilled: Mapping[str, str] = {}
    others: Mapping[str, Any] = {}

    @property
    def granted(self) -> float:
        """The lease that this record grants, in seconds."""
        return self.lease if self.lease > 0 else DEFAULT_LEASE

    @property
    def busy(self) -> bool:
        """Whether a resize is requested, under way or not swept."""
        return self.target is not None or not self.swept

    def view(self, expires: float, *, markers: bool, version: str = "") -> View:
        """Return the view that routing uses."""
        target = None if self.phase is Phase.STABLE else self.target
        return View(
            self.count,
            self.phase,
            target,
            expires,
            markers,
            resized=len(self.history) > 1,
            version=version,
            epochs=epochs_of(self.key, self.epochs),
            former=tuple(sorted(self.former)),
        )

    @property
    def counts(self) -> frozenset[int]:
        """All counts by which items may be stored now, or may come to be: besides those before the last resize."""
        wanted = {self.count} if self.target is None else {self.count, self.target}
        return frozenset(
            wanted | self.former | {each.count for each in self.epochs if each.state is not EpochState.VOID}
        )

    def count_of(self, sort: str) -> int:
        """Return the count by which a sort key is placed."""
        epochs = epochs_of(self.key, self.epochs)
        return self.count if epochs is None else epochs.count_of(sort)

    def publishing(self, now: float, first: str, count: int, **fields: Any) -> "Record":
        """Return the record with one more epoch, which is pending; raises as `published`."""
        return self.revised(now, epochs=published(self.epochs, self.count, first, count), **fields)

    def settling(self, now: float, first: str, state: EpochState) -> "Record | None":
        """Return the record with the epoch that begins at `first` confirmed or void; None unless that is pending."""
        epochs = settled(self.epochs, first, state)
        if epochs is None:
            return None
        # The history of counts is that of counts that held for all keys, for which items have moved.
        count = next(each.count for each in reversed(epochs) if each.state is EpochState.CONFIRMED)
        return replace(self.revised(now, epochs=epochs, since=now), count=count)

    def revised(self, now: float, **fields: Any) -> "Record":
        """Return the record with other fields and a later `updated`; a new count goes into the history."""
        # Whatever the clocks say, no two versions of a record have the same, or a late save could pass for a new one.
        updated = max(_stamp(now), self.updated + _TICK)
        history = self.history
        if fields.get("count", self.count) != self.count:
            history = _entered(history, int(updated), fields["count"])
        return replace(self, updated=updated, **{"history": history, **fields})


def first_record(key: str, count: int, *, now: float, lease: float) -> Record:
    """Return the first record of a key."""
    return Record(key, count, _stamp(now), lease, frozenset({f"{int(now)}:{count}"}), since=now)


def _stamp(now: float) -> Decimal:
    return Decimal(str(now)).quantize(_TICK)


def _entered(history: frozenset[str], epoch: int, count: int) -> frozenset[str]:
    """The history with a new count, dated later than every entry before it."""
    dated = sorted((int(entry.partition(":")[0]), entry) for entry in history)
    epoch = max(epoch, dated[-1][0] + 1) if dated else epoch
    kept = [entry for _, entry in dated][-(schema.TOPOLOGY_HISTORY_LENGTH - 1) :]
    return frozenset({*kept, f"{epoch}:{count}"})


def encode(record: Record) -> Wire:
    """Return the stored form of a record."""
    wire: Wire = {
        **record.others,
        schema.TOPOLOGY_KEY: {"S": record.key},
        schema.TOPOLOGY_COUNT: _number(record.count),
        schema.TOPOLOGY_UPDATED: _number(record.updated),
        schema.TOPOLOGY_LEASE: _number(record.lease),
        schema.TOPOLOGY_PHASE: {"S": schema.TOPOLOGY_PLACED_BY_EPOCHS if record.epochs else record.phase.value},
        schema.TOPOLOGY_SINCE: _number(record.since),
        schema.TOPOLOGY_SWEPT: {"BOOL": record.swept},
        schema.TOPOLOGY_HISTORY: record.history and {"SS": sorted(record.history)},
        schema.TOPOLOGY_TARGET: _number(record.target),
        schema.TOPOLOGY_RESIZE: record.resize and encode_value(dict(record.resize), path=schema.TOPOLOGY_RESIZE),
        schema.TOPOLOGY_DIFFER: _number(record.differ_since),
        schema.TOPOLOGY_ACTIVE: record.active and {"SS": sorted(record.active)},
        schema.TOPOLOGY_FORMER_LEASE: _number(record.former_lease or None),
        schema.TOPOLOGY_LOWERED: _number(record.lowered_at),
        schema.TOPOLOGY_FORMER_COUNTS: record.former and {"NS": [str(count) for count in sorted(record.former)]},
        schema.TOPOLOGY_BACKFILLED: record.backfilled
        and encode_value(dict(record.backfilled), path=schema.TOPOLOGY_BACKFILLED),
        schema.TOPOLOGY_EPOCHS: record.epochs and encode_value(stored(record.epochs), path=schema.TOPOLOGY_EPOCHS),
    }
    return {name: value for name, value in wire.items() if value}


def _number(value: float | Decimal | None) -> Wire:
    return {} if value is None else {"N": str(value)}


def decode(wire: Mapping[str, Any]) -> Record:
    """Return a stored record. A key and a count are enough: other attributes default to a record without a resize.

    Raises `UndecodableItemError` if something other than the layer has changed the record.
    """

    def seconds(name: str) -> float | None:
        return float(wire[name]["N"]) if name in wire else None

    try:
        record = Record(
            key=wire[schema.TOPOLOGY_KEY]["S"],
            count=int(wire[schema.TOPOLOGY_COUNT]["N"]),
            updated=Decimal(wire.get(schema.TOPOLOGY_UPDATED, {"N": "0"})["N"]),
            lease=seconds(schema.TOPOLOGY_LEASE) or 0.0,
            history=frozenset(wire.get(schema.TOPOLOGY_HISTORY, {"SS": ()})["SS"]),
            phase=_phase(wire),
            since=seconds(schema.TOPOLOGY_SINCE) or 0.0,
            target=int(wire[schema.TOPOLOGY_TARGET]["N"]) if schema.TOPOLOGY_TARGET in wire else None,
            swept=wire.get(schema.TOPOLOGY_SWEPT, {"BOOL": True})["BOOL"],
            resize=decode_value(wire.get(schema.TOPOLOGY_RESIZE, {"M": {}})),
            differ_since=seconds(schema.TOPOLOGY_DIFFER),
            active=frozenset(wire.get(schema.TOPOLOGY_ACTIVE, {"SS": ()})["SS"]),
            former_lease=seconds(schema.TOPOLOGY_FORMER_LEASE) or 0.0,
            lowered_at=seconds(schema.TOPOLOGY_LOWERED),
            epochs=read(decode_value(wire.get(schema.TOPOLOGY_EPOCHS, {"L": []}))),
            former=frozenset(int(count) for count in wire.get(schema.TOPOLOGY_FORMER_COUNTS, {"NS": ()})["NS"]),
            backfilled=decode_value(wire.get(schema.TOPOLOGY_BACKFILLED, {"M": {}})),
            others={name: value for name, value in wire.items() if name not in schema.TOPOLOGY_ATTRIBUTES},
        )
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        raise _unusable(wire, f"{type(error).__name__} {error}") from error
    if not UNSHARDED <= record.count <= schema.MAX_SHARDS:
        raise _unusable(wire, f"{record.count} shards")
    if record.phase is not Phase.STABLE and record.target is None:
        raise _unusable(wire, f"{record.phase} without a target")
    return record


def _phase(wire: Mapping[str, Any]) -> Phase:
    stored_phase = wire.get(schema.TOPOLOGY_PHASE, {"S": Phase.STABLE})["S"]
    if schema.TOPOLOGY_EPOCHS in wire and stored_phase == schema.TOPOLOGY_PLACED_BY_EPOCHS:
        return Phase.STABLE
    return Phase(stored_phase)


def _unusable(wire: Mapping[str, Any], reason: str) -> UndecodableItemError:
    key = wire.get(schema.TOPOLOGY_KEY, {}).get("S")
    advice = "deploy the release that wrote it, or restore it"
    return UndecodableItemError(f"the topology record {key} cannot be used ({reason}): {advice}")
