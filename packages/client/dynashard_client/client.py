"""The client: how a backend is reached, and the items of its resources."""

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel

from dynashard_client.arguments import check_transport, written_as
from dynashard_client.client_transport import ClientTransport
from dynashard_client.drivers import BlockingDriver
from dynashard_client.invoking import AwsSession, LambdaTransport
from dynashard_client.items import Items
from dynashard_client.resource import Resource, Resources
from dynashard_client.rest import RestTransport, Token
from dynashard_client.retries import Retries, call_steps

M = TypeVar("M", bound=BaseModel)


@written_as("Client.rest(url, token=...), or Client.lambda_(function, tenant=...)")
class Client:
    """A client of a backend. Safe to share between threads; `close` it, or use it in a `with`.

    Args:
        transport: how requests are sent: `LambdaTransport` or `RestTransport`.
        resources: those of classes that do not say themselves where they are served.
        tenant: the tenant it acts for, if that is known here.
        retries: how often requests are sent.
    """

    def __init__(
        self,
        transport: ClientTransport,
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
        """Return a client over direct invocation. It needs botocore: `pip install "dynashard-client[lambda]"`.

        Args:
            function: name or ARN of the function; `CommandsFunction` among the outputs of its stack.
            tenant: the tenant to act for. Who may invoke the function acts for any.
            client: botocore's or boto3's client for Lambda; one with the SDK's own credentials if None.
            session: a `boto3.Session` instead, whose credentials, region and profile are used.
            resources: those of classes that do not derive from `Item`.
            retries: how often requests are sent.
            caller: for whom the requests are sent, `{"subject": ..., "scopes": [...], "claims": {...}}`: access rules
                are judged by it. None or `"service"` acts for the service itself, whom no rule limits; a function
                with `commands.caller_required` refuses None.

        Raises:
            ConfigurationError: both a client and a session are given.
        """
        transport = LambdaTransport(function, tenant, client, caller, session)
        return cls(transport, resources=resources, tenant=tenant, retries=retries)

    @classmethod
    def rest(
        cls,
        url: str,
        *,
        token: Token,
        resources: Iterable[Resource[Any]] = (),
        retries: Retries | None = None,
        tenant: str | None = None,
        timeout: float = 35.0,
    ) -> Self:
        """Return a client over REST.

        Args:
            url: of the API.
            token: a bearer token, or a callable that gives one; it is called before every request, so let it cache.
            resources: those of classes that do not derive from `Item`.
            retries: how often requests are sent.
            tenant: the token's tenant, so that keys of another are refused here. REST addresses items without it.
            timeout: for an answer, in seconds.
        """
        return cls(RestTransport(url, token, timeout=timeout), resources=resources, tenant=tenant, retries=retries)

    def collection(self, model: type[M]) -> Items[M]:
        """Return the items of a class.

        Raises:
            ConfigurationError: it is not known where they are served.
        """
        return Items(self._resources.of(model), self._transport, self._retries, tenant=self._tenant)

    def call(self, operation: str, name: str, members: Mapping[str, Any] | None = None) -> Any:
        """Return what direct invocation answers to an operation on edges, roll-ups or another system, as JSON.

        Args:
            operation: such as `list`; a read is sent again if no answer comes.
            name: the outside name, such as `follows`.
            members: the operation's members, as docs/invoking.md has them.

        Raises:
            ConfigurationError: over REST, where these have paths of their own.
            EngineUnavailableError: no answer came; a change may have been made.
        """
        steps = call_steps(operation, name, members or {}, self._retries)
        return BlockingDriver(self._transport, self._retries).run(steps)

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
