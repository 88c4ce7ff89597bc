"""Reads what a task works on, chunk by chunk: shards one after the other, or a segment of the table."""

from collections.abc import Sequence
from dataclasses import dataclass

from dynashard.resharding.context import Context
from dynashard.resharding.job import Job, Workplace, gaining_shards, moving_shards
from dynashard.resharding.progress import Pass, Position
from dynashard.schema import PK, SK
from dynashard.transport.interface import Call, Wire
from dynashard.transport.paging import segments


@dataclass(frozen=True, slots=True)
class Chunk:
    """Items read at once, and the position of the next chunk; None at the end of the task.

    Attributes:
        scanned: how many were read to find them.
    """

    items: list[Wire]
    following: Position | None
    scanned: int = 0


class Sources:
    """Queries or Scans that are read one after the other, each beginning with one of `calls`."""

    def __init__(self, context: Workplace, calls: Sequence[Call]) -> None:
        self._context = context
        self._calls = calls

    def read(self, position: Position, most: int) -> Chunk:
        """Read up to `most` items after a position, and return those that the filter keeps.

        Cost: 1 round trip; 1 read unit for 4 KB if consistent, else half. Three requests more if nothing is behind the
        position in a segment, and 1 read unit for 4 KB of the item there, twice.
        """
        if position.source >= len(self._calls):
            return Chunk([], None)
        call = self._calls[position.source]
        operation, request = call.operation, {**call.request, "Limit": most}
        if position.key is not None:
            request = {**request, "ExclusiveStartKey": position.key}
        answer = self._context.transport.call(operation, request)
        last = answer.get("LastEvaluatedKey")
        if operation == "Scan" and position.key is not None and _is_empty(answer) and not self._is_end(request):
            return Chunk([], Position(position.source))
        if last is not None:
            return Chunk(answer["Items"], Position(position.source, last), answer["ScannedCount"])
        following = position.source + 1
        then = Position(following) if following < len(self._calls) else None
        return Chunk(answer["Items"], then, answer["ScannedCount"])

    def _is_end(self, request: Wire) -> bool:
        """Whether a Scan that found nothing behind a key has come to the end of its segment.

        DynamoDB keeps the position. The local engine also finds nothing if no item has the key, so the segment is read
        again from its start, unless the same item stands there before and after a Scan that finds nothing.
        """
        item = self._at(request["ExclusiveStartKey"])
        return (
            item is not None
            and _is_empty(self._context.transport.call("Scan", request))
            and self._at(request["ExclusiveStartKey"]) == item
        )

    def _at(self, key: Wire) -> Wire | None:
        request = {"TableName": self._context.table, "Key": key, "ConsistentRead": True}
        found: Wire | None = self._context.transport.call("GetItem", request).get("Item")
        return found


def _is_empty(answer: Wire) -> bool:
    return "LastEvaluatedKey" not in answer and not answer["ScannedCount"]


def after(position: Position, item: Wire) -> Position:
    """Return the position after an item of the chunk that was read from a position."""
    return Position(position.source, {PK: item[PK], SK: item[SK]})


def sources_of(context: Context, job: Job, task: int, reading: Wire) -> Sources:
    """Return what a task reads, with the filter and projection of `reading`: shards, or a segment of the table."""
    resize = job.resize
    reading = {"TableName": context.table, **reading}
    if job.scope.partition is None:
        return Sources(context, [segments(reading, resize.tasks)[task]])
    shards = gaining_shards if job.kind is Pass.CHECK else moving_shards
    keys = shards(job.scope, resize.origin, resize.target)[task :: resize.tasks]
    return Sources(context, [query(reading, key) for key in keys])


def query(reading: Wire, place: str) -> Call:
    """Return the Query for all items under a stored partition key, with the parameters of `reading`, but no values."""
    condition = {"KeyConditionExpression": f"{PK} = :pk", "ExpressionAttributeValues": {":pk": {"S": place}}}
    return Call("Query", {**reading, **condition})
