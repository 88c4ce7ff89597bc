"""Work that decides what to do next, and leaves sending and waiting to its driver.

A client's methods are generators: they yield a step, such as a request or a pause, and are resumed with its answer or
its error. They perform no I/O, so one driver does their steps in the calling thread, and another awaits them.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from dynashard_client.resource import Resource

S = TypeVar("S")
T = TypeVar("T")

Request = Mapping[str, Any]
"""A request without its resource and tenant: `{"operation": ..., ...}`, as docs/invoking.md describes."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Send a request to a resource, once; answered by its result."""

    resource: Resource[Any]
    request: Request


@dataclass(frozen=True, slots=True)
class Call:
    """Send a request to a system that is not an entity, once; answered by its result."""

    name: str
    request: Request


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait so many seconds."""

    seconds: float


Step = Ask | Call | Pause
"""What a client's method asks of its driver."""
Steps = Generator[S, Any, T]
"""Work that yields steps of one kind, and returns a result."""


def run(steps: Steps[S, T], do: Callable[[S], Any]) -> T:
    """Return the result of work whose steps this thread does. The error of a step is raised where it was yielded."""
    try:
        step = next(steps)
        while True:
            try:
                answer = do(step)
            except Exception as error:  # noqa: BLE001 - the work decides which errors it handles
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as ended:
        result: T = ended.value
        return result
    finally:
        steps.close()


async def awaited(steps: Steps[S, T], do: Callable[[S], Awaitable[Any]]) -> T:
    """Return the result of work whose steps are awaited; see `run`. A cancellation ends the work at its step."""
    try:
        step = next(steps)
        while True:
            try:
                answer = await do(step)
            except Exception as error:  # noqa: BLE001 - the work decides which errors it handles
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as ended:
        result: T = ended.value
        return result
    finally:
        steps.close()
