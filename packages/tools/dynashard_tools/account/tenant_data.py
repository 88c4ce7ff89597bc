"""What is stored of a tenant, several parts at a time.

A tenant's items may be in many logical partitions, such as one for each user, incident or day, and only the items show
which. Then the whole table is read. Each of their keys begins with the tenant, so a stored key alone shows whose it is.
If the tenant is the whole partition of every entity, its partitions are known, and an export reads only them.

What is stored beside items has partitions of its own: pieces of attachments and reservations of unique values. Their
keys name the entity and the tenant, and not always an item or a field that there still is. A purge finds them, and all
else, in the whole table.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from dynashard.entity import Entity, EntityDefinition, definition
from dynashard.entity.declaration import DEFAULT_SEPARATOR
from dynashard.errors import ConfigurationError, InputError, InvalidKeyError, ThrottledError, UndecodableItemError
from dynashard.keys import TemplateField
from dynashard.repository import RetryPolicy
from dynashard.repository.batch import chunks
from dynashard.repository.conditions import is_live
from dynashard.resharding.scope import Family
from dynashard.routing import shard_keys
from dynashard.schema import EXPIRES_AT, MOVED_TO, OWNER_PARTITION, PK, SK, TYPE
from dynashard.topology import family_of
from dynashard.transport.interface import Call, Transport, Wire
from dynashard.transport.paging import pages, segments
from dynashard_serving.documents import TENANT

SEGMENTS: Final = 8
"""Parts of the table that are read at a time."""
_BATCH: Final = 25
_WAVE: Final = 8
"""Batches that are sent at a time."""
_BESIDE: Final = "~"
"""Ends the name of an entity in the `Type` of what is stored beside its items. No name has it."""

LargestCount = Callable[[EntityDefinition[Any], str], int]
"""Returns the largest shard count that a logical partition has had or is changing to."""
Scanned = Callable[[int], None]
"""Called with the number of stored items that were just read."""


@dataclass(frozen=True, slots=True)
class StoredItem:
    """A stored item of a tenant."""

    key: Wire
    kind: str | None


@dataclass(frozen=True, slots=True)
class Partition:
    """A logical partition of a tenant: of which entity, and its fields."""

    entity: EntityDefinition[Any]
    fields: Mapping[str, Any]


def is_tenant(name: str) -> bool:
    """Whether a name can be that of a tenant."""
    return bool(name) and DEFAULT_SEPARATOR not in name


def require_tenant(name: str) -> None:
    """Raise `InputError` if a name cannot be that of a tenant."""
    if not is_tenant(name):
        raise InputError(
            f"{name!r} names no account: a name is not empty and has no {DEFAULT_SEPARATOR!r}", field=TENANT
        )


class TenantData:
    """The stored data of tenants in a table."""

    def __init__(
        self,
        transport: Transport,
        table: str,
        entities: Sequence[type[Entity]],
        retry_policy: RetryPolicy | None = None,
        largest_count: LargestCount | None = None,
    ) -> None:
        self._transport = transport
        self._table = table
        self._entities = {entity.name: entity for entity in map(definition, entities)}
        families: dict[str, list[EntityDefinition[Any]]] = {}
        for entity in self._entities.values():
            families.setdefault(family_of(entity), []).append(entity)
        self._adopting = [Family(members) for members in families.values() if members[0].untyped]
        self._retry_policy = retry_policy or RetryPolicy()
        self._largest_count = largest_count

    def stored(self, tenant: str, scanned: Scanned) -> Iterator[Sequence[StoredItem]]:
        """All that is stored of a tenant, whatever it is: live, expired, moved, or a piece.

        Raises:
            InputError: the name is not that of a tenant.
            ConfigurationError: the keys of an entity do not show whose they are.
            ThrottledError: throttling outlasted the retry policy.

        Cost: 1 read unit for every 4 KB of the whole table.
        """
        mine = self._beginnings(tenant)
        request = {
            "ConsistentRead": True,
            "ProjectionExpression": f"{PK}, {SK}, #type, {OWNER_PARTITION}",
            "ExpressionAttributeNames": {"#type": TYPE},
        }
        found = self._pages(request, tenant, scanned, None)
        return ([_held(item) for item in items if self._is_of(mine, item)] for items in found)

    def _is_of(self, mine: "_Beginnings", item: Wire) -> bool:
        """Whether a stored item is the tenant's: by its own key, or that of the item beside which it is stored."""
        kind: str = item.get(TYPE, {}).get("S", "")
        name, beside, _ = kind.partition(_BESIDE)
        place: str = item[PK]["S"].removeprefix(f"{kind}{DEFAULT_SEPARATOR}")
        if not beside or name not in self._entities or place == item[PK]["S"]:
            return mine.fit(item[PK]["S"])
        if owner := item.get(OWNER_PARTITION, {}).get("S"):
            return mine.fit(owner)
        return place.startswith(mine.places[name])

    def partitions(self, tenant: str, now: float, scanned: Scanned) -> list[Partition]:
        """The logical partitions that hold live items of a tenant, in the order of the entities.

        Raises:
            InputError: the name is not that of a tenant.
            ConfigurationError: the keys of an entity do not show whose they are.
            ThrottledError: throttling outlasted the retry policy.

        Cost: 1 read unit for every 4 KB of the whole table, or of the tenant's partitions if they are known.
        """
        self._beginnings(tenant)
        wanted = dict.fromkeys(name for entity in self._entities.values() for name in entity.partition_fields)
        names = {f"#f{at}": name for at, name in enumerate(wanted)}
        request = {
            "ConsistentRead": True,
            "FilterExpression": f"#tenant = :tenant AND attribute_not_exists({MOVED_TO})",
            "ProjectionExpression": ", ".join((PK, SK, EXPIRES_AT, "#type", *names)),
            "ExpressionAttributeNames": {"#type": TYPE, "#tenant": TENANT, **names},
            "ExpressionAttributeValues": {":tenant": {"S": tenant}},
        }
        found: dict[tuple[str, str], Partition] = {}
        answers = self._pages(request, tenant, scanned, self._keys_of_items(tenant))
        for item in (item for items in answers for item in items):
            entity = self._entity_of(item)
            if entity is not None and is_live(item, int(now)):
                # Another item of the partition names it, and what does not fit is named where it is read.
                with suppress(UndecodableItemError, InvalidKeyError):
                    fields = entity.decode_fields(item, entity.partition_fields)
                    found.setdefault((entity.name, entity.logical_partition(fields)), Partition(entity, fields))
        order = list(self._entities)
        return sorted(found.values(), key=lambda each: (order.index(each.entity.name), str(each.fields)))

    def _entity_of(self, item: Wire) -> EntityDefinition[Any] | None:
        """Return the entity of a stored item: that of its type, or without one an entity that adopts such items."""
        if TYPE in item:
            return self._entities.get(item[TYPE].get("S", ""))
        return next((found for each in self._adopting if (found := each.owner(item)) is not None), None)

    def remove(self, held: Sequence[StoredItem]) -> None:
        """Delete stored items of any kind.

        Raises:
            ThrottledError: throttling outlasted the retry policy; some of it may be deleted.

        Cost: what deleting each costs; a request for every 25.
        """
        left: Sequence[Any] = [{"DeleteRequest": {"Key": each.key}} for each in held]
        pauses = self._retry_policy.pauses()
        while left:
            left = [again for wave in chunks(left, _BATCH * _WAVE) for again in self._sent(wave)]
            if left and next(pauses, None) is None:
                raise ThrottledError(
                    f"{len(left):,} stored items could not be removed in time: do it again later",
                    operation="BatchWriteItem",
                    aws_code="",
                )

    def _sent(self, wave: Sequence[Any]) -> list[Any]:
        """What is left of some deletes."""
        calls = [Call("BatchWriteItem", {"RequestItems": {self._table: batch}}) for batch in chunks(wave, _BATCH)]
        try:
            answers = self._transport.call_all(calls, concurrency=_WAVE)
        except ThrottledError:
            return list(wave)
        return [each for answer in answers for each in answer.get("UnprocessedItems", {}).get(self._table, [])]

    def _beginnings(self, tenant: str) -> "_Beginnings":
        require_tenant(tenant)
        whole: set[str] = set()
        divided: set[str] = set()
        places: dict[str, str] = {}
        for entity in self._entities.values():
            start = f"{entity.prefix}{entity.separator}{tenant}" if entity.prefix else tenant
            whole.add(start)
            divided.add(f"{start}{_divider(entity)}")
            places[entity.name] = f"{tenant}{_divider(entity)}"
        return _Beginnings(frozenset(whole), tuple(sorted(divided)), places)

    def _pages(
        self, request: Mapping[str, Any], tenant: str, scanned: Scanned, keys: Sequence[str] | None
    ) -> Iterator[list[Wire]]:
        """Read the partitions with these keys, or the whole table."""
        whole = {"TableName": self._table, **request}
        # A scan without a filter of its own would transfer the keys of all tenants; a Query cannot filter by its key.
        narrow = {
            "FilterExpression": f"contains({PK}, :tenant) OR contains({OWNER_PARTITION}, :tenant)",
            "ExpressionAttributeValues": {":tenant": {"S": tenant}},
        }
        calls = segments({**narrow, **whole}, SEGMENTS) if keys is None else [_query(whole, key) for key in keys]
        for some in chunks(calls, SEGMENTS):
            for answer in pages(self._transport, *some, pauses=self._retry_policy.pauses):
                scanned(int(answer.get("ScannedCount", 0)))
                yield answer["Items"]

    def _keys_of_items(self, tenant: str) -> list[str] | None:
        """Return every stored partition key that a tenant's items may have, by each count; None if the items tell."""
        entities = self._entities.values()
        if self._largest_count is None or any(each.partition_fields != (TENANT,) for each in entities):
            return None
        keys: dict[str, None] = {}
        for entity in entities:
            partition = entity.logical_partition({TENANT: tenant})
            most = self._largest_count(entity, partition)
            keys[partition] = None
            keys.update(dict.fromkeys(shard_keys(entity.rule, partition, entity.separator, max(1, most))))
        return list(keys)


