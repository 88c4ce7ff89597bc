"""What every part of the controller and the mover uses, in one frozen object."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from dynashard.errors import TopologyChangedError
from dynashard.resharding.progress import ProgressTable
from dynashard.resharding.resize import Resize
from dynashard.resharding.scope import Family, Scope
from dynashard.resharding.share import Share
from dynashard.resharding.timing import Timing
from dynashard.runtime import Runtime
from dynashard.topology import Phase, Record, TopologyTable
from dynashard.transport.interface import Transport


@dataclass(frozen=True, slots=True)
class Context:
    """The arguments of `Resharder`, with the tables that they name, and the entities by family."""

    transport: Transport
    table: str
    topology: TopologyTable
    progress: ProgressTable
    families: Mapping[str, Family]
    timing: Timing
    runtime: Runtime
    new_id: Callable[[], str]
    concurrency: int
    segments: int
    share: Share
    most_seconds: float | None

    def read(self, scope: Scope) -> tuple[Record | None, Record | None]:
        """Return the record of a scope and that of its family, if they exist. Cost: 1 round trip, 2 read units."""
        records = self.topology.read([scope.key, scope.family])
        return records.get(scope.key), records.get(scope.family)

    def keep_lease(self, family: Record) -> bool:
        """Bring the lease of a family's record, which was just read, one step closer to the setting of this process.

        Every wait between two phases is as long as the longest lease in force. So a lowered setting shortens the waits
        only after the leases that were granted before have ended; a raised one is stored only while nothing changes.

        Returns whether the record has changed since. Cost: none if the stored lease is the setting's; else 1 round
        trip, 1 write unit. Lowering takes two steps.
        """
        now, lease = self.runtime.clock(), self.timing.lease
        lowered = family.lowered_at
        if family.former_lease and (lowered is None or lowered > now + self.timing.skew):
            # The record has the lowered lease: from now on the former one is no longer granted. A later time was stored
            # by a clock that was ahead.
            changed = family.revised(now, lowered_at=now)
        elif family.granted > lease:
            changed = family.revised(now, lease=lease, former_lease=self.timing.longest(family, now), lowered_at=None)
        elif family.granted < lease and not family.active:
            changed = family.revised(now, lease=lease)
        else:
            return False
        with suppress(TopologyChangedError):
            self.topology.save((family, changed))
        return True

    def left(self, family: Record, published: float, now: float) -> float:
        """Return the seconds until no client acts on what preceded a publication any more; times in epoch seconds.

        Every view is read under the lease of the family's record, which was read after the publication was seen, at
        `now` at the latest. Leases that were granted before the lease was lowered count to their end.
        """
        return self._over(family, published, now, self.timing.wait) - now

    def known_in(self, family: Record, seen: float, now: float) -> float:
        """Return the seconds until every view in use has an epoch that was seen stored; times in epoch seconds.

        Requests that are under way do not count: a place that was computed under a view stays right.
        """
        return self._over(family, seen, now, self.timing.known_after) - now

    @staticmethod
    def _over(family: Record, since: float, now: float, wait: Callable[[float], float]) -> float:
        """Return when a wait is over that depends on the leases in force, in epoch seconds."""
        over = since + wait(family.granted)
        if family.former_lease:
            lowered = now if family.lowered_at is None else family.lowered_at
            over = max(over, lowered + wait(family.former_lease))
        return over

    def waited_since(self, scope: Scope, record: Record, family: Record, resize: Resize, seen: float) -> float:
        """Return when the publication was stored, at the latest, that a record's resize waits for; in epoch seconds.

        `seen` is when the record was found stored. A request that moves nothing waits only for what was published
        before it: writers may be waiting for new shards. What was seen was stored, whatever other clocks have said.
        """
        if record.target is None or record.phase is not Phase.STABLE or scope.moves_by(rewrites=resize.rewrites):
            return seen
        return min(seen, max(record.since, family.differ_since or 0.0))
