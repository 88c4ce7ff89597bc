"""The controller: publishes one phase after the other, each when the one before has reached every client.

It keeps no state. Every step is derived from the records and stored with a conditional update, so it can be killed at
any moment, and two of them do no harm.
"""

from dataclasses import replace
from typing import Any, Final

from dynashard.errors import ThrottledError, TopologyChangedError
from dynashard.resharding.context import Context
from dynashard.resharding.epochs import advance_epoch
from dynashard.resharding.forecast import judged
from dynashard.resharding.job import Job, checks_of, kind_of, tasks_of
from dynashard.resharding.progress import Pass, Progress, open_tasks, sums
from dynashard.resharding.resize import Resize
from dynashard.resharding.resize_requests import reversal, taken_back
from dynashard.resharding.scope import Scope
from dynashard.resharding.status import Step, surveyed
from dynashard.resharding.vacancy import vacant_in
from dynashard.topology import Phase, Record

_ROUNDS: Final = 5
_CONTENDED: Final = 1.0
"""Seconds to wait while others keep changing the records."""
_THROTTLED: Final = 5.0
"""Seconds to wait after a throttle of the count of what a resize would move."""
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
            if record.epochs:
                return advance_epoch(context, scope, record, family)
            return _Controller(context, scope, record, family).step()
        except TopologyChangedError:
            continue
    return Step("wait", _CONTENDED)


