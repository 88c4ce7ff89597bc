"""Whether the shards that a smaller count of random placement leaves are empty, so that readers may skip them."""

from typing import Final

from dynashard.resharding.context import Context
from dynashard.resharding.job import Job
from dynashard.resharding.progress import Pass
from dynashard.resharding.relocation import Homes, expired
from dynashard.resharding.sources import Sources, query
from dynashard.routing import shard_keys
from dynashard.schema import EXPIRES_AT, PK, SK, TYPE
from dynashard.transport.interface import Call, Wire

_CHUNK: Final = 100
_SCANNED: Final = 1000
"""Items read at a time."""
_CHECK_AGAIN: Final = 60.0
"""Seconds between checks: items leave such shards by expiring or by being deleted."""
_ROUNDS: Final = 20
"""Requests of one check."""


def vacant_in(context: Context, job: Job) -> float:
    """Return the seconds until it is worth checking again; 0 if the shards beyond the new count are empty.

    Nobody writes there any more, so each check continues where the last one has found an item.

    Cost: 1 round trip and mostly half a read unit for each shard; of a whole family, a Scan of the table, once.
    """
    # A resize that moves nothing has no passes, so the progress of its first task is free for this.
    stored = context.progress.begin(job.scope.key, 0, job.resize.id, Pass.SURVEY)
    now, sources, homes = stored, _sources(context, job), Homes(context, job)
    for _ in range(_ROUNDS):
        if now.done:
            break
        chunk = sources.read(now.position, _CHUNK if job.scope.partition is not None else _SCANNED)
        if any(_stands(context, job, homes, item) for item in chunk.items):
            context.progress.save(stored, now)
            return _CHECK_AGAIN
        now = now.at(chunk.following)
    if not stored.done:
        context.progress.save(stored, now)
    return 0.0 if now.done else 1.0


def _sources(context: Context, job: Job) -> Sources:
    reading: Wire = {
        "TableName": context.table,
        "ConsistentRead": True,
        "ProjectionExpression": f"{PK}, {SK}, {EXPIRES_AT}, #type",
        "ExpressionAttributeNames": {"#type": TYPE},
    }
    if job.scope.partition is None:
        return Sources(context, [Call("Scan", reading)])
    return Sources(context, [query(reading, key) for key in _leaving(job, job.scope.partition)])


def _stands(context: Context, job: Job, homes: Homes, item: Wire) -> bool:
    if expired(item, context.runtime.clock() - context.timing.skew) or not job.family.has(item):
        return False
    partition = homes.partition(item[PK]["S"])
    return partition is not None and item[PK]["S"] in _leaving(job, partition)


def _leaving(job: Job, partition: str) -> list[str]:
    entity, resize = job.scope.entity, job.resize
    return shard_keys(entity.rule, partition, entity.separator, resize.origin)[resize.target :]
