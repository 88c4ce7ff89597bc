"""What edges are declared with: the two ways of an edge, and its counters."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Generic, Literal, TypeVar

from pydantic import Field

from dynashard.entity import Entity, Index, Key, Shards, definition
from dynashard.errors import DeclarationError

Way = Literal["forward", "backward"]
"""From the node that follows to those it follows, or from the node that is followed to its followers."""

NODE: Final = r"^[A-Za-z][A-Za-z0-9_-]*\.[^:]+$"
"""How a node is written, as a regular expression: its type, a dot and its id."""
Node = Annotated[str, Field(pattern=NODE, max_length=200)]
"""A node of the graph: its type and its id, such as `Actor.5`."""

EDGE_KEY: Final = Key(partition="{tenant_id}:{node}", sort="{way}.{other}")
"""The key of edges: one logical partition has all edges of a node, at either end, by way and type."""
COUNT_KEY: Final = Key(partition="{tenant_id}:{node}:{way}:{slot}")
"""The key of their counters: each slot is a partition of its own."""
NEWEST: Final = "newest"
MOST_SLOTS: Final = 100
"""What one BatchGetItem reads."""


class Edge(Entity):
    """One of the two items of an edge; derive the edges of a kind from it.

        class Follow(Edge, name="follow.v1.Follow", key=EDGE_KEY, shards=Shards(start=1), indexes=[newest("GSI1")]):
            ...

    Further fields, such as a note, are those of both items.
    """

    tenant_id: str
    node: Node
    way: str
    other: Node
    other_type: str
    since: datetime


class EdgeCount(Entity):
    """A slot of the counter of a node's edges of one way; derive the counters of a kind from it.

    class FollowCount(EdgeCount, name="follow.v1.Count", key=COUNT_KEY): ...
    """

    tenant_id: str
    node: Node
    way: str
    slot: int
    count: int = 0


@dataclass(frozen=True, slots=True)
class Slots:
    """The counters of one way, declared.

    Attributes:
        model: the entity of the slots.
        slots: how many items a counter has, 1 to 100. It can be raised at any time, but never lowered: slots that are
            not read are not counted.

    Raises:
        DeclarationError: a counter cannot have so many slots.
    """

    model: type[EdgeCount]
    slots: int

    def __post_init__(self) -> None:
        if not 1 <= self.slots <= MOST_SLOTS:
            name = definition(self.model).name
            raise DeclarationError(name, f"has {self.slots} slots: it can have 1 to {MOST_SLOTS}")

    def keys(self, key: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the keys of a counter's slots, slot 0 first; `key` has the fields of its key, all but the slot."""
        return [{**key, "slot": number} for number in range(self.slots)]


def newest(slot: str, shards: Shards | None = None) -> Index:
    """The index that lists a node's edges of one type by time. Costs each of the two items 1 write unit more."""
    return Index(slot, NEWEST, partition="{tenant_id}:{node}", sort="{way}.{other_type}.{since}", shards=shards)


E = TypeVar("E", bound=Edge)
K = TypeVar("K", bound=Edge)
"""As `E`, where no class is known yet."""


@dataclass(frozen=True, slots=True)
class Edges(Generic[E]):
    """Edges of one kind, declared.

    Attributes:
        model: the class of its items, derived from `Edge` with the key `EDGE_KEY`.
        forward: what the item at the first node says of the second, such as `FAN_OF`.
        backward: what the item at the second node says of the first, such as `FANNED_BY`.
        counts: the class of the counters, derived from `EdgeCount` with the key `COUNT_KEY`; None if edges
            are not counted.
        slots: of how many items a counter is, forward and backward. More let more edges of one node come at once;
            see `Slots.slots`. If both ways have one name, both have one counter, with the forward number.

    Raises:
        DeclarationError: the classes are not those of edges.
    """

    model: type[E]
    forward: str
    backward: str
    counts: type[EdgeCount] | None = None
    slots: tuple[int, int] = (1, 16)

    def __post_init__(self) -> None:
        entity = definition(self.model)
        _require_key(self.model, EDGE_KEY)
        for way in (self.forward, self.backward):
            if not way or "." in way:
                raise DeclarationError(entity.name, f"way {way!r}: use a word without dots, such as FAN_OF")
        if self.counts is not None:
            _require_key(self.counts, COUNT_KEY)
            self.counter("forward")
            self.counter("backward")

    def called(self, way: Way) -> str:
        """The word for a way in keys."""
        return self.forward if way == "forward" else self.backward

    def counter(self, way: Way) -> Slots:
        """Return the counters of a way; raises `DeclarationError` if the edges are not counted."""
        if self.counts is None:
            raise DeclarationError(definition(self.model).name, "has no counts: declare a class of EdgeCount")
        # Ways of one name have one counter, so both must read the slots to which either adds.
        forward = way == "forward" or self.forward == self.backward
        return Slots(self.counts, slots=self.slots[0 if forward else 1])


def _require_key(model: type[Entity], key: Key) -> None:
    entity = definition(model)
    if (entity.partition.text, entity.sort.text) != (key.partition, key.sort or entity.name):
        raise DeclarationError(entity.name, f"has a key of its own: declare it with the key of edges, {key}")
