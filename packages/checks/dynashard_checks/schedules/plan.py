"""The plan of a schedule: everything that is drawn from its seed before it runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from dynashard import definition
from dynashard.entity import EntityDefinition
from dynashard.placement import UNSHARDED
from dynashard.resharding import Scope
from dynashard.routing import home
from dynashard_checks.schedules.entities import TENANT, AdoptedNote, Event, GuardedNote, Note, OnceNote, StampedNote
from dynashard_checks.schedules.history import Key
from dynashard_checks.schedules.resizes import scope_of

KINDS: Final = ("race", "race", "grow", "shrink", "adopt", "random", "index", "family")
"""The kinds of schedules.

In a "race" several clients write a few keys around one stage of the resize. The others change the count of a partition
with calculated ("grow", "shrink") or random placement, adopt unsharded items, or change the count of an index or a
family.
"""
_LATE: Final = 0.3
"""The share of schedules in which requests may be executed at any later time."""
_STRAYS: Final = 0.6
"""The share of these in which writes of PREPARE are executed at later stages and nothing else fails."""
_STRAYING: Final = (
    *((Note, *counts) for counts in ((1, 2), (2, 1), (2, 4), (4, 2), (4, 1))),
    *((AdoptedNote, UNSHARDED, count) for count in (1, 2)),
)
CALM: Final[Mapping[str, type[Any]]] = {"calm": Note, "guarded": GuardedNote, "exactly once": OnceNote}
"""Kinds of schedules in which no count changes and several clients write each key, with their entities."""
_MOVING: Final = {"race": 5, "strays": 2, **dict.fromkeys(CALM, 1)}
"""How many keys move, for kinds in which it is not drawn."""
_PREPARE: Final = 3
"""The stage of a resize at which PREPARE is published."""
INDEX_COUNT: Final = 2
"""The count of a sharded index that the resize does not concern."""
_STAGES: Final = (1, 2, 3, 4, 5, 6, 7)
"""The stages of a resize at which clients may start: its phases and times of work, counted from 1."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters of a schedule, drawn from its seed.

    Attributes:
        seed: determines the plan and all later draws.
        kind: the kind of the schedule, such as one of `KINDS`.
        model: the entity.
        scope: the scope of the resize.
        origin, target: the counts before and after the resize.
        index_origin: the count of the index before the resize, if the resize is one of an index.
        keys: the keys that clients use.
        clients, bursts: how many clients there are, and how often each does a few operations.
        movers: how many movers there are.
        operator: whether an operator pauses or aborts the resize.
        fault_rate, kill_rate: how often a request fails, and how often its process is killed.
        stages: the stage of the resize at which the clients start; None if it is not requested yet.
        filled: the share of keys that are live at the start.
        large: whether an item has 400 KB.
        some_expire: whether some items expire.
        late: whether requests may be executed at any later time, even after the resize.
    """

    seed: int
    kind: str
    model: type[Any]
    scope: Scope
    origin: int
    target: int
    index_origin: int
    keys: tuple[Key, ...]
    clients: int
    bursts: int
    movers: int
    operator: bool
    fault_rate: float
    kill_rate: float
    stages: int | None
    filled: float
    large: bool
    some_expire: bool
    late: bool

    @property
    def rewrite(self) -> bool | None:
        """Whether a resize of an index asks for its entries to be rewritten: every other one does."""
        return True if self.scope.index is not None and self.seed % 2 else None


def planned(
    seed: int,
    kind: str | None = None,
    stages: int | None = None,
    *,
    late: bool | None = None,
    model: type[Any] | None = None,
) -> Plan:
    """Draw the plan of a seed.

    Args:
        seed: determines all draws.
        kind: the kind of the schedule; drawn if None.
        stages: the stage of the resize at which the clients start; drawn if None.
        late: whether requests may be executed at any later time; drawn if None.
        model: the entity; drawn if None.
    """
    random = Random(seed)
    kind, late = _kind(random, kind, late)
    layout = _layout(random, kind, model)
    entity = definition(layout.model)
    whole = entity.logical_partition({"tenant": TENANT}) if layout.one_partition else None
    return Plan(
        seed=seed,
        kind=kind,
        model=layout.model,
        scope=scope_of(layout.model, partition=whole, index=layout.index),
        origin=layout.origin,
        target=layout.index_target if layout.index else layout.target,
        index_origin=layout.index_origin,
        keys=_keys(
            entity,
            random,
            layout.origin,
            layout.target,
            moving=_MOVING.get(kind) or random.choice((1, 2, 3)),
        ),
        clients=3 if kind in ("race", *CALM) else random.choice((1, 2, 2, 2, 3, 3, 4)),
        bursts=random.choice((1, 2, 3) if kind == "race" else (3, 5, 7)),
        stages=stages or _begins(kind, random),
        movers=random.choice((1, 1, 2)),
        operator=random.random() < 0.2 and kind not in CALM and not late,
        fault_rate=random.choice((0.05, 0.1, 0.2) if late else (0.0, 0.0, 0.02, 0.08)),
        kill_rate=random.choice((0.0, 0.0, 0.03, 0.1)),
        filled=random.choice((0.2, 0.5, 0.8)),
        large=random.random() < 0.002,
        some_expire=random.random() < 0.5 and not late,
        late=late,
    )


@dataclass(slots=True)
class _Layout:
    """An entity with its counts before and after the resize.

    Attributes:
        one_partition: whether the resize concerns one logical partition only.
        index: the index that the resize concerns; None for a resize of the table.
    """

    model: type[Any]
    origin: int
    target: int
    one_partition: bool = True
    index: str | None = None
    index_origin: int = INDEX_COUNT
    index_target: int = INDEX_COUNT


def _layout(random: Random, kind: str, model: type[Any] | None) -> _Layout:
    """Draw the layout of a kind of schedule, of one entity if it is given."""
    drawn = _Layout(
        random.choice((Note, Note, Note, StampedNote)),
        *random.choice(((1, 2), (2, 4), (1, 4), (2, 8), (4, 8))),
    )
    back = drawn.target, drawn.origin
    if kind == "race":
        drawn.model = Note
        drawn.origin, drawn.target = random.choice(((1, 2), (2, 1), (2, 4), (4, 2)))
    elif kind in CALM:
        drawn.model, drawn.target = CALM[kind], drawn.origin
    elif kind == "shrink":
        drawn.origin, drawn.target = back
    elif kind == "strays":
        # Only an adopted entity has items that are stored unsharded.
        counts = [each for each in _STRAYING if model is None or each[1] != UNSHARDED]
        drawn.model, drawn.origin, drawn.target = random.choice(counts)
    elif kind == "adopt":
        drawn.model, drawn.origin, drawn.target = AdoptedNote, UNSHARDED, random.choice((1, 2, 4))
    elif kind in {"random", "family"}:
        drawn.model = Event if kind == "random" else drawn.model
        drawn.one_partition = kind == "random"
        if random.random() < (0.4 if kind == "random" else 0.5):
            drawn.origin, drawn.target = back
    elif kind == "index":
        drawn.one_partition = False
        drawn.index = random.choice(("by_rank", "by_rank_key"))
        drawn.index_origin, drawn.index_target = random.choice(((1, 2), (2, 4), (4, 1), (2, 1), (1, 4)))
    drawn.model = model or drawn.model
    return drawn


def _kind(random: Random, kind: str | None, late: bool | None) -> tuple[str, bool]:  # noqa: FBT001
    """Draw the kind of a schedule, and whether requests may be late. Given values are kept."""
    drawn = random.choice(KINDS)
    drawn_late, strays = lateness(random)
    if kind is None:
        late = drawn_late and drawn != "random" if late is None else late
        return ("strays" if late and strays else drawn), late
    return kind, kind == "strays" if late is None else late


def lateness(random: Random) -> tuple[bool, bool]:
    """Draw whether requests may be late, and if so, whether the schedule is of the kind `strays`."""
    return random.random() < _LATE, random.random() < _STRAYS


def _begins(kind: str, random: Random) -> int | None:
    if kind in CALM or kind == "strays":
        return None if kind in CALM else _PREPARE
    return random.choice(_STAGES if kind == "race" else (None, 1, 1, *_STAGES))


def _keys(entity: EntityDefinition[Any], random: Random, origin: int, target: int, *, moving: int) -> tuple[Key, ...]:
    """Draw a few keys, most of which move."""
    names = [f"k{number}" for number in range(40)]
    keys = {name: entity.key_of({"tenant": TENANT, "id": name}) for name in names}
    movers = [name for name, key in keys.items() if home(entity, key, origin) != home(entity, key, target)]
    drawn = random.sample(movers or names, moving) + random.sample(names, random.choice((0, 0, 0, 1)))
    return tuple(dict.fromkeys(drawn))
