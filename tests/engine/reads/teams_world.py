"""Incidents with a copy for each of their teams, listed over several partitions by team and state.

Copies are written one by one, as by a stream consumer, so that some of them lag behind for a while.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

from dynashard import Entity, Index, Key, Registry, Shards, updated_at
from dynashard.service import Collection
from tests.engine.reads.listing_world import NOW

ACCOUNT = "acct"
BEGIN = NOW - timedelta(days=365)


class Copy(
    Entity,
    name="teams.v1.Copy",
    key=Key("{account}:{incident}", "{team}"),
    indexes=[
        Index("GSI1", "by_state", "{account}:{team}", "{state}#{at}#{incident}", shards=Shards(2)),
        Index("GSI2", "by_state_bare", "{account}:{team}", "{state}#{at}#{incident}"),
    ],
    registry=Registry(),
):
    """The copy of an incident for one team."""

    account: str
    incident: str
    team: str
    state: str
    at: datetime
    title: str = ""
    updated_at: datetime = updated_at()


class Unstamped(
    Entity,
    name="teams.v1.Unstamped",
    key=Key("{account}:{incident}", "{team}"),
    indexes=[Index("GSI1", "by_state", "{account}:{team}", "{state}#{at}#{incident}", shards=Shards(2))],
    registry=Registry(),
):
    """A copy without a stamp, whose time of change is only in its sort key."""

    account: str
    incident: str
    team: str
    state: str
    at: datetime


INDEXES = ["by_state", "by_state_bare"]


class Incidents:
    """Incidents of an account, and their copies.

    Attributes:
        state: the state of each incident, and since when.
        changed: those that have changed since the beginning.
    """

    def __init__(self, copies: Collection[Copy], account: str, random: Random, size: int, teams: Sequence[str]) -> None:
        self.copies, self.account, self.random = copies, account, random
        self.teams = {f"inc{n:06d}": random.sample(teams, random.choice([1, 1, 2, 3, len(teams)])) for n in range(size)}
        self.state = {
            name: (
                random.choice(["CLOSED", "CLOSED", "CLOSED", "OPEN"]),
                BEGIN + timedelta(minutes=random.randrange(500_000)),
            )
            for name in self.teams
        }
        self.changed: set[str] = set()
        self._moment = NOW
        self._late: deque[Copy] = deque()
        copies.batch_write(put=[copy for name in self.teams for copy in self._copies(name)])

    def _copies(self, name: str) -> Iterable[Copy]:
        state, at = self.state[name]
        return [Copy(account=self.account, incident=name, team=t, state=state, at=at) for t in self.teams[name]]

    def change(self, most: int, *, late: int = 0) -> None:
        """Open or close some incidents. Their copies follow, except `late` ones that come with the next change."""
        self._moment += timedelta(seconds=1)
        for name in self.random.sample(sorted(self.teams), min(most, len(self.teams))):
            state, _ = self.state[name]
            self.state[name] = ("OPEN" if state == "CLOSED" else "CLOSED", self._moment)
            self.changed.add(name)
            self._late.extend(self._copies(name))
        while len(self._late) > late:
            self.copies.put(self._late.popleft())

    def in_state(self, state: str, teams: Iterable[str]) -> list[str]:
        """Return the incidents of these teams in a state, newest first."""
        wanted = set(teams)
        found = [(*self.state[name][::-1], name) for name, of in self.teams.items() if wanted & set(of)]
        return [
            name for at, now, name in sorted(found, key=lambda each: (each[0], each[2]), reverse=True) if now == state
        ]


def asked(account: str, teams: Iterable[str]) -> list[dict[str, Any]]:
    """Return the partitions of some teams."""
    return [{"account": account, "team": team} for team in teams]
