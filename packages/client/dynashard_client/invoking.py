"""Direct invocation: a Lambda function that takes requests and answers results."""

import json
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, Final, Literal, Protocol

from dynashard_client.answers import refusal_in, refused
from dynashard_client.documents import TENANT, written
from dynashard_client.errors import ConfigurationError, EngineUnavailableError, TableThrottledError
from dynashard_client.resource import Resource
from dynashard_client.retries import LostError, unsent
from dynashard_client.steps import Request

_BUSY: Final = frozenset({"TooManyRequestsException", "ThrottlingException", "Throttling"})
_SERVER_ERROR: Final = 500
_TOO_LARGE: Final = 413
_BUSY_STATUS: Final = 429


class AwsSession(Protocol):
    """A session of the AWS SDK, a `boto3.Session`: where credentials, region and profile come from."""

    def client(self, service_name: Any, /, *, config: Any) -> Any:
        """Return a client of a service."""
        ...


class LambdaTransport:
    """Invokes the function.

    Args:
        function: its name or ARN.
        tenant: the tenant to act for.
        client: botocore's client for Lambda; made by the first request if None. It should not retry by itself.
        caller: for whom requests are sent; None or `"service"` for the service itself.
        session: makes the client, which does not retry by itself; botocore's default session if None.

    Raises:
        ConfigurationError: both a client and a session are given.
    """

    def __init__(
        self,
        function: str,
        tenant: str,
        client: Any = None,
        caller: Mapping[str, Any] | Literal["service"] | None = None,
        session: AwsSession | None = None,
    ) -> None:
        if client is not None and session is not None:
            raise ConfigurationError("A session makes a client of its own: give client= or session=, not both.")
        self._session = session
        self._caller = {} if caller is None else {"caller": caller}
        self._function = function
        self._tenant = tenant
        self._client = client
        self._lock = Lock()

    def ask(self, resource: Resource[Any], request: Request) -> Any:
        """Ask once; see `ClientTransport.ask`."""
        return self.call(resource.name, request)

    def call(self, name: str, request: Request) -> Any:
        """Ask once; see `ClientTransport.call`."""
        payload = {**request, "entity": name, TENANT: self._tenant, **self._caller}
        answer = self._invoked(written(payload).encode())
        if answer.get("ok") is True:
            return answer.get("result")
        error = refusal_in(answer.get("error") or {})
        raise LostError(error) if error.code == "internal_error" else error

    def _invoked(self, payload: bytes) -> dict[str, Any]:
        def invoked(client: Any) -> tuple[Any, bytes]:
            answer = client.invoke(FunctionName=self._function, Payload=payload)
            # The body is still to come, and may be lost by itself.
            return answer, answer["Payload"].read()

        answer, body = self._sent(invoked)
        if answer.get("FunctionError"):
            raise LostError(refused("internal_error", "The function failed; its log says why."))
        document = json.loads(body)
        if not isinstance(document, dict) or "ok" not in document:
            raise ConfigurationError(f"{self._function} is not a function for direct invocation: check its name")
        return document

    def _sent(self, call: Callable[[Any], Any]) -> Any:
        from botocore.exceptions import (  # noqa: PLC0415 -- an extra
            BotoCoreError,
            ClientError,
            ConnectTimeoutError,
            CredentialRetrievalError,
            EndpointConnectionError,
            HTTPClientError,
            IncompleteReadError,
            MetadataRetrievalError,
            ProxyConnectionError,
        )

        try:
            return call(self._opened())
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if code in _BUSY or status == _BUSY_STATUS:
                raise TableThrottledError(
                    f"Lambda runs no more of these at a time ({code}): try again.", retry_after=1
                ) from error
            if status == _TOO_LARGE:
                message = "A request may have at most 6 MB: send less at a time."
                raise refused("body_too_large", message, status=status) from error
            if status >= _SERVER_ERROR:
                raise LostError(_unreachable(error)) from error
            raise ConfigurationError(f"{self._function} cannot be invoked: {error}") from error
        except (EndpointConnectionError, ConnectTimeoutError, ProxyConnectionError) as error:
            raise unsent(error) from error
        except (CredentialRetrievalError, MetadataRetrievalError) as error:
            raise unsent(f"there are no credentials: {error}") from error
        except (HTTPClientError, IncompleteReadError) as error:
            raise LostError(_unreachable(error)) from error
        except BotoCoreError as error:
            raise ConfigurationError(f"{self._function} cannot be invoked: {error}") from error

    def _opened(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = self._made()
            return self._client

    def _made(self) -> Any:
        from botocore.config import Config  # noqa: PLC0415 -- an extra
        from botocore.session import get_session  # noqa: PLC0415

        config = Config(retries={"mode": "standard", "total_max_attempts": 1}, read_timeout=60)
        if self._session is not None:
            return self._session.client("lambda", config=config)
        return get_session().create_client("lambda", config=config)

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._client is not None:
                self._client.close()


def _unreachable(error: Exception) -> EngineUnavailableError:
    return EngineUnavailableError(f"No answer came ({error}): what was asked for may have been done.")
