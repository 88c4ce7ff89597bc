"""What a task has to do now, and whether it still has to: derived from the record, never handed over."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from dynashard.placement import UNSHARDED
from dynashard.resharding.change import Change
from dynashard.resharding.context import Context
from dynashard.resharding.progress import Pass, Position
from dynashard.resharding.scope import Family, Scope
from dynashard.routing import rule_of, shard_keys
from dynashard.schema import PK, SK
from dynashard.topology import Phase, Record
from dynashard.transport.interface import Call, Wire
from dynashard.transport.paging import segments

_AT_ONCE: Final = (Pass.CHECK, Pass.SURVEY)
"""What need not wait until a phase is known to everybody."""
_MOST_TASKS: Final = 64
_CHUNK: Final = 200
"""Items read at a time."""
_RECHECK: Final = 5.0
"""Seconds after which a record is looked at again, however long its lease: a pause should be felt soon."""


@dataclass(frozen=True, slots=True)
class Job:
    """What there is to do about a change.

    Attributes:
        scope: what the change concerns.
        family: the entities whose items stand there.
        change: the change.
        kind: what is done with the items.
    """

    scope: Scope
    family: Family
    change: Change
    kind: Pass

    @property
    def key(self) -> str:
        """Of the record."""
        return self.scope.key

    @property
    def turned(self) -> "Job":
        """The job with the change the other way round: what stands at a new home already belongs at the old one."""
        change = self.change.but(origin=self.change.target, target=self.change.origin)
        return replace(self, change=change)


def moving_shards(scope: Scope, origin: int, target: int) -> list[str]:
    """The stored partition keys of a logical partition that hold items whose home changes, under the old count.

    Going down to fewer shards, items leave those shards only that are no more; going back to the bare key, all.
    """
    if scope.partition is None:
        return []
    keys = shard_keys(rule_of(scope.entity), scope.partition, scope.entity.separator, origin)
    return keys[target:] if UNSHARDED < target < origin else keys


def gaining_shards(scope: Scope, origin: int, target: int) -> list[str]:
    """The stored partition keys of a logical partition to which items come, where another item may stand already.

    Going up, items come to shards only that are new: whatever stands in an old shard by mistake would belong to
    another shard under the new count as well.
    """
    if scope.partition is None:
        return []
    rule, separator = rule_of(scope.entity), scope.entity.separator
    before = shard_keys(rule, scope.partition, separator, origin)
    keys = shard_keys(rule, scope.partition, separator, target)
    return [key for key in keys if key not in before] if target > origin else keys


def tasks_of(scope: Scope, origin: int, target: int, segments: int) -> int:
    """Into how many tasks the work of a change is divided."""
    if scope.index is None and not rule_of(scope.entity).fixed:
        return 0
    if scope.partition is None:
        return segments
    return min(_MOST_TASKS, len(moving_shards(scope, origin, target)))


def checks_of(scope: Scope, change: Change) -> int:
    """How many of a change's tasks have something to check before it begins."""
    if not change.check:
        return 0
    if scope.partition is None:
        return change.tasks
    return min(change.tasks, len(gaining_shards(scope, change.origin, change.target)))


def kind_of(record: Record, scope: Scope) -> Pass | None:
    """What the work of a record is in its phase; None if there is none."""
    change = Change.of(record)
    if change is None or change.tasks == 0 or not record.busy:
        return None
    in_phase = {Phase.MOVE: Pass.MOVE}
    if change.survey:
        in_phase[Phase.PREPARE] = Pass.SURVEY
    if scope.index is None:
        in_phase[Phase.SETTLE] = Pass.SETTLE
        if record.target is None:
            in_phase[Phase.STABLE] = Pass.SWEEP
        elif change.check:
            in_phase[Phase.STABLE] = Pass.CHECK
    return in_phase.get(record.phase)