class _Controller:
    """Derives one step from the records of a resize."""

    def __init__(self, context: Context, scope: Scope, record: Record, family: Record) -> None:
        self._context = context
        self._scope = scope
        self._record = record
        self._family = family
        self._now = context.runtime.clock()

    def step(self) -> Step:
        resize = Resize.of(self._record)
        if resize is None or resize.paused:
            return _DONE
        if resize.seen is None or self._in_future(resize.seen):
            resize = self._see(resize)
        record = self._record
        if record.phase is Phase.STABLE and record.target is not None:
            return self._pending(resize)
        if not record.busy and self._scope.key not in self._family.active:
            return _DONE
        left, kind = self._left(resize), kind_of(record, self._scope)
        # Counting only reads, so it uses the wait. The others rely on it: the mover passes once, so no client may still
        # create at the old homes then (the fault "eager mover" in docs/proof.md).
        if left > 0 and kind is not Pass.SURVEY:
            return Step("wait", left)
        progress = self._progress(resize) if kind else []
        todo = open_tasks(progress, kind, resize.tasks) if kind else ()
        if todo and (left > 0 or kind is not Pass.SURVEY):
            return self._work(todo)
        return Step("wait", left) if left > 0 else self._go_on(resize, progress)

    def _go_on(self, resize: Resize, progress: list[Progress]) -> Step:
        """Publish what follows a phase that every client knows and whose work is done."""
        record = self._record
        if not record.busy:
            # There are no markers to sweep.
            return self._finish(resize)
        if not self._scope.moves_by(rewrites=resize.rewrites):
            return self._widened(resize)
        if record.phase is Phase.PREPARE:
            return self._publish(replace(resize, total=surveyed(resize, progress)), phase=Phase.MOVE)
        # An index has no markers to sweep and no second pass: its entries are rewritten where they are.
        if record.phase is Phase.STABLE or self._scope.index is not None:
            done = replace(resize, **sums(progress))
            step = self._finish(done) if record.phase is Phase.STABLE else self._stable(done, swept=True)
            self._clear(resize, resize.tasks)
            return step
        if record.phase is Phase.MOVE:
            # `passed` is of this pass; the second one waits for its own last item.
            return self._lagging(resize) or self._publish(replace(resize, passed=None), phase=Phase.SETTLE)
        # After the second pass no client is in MOVE, so no reader has seen items that are stored late from now on.
        return self._lagging(resize) or self._stable(resize, swept=False)

    def _see(self, resize: Resize) -> Resize:
        """Store that the publication was read, so that the wait for it begins."""
        seen = replace(resize, seen=self._context.runtime.clock(), margin=self._context.timing.wait(0.0))
        record = self._record.revised(self._now, resize=seen.stored())
        self._context.topology.save((self._record, record))
        self._record = record
        return seen

    def _pending(self, resize: Resize) -> Step:
        record = self._record
        since = self._context.waited_since(self._scope, record, self._family, resize, resize.seen or 0.0)
        left = self._context.left(self._family, since, self._now)
        checks = checks_of(self._scope, resize)
        todo = open_tasks(self._progress(resize), Pass.CHECK, checks) if checks else ()
        if todo:
            return self._work(todo)
        if left > 0:
            return Step("wait", left)
        try:
            resize = judged(self._context, self._scope, self._family, resize)
        except ThrottledError:
            return Step("wait", _THROTTLED)
        if resize.declined is not None:
            return self._decline(resize, resize.declined)
        tasks = tasks_of(self._scope, resize, self._context.segments)
        wait = self._publish(replace(resize, tasks=tasks), phase=Phase.PREPARE)
        return self._work(tuple(range(tasks))) if resize.survey and tasks else wait

    def _decline(self, resize: Resize, declined: str) -> Step:
        """End a resize that started by itself and would take too long; an operator may start it."""
        record = taken_back(self._record, resize, self._now, declined=declined)
        self._context.topology.save((self._record, record))
        return Step("wait", self._context.left(self._family, self._now, self._now), reason=f"declined: {declined}")

    def _in_future(self, moment: float) -> bool:
        """Whether a stored moment was written by a clock that was ahead; it has passed, because it is stored."""
        return moment > self._now + self._context.timing.skew

    def _widened(self, resize: Resize) -> Step:
        """When nothing moves: readers know the new shards, or writers have left the old ones."""
        if resize.target < resize.origin:
            job = Job(self._scope, self._context.families[self._scope.family], resize, Pass.SURVEY)
            left = vacant_in(self._context, job)
            if left:
                return Step("wait", left)
        step = self._stable(resize, swept=True)
        self._clear(resize, 1)
        return step

    def _lagging(self, resize: Resize) -> Step | None:
        """Wait until all readers see the item that was moved last at its new home; see decision 13."""
        if not self._context.timing.lag:
            return None
        if resize.passed is None or self._in_future(resize.passed):
            passed = self._record.revised(self._now, resize=replace(resize, passed=self._now).stored())
            self._context.topology.save((self._record, passed))
            return Step("wait", self._context.timing.lag)
        left = resize.passed + self._context.timing.lag - self._now
        return Step("wait", left) if left > 0 else None

    def _finish(self, resize: Resize) -> Step:
        """End the resize, or begin the one back: no markers are left, and every client knows the count."""
        record, family, now = self._record, self._family, self._now
        if resize.back_to is not None:
            again = reversal(self._context, self._scope, record, resize, now=now)
            self._context.topology.save((record, again))
            return Step("wait", self._context.left(family, now, now))
        ended = record.revised(now, swept=True, resize=resize.stored())
        active = family.active - {self._scope.key}
        if self._scope.whole_family:
            self._context.topology.save((record, ended.revised(now, active=active)))
        else:
            self._context.topology.save((record, ended), (family, family.revised(now, active=active)))
        return _DONE

    def _stable(self, resize: Resize, *, swept: bool) -> Step:
        former = self._record.former
        if self._scope.index is not None:
            # Readers look for entries by these counts until all of them have been rewritten.
            former = frozenset() if resize.rewrites else former | {resize.origin}
        return self._publish(resize, phase=Phase.STABLE, count=resize.target, target=None, swept=swept, former=former)

    def _publish(self, resize: Resize, **fields: Any) -> Step:
        # A save may be executed long after it was sent, so the wait begins when the publication is read.
        unseen = replace(resize, seen=None)
        record = self._record.revised(self._now, since=self._now, resize=unseen.stored(), **fields)
        self._context.topology.save((self._record, record))
        self._record = record
        return Step("wait", self._left(self._see(unseen)))

    def _left(self, resize: Resize) -> float:
        """Seconds until the last publication has reached every client."""
        return self._context.left(self._family, resize.seen or 0.0, self._now)

    def _work(self, tasks: tuple[int, ...]) -> Step:
        return Step("work", 0.0, tasks, self._context.concurrency)

    def _progress(self, resize: Resize) -> list[Progress]:
        return self._context.progress.of(self._scope.key, resize.id, resize.tasks)

    def _clear(self, resize: Resize, tasks: int) -> None:
        self._context.progress.clear(self._scope.key, resize.id, tasks)
