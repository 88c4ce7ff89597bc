"""What the controller returns: the next step, and the status of a resize."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any, Final, Literal

from dynashard.resharding.context import Context
from dynashard.resharding.job import kind_of
from dynashard.resharding.progress import Pass, Progress, sums
from dynashard.resharding.resize import Resize
from dynashard.resharding.scope import Scope
from dynashard.topology import EpochState, Phase, Record

_OF_RESIZE: Final = ("paused", "back_to", "cause", "started", "error", "expected", "declined", "rewrites")
_SWEEP_SHARE: Final = 0.25
"""The time of sweeping an item, as a share of the time of moving it."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a driver does next about a record.

    Attributes:
        kind: `wait`: ask again after `seconds`. `work`: work on the tasks, then ask again. `done`: there is nothing
            to do, or nothing until the resize is resumed.
        seconds: until it is worth asking again.
        tasks: those that are not complete.
        concurrency: how many of them to work on at a time.
        reason: why the resize ended before it began; empty otherwise.
        steady: only time is waited for, so nothing is gained by asking earlier.
    """

    kind: Literal["wait", "work", "done"]
    seconds: float = 0.0
    tasks: tuple[int, ...] = ()
    concurrency: int = 1
    reason: str = ""
    steady: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return it in JSON values, with whole seconds for a state machine; the reason is for the log."""
        kept = asdict(self)
        del kept["reason"], kept["steady"]
        return {**kept, "seconds": ceil(self.seconds), "tasks": list(self.tasks)}


@dataclass(frozen=True, slots=True)
class EpochStatus:
    """An epoch: the keys from `first` on have `count` shards, if its `state` is confirmed.

    `since` is the moment of that key, in epoch seconds; None for the first epoch, which has no beginning.
    """

    first: str
    since: float | None
    count: int
    state: str


@dataclass(frozen=True, slots=True)
class Status:
    """How far the resize of a record has come, or how the last one ended.

    Attributes:
        entity, partition, index: what it concerns: at most one of partition and index slot.
        phase: `stable`, `prepare`, `move` or `settle`.
        stage: the phase, or `pending` (stable, the resize waits to begin), `sweep` (stable, markers are deleted) or
            `confirmed` (the epoch with the new count will begin).
        count, target, since, swept, updated: see `Record`.
        paused: whether it waits until it is resumed; `error` says why, unless an operator has paused it.
        back_to: the count it will change back to, if it was aborted too late to stop.
        started: when it was requested, in epoch seconds; `cause` says why.
        moved, late, left, write_units, read_units: see `Counters`; `dynashard verify` shows the items that are left.
        total: how many items there are to move, as counted beforehand; None if unknown.
        swept_marks: markers deleted.
        begun: whether the work of this stage has begun.
        seconds_left: an estimate; None if unknown.
        lease: the longest lease that a client may hold now, in seconds.
        wait: the longest time that a published phase takes to reach every client, in seconds; for an epoch, until its
            time has come.
        waits_for: `clients`: every client must know the phase, until `until`; `empty_shards`: the shards that random
            placement leaves must be empty; `epoch`: the time of the keys for which the count holds must come; `resume`:
            it is paused; `worker`: no worker has seen it yet. None while it works.
        until: when the wait ends at the latest, in epoch seconds; None if that is unknown.
        expected: how long a resize that started by itself was expected to take, in seconds; None if not judged.
        declined: what a resize would have taken that started by itself, and was declined for that.
        taken_back: the count of the last resize, if it ended before anything moved: it was aborted, withdrawn or
            declined at `since`. None while a resize is under way.
        epochs: counts by the time of keys, oldest first; none while one count holds for all keys.
        former: of an index: the counts by which older entries may still stand, because it grew for new entries alone.
        rewrites: of an index: whether the resize gives older entries places of the new count.
    """

    key: str
    entity: str
    partition: str | None
    index: str | None
    phase: str
    stage: str
    count: int
    target: int | None
    swept: bool
    paused: bool = False
    back_to: int | None = None
    cause: str | None = None
    started: float | None = None
    since: float = 0.0
    updated: float = 0.0
    moved: int = 0
    total: int | None = None
    late: int = 0
    swept_marks: int = 0
    left: int = 0
    begun: bool = False
    write_units: float = 0.0
    read_units: float = 0.0
    seconds_left: float | None = None
    lease: float = 0.0
    wait: float = 0.0
    error: str | None = None
    waits_for: Literal["clients", "empty_shards", "epoch", "resume", "worker"] | None = None
    until: float | None = None
    expected: float | None = None
    declined: str | None = None
    taken_back: int | None = None
    epochs: Sequence[EpochStatus] = ()
    former: Sequence[int] = ()
    rewrites: bool = True

    @property
    def busy(self) -> bool:
        """Whether a resize is requested, under way, not swept, or to be reversed."""
        return self.target is not None or not self.swept or self.back_to is not None

    def as_dict(self) -> dict[str, Any]:
        """Return it in JSON values."""
        return asdict(self)


