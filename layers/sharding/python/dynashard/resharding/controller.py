"""The controller: publishes one phase after the other, each when the one before has reached everybody.

It keeps nothing in memory. Every step is derived from the records and written with a conditional update, so that
it can be killed at any moment, and two of them do no harm.
"""

from typing import Any, Final

from dynashard.errors import TopologyChangedError
from dynashard.resharding.change import Change
from dynashard.resharding.context import Context
from dynashard.resharding.job import checks_of, kind_of, tasks_of
from dynashard.resharding.lease_setting import keep_lease
from dynashard.resharding.progress import Pass, Progress, add, open_tasks
from dynashard.resharding.resize_requests import pending_again
from dynashard.resharding.scope import Scope
from dynashard.resharding.status import Step, surveyed
from dynashard.resharding.vacancy import Vacancy
from dynashard.routing import rule_of
from dynashard.topology import Phase, Record

_ROUNDS: Final = 5
_CONTENDED: Final = 1.0
"""Seconds to leave the records to others who are changing them."""
_DONE: Final = Step("done")


def advance(context: Context, scope: Scope) -> Step:
    """Publish what it is time for, and say what to do next. See `Resharder.advance`."""
    for _ in range(_ROUNDS):
        record, family = context.read(scope)
        if record is None or family is None:
            return _DONE
        if keep_lease(context, family):
            continue
        try:
            return _Look(context, scope, record, family).step()
        except TopologyChangedError:
            continue
    return Step("wait", _CONTENDED)


