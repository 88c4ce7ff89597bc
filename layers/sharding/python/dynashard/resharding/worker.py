"""The worker: reads a task chunk by chunk, writes for its items in waves, and stores its progress."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from dynashard.errors import (
    ConditionFailedError,
    DynashardError,
    EngineUnavailableError,
    ThrottledError,
    TransactionCanceledError,
    TransactionConflictError,
)
from dynashard.resharding.context import Context
from dynashard.resharding.job import Assignment, Job, Workplace
from dynashard.resharding.mover import Mover
from dynashard.resharding.pace import Pace
from dynashard.resharding.progress import Pass, Progress
from dynashard.resharding.relocation import Homes, Work
from dynashard.resharding.rewriter import Rewriter
from dynashard.resharding.sources import Sources, after, sources_of
from dynashard.resharding.sweeper import Sweeper
from dynashard.routing import stored_key
from dynashard.schema import MOVED_TO, PK, SK, TYPE, index_pk, index_sk
from dynashard.transport.interface import Wire, metered

_STORED_AFTER: Final = 1.0
"""Seconds of work that a killed worker may lose."""


def work_of(context: Context, job: Job, homes: Homes) -> Work:
    """Return what a job does with items."""
    if job.kind is Pass.CHECK:
        return Sweeper(context, job.reversed, homes)
    if job.kind is Pass.SWEEP:
        return Sweeper(context, job, homes)
    return Mover(context, job, homes) if job.scope.index is None else Rewriter(context, job)


class Holds(Protocol):
    """Says whether a pass is still to be done."""

    def holds(self, job: Assignment, /) -> bool:
        """Whether the same pass is still to be done."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of a pass: what is done with which items, and at which pace."""

    number: int
    work: Work
    sources: Sources
    pace: Pace


def task_of(context: Context, job: Job, number: int, *, homes: Homes, pace: Pace) -> Task:
    """Return a task of a resize."""
    work = work_of(context, job, homes)
    reading = _survey_of(work, job) if job.kind is Pass.SURVEY else work.reading
    return Task(number=number, work=work, sources=sources_of(context, job, number, reading), pace=pace)


