"""What a resize has to do now, and into which tasks that is divided: always derived from the record."""

from dataclasses import dataclass, replace
from typing import Final, Protocol

from dynashard.placement import UNSHARDED
from dynashard.resharding.progress import Pass, ProgressTable
from dynashard.resharding.resize import Resize
from dynashard.resharding.scope import Family, Scope
from dynashard.runtime import Runtime
from dynashard.topology import Phase, Record
from dynashard.transport.interface import Transport

_MOST_TASKS: Final = 64


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