class Guard:
    """Whether a job is still to be done: its record is looked at before every chunk, within its lease.

    So a worker that was left over from an earlier change, or from before a pause, does nothing more.
    """

    def __init__(self, context: Context, scope: Scope) -> None:
        self._context = context
        self._scope = scope
        self._read = 0.0
        self._until = 0.0
        self._job: Job | None = None

    def job(self) -> Job | None:
        """The job, if it is time for one and nobody has paused it.

        Cost: 1 round trip and 2 read units every few seconds.
        """
        now = self._context.clock()
        if not self._read <= now < self._until:
            self._look(now)
        return self._job

    def holds(self, job: Job) -> bool:
        """Whether the very same job is to be done."""
        now = self.job()
        return now is not None and now.change.id == job.change.id and now.kind is job.kind

    def _look(self, now: float) -> None:
        record, family = self._context.read(self._scope)
        looked = self._context.clock()
        self._read = now
        self._until = now
        self._job = None
        if record is None or family is None:
            return
        self._until = now + min(_RECHECK, family.granted)
        change, kind = Change.of(record), kind_of(record, self._scope)
        if change is None or kind is None or change.paused:
            return
        known = change.seen is not None and self._context.left(family, change.seen, looked) <= 0
        if not known and kind not in _AT_ONCE:
            self._until = now
            return
        self._job = Job(self._scope, self._context.families[self._scope.family], change, kind)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Items read at once, and where to go on; None at the end of the task."""

    items: list[Wire]
    following: Position | None


class Sources:
    """Places that are read one after the other: stored partition keys, or a segment of the table.

    Args:
        context: the way there.
        calls: the first request of each.
    """

    def __init__(self, context: Context, calls: Sequence[Call]) -> None:
        self._context = context
        self._calls = calls

    def read(self, position: Position) -> Chunk:
        """The items after a position. Cost: 1 round trip; 1 read unit for 4 KB if consistent, else half of that."""
        if position.source >= len(self._calls):
            return Chunk([], None)
        operation, request = self._calls[position.source].operation, self._calls[position.source].request
        if position.key is not None:
            request = {**request, "ExclusiveStartKey": position.key}
        answer = self._context.transport.call(operation, request)
        last = answer.get("LastEvaluatedKey")
        nothing = last is None and not answer["ScannedCount"]
        if operation == "Scan" and nothing and position.key and self._gone(position.key):
            return Chunk([], Position(position.source))
        if last is not None:
            return Chunk(answer["Items"], Position(position.source, last))
        following = position.source + 1
        return Chunk(answer["Items"], Position(following) if following < len(self._calls) else None)

    def _gone(self, key: Wire) -> bool:
        """Whether the item is gone behind which a segment was to go on.

        The local engine says then that the segment has ended, and so it is read again from its beginning: what is
        done stays done. DynamoDB itself keeps the place.
        """
        request = {"TableName": self._context.table, "Key": key, "ConsistentRead": True, "ProjectionExpression": PK}
        return "Item" not in self._context.transport.call("GetItem", request)


def after(position: Position, item: Wire) -> Position:
    """The position behind an item of the chunk that was read from a position."""
    return Position(position.source, {PK: item[PK], SK: item[SK]})


def sources_of(context: Context, job: Job, task: int, reading: Wire) -> Sources:
    """Return what a task reads, with the filter and projection of `reading`: shards, or a segment of the table."""
    change = job.change
    reading = {"TableName": context.table, "Limit": _CHUNK, **reading}
    if job.scope.partition is None:
        return Sources(context, [segments(reading, change.tasks)[task]])
    shards = gaining_shards if job.kind is Pass.CHECK else moving_shards
    return Sources(
        context, [query(reading, key) for key in shards(job.scope, change.origin, change.target)[task :: change.tasks]]
    )


def query(reading: Wire, place: str) -> Call:
    """Return the Query for all items under a stored partition key; `reading` has all else that the request says."""
    return Call(
        "Query",
        {
            **reading,
            "KeyConditionExpression": "#pk = :pk",
            "ExpressionAttributeNames": {**reading.get("ExpressionAttributeNames", {}), "#pk": PK},
            "ExpressionAttributeValues": {**reading.get("ExpressionAttributeValues", {}), ":pk": {"S": place}},
        },
    )
