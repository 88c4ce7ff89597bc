"""Many concurrent writers: nothing is lost, and one writer at a revision wins."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from dynashard.errors import AlreadyExistsError, NotFoundError, RevisionMismatchError
from tests.engine.stored_things import World, key, person

pytestmark = [pytest.mark.engine, pytest.mark.one_face]

WRITERS = 8


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """Start writers together, and return the result or the refusal of each."""
    start = Barrier(WRITERS)

    def one(number: int) -> Any:
        start.wait()
        try:
            return work(number)
        except (AlreadyExistsError, NotFoundError, RevisionMismatchError) as refused:
            return type(refused)

    with ThreadPoolExecutor(WRITERS) as pool:
        return list(pool.map(one, range(WRITERS)))


def test_concurrent_additions_lose_nothing(world: World) -> None:
    people = world.people
    people.create(person())

    at_once(lambda n: [people.update(key(), add={"visits": 1, "tags": {f"{n}-{i}"}}) for i in range(25)])

    found = people.get(key(), consistent=True)
    assert found.visits == WRITERS * 25
    assert len(found.tags or ()) == WRITERS * 25


def test_concurrent_additions_to_an_index_key_lose_nothing_acknowledged(world: World) -> None:
    people = world.people
    people.create(person(team="eng", rank=0))

    outcomes = at_once(lambda _: people.update(key(), add={"rank": 1}))

    done = [outcome for outcome in outcomes if outcome is not RevisionMismatchError]
    assert people.get(key(), consistent=True).rank == len(done) >= 1
    assert world.entries("GSI2") == [("test.v1.Person:abc:eng:1", f"{len(done):03d}")]


def test_one_of_many_creators_wins(world: World) -> None:
    people = world.people

    outcomes = at_once(lambda n: people.create(person(mail=f"{n}@x.org")))

    [winner] = [outcome for outcome in outcomes if outcome is not AlreadyExistsError]
    assert people.get(key(), consistent=True) == winner


def test_one_of_many_replacers_of_a_revision_wins(world: World) -> None:
    people = world.people
    for number in range(5):
        revision = people.replace(person(mail=f"start{number}@x.org")).revision
        read = people.get(key(), consistent=True)

        outcomes = at_once(
            lambda n, read=read, revision=revision: people.replace(  # type: ignore[misc]
                (read if n % 2 else person()).model_copy(update={"mail": f"{n}@x.org"}), if_match=revision
            )
        )

        [winner] = [outcome for outcome in outcomes if outcome is not RevisionMismatchError]
        assert people.get(key(), consistent=True) == winner


def test_one_of_many_deleters_wins(world: World) -> None:
    people = world.people
    people.create(person())

    outcomes = at_once(lambda _: people.delete(key()))

    assert sorted(outcomes, key=str) == [NotFoundError] * (WRITERS - 1) + [None]


def test_replacers_without_a_revision_keep_the_creation_stamp(world: World) -> None:
    people = world.people
    made = people.create(person()).made
    world.clock.at += 60

    outcomes = at_once(lambda n: people.replace(person(mail=f"{n}@x.org")))

    done = [outcome for outcome in outcomes if outcome is not RevisionMismatchError]
    stored = people.get(key(), consistent=True)
    assert stored in done
    assert stored.made == made
