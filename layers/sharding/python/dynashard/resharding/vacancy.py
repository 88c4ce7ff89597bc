"""Whether shards that random placement has left are empty, so that readers need not look there any more."""

from dataclasses import replace
from functools import cached_property
from typing import Final

from dynashard.resharding.change import Change
from dynashard.resharding.context import Context
from dynashard.resharding.job import Sources, query
from dynashard.resharding.progress import Pass
from dynashard.resharding.scope import Scope
from dynashard.routing import logical_partition_of, rule_of, shard_keys
from dynashard.schema import EXPIRES_AT, PK, SK, TYPE
from dynashard.topology import partition_key
from dynashard.transport.interface import Call, Wire

_CHUNK: Final = 100
_SCANNED: Final = 1000
"""Items read at a time."""
_LOOK_AGAIN: Final = 60.0
"""Seconds between looks: items leave such shards by expiring or by being deleted."""
_ROUNDS: Final = 20
"""Requests in one look."""


class Vacancy:
    """Looks for the first item that still stands in a shard beyond the new count.

    Where none was found before, none will be: nobody writes there any more. So each look goes on from the last.
    """

    def __init__(self, context: Context, scope: Scope, change: Change) -> None:
        self._context = context
        self._scope = scope
        self._change = change

    def wait(self) -> float:
        """Seconds until it is worth looking again; 0 if those shards are empty.

        Cost: 1 round trip and mostly half a read unit for each shard; of a whole family, a Scan of the table, once.
        """
        context, change = self._context, self._change
        stored = context.progress.begin(self._scope.key, 0, change.id, Pass.SURVEY)
        now, sources = stored, self._sources()
        for _ in range(_ROUNDS):
            if now.done:
                break
            chunk = sources.read(now.position)
            if any(self._stands(item) for item in chunk.items):
                context.progress.save(stored, now)
                return _LOOK_AGAIN
            now = replace(now, done=True) if chunk.following is None else replace(now, position=chunk.following)
        if not stored.done:
            context.progress.save(stored, now)
        return 0.0 if now.done else 1.0

    def _sources(self) -> Sources:
        reading: Wire = {
            "TableName": self._context.table,
            "ConsistentRead": True,
            "Limit": _CHUNK,
            "ProjectionExpression": f"{PK}, {SK}, {EXPIRES_AT}, #type",
            "ExpressionAttributeNames": {"#type": TYPE},
        }
        if self._scope.partition is None:
            # One after the other anyway, so not in segments.
            return Sources(self._context, [Call("Scan", {**reading, "Limit": _SCANNED})])
        return Sources(self._context, [query(reading, key) for key in self._leaving(self._scope.partition)])

    def _stands(self, item: Wire) -> bool:
        expires = item.get(EXPIRES_AT, {}).get("N")
        if expires is not None and float(expires) <= self._context.clock() - self._context.timing.skew:
            return False
        if not self._context.families[self._scope.family].has(item):
            return False
        stored = item[PK]["S"]
        logical = logical_partition_of(self._scope.entity, stored)
        if stored not in self._leaving(logical):
            return False
        if self._scope.partition is not None:
            return True
        return partition_key(self._scope.entity, logical) not in self._own

    @cached_property
    def _own(self) -> frozenset[str]:
        """The partitions that have counts of their own."""
        return frozenset(record.key for record in self._context.topology.own(self._scope.family))

    def _leaving(self, partition: str) -> list[str]:
        entity = self._scope.entity
        return shard_keys(rule_of(entity), partition, entity.separator, self._change.origin)[self._change.target :]