class Slice:
    """Works on one task of a pass for a while, as long as the guard holds."""

    def __init__(self, context: Workplace, guard: Holds, job: Assignment, task: Task) -> None:
        self._context = context
        self._guard = guard
        self._job = job
        self._task = task.number
        self._work, self._sources, self._pace = task.work, task.sources, task.pace

    def run(self, seconds: float) -> bool:
        """Work for about so many seconds; see `Resharder.work`. Raises `TakenError` for an item that cannot move."""
        context, job = self._context, self._job
        deadline = context.runtime.clock() + seconds
        stored = context.progress.begin(job.key, self._task, job.id, job.kind)
        self._pace.not_before(stored.after)
        while not stored.done and stored.resize == job.id and stored.kind is job.kind:
            now = self._worked(stored, deadline)
            if now is stored:
                # The guard no longer holds: whatever is left is not to be done now.
                return True
            stored = context.progress.save(stored, now)
            if context.runtime.clock() >= deadline:
                return stored.done
        return True

    def _worked(self, now: Progress, deadline: float) -> Progress:
        """Process chunks until it is time to store the progress; none if the guard no longer holds."""
        clock = self._context.runtime.clock
        until = min(deadline, clock() + _STORED_AFTER)
        while not now.done and self._guard.holds(self._job):
            with metered() as meter:
                then = self._advance(now, deadline)
            used = meter.consumed
            now = replace(
                then,
                write_units=now.write_units + used.write_units,
                read_units=now.read_units + used.read_units,
                after=max(0.0, self._pace.after),
            )
            if clock() >= until:
                break
        return now

    def _advance(self, now: Progress, deadline: float) -> Progress:
        """Process one chunk, or as much of it as there is time for."""
        if not self._pace.ready_to_read(deadline):
            return now
        try:
            with metered() as meter:
                chunk = self._sources.read(now.position, self._pace.page)
        except ThrottledError as error:
            self._pace.throttled(error)
            return now
        items = [item for item in chunk.items if self._work.concerns(item)]
        surveyed = self._job.kind is Pass.SURVEY
        self._pace.read(meter.consumed.read_units, chunk.scanned, 0 if surveyed else len(items))
        if surveyed:
            counted = now.counted or chunk.following is None
            return replace(now, total=now.total + len(items), counted=counted).at(chunk.following)
        while items:
            wave, items = items[: self._pace.width], items[self._pace.width :]
            staying: list[Wire] = []
            if not self._send(wave, deadline, staying):
                return now
            now = replace(now, position=after(now.position, wave[-1]), **self._counts(now, wave, staying))
        return now.at(chunk.following)

    def _counts(self, now: Progress, wave: Sequence[Wire], staying: Sequence[Wire]) -> dict[str, Any]:
        stay = {stored_key(item) for item in staying}
        counted = Counter("left" if stored_key(item) in stay else self._work.counts_as(item) for item in wave)
        return {counter: getattr(now, counter) + number for counter, number in counted.items()}

    def _send(self, wave: Sequence[Wire], deadline: float, staying: list[Wire]) -> bool:
        """Write for some items, retrying conflicts; False if the time is up. Adds to `staying` those that stay."""
        left = self._current(wave) if any(map(self._work.in_two_writes, wave)) else list(wave)
        while left:
            if refused := [item for item in left if self._work.refuses(item)]:
                staying += refused
                left = [item for item in left if item not in refused]
                continue
            if not self._pace.ready(deadline) or not self._guard.holds(self._job):
                return False
            began = self._context.runtime.clock()
            with metered() as meter:
                left, unsure = self._try(left, staying)
            self._pace.spent(meter.consumed.write_units, began)
            left += self._current(unsure) if unsure else []
            if left and self._context.runtime.clock() >= deadline:
                return False
        return True

    def _try(self, items: Sequence[Wire], staying: list[Wire]) -> tuple[list[Wire], list[Wire]]:
        """Send a write for each item; return those to write for again, and those to read again before that."""
        calls = [self._work.write(item) for item in items]
        answers = self._context.transport.try_all(calls, concurrency=self._pace.width)
        again, unsure = list[Wire](), list[Wire]()
        for item, answer in zip(items, answers, strict=True):
            if isinstance(answer, ThrottledError):
                # It was not executed. Reading it again would take units of the same hot partition.
                again.append(item)
            elif not isinstance(answer, DynashardError):
                unsure += [item] if self._work.in_two_writes(item) else []
            elif _passes(answer):
                (staying if self._work.stays(item, answer) else unsure).append(item)
            else:
                raise answer
        if len(again) + len(unsure) < len(items):
            self._pace.succeeded()
        self._slow_down([answer for answer in answers if isinstance(answer, DynashardError)])
        return again, unsure

    def _slow_down(self, errors: Sequence[DynashardError]) -> None:
        """Back off once for all failed writes of a wave."""
        throttle = next((error for error in errors if isinstance(error, ThrottledError)), None)
        if throttle is not None:
            self._pace.throttled(throttle)
        elif errors:
            self._pace.conflicted()

    def _current(self, items: Sequence[Wire]) -> list[Wire]:
        """Read items again, and return those that still need a write."""
        waiting = {stored_key(item): item for item in items}
        keys = [{PK: item[PK], SK: item[SK]} for item in items]
        table = self._context.table
        request = {"RequestItems": {table: {"Keys": keys, "ConsistentRead": True}}}
        try:
            answer = self._context.transport.call("BatchGetItem", request)
        except (ThrottledError, EngineUnavailableError) as error:
            self._slow_down([error])
            return list(items)
        # An item that was left unread is written for as before: if it has changed, the condition fails.
        unread = {stored_key(key) for key in answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", ())}
        now = {stored_key(item): item for item in answer.get("Responses", {}).get(table, ())}
        current = [item if key in unread else now.get(key) for key, item in waiting.items()]
        return [item for item in current if item is not None and self._work.concerns(item)]


def _passes(error: DynashardError) -> bool:
    """Whether a write that failed may succeed once its item was read again."""
    if isinstance(error, TransactionCanceledError):
        return all(reason.transient for reason in error.reasons)
    return isinstance(error, (TransactionConflictError, EngineUnavailableError, ConditionFailedError))


def _survey_of(work: Work, job: Job) -> Wire:
    """Return how to read for counting: keys only, and eventually consistent, which costs half."""
    names = [PK, SK, MOVED_TO]
    if job.scope.index is not None:
        names += [index_pk(job.scope.index.slot), index_sk(job.scope.index.slot)]
    return {
        "FilterExpression": work.reading["FilterExpression"],
        "ProjectionExpression": ", ".join([*names, "#type"]),
        "ExpressionAttributeNames": {"#type": TYPE},
    }
