"""Events on the engine's own stream: what a count that changes moves is not published, and revisions form a chain."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import pytest

from dynashard.transport import Transport
from dynashard_patterns.changes import DeadLetter, Dispatcher
from dynashard_serving.events import Events
from dynashard_serving.events.publishing import Publisher
from tests.engine.patterns.stream_world import Streamed, records_of
from tests.engine.raw_dynamodb import RawDynamoDB
from tests.engine.resharding.resharding_world import Moving, Thing, index, moving_world, partition

pytestmark = pytest.mark.engine


@pytest.fixture
def world(wire: Transport, create_table: Callable[[], str]) -> Iterator[Moving]:
    with moving_world(wire, create_table()) as moving:
        yield moving


class Bus:
    """A bus that refuses each third entry once."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._count = 0

    def put(self, entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        answers: list[dict[str, str]] = []
        for entry in entries:
            self._count += 1
            refused = self._count % 3 == 0
            if not refused:
                self.entries.append(entry)
            answers.append({"ErrorCode": "ThrottlingException"} if refused else {"EventId": "e"})
        return {"Entries": answers}


def test_what_moves_is_not_published_and_the_events_of_an_item_are_a_chain_of_revisions(
    world: Moving, engine_url: str, dynamodb: RawDynamoDB
) -> None:
    stream = Streamed(engine_url, dynamodb).on(world.table)
    random, things, writes = Random(7), world.of(Thing), 0
    things.create(Thing(tenant="abc", id="0", text="first", colour="red"))
    for number in range(1, 40):
        things.create(Thing(tenant="abc", id=str(number), text="", colour="red"))
    for to in (16, 1):
        world.resize(partition(Thing), to)
        for number in random.sample(range(40), 10):
            things.update({"tenant": "abc", "id": str(number)}, set={"text": f"{to}"})
            writes += 1
    world.resize(index(Thing, "by_colour"), 8)
    for number in range(20):
        things.delete({"tenant": "abc", "id": str(number)})
    bus, letters = Bus(), list[DeadLetter]()
    publisher = Publisher(bus.put, "b", "s", sleep=lambda _: None)
    dispatcher = Dispatcher([Events(of=Thing).consumer(publisher)], keep=letters.append)
    records = records_of(stream)

    for start in range(0, len(records), 50):
        # Each batch is delivered twice, as when the function's first answer was lost.
        assert dispatcher.dispatch(records[start : start + 50]).again is None
        assert dispatcher.dispatch(records[start : start + 50]).again is None

    seen: dict[str, dict[str, Any]] = {}
    details = [json.loads(entry["Detail"]) for entry in bus.entries]
    for detail in details:
        seen.setdefault(detail["id"], detail)
    assert letters == []
    assert len(details) == 2 * len(seen)
    assert len(seen) == 40 + writes + 20 < len(records)
    at: dict[str, str | None] = {}
    for detail in seen.values():
        name = detail["key"]["id"]
        assert detail["previous"] == at.get(name)
        at[name] = detail["revision"]
    assert sum(revision is None for revision in at.values()) == 20
