"""What a task has to do now, and whether it still has to: always derived from the record."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from dynashard.placement import UNSHARDED
from dynashard.resharding.context import Context
from dynashard.resharding.progress import Pass, Position, ProgressTable
from dynashard.resharding.resize import Resize
from dynashard.resharding.scope import Family, Scope
from dynashard.runtime import Runtime
from dynashard.schema import PK, SK
from dynashard.topology import Phase, Record
from dynashard.transport.interface import Call, Transport, Wire
from dynashard.transport.paging import segments

_IMMEDIATE: Final = (Pass.CHECK, Pass.SURVEY)
"""Passes that do not wait until a phase has reached every client."""
_MOST_TASKS: Final = 64
_RECHECK: Final = 5.0
"""Seconds after which a record is read again, however long its lease, so that a pause takes effect soon."""


@dataclass(frozen=True, slots=True)
class Job:
    """A pass of a resize over the items of a family's entities."""

    scope: Scope
    family: Family
    resize: Resize
    kind: Pass

    @property
    def key(self) -> str:
        """The key of the record."""
        return self.scope.key

    @property
    def id(self) -> str:
        """The id of the resize."""
        return self.resize.id

    @property
    def reversed(self) -> "Job":
        """The job with origin and target swapped: an item at a new home already belongs at the old one."""
        return replace(self, resize=replace(self.resize, origin=self.resize.target, target=self.resize.origin))


def moving_shards(scope: Scope, origin: int, target: int) -> list[str]:
    """Return the stored partition keys that items of a logical partition leave.

    With fewer shards after the resize, items leave only the shards that cease to exist; back to the bare key, all.
    """
    keys = scope.shard_keys(origin)
    return keys[target:] if UNSHARDED < target < origin else keys


def gaining_shards(scope: Scope, origin: int, target: int) -> list[str]:
    """Return the stored partition keys to which items of a logical partition come, and where others may stand already.

    With more shards after the resize, items come only to new shards: an item that stands in an old one by mistake
    belongs elsewhere under the new count as well.
    """
    before, keys = scope.shard_keys(origin), scope.shard_keys(target)
    return [key for key in keys if key not in before] if target > origin else keys


def tasks_of(scope: Scope, resize: Resize, segments: int) -> int:
    """Return into how many tasks the work of a resize is divided."""
    if not scope.moves_by(rewrites=resize.rewrites):
        return 0
    if scope.partition is None:
        return segments
    return min(_MOST_TASKS, len(moving_shards(scope, resize.origin, resize.target)))


def checks_of(scope: Scope, resize: Resize) -> int:
    """Return how many of a resize's tasks have homes to check before it begins."""
    if not resize.check:
        return 0
    if scope.partition is None:
        return resize.tasks
    return min(resize.tasks, len(gaining_shards(scope, resize.origin, resize.target)))


def kind_of(record: Record, scope: Scope) -> Pass | None:
    """Return the pass of a record's phase, if it has one."""
    resize = Resize.of(record)
    if resize is None or resize.tasks == 0 or not record.busy:
        return None
    in_phase = {Phase.MOVE: Pass.MOVE}
    if resize.survey:
        in_phase[Phase.PREPARE] = Pass.SURVEY
    if scope.index is None:
        in_phase[Phase.SETTLE] = Pass.SETTLE
        if record.target is None:
            in_phase[Phase.STABLE] = Pass.SWEEP
        elif resize.check:
            in_phase[Phase.STABLE] = Pass.CHECK
    return in_phase.get(record.phase)


class Workplace(Protocol):
    """The table that is worked on, and where progress is kept."""

    @property
    def transport(self) -> Transport:
        """The connection to both tables."""
        ...

    @property
    def table(self) -> str:
        """The table of items."""
        ...

    @property
    def progress(self) -> ProgressTable:
        """Where progress is kept."""
        ...

    @property
    def runtime(self) -> Runtime:
        """Time and randomness."""
        ...


class Assignment(Protocol):
    """What a worker does: a pass, under an id that no other pass over the same key has."""

    @property
    def key(self) -> str:
        """The key under which its progress is kept."""
        ...

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def kind(self) -> Pass:
        """The kind of the pass."""
        ...


class Guard:
    """Reads the record before every chunk, within its lease, so that a worker stops when its job has ended."""

    def __init__(self, context: Context, scope: Scope) -> None:
        self._context = context
        self._scope = scope
        self._read = 0.0
        self._until = 0.0
        self._job: Job | None = None

    def job(self) -> Job | None:
        """Return the job if its time has come and it is not paused. Cost: 1 round trip, 2 read units, sometimes."""
        now = self._context.runtime.clock()
        if not self._read <= now < self._until:
            self._refresh(now)
        return self._job

    def holds(self, job: Assignment) -> bool:
        """Whether the same job is still to be done."""
        now = self.job()
        return now is not None and now.id == job.id and now.kind is job.kind

    def _refresh(self, now: float) -> None:
        record, family = self._context.read(self._scope)
        after = self._context.runtime.clock()
        self._read = self._until = now
        self._job = None
        if record is None or family is None:
            return
        resize, kind = Resize.of(record), kind_of(record, self._scope)
        if resize is not None and kind is not None and not resize.paused:
            known = resize.seen is not None and self._context.left(family, resize.seen, after) <= 0
            if not known and kind not in _IMMEDIATE:
                # This is not held for a lease: the wait may end at any moment.
                return
            self._job = Job(self._scope, self._context.families[self._scope.family], resize, kind)
        self._until = now + min(_RECHECK, family.granted)


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