@dataclass(frozen=True, slots=True)
class _Beginnings:
    """How the stored partition keys of a tenant begin: whole keys, and what goes before the rest of one.

    `places` is how it goes on in a key of what is stored beside items, after its kind, by the entity's name.
    """

    whole: frozenset[str]
    divided: tuple[str, ...]
    places: Mapping[str, str]

    def fit(self, key: str) -> bool:
        """Whether a stored partition key is the tenant's."""
        return key in self.whole or key.startswith(self.divided)


def _divider(entity: EntityDefinition[Any]) -> str:
    """What ends the tenant in an entity's keys, which no tenant's name holds that has such keys."""
    [first, *rest] = entity.partition.parts
    divider = str(rest[0])[:1] if rest else entity.separator
    if isinstance(first, TemplateField) and first.name == TENANT and divider in (DEFAULT_SEPARATOR, first.after[:1]):
        return divider
    raise ConfigurationError(f"the keys of {entity.name} do not show where {TENANT} ends: handle its items yourself")


def _query(request: Mapping[str, Any], key: str) -> Call:
    values = {**request.get("ExpressionAttributeValues", {}), ":partition": {"S": key}}
    condition = f"{PK} = :partition"
    return Call("Query", {**request, "KeyConditionExpression": condition, "ExpressionAttributeValues": values})


def _held(item: Wire) -> StoredItem:
    return StoredItem({PK: item[PK], SK: item[SK]}, item.get(TYPE, {}).get("S"))
