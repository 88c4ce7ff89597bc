"""What one listing reads: its layouts, its filters, and which of the stored items readers may see."""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from msgspec.structs import replace
from xxhash import xxh64_digest

from dynashard.entity import EntityDefinition, IndexDefinition, ItemKey, plain_types
from dynashard.placement import CALCULATED
from dynashard.reads.dedup import Dedup
from dynashard.reads.entries import VisibleRows
from dynashard.reads.epoch_sources import EpochSources
from dynashard.reads.fetch import Fetch
from dynashard.reads.filters import filter_expression
from dynashard.reads.layout import EPOCHS, Layout, index_streams, sources_of
from dynashard.reads.moved_items import MovedItems
from dynashard.reads.query import Budget, Order, Query
from dynashard.reads.sources import Convert, Reading, Sources
from dynashard.repository import Store
from dynashard.repository.projection import MOST_NAMED
from dynashard.routing import hash_of, home, index_hash, logical_partition_of, stored_partitions
from dynashard.schema import BORN, PK, PREV, REV, SK, index_sk
from dynashard.topology import Epochs, Phase, View
from dynashard.transport.interface import Wire

_IDENTITY_BYTES: Final = 6


class Enumeration:
    """The stored items that answer a query of the first of the entities in `decoders`.

    All of these have the same logical partitions. With `in_memory`, no cursor carries the positions; `fits` says
    whether a stored item can be decoded. Safe to share between threads.
    """

    def __init__(
        self,
        store: Store,
        decoders: Mapping[str, EntityDefinition[Any]],
        query: Query,
        *,
        in_memory: bool = False,
        fits: Callable[[Wire], bool] = lambda _: True,
    ) -> None:
        self._store = store
        self._decoders = decoders
        self._query = query
        self._in_memory = in_memory
        self._fits = fits
        self.filters = filter_expression(query.entity, query.filters)
        self._replica = self._pick_replica()
        self._last: tuple[object, tuple[Layout, ...]] = (None, ())
        moves = query.entity.rule.moves
        upgrades = any(each.versions.upgrades for each in decoders.values())
        self._rows = rows = VisibleRows(query, decoders, self.filters, upgrades, store.now())
        self._moved_items = MovedItems(store, query.entity, rows.live, rows.returned) if moves else None

    def fetch(self, budget: Budget, convert: Convert | None = None) -> Fetch:
        """Return a new sender of this listing's requests."""
        store, clock = self._store, self._store.runtime.clock
        return Fetch(store.transport, budget, self.layouts, self._moved_items, clock=clock, convert=convert)

    @property
    def dedup(self) -> Dedup | None:
        """What drops items with the same value of `distinct`; None if nothing does."""
        entity, distinct = self._query.entity, self._query.distinct
        if distinct is None:
            return None
        # Without a field that is stamped on update, a time in the sort key says since when a copy has its position.
        sort, fields = (self._query.index_definition or entity).sort, entity.model.model_fields
        times = [name for name in sort.fields if datetime in plain_types(fields[name].annotation)]
        return Dedup(distinct, next(iter([*sorted(entity.updated_fields), *times]), None), fits=self._fits)

    def stored_keys(self) -> list[str]:
        """Return the keys of all shards in which items of the partition may be: of the present and the coming count."""
        entity, partition = self._query.entity, self._query.partitions[0]
        return stored_partitions(entity, partition, self._store.router.topology.view(entity, partition))

    def as_stored(self, keys: Iterable[str]) -> Layout:
        """Return a layout of shards with all live items that are in them, at home or not."""
        return Layout(sources_of(keys), self._reading(self._rows.live))

    def layouts(self) -> Sequence[Layout]:
        """Return the layouts now, one for each logical partition. Cost: none while the leases of their views hold."""
        query, topology = self._query, self._store.router.topology
        index = query.index_definition
        if self._replica is not None and self._replica_usable(self._replica):
            index = self._replica
        if index is None:
            views = [topology.view(query.entity, each) for each in query.partitions]
        else:
            views = [topology.index_view(query.entity, index)] * len(query.partitions)
        # Views compare without their versions.
        known = (index, [(view, view.version) for view in views])
        last = self._last
        if last[0] != known:
            made = tuple(self._layout(index, *each) for each in zip(query.partitions, views, strict=True))
            last = self._last = known, made
        return last[1]

    @property
    def complete(self) -> bool:
        """Whether the listed index has all items that belong to it. Cost: none while the leases of its views hold."""
        if self._query.index is None:
            return True
        known = [(each, index) for each in self._decoders.values() if (index := self._rows.index_of(each)) is not None]
        return all(self._store.router.topology.index_view(*each).complete for each in known)

    def _layout(self, index: IndexDefinition | None, partition: str, view: View) -> Layout:
        if index is None:
            return self._table_layout(partition, view)
        return (self._replica_layout if index.replica else self._index_layout)(index, partition, view)

    def _pick_replica(self) -> IndexDefinition | None:
        """The read replica that this call reads; None for the table."""
        entity, query = self._query.entity, self._query
        # Positions are kept by hashes, or by shards that the replica does not have. A sort key is a position anywhere.
        anywhere = query.order == Order.ORDERED or entity.rule is CALCULATED
        if query.index is not None or not entity.replicas or query.consistent or not anywhere:
            return None
        drawn = int(self._store.runtime.random() * (len(entity.replicas) + 1))
        return entity.replicas[drawn - 1] if drawn else None

    def _replica_usable(self, replica: IndexDefinition) -> bool:
        """Whether nothing moves and no markers are left. Otherwise a replica may hold an item twice, or its marker."""
        entity, topology = self._query.entity, self._store.router.topology
        views = [topology.view(entity, partition) for partition in self._query.partitions]
        view = topology.index_view(entity, replica)
        return not view.former and all(each.stable and not each.markers for each in (*views, view))

    def _replica_layout(self, replica: IndexDefinition, partition: str, view: View) -> Layout:
        entity = self._query.entity
        entries = partition if entity.prefix else f"{replica.prefix}{replica.separator}{partition}"
        return Layout(
            streams=Sources(CALCULATED, entries, replica.separator, view.count),
            reading=replace(self._reading(self._rows.live), slot=replica.slot, unique=True),
            signature=(replica.slot, view.count),
            hash_of=lambda row: hash_of(CALCULATED, ItemKey(partition, row[SK]["S"])),
            in_memory=self._in_memory,
            expires=view.expires,
        )

    def _epochs_layout(self, partition: str, view: View, epochs: Epochs) -> Layout:
        entity, rule, bounds = self._query.entity, self._query.entity.rule, self._query.bounds
        return Layout(
            streams=EpochSources(rule, partition, entity.separator, epochs, bounds),
            reading=self._reading(self._rows.live, projected=True),
            signature=epochs,
            home_hash=lambda row: hash_of(rule, ItemKey(partition, row[SK]["S"])),
            foreign=view.resized,
            version=EPOCHS,
            former=epochs.entries[0].count or 1,
            in_memory=self._in_memory,
            expires=view.expires,
        )

    def _table_layout(self, partition: str, view: View) -> Layout:
        if view.epochs is not None:
            return self._epochs_layout(partition, view, view.epochs)
        entity, rule = self._query.entity, self._query.entity.rule
        count = _table_count(view, moves=rule.moves)
        moving = rule.moves and not view.stable
        follows = moving and view.phase is not Phase.SETTLE
        # In SETTLE, too, markers are read: to find items that are just being moved home.
        visible = self._rows.listed if moving else self._rows.live
        return Layout(
            streams=Sources(rule, partition, entity.separator, count),
            reading=self._passing(visible) if follows else self._reading(visible, projected=True),
            signature=(count, follows, moving),
            hash_of=(lambda row: hash_of(rule, ItemKey(partition, row[SK]["S"]))) if rule.moves else None,
            follows=follows,
            foreign=moving or (rule.moves and view.resized),
            strays=_stray_homes(entity, partition, view) if moving and not follows else None,
            moving=moving,
            in_memory=self._in_memory,
            expires=view.expires,
        )

    def _index_layout(self, index: IndexDefinition, partition: str, view: View) -> Layout:
        entity = self._query.entity
        # An index lags behind, so it may show markers for as long as any may exist, whatever the phase.
        # Without rewriting, a write moves an entry to its place under the present count.
        moving = view.markers or not view.stable or bool(view.former)
        reading = self._passing(self._rows.entered) if moving else self._reading(self._rows.entered, projected=True)
        members = [(each, own) for each in self._decoders.values() if (own := self._rows.index_of(each)) is not None]
        needed = [name for each, own in members for name in each.attributes_of(own.fields)]
        # The entry of an adopted item, which has no revision, may contradict it.
        reading = replace(reading, needed=(REV, *dict.fromkeys(needed)))
        return Layout(
            streams=index_streams(index, partition, view),
            reading=replace(reading, resize=_counts(view)),
            signature=(view.count, view.new_count, view.former, view.stable, view.markers, view.version),
            hash_of=_entry_hash(entity, index, partition),
            follows=True,
            moving=moving,
            version=_short(f"{moving} {view.version}") if moving or view.version else "",
            stationary=all(own.fields <= {*each.key_fields, *each.created_fields} for each, own in members),
            identity=lambda stored, sort: _short(f"{logical_partition_of(entity, stored)}\0{sort}"),
            in_memory=self._in_memory,
            expires=view.expires,
        )

    def _whole_items(self) -> tuple[str, ...] | None:
        """A projection of all that entities have, so that the keys of indexes are not sent; None for whole items."""
        # An ordered listing learns from the sizes of stored items what a Query is billed for.
        # An upgrade may read any attribute.
        if self._query.order == Order.ORDERED or self._rows.upgrades:
            return None
        wanted = tuple(name for each in self._decoders.values() for name in each.attributes)
        return None if len(wanted) > MOST_NAMED else (*wanted, REV, PREV, BORN)

    def _passing(self, visible: Callable[[Wire], bool]) -> Reading:
        reading = self._reading(visible)
        return replace(reading, filters=reading.filters.passing_markers)

    def _reading(self, visible: Callable[[Wire], bool], *, projected: bool = False) -> Reading:
        """How sources are read; with `projected`, whole items without the keys of indexes."""
        query, filters, chosen = self._query, self.filters, self._query.fields
        if self._rows.upgrades:
            filters = filters.passing_older(max(each.versions.number for each in self._decoders.values()))
        if chosen is not None and not any(each.needs_whole(chosen) for each in self._decoders.values()):
            fields: tuple[str, ...] | None = _chosen(query.entity, tuple(chosen))
        else:
            fields = self._whole_items() if projected else None
        if fields is not None and (dedup := self.dedup) is not None:
            fields = (*fields, *(name for name in (dedup.attribute, dedup.updated) if name))
        return Reading(
            table=self._store.table,
            slot=query.slot,
            bounds=query.bounds,
            forward=query.forward,
            visible=self._rows.filtered(visible),
            filters=filters,
            fields=fields,
            consistent=query.consistent,
            now=self._rows.now,
        )


