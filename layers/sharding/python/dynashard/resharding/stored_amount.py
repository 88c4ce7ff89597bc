"""How much a resize has to read: shards are counted until a bound, whole tables are described.

Counting a shard reads it, eventually consistent, for half a read unit for 4 KB and at no more than the mover's share.
At most `PAGES` pages of 1 MB are counted. Shards hold equal parts of a partition's items, so one of them shows the
number in all within two standard deviations of a binomial draw; up to four are counted if they are small. What is
larger than `PAGES` MB a shard is known as a lower bound, with the number of items in the table as the upper one.

A resize of all partitions, or of an index, is judged by the description of the table. DynamoDB brings that up to date
about every six hours, and it counts all entities, so it is an upper bound.
"""

from typing import Final

from dynashard.errors import EngineError
from dynashard.resharding.context import Context
from dynashard.resharding.estimate import Sample, Stored, stored_from
from dynashard.resharding.scope import Scope
from dynashard.resharding.share import Share
from dynashard.schema import PK
from dynashard.transport.interface import Wire, consumed_of

PAGES: Final = 64
"""Pages of 1 MB that are counted at most: 8,192 read units, a tenth of a cent."""
_SHARDS: Final = 4
_ENOUGH: Final = 10_000
"""Counted items from which on no other shard is counted: the error is 2% of them for each shard that was left out."""
_EVENTUAL_BYTES: Final = 8192
"""What one read unit reads eventually consistent."""


def stored_in(context: Context, scope: Scope, shards: list[str], share: Share) -> Stored:
    """Return what the shards that a resize reads hold; without names of shards, what the table or index holds.

    Raises `EngineError` if the table cannot be read.

    Cost: at most 64 round trips and 8,192 read units; mostly 4 round trips. 1 DescribeTable for a table or index, or if
    the shards are larger.
    """
    if not shards:
        items, size = _described(context, scope)
        return Stored(items, size, 0, items)
    pages, samples = PAGES, list[Sample]()
    for shard in shards[:: max(1, len(shards) // _SHARDS)][:_SHARDS]:
        sample, pages = _counted(context, shard, pages, share)
        samples.append(sample)
        if not pages or sum(each.items for each in samples) >= _ENOUGH:
            break
    most = None if any(each.complete for each in samples) else _most(context)
    return stored_from(samples, len(shards), most)


def _counted(context: Context, shard: str, pages: int, share: Share) -> tuple[Sample, int]:
    """Return the count of a shard, and how many pages may still be read."""
    request: Wire = {
        "TableName": context.table,
        "Select": "COUNT",
        "KeyConditionExpression": f"{PK} = :pk",
        "ExpressionAttributeValues": {":pk": {"S": shard}},
    }
    items, units = 0, 0.0
    while pages:
        pages -= 1
        answer = context.transport.call("Query", request)
        used = consumed_of("Query", answer).read_units
        items, units = items + answer["Count"], units + used
        last = answer.get("LastEvaluatedKey")
        if last is None:
            return Sample(items, units * _EVENTUAL_BYTES, complete=True), pages
        request["ExclusiveStartKey"] = last
        context.runtime.sleep(used / share.reads)
    return Sample(items, units * _EVENTUAL_BYTES, complete=False), 0


def _described(context: Context, scope: Scope | None) -> tuple[int, float]:
    """Return the items and bytes of the table, or of the index of a scope.

    An index without counted items may have been described before its first one. Each of its entries is of an item of
    the table, so those of the table bound them.
    """
    table = context.transport.call("DescribeTable", {"TableName": context.table})["Table"]
    if scope is not None and scope.index is not None:
        named = (each for each in table.get("GlobalSecondaryIndexes") or () if each["IndexName"] == scope.index.slot)
        index: Wire = next(named, {})
        if items := int(index.get("ItemCount", 0)):
            return items, float(index.get("IndexSizeBytes", 0))
    return int(table.get("ItemCount", 0)), float(table.get("TableSizeBytes", 0))


def _most(context: Context) -> int | None:
    try:
        return _described(context, None)[0] or None
    except EngineError:
        # A role that only moves items may not describe the table.
        return None
