"""What the table, or an index, can give, and whether a hot scope could use more of it.

Source: AWS, 'Understanding DynamoDB warm throughput'.
"""

import math
from dataclasses import dataclass
from typing import Final

from dynashard.errors import ThrottledError, ThrottleKind
from dynashard.growth.demand import Place
from dynashard.growth.evidence import Evidence
from dynashard.growth.settings import ON_DEMAND_LIMIT
from dynashard.growth.sizing import power_of_two
from dynashard.resharding.share import SHARD_READ_UNITS, SHARD_WRITE_UNITS

_LEAST_HEAT: Final = 0.5
"""The share of a shard's units that a scope must be able to consume, else it is not what makes a key range hot."""


@dataclass(frozen=True, slots=True)
class Supply:
    """What the table, or an index, can give in a second: `units`, None if that is unknown."""

    units: float | None
    place: Place

    @property
    def shard_units(self) -> float:
        """What one shard can take."""
        return SHARD_WRITE_UNITS if self.place.writing else SHARD_READ_UNITS

    @property
    def most_shards(self) -> int:
        """The shards that can use all of it."""
        return power_of_two((self.units or ON_DEMAND_LIMIT) / self.shard_units)

    @property
    def remedy(self) -> str:
        """What to do if the scope needs more than this."""
        where = f"index {self.place.slot}" if self.place.slot else "the table"
        does = "write" if self.place.writing else "read"
        if self.units is None:
            return f"{where} is assumed to give {ON_DEMAND_LIMIT:,} {does} units a second"
        return f"{where} gives {self.units:,.0f} {does} units a second now; pre-warm it, or raise its maximum"

    def bystander(self, evidence: Evidence) -> bool:
        """Whether a scope has so small a part of all requests that it cannot be what makes a key range hot.

        It may share a physical partition with a hot key; or the table is not warm, which throttles all of it alike.
        """
        # Of few requests, some may be of the same scope by chance.
        certain = max(evidence.requests - math.sqrt(evidence.requests), 0.5)
        return not self._hot(certain, evidence)

    def spread(self, evidence: Evidence) -> bool:
        """Whether throttles are so spread that no key can be hot: the table, or index, gives too little for all."""
        return not self._hot(evidence.most_throttled, evidence)

    def _hot(self, requests: float, evidence: Evidence) -> bool:
        part = requests / max(1, evidence.all_requests)
        return part * (self.units or ON_DEMAND_LIMIT) >= _LEAST_HEAT * self.shard_units


def hot_places(error: ThrottledError) -> list[Place]:
    """Return where more shards help: the table, or else the indexes that a throttle names (`""` if it names none).

    A table's count is left alone while only an index is the bottleneck. More shards cannot give more than the table or
    index has: if the throttle names a limit of its own too, that comes first.
    """
    limited = {reason.index for reason in error.reasons if reason.kind is ThrottleKind.TABLE}
    hot = [reason for reason in error.reasons if reason.kind is ThrottleKind.KEY_RANGE]
    found = {Place(reason.index or "" if reason.on_index else None, not reason.reading) for reason in hot}
    table = [place for place in found if place.slot is None]
    return sorted(place for place in (table or found) if place.slot not in limited)
