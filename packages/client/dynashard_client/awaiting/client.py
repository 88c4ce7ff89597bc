"""The client of programs on asyncio: how a backend is reached, and the items of its resources."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel

from dynashard_client.arguments import check_transport, written_as
from dynashard_client.awaiting.items import AsyncItems
from dynashard_client.client_transport import AsyncClientTransport
from dynashard_client.drivers import AsyncDriver
from dynashard_client.errors import ConfigurationError
from dynashard_client.invoking import AwsSession, LambdaTransport
from dynashard_client.resource import Resource, Resources
from dynashard_client.retries import Retries, call_steps

M = TypeVar("M", bound=BaseModel)


@written_as("AsyncClient.rest(url, token=...), or AsyncClient.lambda_(function, tenant=...)")
class AsyncClient:
    """A client of a backend, for programs on asyncio: `Client` with `await`. `await close()` it, or use `async with`.

        async with AsyncClient.rest("https://api.example.com", token=token) as client:
            users = client.collection(User)
            ada = await users.create(User(email="ada@example.com", display_name="Ada"))
            async for user in users.items(order="ordered"):
                ...

    Tasks may share it. Several event loops may use it, one after another or in several threads.

    Args:
        transport: how requests are sent.
        resources: those of classes that do not say themselves where they are served.
        tenant: the tenant it acts for, if that is known here.
        retries: how often requests are sent.
    """

    def __init__(
        self,
        transport: AsyncClientTransport,
        *,
        resources: Iterable[Resource[Any]] = (),
        tenant: str | None = None,
        retries: Retries | None = None,
    ) -> None:
        check_transport(transport)
        self._transport = transport
        self._resources = Resources(resources)
        self._tenant = tenant
        self._retries = retries or Retries()

    @classmethod
    def rest(
        cls,
        url: str,
        *,
        token: str | Callable[[], str] | Callable[[], Awaitable[str]],
        resources: Iterable[Resource[Any]] = (),
        retries: Retries | None = None,
        tenant: str | None = None,
        timeout: float = 35.0,
        connections: int = 100,
    ) -> Self:
        """Return a client over REST. It needs httpx: `pip install "dynashard-client[async]"`.

        Args:
            url: of the API.
            token: a bearer token, or a function or a coroutine function that gives one; it is called before every
                request, so let it cache.
            resources: those of classes that do not derive from `Item`.
            retries: how often requests are sent.
            tenant: the token's tenant, so that keys of another are refused here. REST addresses items without it.
            timeout: for an answer, in seconds.
            connections: the most that an event loop has; further requests wait for one, as long as their task does.

        Raises:
            ConfigurationError: httpx is not installed.
        """
        try:
            from dynashard_client.awaiting.rest import AsyncRestTransport  # noqa: PLC0415 -- an extra
        except ModuleNotFoundError as error:
            if error.name != "httpx":
                raise
            raise ConfigurationError(
                'AsyncClient.rest needs httpx, which is not installed: pip install "dynashard-client[async]".'
            ) from error
        transport = AsyncRestTransport(url, token, timeout=timeout, connections=connections)
        return cls(transport, resources=resources, tenant=tenant, retries=retries)

    @classmethod
    def lambda_(
        cls,
        function: str,
        *,
        tenant: str,
        client: Any = None,
        session: AwsSession | None = None,
        resources: Iterable[Resource[Any]] = (),
        retries: Retries | None = None,
        caller: Mapping[str, Any] | Literal["service"] | None = None,
    ) -> Self:
        """Return a client over direct invocation; see `Client.lambda_`.

        botocore blocks, so each request takes a thread of the loop's executor, which has `min(32, cpus + 4)`.
        """
        from dynashard_client.awaiting.threads import ThreadedTransport  # noqa: PLC0415 -- loads asyncio

        transport = ThreadedTransport(LambdaTransport(function, tenant, client, caller, session))
        return cls(transport, resources=resources, tenant=tenant, retries=retries)

    def collection(self, model: type[M]) -> AsyncItems[M]:
        """Return the items of a class; see `Client.collection`."""
        return AsyncItems(self._resources.of(model), self._transport, self._retries, tenant=self._tenant)

    async def call(self, operation: str, name: str, members: Mapping[str, Any] | None = None) -> Any:
        """Return what direct invocation answers to an operation on another system; see `Client.call`."""
        steps = call_steps(operation, name, members or {}, self._retries)
        return await AsyncDriver(self._transport, self._retries).run(steps)

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
