"""Brings the stored lease in line with the setting of the process that carries out changes.

The record of a family sets the longest time that a view may be used, and every wait between two phases is as long as
the longest lease in force. So a lowered setting shortens these waits only after the leases that were granted before
have ended, and a raised setting is stored only while nothing changes.
"""

from dynashard.errors import TopologyChangedError
from dynashard.resharding.context import Context
from dynashard.resharding.timing import Timing
from dynashard.topology import Record


def keep_lease(context: Context, family: Record) -> bool:
    """Bring the lease of a family's record one step closer to the setting.

    Args:
        context: tables, time and the setting.
        family: the record, just read.

    Returns:
        Whether there was a step to take: the record has changed since.

    Cost: none if the stored lease is the setting's; else 1 round trip, 1 write unit. Lowering takes two steps.
    """
    changed = in_line(family, context.timing, context.clock())
    if changed is None:
        return False
    try:
        context.topology.save((family, changed))
    except TopologyChangedError:
        return True
    return True


def in_line(family: Record, timing: Timing, now: float) -> Record | None:
    """The next version of a family's record on the way to the lease of `timing`; None if it is there.

    Args:
        family: the record.
        timing: the setting.
        now: the time in epoch seconds, after the record was read.
    """
    if family.former_lease and family.lowered_at is None:
        # The record has the lowered lease: from now on the former one is no longer granted.
        return family.changed(now, lowered_at=now)
    if family.granted > timing.lease:
        return family.changed(now, lease=timing.lease, former_lease=timing.longest(family, now), lowered_at=None)
    if family.granted < timing.lease and not family.active:
        return family.changed(now, lease=timing.lease)
    return None
