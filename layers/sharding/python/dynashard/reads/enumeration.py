"""What one listing reads: its layouts, its filters, and what of the stored items readers may see."""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from xxhash import xxh64_digest

from dynashard.entity import EntityDefinition, IndexDefinition, ItemKey, plain_types
from dynashard.placement import CALCULATED
from dynashard.reads.dedup import Dedup
from dynashard.reads.fetch import Fetch
from dynashard.reads.filters import FilterExpression, filter_expression
from dynashard.reads.layout import (
    Layout,
    Layouts,
    index_signature,
    index_streams,
    replica_streams,
    stored_streams,
    table_count,
    table_streams,
)
from dynashard.reads.moved_items import MovedItems
from dynashard.reads.query import Budget, Order, Query
from dynashard.reads.sources import Reading, Source
from dynashard.repository import Store
from dynashard.repository.conditions import is_live, is_marker
from dynashard.routing import hash_of, home, logical_partition_of, rule_of
from dynashard.schema import EXPIRES_AT, MOVED_TO, PK, SK, TYPE, index_pk, index_sk
from dynashard.topology import Phase, View
from dynashard.transport.interface import Wire

_IDENTITY_BYTES: Final = 6


class Enumeration:
    """The stored items that answer a query.

    Args:
        store: where they are.
        decoders: the entities that are listed, by name; all of one family.
        query: the query, of the first of them.
        in_memory: positions are not carried by cursors.
    """

    def __init__(
        self, store: Store, decoders: Mapping[str, EntityDefinition[Any]], query: Query, *, in_memory: bool = False
    ) -> None:
        self._store = store
        self._decoders = decoders
        self._query = query
        self._in_memory = in_memory
        self._now = store.now()
        self.filters = filter_expression(query.entity, query.filters)
        self.layouts: Callable[[], Sequence[Layout]] = self._read()
        self._moved_items = self._moves()

    def fetch(self, budget: Budget) -> Fetch:
        """A sender of this listing's requests."""
        return Fetch(self._store.transport, budget, self.layouts, self._moved_items, clock=self._store.clock)

    @property
    def dedup(self) -> Dedup | None:
        """What drops the items that say the same as others; None if nothing does."""
        entity, distinct = self._query.entity, self._query.distinct
        if distinct is None:
            return None
        # Without a stamp, a time in the sort key says since when a copy stands there.
        sort, fields = (self._query.index_definition or entity).sort, entity.model.model_fields
        times = [name for name in sort.fields if datetime in plain_types(fields[name].annotation)]
        return Dedup(distinct, next(iter([*sorted(entity.updated_fields), *times]), None))

    def stored(self) -> tuple[Source, ...]:
        """All shards in which items of the partition may lie."""
        return stored_streams(self._store.router, self._query.entity, self._query.partitions[0])

    def as_stored(self, shards: tuple[Source, ...]) -> Layout:
        """A layout of shards with the live items that lie in them, moved or not."""
        return Layout(shards, self._reading(self._live))

    @property
    def visible_only(self) -> FilterExpression:
        """What readers must not see, where DynamoDB counts and they do not see the items."""
        types = {f":type{i}": {"S": name} for i, name in enumerate(self._decoders)}
        return FilterExpression(
            f"attribute_not_exists({MOVED_TO}) AND "
            f"(attribute_not_exists({EXPIRES_AT}) OR {EXPIRES_AT} > :now) AND "
            f"(attribute_not_exists(#type) OR #type IN ({', '.join(types)}))",
            {"#type": TYPE},
            {":now": {"N": str(self._now)}, **types},
        )

    def _read(self) -> Callable[[], Sequence[Layout]]:
        index = self._query.index_definition
        if index is not None:
            return self._of(index)
        table, replica = self._table(), self._pick_replica()
        if replica is None:
            return table
        copy = self._replica(replica)
        return lambda: copy() if self._replica_usable(replica) else table()

    def _pick_replica(self) -> IndexDefinition | None:
        """The read replica that this call reads; None for the table."""
        entity, query = self._query.entity, self._query
        # Positions are kept by hashes, or by shards that the replica does not have. A sort key is a position anywhere.
        anywhere = query.order == Order.ORDERED or rule_of(entity) is CALCULATED
        if not entity.replicas or query.consistent or not anywhere:
            return None
        drawn = int(self._store.random() * (len(entity.replicas) + 1))
        return entity.replicas[drawn - 1] if drawn else None

    def _replica_usable(self, replica: IndexDefinition) -> bool:
        """Whether nothing moves, nor has left marks: until then an item may stand twice in a replica, or be a mark."""
        entity, router = self._query.entity, self._store.router
        views = [router.view(entity, partition) for partition in self._query.partitions]
        return all(view.stable and not view.marks for view in (*views, router.index_view(entity, replica)))

    def _replica(self, replica: IndexDefinition) -> Layouts:
        entity, partitions, router = self._query.entity, self._query.partitions, self._store.router

        def make(part: int, view: View) -> Layout:
            partition = partitions[part]
            entries = partition if entity.prefix else f"{replica.prefix}{replica.separator}{partition}"
            return Layout(
                streams=replica_streams(replica, entries, view.count),
                reading=replace(self._reading(self._live), slot=replica.slot, unique=True),
                signature=(replica.slot, view.count),
                hash_of=lambda row: hash_of(CALCULATED, ItemKey(partition, row[SK]["S"])),
                in_memory=self._in_memory,
                expires=view.expires,
            )

        return Layouts(lambda: [router.index_view(entity, replica)] * len(partitions), make)

    def _table(self) -> Layouts:
        entity, partitions, router = self._query.entity, self._query.partitions, self._store.router
        rule = rule_of(entity)

        def make(part: int, view: View) -> Layout:
            partition = partitions[part]
            count = table_count(entity, view)
            moving = rule.fixed and not view.stable
            follows = moving and view.phase is not Phase.SETTLE
            foreign = moving or (rule.fixed and view.changed)
            return Layout(
                streams=table_streams(entity, partition, count),
                reading=self._passing(self._listed) if follows else self._reading(self._live),
                signature=(count, follows, moving),
                hash_of=(lambda row: hash_of(rule, ItemKey(partition, row[SK]["S"]))) if rule.fixed else None,
                follows=follows,
                foreign=foreign,
                strays=_stray_homes(entity, partition, view) if moving and not follows else None,
                moving=moving,
                in_memory=self._in_memory,
                expires=view.expires,
            )

        return Layouts(lambda: [router.view(entity, partition) for partition in partitions], make)

    def _of(self, index: IndexDefinition) -> Layouts:
        entity, partitions, router = self._query.entity, self._query.partitions, self._store.router

        def make(part: int, view: View) -> Layout:
            partition = partitions[part]
            # Marks are followed whatever the view says: they hide in an index for as long as it lags behind.
            moving = view.marks or not view.stable
            reading = self._passing(self._listed) if moving else self._reading(self._listed)
            return Layout(
                streams=index_streams(index, partition, view),
                reading=reading if view.stable else replace(reading, change=f"{view.count}>{view.new_count}"),
                signature=index_signature(view),
                hash_of=_entry_hash(entity, index, partition),
                follows=True,
                moving=moving,
                version=_short(f"{moving} {view.version}".encode()) if moving or view.version else "",
                identity=lambda stored, sort: _identity(logical_partition_of(entity, stored), sort),
                in_memory=self._in_memory,
                expires=view.expires,
            )

        return Layouts(lambda: [router.index_view(entity, index)] * len(partitions), make)

    def _live(self, row: Wire) -> bool:
        return is_live(row, self._now) and self._ours(row)

    def _listed(self, row: Wire) -> bool:
        return (is_live(row, self._now) or is_marker(row)) and self._ours(row)

    def _ours(self, row: Wire) -> bool:
        # Adopted data has no type yet, and a mark of a key that was created elsewhere has nothing.
        return TYPE not in row or row[TYPE]["S"] in self._decoders

    def _passing(self, visible: Callable[[Wire], bool]) -> Reading:
        return replace(self._reading(visible), filters=self.filters.passing_markers)

    def _reading(self, visible: Callable[[Wire], bool]) -> Reading:
        query = self._query
        fields = None if query.fields is None else query.entity.attributes_of(query.fields)
        if fields is not None and self.dedup is not None:
            fields = (*fields, *(name for name in (self.dedup.attribute, self.dedup.changed) if name))
        return Reading(
            table=self._store.table,
            slot=query.slot,
            bounds=query.bounds,
            forward=query.forward,
            visible=visible,
            filters=self.filters,
            fields=fields,
            consistent=query.consistent,
        )

    def _moves(self) -> MovedItems | None:
        entity = self._query.entity
        return MovedItems(self._store, entity, self._live, self._returned) if rule_of(entity).fixed else None

    def _returned(self, mark: Wire, item: Wire) -> bool:
        return self.filters.matches(item) and (self._query.index is None or self._same_entry(mark, item))

    def _same_entry(self, mark: Wire, item: Wire) -> bool:
        """Whether an item's key in the index is still that of the entry."""
        index = self._query.index_definition
        if index is None or index_pk(index.slot) not in item:
            return False
        if item[index_sk(index.slot)] != mark[index_sk(index.slot)]:
            return False
        was, now = ({row[index_pk(index.slot)]["S"]} for row in (mark, item))
        for stored in (was, now):
            stored |= {key.rpartition(index.separator)[0] for key in stored}
        return not was.isdisjoint(now & set(self._query.partitions))


def _stray_homes(entity: EntityDefinition[Any], partition: str, view: View) -> Callable[[Wire], str | None]:
    """Return what gives the new home of an item that is at its old home, and None for an item elsewhere."""

    def new_home(row: Wire) -> str | None:
        key = ItemKey(partition, row[SK]["S"])
        return home(entity, key, view.new_count) if home(entity, key, view.count) == row[PK]["S"] else None

    return new_home


def _entry_hash(entity: EntityDefinition[Any], index: IndexDefinition, partition: str) -> Callable[[Wire], int]:
    """The hash that leads an index entry to its shard."""
    if index.by_item_key:
        return lambda row: hash_of(CALCULATED, ItemKey(logical_partition_of(entity, row[PK]["S"]), row[SK]["S"]))
    attribute = index_sk(index.slot)
    return lambda row: hash_of(CALCULATED, ItemKey(partition, row[attribute]["S"]))


def _identity(partition: str, sort: str) -> str:
    return _short(f"{partition}\0{sort}".encode())


def _short(text: bytes) -> str:
    return urlsafe_b64encode(xxh64_digest(text)[:_IDENTITY_BYTES]).decode()
