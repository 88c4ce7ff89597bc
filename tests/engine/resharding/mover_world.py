"""A resize to 8 shards whose mover may begin, items that move, stray items, and processes that die."""

from collections.abc import Mapping
from typing import Any

from dynashard import Entity, definition
from dynashard.entity import ItemKey
from dynashard.resharding import Resharder
from dynashard.routing import home
from dynashard.schema import PK, REV, SK, TYPE
from dynashard.testing.one_by_one import OneByOne
from dynashard.transport import Transport
from dynashard.transport.interface import Resend, Wire
from tests.engine.resharding.resharding_world import ABC, WAIT, Moving, Old, Thing


def movers(count: int = 1, old: int = 4, new: int = 8) -> list[str]:
    """Sort keys of things of partition abc that move."""
    entity = definition(Thing)
    keys = (ItemKey("move.v1.Thing:abc", f"k{n}") for n in range(1000))
    return [key.sort for key in keys if home(entity, key, old) != home(entity, key, new)][:count]


def at(sort: str, count: int = 4) -> str:
    return home(definition(Thing), ItemKey("move.v1.Thing:abc", sort), count)


def stored(sort: str, count: int = 4, **attributes: Wire) -> Wire:
    key = {PK: {"S": at(sort, count)}, SK: {"S": sort}}
    return {**key, TYPE: {"S": "move.v1.Thing"}, "tenant": {"S": "abc"}, "id": {"S": sort}, **attributes}


def in_move(world: Moving) -> None:
    """Bring a resize to 8 shards to the time when the mover may begin."""
    world.resharder.start(ABC, 8, survey=False)
    world.until(ABC, "move")
    world.clock.now = world.record(ABC.key).since + WAIT


def move_all(world: Moving, resharder: Resharder | None = None) -> None:
    for task in range(4):
        while not (resharder or world.resharder).work(ABC.key, task, seconds=60):
            pass


def strays(model: type[Entity], old: int, new: int, count: int = 3, name: str = "abc") -> list[Wire]:
    """Return items at their home under the old count, which is not their home under the new one."""
    entity = definition(model)
    found = []
    for number in range(1000):
        key = ItemKey(f"{entity.prefix}:{name}", f"s{number}")
        place = home(entity, key, old)
        if place != home(entity, key, new):
            fields = {"tenant": {"S": name}, "id": {"S": key.sort}, TYPE: {"S": entity.name}, REV: {"S": f"r{number}"}}
            found.append({PK: {"S": place}, SK: {"S": key.sort}, **fields})
    return found[:count]


def at_home(stray: Wire, model: type[Thing | Old], count: int) -> Wire:
    entity = definition(model)
    partition_ = f"{entity.prefix}:{stray['tenant']['S']}"
    return {**stray, PK: {"S": home(entity, ItemKey(partition_, stray[SK]["S"]), count)}}


class Killed(Exception):  # noqa: N818 - what happens, not what is wrong
    """The process is gone."""


class Mortal(OneByOne):
    """A transport whose process dies at one of its requests, before it is sent or after it was answered."""

    def __init__(self, inner: Transport, at: int, *, answered: bool) -> None:
        self.inner, self.left, self.answered = inner, at, answered

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        self.left -= 1
        if self.left < 0 or (self.left == 0 and not self.answered):
            raise Killed
        answer = self.inner.call(operation, request, resend=resend)
        if self.left == 0:
            raise Killed
        return answer
