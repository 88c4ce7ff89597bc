"""Tell the growth policy of throttles that retries hide: each of these callers waited, but none got an error.

Few of them prove nothing, because DynamoDB also throttles for a moment while it splits a partition.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dynashard.entity import Entity, EntityDefinition, IndexDefinition, definition
from dynashard.errors import KeyRangeThrottledError, ThrottleKind, ThrottleReason
from dynashard.growth.demand import Demand, Place
from dynashard.growth.requested_keys import stored_keys
from dynashard.topology import index_key, partition_key
from dynashard.transport.interface import WRITING

SUSTAINED: Final = 10
"""Requests of a partition or index that were executed only after throttles, in the last 20 to 40 s, from which on the
policy is asked about each."""


class RetriedThrottleError(KeyRangeThrottledError):
    """A key range throttled attempts of a request that was then executed. It is never raised."""


class Owner(NamedTuple):
    """What the shard count of a stored partition key belongs to; `key` is that of its topology record."""

    entity: EntityDefinition[Any]
    partition: str | None
    key: str


class RetriedThrottles:
    """Counts requests that were executed after throttles, and reports them while they are sustained.

    Args:
        entities: those of the table.
        demand: counts.
        throttled: the growth policy; see `dynashard.growth.opening.growing`.
        table: the name of the table.
    """

    def __init__(
        self,
        entities: Sequence[type[Entity]],
        demand: Demand,
        throttled: Callable[[EntityDefinition[Any], str | None, KeyRangeThrottledError], None],
        table: str,
    ) -> None:
        self._entities = entities
        self._demand = demand
        self._throttled = throttled
        self._table = table

    def executed(
        self, operation: str, request: Mapping[str, Any], answer: Mapping[str, Any], reasons: Collection[str]
    ) -> None:
        """Count an executed request whose earlier attempts were throttled for these reasons.

        It counts if key ranges are the only reason, and if it has one stored partition key where it was throttled:
        else it is unknown which one is hot. Cost: no request, some 10 microseconds; while throttles are sustained, what
        the growth policy costs.
        """
        hot = [ThrottleReason(each, "") for each in sorted(reasons)]
        if any(each.kind is not ThrottleKind.KEY_RANGE for each in hot):
            return
        # A table's count is left alone while only an index is the bottleneck.
        of_table = [each for each in hot if not each.on_index]
        stored = stored_keys(operation, request, answer, self._table)
        found = {(slot, key) for slot, key in stored if (slot is None) is bool(of_table)}
        if len(found) != 1:
            return
        [(slot, key)] = found
        owner = owner_of(key, slot, [definition(each) for each in self._entities])
        if owner is None:
            return
        place = Place(slot, operation in WRITING)
        if self._demand.retried(place, key, owner.key) >= SUSTAINED:
            self._throttled(owner.entity, owner.partition, _error(operation, (of_table or hot)[0].reason, slot))


def owner_of(stored: str, slot: str | None, entities: Sequence[EntityDefinition[Any]]) -> Owner | None:
    """Return what a stored partition key belongs to; None if no entity, or more than one family, has such keys."""
    keyed: list[tuple[EntityDefinition[Any], EntityDefinition[Any] | IndexDefinition]] = []
    for each in entities:
        if slot is None:
            keyed.append((each, each))
        keyed += [(each, index) for index in each.indexes.values() if index.slot == slot]
    fitting = [pair for pair in keyed if not pair[1].prefix or stored.startswith(pair[1].prefix + pair[1].separator)]
    # One prefix may begin with another, and a key without a prefix may look like any.
    longest = max((len(of.prefix) for _, of in fitting), default=0)
    best = [pair for pair in fitting if len(pair[1].prefix) == longest]
    if not best or (not longest and len({entity.name for entity, _ in best}) > 1):
        return None
    entity, of = best[0]
    if isinstance(of, IndexDefinition):
        return Owner(entity, None, index_key(entity, of))
    partition, _, shard = stored.rpartition(of.separator)
    logical = partition if of.shards is not None and shard.isdecimal() and len(partition) > longest else stored
    return Owner(entity, logical, partition_key(entity, logical))


def _error(operation: str, reason: str, slot: str | None) -> RetriedThrottleError:
    resource = f"table/index/{slot}" if slot else ""
    return RetriedThrottleError(
        f"{operation} was executed after throttles: {reason}.",
        operation=operation,
        reasons=[ThrottleReason(reason, resource)],
    )
