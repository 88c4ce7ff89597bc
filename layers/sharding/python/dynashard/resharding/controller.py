"""The controller: publishes one phase after the other, each when the one before has reached every client.

It keeps no state. Every step is derived from the records and stored with a conditional update, so it can be killed at
any moment, and two of them do no harm.
"""

from dataclasses import replace
from typing import Any, Final

from dynashard.errors import TopologyChangedError
from dynashard.resharding.change import Change
from dynashard.resharding.context import Context
from dynashard.resharding.forecast import judged
from dynashard.resharding.job import Job, checks_of, kind_of, tasks_of
from dynashard.resharding.progress import Pass, Progress, open_tasks, sums
from dynashard.resharding.resize_requests import reversal, taken_back
from dynashard.resharding.scope import Scope
from dynashard.resharding.status import Step, surveyed
from dynashard.resharding.vacancy import vacant_in
from dynashard.topology import Phase, Record

_ROUNDS: Final = 5
_CONTENDED: Final = 1.0
"""Seconds to wait while others keep changing the records."""
_DONE: Final = Step("done")


def advance(context: Context, scope: Scope) -> Step:
    """Publish the next phase if its time has come, and return the next step; see `Resharder.advance`."""
    for _ in range(_ROUNDS):
        record, family = context.read(scope)
        if record is None or family is None:
            return _DONE
        if context.keep_lease(family):
            continue
        try:
            return _Controller(context, scope, record, family).step()
        except TopologyChangedError:
            continue
    return Step("wait", _CONTENDED)