@lru_cache(maxsize=256)
def _chosen(entity: EntityDefinition[Any], fields: tuple[str, ...]) -> tuple[str, ...]:
    """Return the attributes of chosen fields, and of the fields of the key: an item that contradicts it is left out."""
    return entity.attributes_of(dict.fromkeys((*fields, *entity.key_fields)))


def _counts(view: View) -> str:
    """The counts by which entries of an index may stand, as positions name them: `4>16`; empty if there is one."""
    counts = sorted({view.count, *view.former} - {view.new_count})
    return f"{'.'.join(map(str, counts))}>{view.new_count}" if counts or not view.stable else ""


def _table_count(view: View, *, moves: bool) -> int:
    """The shard count whose layout readers of the table enumerate."""
    if not moves:
        # Readers widen before writers do, and narrow after them.
        return max(view.count, view.new_count)
    return view.new_count if view.phase is Phase.SETTLE else view.count


def _stray_homes(entity: EntityDefinition[Any], partition: str, view: View) -> Callable[[Wire], str | None]:
    """A function that returns the new home of an item that is at its old home, and None for an item elsewhere."""

    def new_home(row: Wire) -> str | None:
        key = ItemKey(partition, row[SK]["S"])
        return home(entity, key, view.new_count) if home(entity, key, view.count) == row[PK]["S"] else None

    return new_home


def _entry_hash(entity: EntityDefinition[Any], index: IndexDefinition, partition: str) -> Callable[[Wire], int]:
    """A function that returns the hash that places an index entry in its shard."""
    attribute = index_sk(index.slot)

    def hashed(row: Wire) -> int:
        key = ItemKey(logical_partition_of(entity, row[PK]["S"]), row[SK]["S"])
        return index_hash(index, ItemKey(partition, row[attribute]["S"]), key)

    return hashed


def _short(text: str) -> str:
    return urlsafe_b64encode(xxh64_digest(text.encode())[:_IDENTITY_BYTES]).decode()
