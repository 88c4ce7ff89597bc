"""What the controller answers: the next step, and how far a change has come."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any, Final, Literal

from dynashard.resharding.change import Change
from dynashard.resharding.job import kind_of
from dynashard.resharding.progress import COUNTERS, Pass, Progress, add
from dynashard.resharding.scope import Scope
from dynashard.resharding.timing import Timing
from dynashard.topology import Phase, Record

_SWEEP_SHARE: Final = 0.25
"""Sweeping an item takes about this part of the time that moving it took."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a driver does next about a record.

    Attributes:
        kind: `wait`: ask again after `seconds`. `work`: work on the tasks, then ask again. `done`: there is nothing
            to do, or nothing until somebody resumes it.
        seconds: until it is worth asking again.
        tasks: those that are not complete.
        concurrency: how many of them to work on at a time.
    """

    kind: Literal["wait", "work", "done"]
    seconds: float = 0.0
    tasks: tuple[int, ...] = ()
    concurrency: int = 1

    def as_dict(self) -> dict[str, Any]:
        """In JSON values; whole seconds, as a state machine waits."""
        return {
            "kind": self.kind,
            "seconds": ceil(self.seconds),
            "tasks": list(self.tasks),
            "concurrency": self.concurrency,
        }


@dataclass(frozen=True, slots=True)
class Status:
    """How far the change of a record has come, or how the last one ended.

    Attributes:
        key: of the record.
        entity, partition, index: what it concerns; partition and index slot None where it is not one of these.
        phase: `stable`, `prepare`, `move` or `settle`.
        stage: the phase, in which `pending` (stable, the change waits to begin) and `sweep` (stable, marks are being
            deleted) are told apart.
        count: the shard count until the change has settled.
        target: the count it leads to; None when it has settled.
        swept: whether no marks are left.
        paused: whether it stands still until somebody resumes it.
        back_to: the count it will change back to, if it was aborted too late to stop.
        cause: why it was asked for.
        started: when, in epoch seconds.
        since: when the phase was published, in epoch seconds.
        updated: when the record was last changed, by whoever did, in epoch seconds.
        moved: items moved, or index entries rewritten.
        total: how many there are to move, as counted beforehand; None if not known.
        late: items that the database stored at their old home after the mover had passed, and that were moved then.
        swept_marks: marks deleted.
        left: items that stay where they should not be, because their home is taken: `dynashard verify` shows them.
        begun: whether the work of this stage has begun.
        write_units, read_units: what the work has taken.
        seconds_left: an estimate; None if nothing tells.
        lease: the longest lease that somebody may hold now, in seconds.
        wait: the longest that a published phase takes to reach everybody, in seconds.
        error: why it stands still, if not because an operator asked for it.
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

    @property
    def busy(self) -> bool:
        """Whether a change is wanted, under way, not swept, or to be taken back."""
        return self.target is not None or not self.swept or self.back_to is not None

    def as_dict(self) -> dict[str, Any]:
        """In JSON values."""
        return asdict(self)


def stage_of(record: Record) -> str:
    """Where a record's change stands, in one word."""
    if record.phase is not Phase.STABLE:
        return record.phase.value
    if record.target is not None:
        return "pending"
    return Phase.STABLE.value if record.swept else "sweep"


def status_of(
    scope: Scope, record: Record, family: Record, done: Sequence[Progress], *, timing: Timing, now: float
) -> Status:
    """The status of a record.

    Args:
        scope: what it concerns.
        record: it.
        family: the record of its family, which holds the lease.
        done: what is known of its tasks, as far as they have begun; none when it is over.
        timing: how long operations and skew are taken to be, until whoever carries the change out has said so.
        now: in epoch seconds.
    """
    change = Change.of(record)
    lease = timing.longest(family, now)
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
        wait=timing.wait(lease),
    )
    if change is None:
        return basic
    sums = {name: getattr(change, name) + add(done, name) for name in COUNTERS if name != "total"}
    total = change.total if change.total is not None else surveyed(change, done)
    values: dict[str, Any] = {
        **{name: getattr(change, name) for name in ("paused", "back_to", "cause", "started", "error")},
        **sums,
        "swept": record.swept,
        "swept_marks": sums["swept"],
        "total": total if total is None else max(total, sums["moved"]),
        "begun": any(task.kind is kind_of(record, scope) for task in done),
        "wait": basic.wait if change.margin is None else lease + change.margin,
    }
    known = replace(basic, **values)
    return replace(known, seconds_left=None if change.paused else _seconds_left(known, known.wait, now))


def surveyed(change: Change, done: Sequence[Progress]) -> int | None:
    """How many items there are to move; None until every task has counted them."""
    complete = [task for task in done if task.kind is not Pass.SURVEY or task.done]
    if not change.survey or not change.tasks or len(complete) < change.tasks or not all(t.counted for t in complete):
        return None
    return sum(task.total for task in complete)


def _seconds_left(status: Status, wait: float, now: float) -> float | None:
    """Waits of `wait` seconds that are still to come, and work at the speed it has had."""
    here = max(0.0, status.since + wait - now)
    took = now - (status.since + wait)
    if status.stage == "settle":
        # The second pass reads what the first one has read, and finds next to nothing to write.
        return here + wait
    if status.total is None or took <= 0:
        return None
    if status.stage == "move" and status.moved:
        left = max(0, status.total - status.moved) + status.total * _SWEEP_SHARE
        return left * took / status.moved + 2 * wait
    if status.stage == "sweep" and status.swept_marks:
        return max(0, status.total - status.swept_marks) * took / status.swept_marks
    return None
