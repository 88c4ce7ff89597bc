"""List the closed incidents of some teams, newest first, while incidents change state.

    python -m dynashard_checks.teams --help

Every incident has a copy for each team that takes part. Between pages some incidents close or open again, and their
copies are updated one by one, some of them after the next page. The run checks the order, that no incident is listed
twice, that each incident that stayed closed is listed, and how many round trips and read units a page takes.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

from domain.samples.incidents import IncidentState
from domain.samples.participations import Participation
from dynashard import Collection, Page
from dynashard_lab.bench.world import World, create_tables
from dynashard_local.engine.process import running_engine
from dynashard_local.settings import Settings

TENANT: Final = "check"
TEAMS: Final = tuple(f"team_{n:02d}" for n in range(8))
_YEAR: Final = timedelta(days=365)
_CLOSED: Final = 0.8
"""The share of incidents that are closed at the start."""


class Incidents:
    """The incidents of eight teams. Each has a copy for every team that takes part."""

    def __init__(self, copies: Collection[Participation], random: Random, size: int) -> None:
        self._copies, self._random = copies, random
        self._late: deque[Participation] = deque()
        self.changed: set[str] = set()
        now = datetime.now(UTC) - timedelta(hours=1)
        self._created = {f"inc_{n:06d}": now - random.random() * _YEAR for n in range(size)}
        self._teams = {name: random.sample(TEAMS, random.choice([1, 1, 2, 2, 3])) for name in self._created}
        self._closed = {
            name: at + timedelta(minutes=30) for name, at in self._created.items() if random.random() < _CLOSED
        }
        self.copies = sum(map(len, self._teams.values()))
        self._copies.batch_write(put=[copy for name in self._created for copy in self._of(name)])

    def _of(self, name: str) -> Iterator[Participation]:
        closed = self._closed.get(name)
        for team in self._teams[name]:
            yield Participation(
                tenant_id=TENANT,
                incident_id=name,
                participant=team,
                state=IncidentState.CLOSED if closed else IncidentState.OPEN,
                since=closed or self._created[name],
                number=int(name[4:]),
                title=f"Application error rate exceeded {name[4:]}",
                status="resolved" if closed else "investigating",
                team=team,
                created_at=self._created[name],
                closed_at=closed,
            )

    def change(self, most: int) -> None:
        """Open or close some incidents; a few of their copies are updated later."""
        for name in self._random.sample(sorted(self._created), most):
            if name in self._closed:
                del self._closed[name]
            else:
                self._closed[name] = datetime.now(UTC)
            self.changed.add(name)
            self._late.extend(self._of(name))
        while len(self._late) > 3:  # noqa: PLR2004 - how many copies lag behind
            self._copies.put(self._late.popleft())

    def closed(self, teams: Sequence[str]) -> list[str]:
        """Return the closed incidents in which one of the teams takes part, newest first."""
        mine = [name for name in self._closed if set(teams) & set(self._teams[name])]
        return sorted(mine, key=lambda name: (self._closed[name], name), reverse=True)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a full listing."""

    incidents: int
    copies: int
    listed: int
    pages: int
    changed_meanwhile: int
    in_order: bool
    doubles: int
    missed: int
    most_rounds: int
    units_a_page: float
    requests_a_page: float
    longest_cursor: int

    @property
    def met(self) -> bool:
        """Whether the listing was right and cheap enough."""
        return self.in_order and not self.doubles and not self.missed and self.most_rounds <= 2  # noqa: PLR2004


def run(copies: Collection[Participation], *, size: int, teams: int, limit: int, changes: int, seed: int) -> Outcome:
    """List all closed incidents once, page by page, with changes between pages."""
    incidents = Incidents(copies, Random(seed), size)
    mine = TEAMS[:teams]
    before = incidents.closed(mine)
    asked: dict[str, Any] = {"index": "by_participant", "prefix": "CLOSED#", "order": "ordered", "direction": "desc"}
    partitions = [{"tenant_id": TENANT, "participant": team} for team in mine]
    pages: list[Page[Any]] = []
    cursor: str | None = None
    while not pages or cursor is not None:
        page = copies.list(partitions, limit=limit, cursor=cursor, distinct="incident_id", **asked)
        pages.append(page)
        cursor = page.cursor
        incidents.change(changes)
    listed = [item for page in pages for item in page.items]
    names = [item.incident_id for item in listed]
    keys = [(item.since, item.incident_id) for item in listed]
    return Outcome(
        incidents=size,
        copies=incidents.copies,
        listed=len(listed),
        pages=len(pages),
        changed_meanwhile=len(incidents.changed),
        in_order=keys == sorted(keys, reverse=True),
        doubles=sum(times - 1 for times in Counter(names).values()),
        missed=len({name for name in before if name not in incidents.changed} - set(names)),
        most_rounds=max(page.rounds for page in pages),
        units_a_page=round(sum(page.consumed.read_units for page in pages) / len(pages), 1),
        requests_a_page=round(sum(page.consumed.requests for page in pages) / len(pages), 1),
        longest_cursor=max(len(page.cursor or "") for page in pages),
    )


def main() -> int:
    """Run and print the figures.

    Returns:
        The exit status: 0 if the listing was complete, in order, without repetitions, and took two rounds a page.
    """
    parser = argparse.ArgumentParser(prog="python -m dynashard_checks.teams", description=__doc__)
    parser.add_argument("--incidents", type=int, default=10_000, help="default 10000")
    parser.add_argument("--teams", type=int, default=5, choices=range(1, len(TEAMS) + 1), help="my teams (default 5)")
    parser.add_argument("--limit", type=int, default=50, help="items a page (default 50)")
    parser.add_argument("--changes", type=int, default=5, help="incidents that change between pages (default 5)")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="dynashard-teams-") as folder,
        running_engine(Settings(data_dir=Path(folder), dynamodb_port=0)) as engine,
    ):
        world = World(engine.endpoint)
        create_tables(world)
        copies = world.db(world.transport()).collection(Participation)
        outcome = run(
            copies,
            size=asked.incidents,
            teams=asked.teams,
            limit=asked.limit,
            changes=asked.changes,
            seed=asked.seed,
        )
    print(json.dumps({**asdict(outcome), "met": outcome.met}, indent=2))
    return 0 if outcome.met else 1


if __name__ == "__main__":
    sys.exit(main())
