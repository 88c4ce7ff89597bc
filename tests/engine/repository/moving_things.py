"""States between two shard counts, built directly in the table, and a mover of one item."""

from dataclasses import dataclass
from typing import Any

from dynashard.entity import definition
from dynashard.routing import home
from dynashard.topology import Phase, View
from tests.engine.stored_things import Note, World

RESIZES = {"grow": (2, 8), "shrink": (4, 1), "adopt": (0, 4)}
PHASES = (Phase.PREPARE, Phase.MOVE, Phase.SETTLE)
IDENTITY = "2"
"""The id of a note that moves under each of the resizes."""

Stored = dict[str, Any]


@dataclass(frozen=True)
class Spot:
    """The old and the new place of a note under a resize."""

    world: World
    count: int
    target: int
    tenant: str = "abc"
    model: type[Any] = Note
    identity: str = IDENTITY

    @property
    def key(self) -> dict[str, str]:
        return {"tenant": self.tenant, "id": self.identity}

    @property
    def old(self) -> str:
        return self._home(self.count)

    @property
    def new(self) -> str:
        return self._home(self.target)

    def view(self, phase: Phase) -> View:
        """Return the view of a phase. The stable view has the old count."""
        return View(self.count) if phase is Phase.STABLE else View(self.count, phase, self.target, markers=True)

    def enter(self, phase: Phase) -> None:
        self.world.views.now = self.view(phase)

    def at(self, place: str) -> Stored | None:
        """Return the item that is stored at a place."""
        stored: Stored | None = self.world.dynamodb.call(
            "GetItem",
            TableName=self.world.table,
            Key={"PK": {"S": place}, "SK": {"S": self.identity}},
            ConsistentRead=True,
        ).get("Item")
        return stored

    def clear(self, place: str) -> None:
        """Delete the item that is stored at a place."""
        stored = {"PK": {"S": place}, "SK": {"S": self.identity}}
        self.world.dynamodb.call("DeleteItem", TableName=self.world.table, Key=stored)

    def put(self, place: str, **attributes: Any) -> None:
        """Store an item that has only its key and these attributes."""
        self.world.adopt({"PK": {"S": place}, "SK": {"S": self.identity}, **attributes})

    def put_live(self, place: str, rev: str = "r0", **attributes: Any) -> None:
        """Store a live note."""
        fields = {"tenant": {"S": self.tenant}, "id": {"S": self.identity}, "text": {"S": "was"}}
        self.put(place, Type={"S": "test.v1.Note"}, Rev={"S": rev}, **fields, **attributes)

    def put_mark(self) -> None:
        """Store a relocation marker without a copy at the old place."""
        self.put(self.old, MovedTo={"N": str(self.target)})

    def move(self) -> None:
        """Move the item as a mover does, if a live one is stored at its old place."""
        found = self.at(self.old)
        if self.old == self.new or found is None or "MovedTo" in found or not self._lives(found):
            return
        copy = {**found, "PK": {"S": self.new}, "MovedFrom": {"N": str(self.count)}}
        mark = {name: value for name, value in found.items() if name != "ExpiresAt"}
        self.world.adopt({**mark, "MovedTo": {"N": str(self.target)}})
        self.world.adopt(copy)

    def _lives(self, item: Stored) -> bool:
        return "ExpiresAt" not in item or float(item["ExpiresAt"]["N"]) > int(self.world.clock())

    def _home(self, count: int) -> str:
        entity = definition(self.model)
        return home(entity, entity.key_of(self.key), count)
