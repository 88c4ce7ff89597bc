"""The engine's stream reports the same writes whether or not shard counts change in their middle."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from dynashard.errors import AlreadyExistsError, NotFoundError
from dynashard.resharding import Scope
from dynashard.resharding.status import stage_of
from dynashard.transport import Transport
from tests.engine.patterns.stream_world import Streamed, changes_of, records_of, stories
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.resharding.resharding_world import Moving, Old, Thing, index, moving_world, partition

pytestmark = pytest.mark.engine

KEYS = [f"{number:02d}" for number in range(16)]
Story = list[tuple[str, Any, Any]]


@pytest.fixture(scope="module")
def streamed(engine_url: str, dynamodb: RawDynamoDB) -> Streamed:
    return Streamed(engine_url, dynamodb)


@pytest.fixture
def worlds(wire: Transport, create_table: Callable[[], str]) -> Iterator[tuple[Moving, Moving]]:
    with moving_world(wire, create_table()) as one, moving_world(wire, create_table()) as other:
        yield one, other


def made(model: Any, key: str, text: str) -> Any:
    more = {"colour": "red"} if model is Thing else {}
    return model(tenant="abc", id=key, text=text, **more)


def traffic(world: Moving, model: type[Any], random: Random, between: Callable[[], None]) -> dict[Any, Story]:
    """Write at random, and return the changes that readers of the items have seen."""
    items, seen = world.of(model), dict[Any, Story]()
    live: dict[str, str] = {}
    for number in range(100):
        key, text = random.choice(KEYS), str(number)
        act = random.choice(["create", "update", "put", "delete"])
        before = live.get(key)
        try:
            if act == "create":
                items.create(made(model, key, text))
            elif act == "update":
                items.update({"tenant": "abc", "id": key}, set={"text": text})
            elif act == "put":
                items.put(made(model, key, text))
            else:
                items.delete({"tenant": "abc", "id": key})
        except (AlreadyExistsError, NotFoundError):
            pass
        else:
            kind = "deleted" if act == "delete" else "updated" if key in live else "created"
            seen.setdefault(("abc", key), []).append((kind, before, None if act == "delete" else text))
            if act == "delete":
                del live[key]
            else:
                live[key] = text
        between()
    return seen


def nibbling(world: Moving, scope: Scope, seen: set[str], random: Random) -> Callable[[], None]:
    """Return a function that advances a change by its smallest step in half of its calls."""

    def nibble() -> None:
        seen.add(stage_of(world.record(scope.key)))
        if random.random() < 0.5:
            step = world.resharder.advance(scope.key)
            if step.tasks:
                world.resharder.work(scope.key, step.tasks[0], seconds=0.0)
            else:
                world.clock.now += step.seconds

    return nibble


CHANGES: dict[str, tuple[type[Any], Scope, int]] = {
    "grows": (Thing, partition(Thing), 16),
    "shrinks": (Thing, partition(Thing), 1),
    "index": (Thing, index(Thing, "by_colour"), 8),
    "adopted": (Old, partition(Old), 4),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", CHANGES)
def test_the_stream_reports_the_same_writes_when_counts_change_in_their_middle(
    worlds: tuple[Moving, Moving], streamed: Streamed, name: str, seed: int
) -> None:
    model, scope, to = CHANGES[name]
    moving, still = worlds
    streams = [streamed.on(world.table) for world in worlds]
    for world in worlds:
        world.of(model).create(made(model, "first", "first"))
    moving.resharder.start(scope, to, rewrite=None if scope.index is None else True)
    stages: set[str] = set()

    expected = traffic(moving, model, Random(seed), nibbling(moving, scope, stages, Random(seed)))
    traffic(still, model, Random(seed), lambda: None)

    moving.finish(scope)
    first = {("abc", "first"): [("created", None, "first")]}
    records = [records_of(stream) for stream in streams]
    with_change, without = (stories(changes_of(each, model), lambda item: item.text) for each in records)
    assert with_change == without == {**expected, **first}
    assert {"prepare", "move"} <= stages
    assert len(records[0]) > len(records[1])


def test_every_item_that_only_moves_is_reported_once(worlds: tuple[Moving, Moving], streamed: Streamed) -> None:
    world, _ = worlds
    stream = streamed.on(world.table)
    world.fill(Thing, 30, colour=lambda n: f"colour {n % 2}", text=str)
    world.resize(partition(Thing), 32)
    world.resize(index(Thing, "by_colour"), 16)
    world.resize(partition(Thing), 1)

    changes = changes_of(records_of(stream), Thing)

    assert [change.kind for change in changes] == ["created"] * 30
    assert len(records_of(stream)) > 100
