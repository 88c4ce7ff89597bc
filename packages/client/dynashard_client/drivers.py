"""How the steps of a client's methods are done: by a transport and by waiting, in a thread or on an event loop."""

from typing import Any, TypeVar

from dynashard_client.client_transport import AsyncClientTransport, ClientTransport
from dynashard_client.retries import Retries
from dynashard_client.steps import Ask, Call, Pause, Step, Steps, awaited, run

T = TypeVar("T")


class BlockingDriver:
    """Does steps in the calling thread."""

    def __init__(self, transport: ClientTransport, retries: Retries) -> None:
        self._transport = transport
        self._retries = retries

    def run(self, steps: Steps[Step, T]) -> T:
        """Return the result of the steps; raises what they raise."""
        return run(steps, self._done)

    def _done(self, step: Step) -> Any:
        match step:
            case Ask():
                return self._transport.ask(step.resource, step.request)
            case Call():
                return self._transport.call(step.name, step.request)
            case Pause():
                return self._retries.sleep(step.seconds)


class AsyncDriver:
    """Awaits steps on the event loop of its caller."""

    def __init__(self, transport: AsyncClientTransport, retries: Retries) -> None:
        self._transport = transport
        self._retries = retries

    async def run(self, steps: Steps[Step, T]) -> T:
        """Return the result of the steps; raises what they raise."""
        return await awaited(steps, self._done)

    async def _done(self, step: Step) -> Any:
        match step:
            case Ask():
                return await self._transport.ask(step.resource, step.request)
            case Call():
                return await self._transport.call(step.name, step.request)
            case Pause():
                return await self._retries.sleep_async(step.seconds)
