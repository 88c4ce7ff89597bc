"""The client: how a backend is reached, and the items of its entities."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

from dynashard.entity import Entity, definition
from dynashard_client.client_transport import ClientTransport
from dynashard_client.invoking import LambdaTransport
from dynashard_client.items import Items
from dynashard_client.rest import Place, RestTransport, Token
from dynashard_client.retries import Retries

E = TypeVar("E", bound=Entity)
READS: Final = frozenset({"get", "list", "count", "batch_get"})
"""Operations that change nothing."""


class Served(Protocol):
    """An entity and where it is served, such as an entry of `domain.ENTITIES`."""

    @property
    def entity(self) -> type[Entity]:
        """The entity."""
        ...

    @property
    def path(self) -> str:
        """Its path below `/v1`."""
        ...


class Client:
    """A client of a backend. Safe to share between threads; `close` it, or use it in a `with`.

    Args:
        transport: how requests are sent: `LambdaTransport` or `RestTransport`.
        tenant: the tenant it acts for, if that is known here.
        retries: how often requests are sent.
    """

    def __init__(
        self, transport: ClientTransport, *, tenant: str | None = None, retries: Retries | None = None
    ) -> None:
        self._transport = transport
        self._tenant = tenant
        self._retries = retries or Retries()

    @classmethod
    def lambda_(cls, function: str, *, tenant: str, client: Any = None, retries: Retries | None = None) -> Self:
        """A client over direct invocation.

        Args:
            function: name or ARN of the function; `CommandsFunction` among the outputs of its stack.
            tenant: the tenant to act for. Who may invoke the function acts for any.
            client: botocore's (or boto3's) client for Lambda; one with the SDK's own credentials if None.
            retries: how often requests are sent.
        """
        return cls(LambdaTransport(function, tenant, client), tenant=tenant, retries=retries)

    @classmethod
    def rest(
        cls,
        url: str,
        *,
        token: Token,
        entities: Sequence[Served],
        retries: Retries | None = None,
        tenant: str | None = None,
        timeout: float = 35.0,
    ) -> Self:
        """A client over REST.

        Args:
            url: of the API.
            token: a bearer token, or a callable that gives one; it is asked before every request, so let it cache.
            entities: what is served where, such as `domain.ENTITIES`.
            retries: how often requests are sent.
            tenant: the token's tenant, so that keys of another are refused here. REST addresses items without it.
            timeout: for an answer, in seconds.
        """
        places = {
            definition(each.entity).name: Place(each.path, tuple(getattr(each, "address", ()))) for each in entities
        }
        return cls(RestTransport(url, token, places, timeout=timeout), tenant=tenant, retries=retries)

    def collection(self, model: type[E]) -> Items[E]:
        """The items of an entity."""
        return Items(model, self._transport, self._retries, tenant=self._tenant)

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
        request = {"operation": operation, **(members or {})}
        return self._retries.run(lambda _: self._transport.call(name, request), repeatable=operation in READS)

    def close(self) -> None:
        """Give back the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
