"""The ways to a backend: each takes the requests of direct invocation, and answers their results."""

from typing import Any, Protocol

from dynashard_client.resource import Resource
from dynashard_client.steps import Request


class ClientTransport(Protocol):
    """Sends requests to a backend. Safe to share between threads."""

    def ask(self, resource: Resource[Any], request: Request) -> Any:
        """Ask once.

        Returns:
            The result, as direct invocation answers it.

        Raises:
            DynashardError: the backend refuses.
            LostError: no answer came.
        """
        ...

    def call(self, name: str, request: Request) -> Any:
        """As `ask`, for a system that is not an entity, by its name.

        Raises:
            ConfigurationError: this transport has no such requests.
        """
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...


class AsyncClientTransport(Protocol):
    """A `ClientTransport` that is awaited. Safe to share between tasks, and used by one event loop after another."""

    async def ask(self, resource: Resource[Any], request: Request) -> Any:
        """Ask once; see `ClientTransport.ask`."""
        ...

    async def call(self, name: str, request: Request) -> Any:
        """Ask once; see `ClientTransport.call`."""
        ...

    async def close(self) -> None:
        """Give back what it holds."""
        ...