class _Controller:
    """Derives one step from the records of a change."""

    def __init__(self, context: Context, scope: Scope, record: Record, family: Record) -> None:
        self._context = context
        self._scope = scope
        self._record = record
        self._family = family
        self._now = context.runtime.clock()

    def step(self) -> Step:
        change = Change.of(self._record)
        if change is None or change.paused:
            return _DONE
        if change.seen is None or self._in_future(change.seen):
            change = self._see(change)
        record = self._record
        if record.phase is Phase.STABLE and record.target is not None:
            return self._pending(change)
        if not record.busy and self._scope.key not in self._family.active:
            return _DONE
        left, kind = self._left(change), kind_of(record, self._scope)
        if left > 0 and kind is not Pass.SURVEY:
            return Step("wait", left)
        progress = self._progress(change) if kind else []
        todo = open_tasks(progress, kind, change.tasks) if kind else ()
        if todo and (left > 0 or kind is not Pass.SURVEY):
            return self._work(todo)
        return Step("wait", left) if left > 0 else self._go_on(change, progress)

    def _go_on(self, change: Change, progress: list[Progress]) -> Step:
        """Publish what follows a phase that every client knows and whose work is done."""
        record = self._record
        if not record.busy:
            # There are no markers to sweep.
            return self._finish(change)
        if not self._scope.moves:
            return self._widened(change)
        if record.phase is Phase.PREPARE:
            return self._publish(replace(change, total=surveyed(change, progress)), phase=Phase.MOVE)
        if record.phase is Phase.STABLE or self._scope.index is not None:
            done = replace(change, **sums(progress))
            step = self._finish(done) if record.phase is Phase.STABLE else self._stable(done, swept=True)
            self._clear(change, change.tasks)
            return step
        if record.phase is Phase.MOVE:
            return self._lagging(change) or self._publish(replace(change, passed=None), phase=Phase.SETTLE)
        # After the second pass no client is in MOVE, so no reader has seen items that are stored late from now on.
        return self._lagging(change) or self._stable(change, swept=False)

    def _see(self, change: Change) -> Change:
        """Store that the publication was read, so that the wait for it begins."""
        seen = replace(change, seen=self._context.runtime.clock(), margin=self._context.timing.wait(0.0))
        record = self._record.changed(self._now, change=seen.stored())
        self._context.topology.save((self._record, record))
        self._record = record
        return seen

    def _pending(self, change: Change) -> Step:
        record = self._record
        since = self._context.waited_since(self._scope, record, self._family, change.seen or 0.0)
        left = self._context.left(self._family, since, self._now)
        checks = checks_of(self._scope, change)
        todo = open_tasks(self._progress(change), Pass.CHECK, checks) if checks else ()
        if todo:
            return self._work(todo)
        if left > 0:
            return Step("wait", left)
        change = judged(self._context, self._scope, self._family, change)
        if change.declined is not None:
            return self._decline(change, change.declined)
        tasks = tasks_of(self._scope, change.origin, change.target, self._context.segments)
        wait = self._publish(replace(change, tasks=tasks), phase=Phase.PREPARE)
        return self._work(tuple(range(tasks))) if change.survey and tasks else wait

    def _decline(self, change: Change, declined: str) -> Step:
        """End a change that started by itself and would take too long; an operator may start it."""
        record = taken_back(self._record, change, self._now, declined=declined)
        self._context.topology.save((self._record, record))
        return Step("wait", self._context.left(self._family, self._now, self._now), reason=f"declined: {declined}")

    def _in_future(self, moment: float) -> bool:
        """Whether a stored moment was written by a clock that was ahead; it has passed, because it is stored."""
        return moment > self._now + self._context.timing.skew

    def _widened(self, change: Change) -> Step:
        """With random placement: readers know the new shards, or writers have left the old ones."""
        if change.target < change.origin:
            job = Job(self._scope, self._context.families[self._scope.family], change, Pass.SURVEY)
            left = vacant_in(self._context, job)
            if left:
                return Step("wait", left)
        step = self._stable(change, swept=True)
        self._clear(change, 1)
        return step

    def _lagging(self, change: Change) -> Step | None:
        """Wait until eventually consistent reads see the item that was moved last at its new home."""
        if not self._context.timing.lag:
            return None
        if change.passed is None or self._in_future(change.passed):
            passed = self._record.changed(self._now, change=replace(change, passed=self._now).stored())
            self._context.topology.save((self._record, passed))
            return Step("wait", self._context.timing.lag)
        left = change.passed + self._context.timing.lag - self._now
        return Step("wait", left) if left > 0 else None

    def _finish(self, change: Change) -> Step:
        """End the change, or begin the one back: no markers are left, and every client knows the count."""
        record, family, now = self._record, self._family, self._now
        if change.back_to is not None:
            again = reversal(self._context, self._scope, record, change, now=now)
            self._context.topology.save((record, again))
            return Step("wait", self._context.left(family, now, now))
        ended = record.changed(now, swept=True, change=change.stored())
        active = family.active - {self._scope.key}
        if self._scope.whole_family:
            self._context.topology.save((record, ended.changed(now, active=active)))
        else:
            self._context.topology.save((record, ended), (family, family.changed(now, active=active)))
        return _DONE

    def _stable(self, change: Change, *, swept: bool) -> Step:
        return self._publish(change, phase=Phase.STABLE, count=change.target, target=None, swept=swept)

    def _publish(self, change: Change, **fields: Any) -> Step:
        # A save may be executed long after it was sent, so the wait begins when the publication is read.
        unseen = replace(change, seen=None)
        record = self._record.changed(self._now, since=self._now, change=unseen.stored(), **fields)
        self._context.topology.save((self._record, record))
        self._record = record
        return Step("wait", self._left(self._see(unseen)))

    def _left(self, change: Change) -> float:
        """Seconds until the last publication has reached every client."""
        return self._context.left(self._family, change.seen or 0.0, self._now)

    def _work(self, tasks: tuple[int, ...]) -> Step:
        return Step("work", 0.0, tasks, self._context.concurrency)

    def _progress(self, change: Change) -> list[Progress]:
        return self._context.progress.of(self._scope.key, change.id, change.tasks)

    def _clear(self, change: Change, tasks: int) -> None:
        self._context.progress.clear(self._scope.key, change.id, tasks)