def stage_of(record: Record) -> str:
    """Return the stage of a record's resize; see `Status.stage`."""
    if record.phase is not Phase.STABLE:
        return record.phase.value
    if record.target is not None:
        return "confirmed" if record.epochs and record.epochs[-1].state is EpochState.CONFIRMED else "pending"
    return Phase.STABLE.value if record.swept else "sweep"


def status_of(context: Context, scope: Scope, record: Record, family: Record) -> Status:
    """Return the status of a record. Cost: none, or while a resize is under way 1 round trip, 1 read unit a task."""
    resize, done = Resize.of(record), list[Progress]()
    if resize is not None and record.busy and resize.tasks and scope.key == record.key:
        done = context.progress.of(record.key, resize.id, resize.tasks)
    now = context.runtime.clock()
    lease = context.timing.longest(family, now)
    basic = Status(
        key=scope.key,
        entity=scope.entity.name,
        partition=scope.partition,
        index=scope.index.slot if scope.index else None,
        phase=record.phase.value,
        stage=stage_of(record),
        count=record.count,
        target=record.target,
        swept=record.swept,
        since=record.since,
        updated=float(record.updated),
        lease=lease,
        wait=context.timing.ahead(lease) if record.epochs else context.timing.wait(lease),
        epochs=epoch_statuses(scope, record),
        former=sorted(record.former),
    )
    if resize is None:
        return basic
    counters = {name: getattr(resize, name) + value for name, value in sums(done).items()}
    total = resize.total if resize.total is not None else surveyed(resize, done)
    waits_for, until = _wait_of(context, scope, record, family, resize)
    values: dict[str, Any] = {
        **{name: getattr(resize, name) for name in _OF_RESIZE},
        "waits_for": waits_for,
        "until": until,
        **counters,
        "swept": record.swept,
        "swept_marks": counters["swept"],
        "total": total if total is None else max(total, counters["moved"]),
        "taken_back": resize.target if record.target is None and resize.target != record.count else None,
        "begun": any(task.kind is kind_of(record, scope) for task in done),
        "wait": basic.wait if resize.margin is None or record.epochs else lease + resize.margin,
    }
    known = replace(basic, **values)
    return replace(known, seconds_left=None if resize.paused else _seconds_left(known, now))


def _wait_of(
    context: Context, scope: Scope, record: Record, family: Record, resize: Resize
) -> tuple[str | None, float | None]:
    """Return what a resize waits for, and until when; see `Status.waits_for`."""
    if not record.busy or resize.paused:
        return ("resume" if record.busy else None), None
    now = context.runtime.clock()
    if resize.seen is None:
        return "worker", None
    # The controller corrects a time that a clock has stored that was ahead.
    if record.epochs:
        confirmed = record.epochs[-1].state is EpochState.CONFIRMED
        begins = epoch_statuses(scope, record)[-1].since
        return ("epoch", begins) if confirmed else ("clients", now + context.known_in(family, resize.seen, now))
    seen = now if resize.seen > now + context.timing.skew else resize.seen
    since = context.waited_since(scope, record, family, resize, seen)
    left = context.left(family, since, now)
    if left > 0:
        return "clients", now + left
    if not scope.moves and record.phase is Phase.PREPARE and resize.target < resize.origin:
        return "empty_shards", None
    return None, None


def epoch_statuses(scope: Scope, record: Record) -> list[EpochStatus]:
    """Return the epochs of a record, void ones included."""
    form = scope.time

    def since(first: str) -> float | None:
        return form.moment_of(first) if form is not None and first else None

    return [EpochStatus(each.first, since(each.first), each.count, each.state.value) for each in record.epochs]


def surveyed(resize: Resize, done: Sequence[Progress]) -> int | None:
    """Return how many items there are to move; None until every task has counted them."""
    complete = [task for task in done if task.kind is not Pass.SURVEY or task.done]
    if not resize.survey or not resize.tasks or len(complete) < resize.tasks or not all(t.counted for t in complete):
        return None
    return sum(task.total for task in complete)


def _seconds_left(status: Status, now: float) -> float | None:
    """The remaining waits, and the remaining work at its speed so far."""
    wait, took = status.wait, now - (status.since + status.wait)
    if status.stage == "settle":
        # The second pass reads as much as the first, and writes next to nothing.
        return max(0.0, -took) + wait
    if status.total is None or took <= 0:
        return None
    if status.stage == "move" and status.moved:
        left = max(0, status.total - status.moved) + status.total * _SWEEP_SHARE
        return left * took / status.moved + 2 * wait
    if status.stage == "sweep" and status.swept_marks:
        return max(0, status.total - status.swept_marks) * took / status.swept_marks
    return None
