"""64 creates of one unique value at the same time, while the shard count changes and answers are lost: one wins."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Final

import pytest

from dynashard import Dynashard
from dynashard.errors import NotUniqueError
from dynashard.resharding.status import stage_of
from dynashard.schema import EXPIRES_AT, PK, SK
from dynashard.testing.faults import FaultyTransport, lost_answer
from dynashard.transport import Transport
from tests.depth import profile
from tests.engine.repository.late_world import client
from tests.engine.repository.unique_things import Member, due, member, reservations
from tests.engine.resharding.resharding_world import Moving, moving_world, partition

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

ROUNDS: Final = 1000 if profile() == "deep" else 8
WRITERS: Final = 64
LIFETIME: Final = 60.0
ABC: Final = partition(Member)
BESIDE: Final = 6
"""How many other items the partition has, some of which move."""
MAIL: Final = "ada@x.org"


@pytest.fixture
def world(wire: Transport, table: str) -> Iterator[Moving]:
    with moving_world(wire, table, segments=1) as made:
        yield made


@dataclass
class Resizes:
    """One resize after the other, from 4 to 8 shards and back."""

    world: Moving
    stages: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._resharder = self.world.new(entities=(Member,))
        self._start()

    def _start(self) -> None:
        to = 8 if self._resharder.status(ABC).count == 4 else 4
        self._resharder.start(ABC, to, survey=False)

    def publish(self, transport: Transport) -> tuple[list[Dynashard], tuple[int, ...]]:
        """Advance to the next phase or the next work.

        Returns clients on a transport that read the topology before, and the work.
        """
        while True:
            early = [client(self.world, transport=transport) for _ in range(WRITERS // 2)]
            for each in early:
                each.collection(Member).exists(tenant="abc", id="any")
            before, step = self._stage(), self._resharder.advance(ABC.key)
            if step.kind == "done":
                self._start()
            elif step.kind == "work" or self._stage() != before:
                self.stages.add(f"{self._stage()} {step.kind}")
                return early, step.tasks
            else:
                self.world.clock.now += step.seconds

    def work(self, tasks: tuple[int, ...]) -> None:
        for task in tasks:
            while not self._resharder.work(ABC.key, task, seconds=1e9):
                pass

    def _stage(self) -> str:
        return stage_of(self.world.record(ABC.key))


def create_all(world: Moving, resizes: Resizes, random: Random, prefix: str, until: datetime | None) -> Counter[str]:
    """Let half of the writers act on the topology before a step of the resize, and half on that after it."""
    faulty = FaultyTransport(world.inner)
    early, tasks = resizes.publish(faulty)
    nths = sorted(random.sample(range(1, 2 * WRITERS), 12))
    faulty.inject(*(lost_answer("TransactWriteItems", nth=nth) for nth in nths))
    clients = early + [client(world, transport=faulty) for _ in range(WRITERS - len(early))]

    def create(writer: int) -> str:
        try:
            clients[writer].collection(Member).create(member(f"{prefix}-{writer}", mail=MAIL, until=until))
        except NotUniqueError:
            return "refused"
        return "won"

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        moving = pool.submit(resizes.work, tasks)
        outcomes = Counter(pool.map(create, range(WRITERS)))
        moving.result()
    return outcomes


@pytest.mark.timeout(7200)
def test_one_of_many_concurrent_creates_wins_and_nothing_is_left_over(world: Moving) -> None:
    random = Random(73)
    world.of(Member).batch_write(put=[member(f"beside-{number}") for number in range(BESIDE)])
    resizes = Resizes(world)
    for number in range(ROUNDS):
        expires = number % 2 == 1
        until = datetime.fromtimestamp(world.clock.now + LIFETIME, UTC) if expires else None

        outcomes = create_all(world, resizes, random, str(number), until)

        assert outcomes == {"won": 1, "refused": WRITERS - 1}
        assert reservations(world) == due(world)
        members = world.of(Member)
        winner = members.get(mail=MAIL, tenant="abc")
        if expires:
            world.clock.now = max(world.clock.now, winner.until.timestamp())
            assert world.of(Member).find(mail=MAIL, tenant="abc") is None
            outcomes = create_all(world, resizes, random, f"{number}-next", None)
            assert outcomes == {"won": 1, "refused": WRITERS - 1}
            delete_expired(world)
            assert reservations(world) == due(world)
            members = world.of(Member)
            heir = members.get(mail=MAIL, tenant="abc")
            assert heir.id != winner.id
            winner = heir
        members.delete(winner)
        assert reservations(world) == due(world) == {}

    assert len(world.places(Member)) == BESIDE
    assert resizes.stages >= {
        "prepare wait", "move wait", "move work", "settle wait", "settle work", "sweep wait", "sweep work"
    }  # fmt: skip


def delete_expired(world: Moving) -> None:
    """Delete what has expired, as DynamoDB does at any time."""
    for row in world.raw():
        if int(row.get(EXPIRES_AT, {"N": "9999999999"})["N"]) <= world.clock.now:
            world.inner.call("DeleteItem", {"TableName": world.table, "Key": {PK: row[PK], SK: row[SK]}})
