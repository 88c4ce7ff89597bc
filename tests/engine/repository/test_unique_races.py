"""64 creates of one unique value at the same time, in each phase of a resize, with lost answers: one wins."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from random import Random
from typing import Any, Final

import pytest

from dynashard.errors import NotUniqueError
from dynashard.testing.faults import lost_answer
from dynashard.topology import Phase, View
from tests.depth import profile
from tests.engine.repository.unique_things import Member, due, member, reservations
from tests.engine.stored_things import NOON, World

pytestmark = pytest.mark.engine

ROUNDS: Final = 1000 if profile() == "deep" else 8
WRITERS: Final = 64
PHASES: Final = (None, Phase.PREPARE, Phase.MOVE, Phase.SETTLE)


def test_one_of_many_concurrent_creates_wins_and_nothing_is_left_over(world: World) -> None:
    random = Random(73)
    with ThreadPoolExecutor(WRITERS) as pool:
        for number in range(ROUNDS):
            phase = PHASES[number % len(PHASES)]
            world.views.now = None if phase is None else View(4, phase, 8, markers=True)
            nths = sorted(random.sample(range(1, 2 * WRITERS), 12))
            world.faults(*(lost_answer("TransactWriteItems", nth=nth) for nth in nths))
            members = world.of(Member)
            until = NOON + timedelta(minutes=1) if number % 2 else None

            def create(writer: int, number: int = number, members: Any = members, until: Any = until) -> str:
                try:
                    members.create(member(f"{number}-{writer}", mail="ada@x.org", until=until))
                except NotUniqueError:
                    return "refused"
                return "won"

            assert Counter(pool.map(create, range(WRITERS))) == {"won": 1, "refused": WRITERS - 1}
            assert reservations(world) == due(world)
            winner = members.get(mail="ada@x.org", tenant="abc")
            members.delete(winner)
            assert reservations(world) == due(world) == {}
