"""Reports whether the job of a worker is still to be done."""

from typing import Final

from dynashard.resharding.context import Context
from dynashard.resharding.job import Assignment, Job, kind_of
from dynashard.resharding.progress import Pass
from dynashard.resharding.resize import Resize
from dynashard.resharding.scope import Scope

_IMMEDIATE: Final = (Pass.CHECK, Pass.SURVEY)
"""Passes that do not wait until a phase has reached every client."""
_RECHECK: Final = 5.0
"""Seconds after which a record is read again, however long its lease, so that a pause takes effect soon."""


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