class _Look:
    """One look at the records of a change."""

    def __init__(self, context: Context, scope: Scope, record: Record, family: Record) -> None:
        self._context = context
        self._scope = scope
        self._record = record
        self._family = family
        self._now = context.clock()

    def step(self) -> Step:
        change = Change.of(self._record)
        if change is None or change.paused:
            return _DONE
        if change.seen is None:
            change = self._see(change)
        record = self._record
        if not record.busy:
            return self._leave(change)
        if record.phase is Phase.STABLE:
            return self._pending(change) if record.target is not None else self._sweep(change)
        if record.phase is Phase.PREPARE:
            return self._prepared(change)
        return self._move(change) if record.phase is Phase.MOVE else self._settled(change)

    def _see(self, change: Change) -> Change:
        """Write down that what was published is there: from now on it can be waited for."""
        seen = change.but(seen=self._context.clock(), margin=self._context.timing.wait(0.0))
        record = self._record.changed(self._now, change=seen.stored())
        self._context.topology.save((self._record, record))
        self._record = record
        return seen

    def _pending(self, change: Change) -> Step:
        record = self._record
        # When nothing moves, wait only for the previous publication.
        since = change.seen if self._moves else max(record.since, self._family.differ_since or 0.0)
        left = self._context.left(self._family, since or 0.0, self._now)
        checks = checks_of(self._scope, change)
        todo = open_tasks(self._progress(change), Pass.CHECK, checks) if checks else ()
        if todo:
            return self._work(todo)
        if left > 0:
            return Step("wait", left)
        tasks = tasks_of(self._scope, change.origin, change.target, self._context.segments)
        wait = self._publish(change.but(tasks=tasks), phase=Phase.PREPARE)
        return self._work(tuple(range(tasks))) if change.survey and tasks else wait

    def _prepared(self, change: Change) -> Step:
        left = self._left(change)
        if not self._moves:
            return Step("wait", left) if left > 0 else self._widened(change)
        progress = self._progress(change) if change.survey else []
        if left > 0:
            todo = open_tasks(progress, Pass.SURVEY, change.tasks) if change.survey else ()
            return self._work(todo) if todo else Step("wait", left)
        return self._publish(change.but(total=surveyed(change, progress)), phase=Phase.MOVE)

    def _widened(self, change: Change) -> Step:
        """Of a placement that moves nothing: growing, readers look everywhere; shrinking, writers have left."""
        if change.target < change.origin:
            left = Vacancy(self._context, self._scope, change).wait()
            if left:
                return Step("wait", left)
        answer = self._stable(change, swept=True)
        self._context.progress.clear(self._scope.key, change.id, 1)
        return answer

    def _move(self, change: Change) -> Step:
        step, progress = self._worked(change)
        if step is not None:
            return step
        if self._scope.index is not None:
            answer = self._stable(_summed(change, progress), swept=True)
            self._context.progress.clear(self._scope.key, change.id, change.tasks)
            return answer
        return self._lagging(change) or self._publish(change.but(passed=None), phase=Phase.SETTLE)

    def _lagging(self, change: Change) -> Step | None:
        """What was moved last may not be seen yet by eventually consistent reads of its new place."""
        if not self._context.timing.lag:
            return None
        if change.passed is None:
            passed = self._record.changed(self._now, change=change.but(passed=self._now).stored())
            self._context.topology.save((self._record, passed))
            return Step("wait", self._context.timing.lag)
        left = change.passed + self._context.timing.lag - self._now
        return Step("wait", left) if left > 0 else None

    def _settled(self, change: Change) -> Step:
        """The second pass: nobody is in MOVE any more, so what it leaves unmarked was never seen by anybody."""
        step, _ = self._worked(change)
        return step or self._lagging(change) or self._stable(change, swept=False)

    def _sweep(self, change: Change) -> Step:
        step, progress = self._worked(change)
        if step is not None:
            return step
        answer = self._finish(_summed(change, progress))
        self._context.progress.clear(self._scope.key, change.id, change.tasks)
        return answer

    def _worked(self, change: Change) -> tuple[Step | None, list[Progress]]:
        """What to do until all tasks of this phase are complete."""
        left = self._left(change)
        if left > 0:
            return Step("wait", left), []
        kind = kind_of(self._record, self._scope)
        progress = self._progress(change)
        todo = open_tasks(progress, kind, change.tasks) if kind else ()
        return (self._work(todo) if todo else None), progress

    def _leave(self, change: Change) -> Step:
        """After a change without marks: the record is quiet when everybody knows."""
        if self._scope.key not in self._family.active:
            return _DONE
        left = self._left(change)
        return Step("wait", left) if left > 0 else self._finish(change)

    def _finish(self, change: Change) -> Step:
        """No marks are left, and everybody knows the count: quiet, or the way back."""
        record, family, now = self._record, self._family, self._now
        if change.back_to is not None:
            again = pending_again(self._context, self._scope, record, change, now=now)
            self._context.topology.save((record, again))
            return Step("wait", self._context.left(family, now, now))
        quiet = record.changed(now, swept=True, change=change.stored())
        active = family.active - {self._scope.key}
        if self._scope.whole_family:
            self._context.topology.save((record, quiet.changed(now, active=active)))
        else:
            self._context.topology.save((record, quiet), (family, family.changed(now, active=active)))
        return _DONE

    def _stable(self, change: Change, *, swept: bool) -> Step:
        return self._publish(change, phase=Phase.STABLE, count=change.target, target=None, swept=swept)

    def _publish(self, change: Change, **fields: Any) -> Step:
        """Publish, and then say when that was certainly done: a save may arrive long after it was sent."""
        unseen = change.but(seen=None)
        record = self._record.changed(self._now, since=self._now, change=unseen.stored(), **fields)
        self._context.topology.save((self._record, record))
        self._record = record
        return Step("wait", self._left(self._see(unseen)))

    def _left(self, change: Change) -> float:
        """Seconds until what was published last has reached everybody."""
        return self._context.left(self._family, change.seen or 0.0, self._now)

    def _work(self, tasks: tuple[int, ...]) -> Step:
        return Step("work", 0.0, tasks, self._context.concurrency)

    def _progress(self, change: Change) -> list[Progress]:
        return self._context.progress.of(self._scope.key, change.id, change.tasks)

    @property
    def _moves(self) -> bool:
        return self._scope.index is not None or rule_of(self._scope.entity).fixed


def _summed(change: Change, progress: list[Progress]) -> Change:
    counters: dict[str, Any] = {name: add(progress, name) for name in ("moved", "late", "swept", "left")}
    return change.but(**counters, **{name: float(add(progress, name)) for name in ("write_units", "read_units")})
