"""Compare roll-ups with the sums of the distinct pings that were sent, at every level.

differences(db, "abc", pings)     # [] if every row is right and no other row exists
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from domain.samples.pings import Ping
from domain.samples.plays import PLAYS, EpisodePlays
from dynashard import Dynashard, definition
from dynashard_patterns import Level

Sums = dict[tuple[Any, ...], tuple[int, int]]
"""Number of pings and their seconds, by level, series, episode (None for a whole series) and start."""


def truth(pings: Iterable[Ping]) -> Sums:
    """Return the sums that the roll-ups of these pings must have. A repeated ping counts once."""
    entity = definition(Ping)
    distinct = {(key.partition, key.sort): ping for ping in pings for key in [entity.key_of(ping)]}
    sums: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0])
    for ping in distinct.values():
        for level in PLAYS.levels:
            episode = ping.episode if PLAYS.rows_of(level) is EpisodePlays else None
            found = sums[level, ping.series, episode, level.start(ping.at)]
            found[0] += 1
            found[1] += ping.seconds
    return {key: (count, seconds) for key, (count, seconds) in sums.items()}


def stored_sums(db: Dynashard, tenant: str, pings: Iterable[Ping]) -> Sums:
    """Return the stored sums of the series, episodes and months of these pings."""
    pings = list(pings)
    found: Sums = {}
    starts = {Level.MONTH.start(ping.at) for ping in pings}
    for start in starts:
        for row in PLAYS.read(
            db, {"tenant_id": tenant}, level=Level.MONTH, start=start, end=Level.MONTH.end(start), consistent=True
        ):
            found[Level.MONTH, row.series, None, row.start] = (row.pings, row.seconds)
    for series, episode in {(ping.series, ping.episode) for ping in pings}:
        by = {"tenant_id": tenant, "series": series, "episode": episode}
        for level in (Level.MINUTE, Level.HOUR, Level.DAY):
            for start, end in _days(ping.at for ping in pings):
                for row in PLAYS.read(db, by, level=level, start=start, end=end, consistent=True):
                    found[level, series, episode, row.start] = (row.pings, row.seconds)
    return found


def differences(db: Dynashard, tenant: str, pings: Iterable[Ping]) -> list[str]:
    """Return a line for every row that differs from the pings; none if the roll-ups are exact."""
    pings = list(pings)
    right, stored = truth(pings), stored_sums(db, tenant, pings)
    return [
        f"{' '.join(str(part) for part in key)}: {stored.get(key)} instead of {right.get(key)}"
        for key in sorted(right.keys() | stored.keys(), key=str)
        if right.get(key) != stored.get(key)
    ]


def _days(times: Iterable[datetime]) -> Iterator[tuple[datetime, datetime]]:
    for day in sorted({Level.DAY.start(at) for at in times}):
        yield day, day + timedelta(days=1)
