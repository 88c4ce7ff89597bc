"""The state of a backfill in the topology table: one item, beside the progress of its tasks.

Its key begins with `@`, which no record's does.
"""

from dataclasses import dataclass, replace
from typing import Final

from msgspec import ValidationError, convert

from dynashard.codec import decode_value, encode_value
from dynashard.resharding.progress import Pass
from dynashard.schema import TOPOLOGY_KEY
from dynashard.topology.backfilled import Goal
from dynashard.topology.table import read_items
from dynashard.transport.interface import Transport

_KEY: Final = "@backfill@"
_PROGRESS: Final = "backfill@"


@dataclass(frozen=True, slots=True)
class Run:
    """A backfill that has begun and is not complete.

    Attributes:
        key: under which its tasks keep their progress.
        run: its id.
        goal: what it reaches.
        tasks: into how many segments the table is divided.
        family: the version of the family's record with which the round began. Items may have moved if it differs.
        number: of the round, from 1.
        moved: items written in the rounds before.
        started: when it began, in epoch seconds.
    """

    key: str
    run: str
    goal: str
    tasks: int
    family: str
    number: int = 1
    moved: int = 0
    started: int = 0

    @property
    def id(self) -> str:
        """The id of the round, which no other round has."""
        return f"{self.run}.{self.number}"

    @property
    def kind(self) -> Pass:
        """The kind of the pass, for the workers."""
        return Pass.BACKFILL

    def next(self, family: str, moved: int) -> "Run":
        """Return the round that follows, because items may have moved."""
        return replace(self, number=self.number + 1, family=family, moved=moved)


def key_of(goal: Goal) -> str:
    """Return the key under which a backfill keeps the progress of its tasks."""
    return f"{_PROGRESS}{goal.key}"


@dataclass(frozen=True, slots=True)
class Runs:
    """The backfills that have begun, in a topology table."""

    transport: Transport
    table: str

    def find(self, goal: Goal) -> Run | None:
        """Return the backfill towards a goal that has begun. Cost: 1 round trip, 1 read unit.

        If its state is damaged it is None, so that a backfill begins: what is done already needs no second write.
        """
        items = read_items(self.transport, self.table, [f"{_KEY}{goal.key}"])
        if not items:
            return None
        stored = decode_value({"M": {name: value for name, value in items[0].items() if name != TOPOLOGY_KEY}})
        try:
            found = convert({"key": key_of(goal), **stored}, Run)
        except ValidationError:
            return None
        return found if found.goal == goal.value else None

    def save(self, goal: Goal, run: Run) -> None:
        """Store the state of a backfill in place of any other. Cost: 1 round trip, 1 write unit."""
        values = {name: encode_value(getattr(run, name), path=name) for name in _MEMBERS}
        item = {TOPOLOGY_KEY: {"S": f"{_KEY}{goal.key}"}, **values}
        self.transport.call("PutItem", {"TableName": self.table, "Item": item})

    def clear(self, goal: Goal) -> None:
        """Forget a backfill that is complete. Cost: 1 round trip, 1 write unit."""
        key = {TOPOLOGY_KEY: {"S": f"{_KEY}{goal.key}"}}
        self.transport.call("DeleteItem", {"TableName": self.table, "Key": key})


_MEMBERS: Final = ("run", "goal", "tasks", "family", "number", "moved", "started")
