"""The plan of a schedule of epochs: everything that is drawn from its seed before it runs."""

from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from dynashard import definition
from dynashard.key_clock import DEFAULT_BOUNDS
from dynashard.placement import UNSHARDED
from dynashard_checks.schedules.entities import (
    TENANT,
    TimedAdoptedNote,
    TimedGuardedNote,
    TimedNote,
    TimedOnceNote,
)
from dynashard_checks.schedules.epochs.keys import ksuid
from dynashard_checks.schedules.plan import INDEX_COUNT, Plan
from dynashard_checks.schedules.resizes import scope_of
from dynashard_checks.schedules.scheduler import START

EPOCHS: Final = "epochs"
"""The kind of these schedules."""
BOUND: Final = DEFAULT_BOUNDS.off
SHAPES: Final = ("any", "any", "any", "any", "overtaken", "mind changed")
"""What is late: anything; publications; or publications, and confirmations of an epoch that was aborted."""
_WITHIN: Final = (-BOUND, -BOUND, -2.0, 0.0, 0.0, 2.0, BOUND, BOUND)
"""How far clocks are off, in seconds: often by the bound."""
_BEYOND: Final = (-600.0, -60.0, -45.0, 45.0, 60.0, 600.0)
"""How far clocks are off that are not to be trusted."""


_SET: Final = (-600.0, -20.0, -10.0, -BOUND, 0.0, BOUND, 10.0, 20.0, 600.0)
"""How far clocks are off that were set, in seconds: often by so little that the views of the process hold."""


@dataclass(frozen=True, slots=True)
class Clock:
    """How far a process's clock is off, whether it learns that from the dates of answers, and what it is `set` to."""

    off: float = 0.0
    dated: bool = False
    set: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class EpochPlan(Plan):
    """The parameters of a schedule of epochs.

    Attributes:
        of_clients: their clocks.
        of_policies: the clocks of processes that ask for other counts.
        of_drivers: the clocks of processes that carry resizes out; the first is within the bound
            and believed.
        rounds: how often each policy asks.
        margin: how much more than necessary an epoch lies ahead, in seconds.
        controller_fault_rate: the share of writes of records that are lost or late.
        overtaken: whether only publications are late, so late that views are read shortly before, which last until the
            epoch begins.
        mind_changed: whether an operator aborts each epoch and publishes another one while drivers stand still between
            the decision to confirm the first and the request.
        one_partition: whether policies only change the count of the one partition, and never that of all.
    """

    of_clients: tuple[Clock, ...]
    of_policies: tuple[Clock, ...]
    of_drivers: tuple[Clock, ...]
    rounds: int
    margin: float
    controller_fault_rate: float
    one_partition: bool
    overtaken: bool
    mind_changed: bool


def planned_epochs(seed: int, shape: str | None = None, model: type[Any] | None = None) -> EpochPlan:
    """Draw the plan of a seed. `shape` is one of `SHAPES`; it and the entity are drawn if they are None."""
    random = Random(seed ^ 0xE90C)
    drawn = random.choice(SHAPES)
    shape = drawn if shape is None else shape
    overtaken, mind_changed = shape != "any", shape == "mind changed"
    drawn_model = random.choice((TimedNote, TimedNote, TimedNote, TimedAdoptedNote, TimedGuardedNote, TimedOnceNote))
    model = model or drawn_model
    entity = definition(model)
    late, trusted = random.random() < 0.5, random.random() < 0.7

    def clock() -> Clock:
        return Clock(random.choice(_WITHIN), dated=random.random() < 0.3)

    def any_clock() -> Clock:
        wrong = not trusted and random.random() < 0.5
        return Clock(random.choice(_BEYOND), dated=True) if wrong else clock()

    setting = Random(seed ^ 0x5E7)
    """Its own, so that seeds mean what they meant before clocks were set."""

    def set_later(clock: Clock) -> Clock:
        """Return a clock that somebody sets while its process runs, if it would notice."""
        times = setting.choice((0, 0, 0, 1, 2)) if clock.dated else 0
        return replace(clock, set=tuple(setting.choice(_SET) for _ in range(times)))

    clients = tuple(set_later(any_clock()) for _ in range(random.choice((2, 2, 3, 3, 4))))
    plain = Plan(
        seed=seed,
        kind=EPOCHS,
        model=model,
        scope=scope_of(model, partition=entity.logical_partition({"tenant": TENANT})),
        origin=UNSHARDED if model is TimedAdoptedNote else random.choice((1, 1, 2, 4)),
        target=0,
        index_origin=INDEX_COUNT,
        keys=tuple(ksuid(START - random.choice((1, 60, 3600)), random.getrandbits(128)) for _ in range(3)),
        clients=len(clients),
        bursts=random.choice((6, 8, 12)),
        movers=0,
        operator=random.random() < 0.3 or mind_changed,
        fault_rate=random.choice((0.05, 0.1, 0.2) if late else (0.0, 0.0, 0.02, 0.08)),
        kill_rate=random.choice((0.0, 0.0, 0.03, 0.1)),
        stages=None,
        filled=random.choice((0.2, 0.5, 0.8)),
        large=False,
        some_expire=False,
        late=late,
    )
    return EpochPlan(
        **{name: getattr(plain, name) for name in Plan.__slots__},
        of_clients=clients,
        of_policies=tuple(any_clock() for _ in range(random.choice((1, 2, 2)))),
        of_drivers=(Clock(random.choice(_WITHIN)), *(any_clock() for _ in range(random.choice((0, 1, 1, 2))))),
        rounds=random.choice((1, 2, 2, 3)),
        margin=random.choice((5.0, 10.0, 10.0, 30.0)),
        controller_fault_rate=random.choice((0.0, 0.1, 0.2, 0.4)),
        one_partition=random.random() < 0.7,
        overtaken=overtaken,
        mind_changed=mind_changed,
    )
