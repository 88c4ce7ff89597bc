"""A slow writer during a resize: its request is executed late, answered late, or never answered."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest.mock import patch

from dynashard import Collection, Dynashard
from dynashard.errors import DynashardError
from dynashard.repository import home_reader, late
from dynashard.resharding import controller, job
from dynashard.resharding.progress import Pass
from dynashard.runtime import Runtime
from dynashard.testing.faults import Fault, FaultyTransport, afterwards, meanwhile
from dynashard.topology import LeasedTopology
from dynashard.transport import Transport
from tests.engine.resharding.mover_world import strays
from tests.engine.resharding.resharding_world import ABC, Moving, Thing
from tests.engine.topology.topology_world import one_clock


def client(world: Moving, plan: list[Fault] | None = None, transport: Transport | None = None) -> Dynashard:
    """Return a new client that meets these faults. Its pauses take no time, and count as if they did."""
    waited = [0.0]

    def sleep(seconds: float) -> None:
        waited[0] += seconds

    wire = FaultyTransport(transport or world.inner, plan or [])
    topology = LeasedTopology(world.inner, world.topology, lease=30.0, runtime=one_clock(world.clock))
    runtime = Runtime(world.clock, sleep, monotonic=lambda: waited[0])
    return Dynashard(wire, table=world.table, cursor_keys=["0" * 16], topology=topology, runtime=runtime)


def things(db: Dynashard) -> Collection[Thing]:
    return db.collection(Thing)


def reach(world: Moving, stage: str) -> None:
    """Advance the resize of `ABC` to the end of a stage's work."""
    if stage == "stable":
        world.finish(ABC)
        return
    world.until(ABC, stage)
    while True:
        step = world.resharder.advance(ABC.key)
        if world.resharder.status(ABC).stage != stage:
            return
        if step.kind == "work":
            for task in step.tasks:
                while not world.resharder.work(ABC.key, task, seconds=1e9):
                    pass
            return
        world.clock.now += step.seconds


def executed_late(operation: str, happens: Callable[[], Any]) -> Fault:
    """The action happens before the request is executed."""
    return meanwhile(operation, happens)


def answered_late(operation: str, happens: Callable[[], Any]) -> Fault:
    """The request is executed at once, and the action happens before it is answered."""
    return afterwards(operation, happens)


HOW: Final[Mapping[str, Callable[[str, Callable[[], Any]], Fault]]] = {
    "executed late": executed_late,
    "answered late": answered_late,
}


def judged(world: Moving, identity: str, *, acknowledged: bool) -> None:
    """Check that an item is listed once if a read finds it, and that an acknowledged one is found."""
    key = {"tenant": "abc", "id": identity}
    found = things(client(world)).find(key, consistent=True)
    listed = [item.id for item in things(client(world)).scan({"tenant": "abc"}, consistent=True)]
    assert listed.count(identity) == int(found is not None), listed
    if acknowledged:
        assert found is not None, [item for item in world.raw() if item["SK"]["S"] == identity]


def outcome(act: Callable[[], Any]) -> Any:
    """Return the result of an operation, or its error."""
    try:
        return act()
    except DynashardError as error:
        return error


def moving_ids(old: int, new: int, count: int) -> list[str]:
    """Return ids of things that move."""
    return [item["SK"]["S"] for item in strays(Thing, old, new, count)]


def _no_confirmation(stack: ExitStack) -> None:
    """Without rule A: a success is returned however late it comes."""
    stack.enter_context(patch.object(late, "view_ended", lambda *_: False))


def _no_help(stack: ExitStack) -> None:
    """Without rule H: SETTLE reads only the new home."""
    stack.enter_context(patch.object(home_reader, "settling", lambda _: False))
    stack.enter_context(patch.object(late, "move_stray_home", lambda *_: False))


def _no_second_pass(stack: ExitStack) -> None:
    """Without rule P: the new count is published one wait after SETTLE."""
    kind_of = job.kind_of

    def without(*args: Any) -> Pass | None:
        kind = kind_of(*args)
        return None if kind is Pass.SETTLE else kind

    stack.enter_context(patch.object(job, "kind_of", without))
    stack.enter_context(patch.object(controller, "kind_of", without))


RULES: Final = {"A": _no_confirmation, "H": _no_help, "P": _no_second_pass}


@contextmanager
def without(rule: str) -> Iterator[None]:
    """Break one of the rules within the block."""
    with ExitStack() as stack:
        RULES[rule](stack)
        yield
