"""What is stored of a tenant in the partitions that the declarations name: by Queries, without a Scan of the table.

These are the partitions of the items, those of attachments that the index of manifests names, and those of the unique
values that the items have. `CANNOT_FIND` says what only the whole table shows.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from dynashard.repository.reservations import stored_places
from dynashard.schema import SK, TYPE
from dynashard.transport.interface import Wire
from dynashard.transport.paging import pages
from dynashard_patterns.attachments.pieces import BUCKETS, MANIFEST, Manifest, kind_of, manifest_query
from dynashard_serving.documents import TENANT
from dynashard_tools.account.tenant_data import Beginnings, Scanned, StoredItem, TenantData, held
from dynashard_tools.failure import CommandError

CANNOT_FIND: Final = (
    "only the partitions that the declarations name were read. This does not find pieces and reservations of fields "
    "that are not declared any more, pieces without a manifest, and reservations that no item has: a purge without "
    "--declared-only does"
)
"""What a purge of the named partitions leaves, as a sentence."""
_SHOWN: Final = 3


class NamedPartitions(TenantData):
    """The stored data of tenants that the declarations name."""

    def stored(self, tenant: str, scanned: Scanned) -> Iterator[Sequence[StoredItem]]:
        """What the declarations name of all that is stored of a tenant.

        What stands beside items comes before them, and pieces before their manifests: while a purge is interrupted,
        they name it.

        Raises:
            CommandError: an entity has further fields in its partition, so no declaration names its partitions.
            InputError, ConfigurationError, ThrottledError: as `TenantData.stored`.

        Cost: 1 read unit for every 4 KB of the tenant's partitions, and for each reservation; for each attached field,
        16 Queries of the index of manifests, 0.5 for 4 KB.
        """
        mine = self._beginnings(tenant)
        if (keys := self._keys_of_items(tenant)) is None:
            raise CommandError(f"{self._further()}: nothing was read. Leave --declared-only out")
        return self._named(tenant, mine, keys, scanned)

    def _further(self) -> str:
        names = [each.name for each in self._entities.values() if each.partition_fields != (TENANT,)]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return f"the partitions of {', '.join(names[:_SHOWN])}{more} have further fields, so only their items name them"

    def _named(
        self, tenant: str, mine: Beginnings, keys: Sequence[str], scanned: Scanned
    ) -> Iterator[Sequence[StoredItem]]:
        whole = {"ConsistentRead": True}
        places = list(dict.fromkeys(each.place.partition for each in self._manifests(mine)))
        manifests: list[StoredItem] = []
        for rows in self._pages(whole, tenant, scanned, places):
            manifests += [held(row) for row in rows if row[SK]["S"].startswith(MANIFEST)]
            yield [held(row) for row in rows if not row[SK]["S"].startswith(MANIFEST)]
        yield manifests
        for items in self._pages(whole, tenant, scanned, keys):
            reserved = list(dict.fromkeys(place for item in items for place in self._reserved(item)))
            for found in self._pages(whole, tenant, scanned, reserved):
                yield [held(each) for each in found if self._is_of(mine, each)]
            yield [held(item) for item in items]

    def _manifests(self, mine: Beginnings) -> Iterator[Manifest]:
        for entity in self._entities.values():
            for field in entity.attachments:
                kind = kind_of(entity, field)
                calls = [
                    manifest_query(self._table, kind, bucket, mine.places[entity.name]) for bucket in range(BUCKETS)
                ]
                for answer in pages(self._transport, *calls, pauses=self._retry_policy.pauses):
                    yield from map(Manifest.of, answer["Items"])

    def _reserved(self, item: Wire) -> Sequence[str]:
        """Return the stored partition keys of an item's unique values."""
        entity = self._entities.get(item.get(TYPE, {}).get("S", ""))
        return [] if entity is None else list(stored_places(entity, item))
