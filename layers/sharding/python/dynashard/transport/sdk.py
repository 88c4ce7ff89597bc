"""The transport on botocore's low-level client: its credentials, signatures and retries, not its models."""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from botocore import xform_name
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    MetadataRetrievalError,
)
from botocore.exceptions import ConnectionError as BotocoreConnectionError

from dynashard.errors import ConfigurationError, DynashardError, EngineError, EngineUnavailableError
from dynashard.transport.capacity import METERED, consumed_of
from dynashard.transport.classification import classify
from dynashard.transport.client import Opened, Settings, open_client, refusal_of
from dynashard.transport.interface import Call, Wire, meters
from dynashard.transport.lanes import Lanes

_UNREACHABLE = (BotocoreConnectionError, HTTPClientError, CredentialRetrievalError, MetadataRetrievalError)


class SdkTransport:
    """Sends requests through botocore. Safe to share between threads; built on first use.

    Retries are botocore's standard ones: exponential, full jitter, on throttles, conflicts of replicas,
    failures on DynamoDB's side, lost connections, timeouts and answers that fail their checksum.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._opened: Opened | None = None
        self._methods: dict[str, Any] = {}
        self._closed = False
        # The asking thread sends too: together no more than there are sockets.
        self._lanes = Lanes(max(1, settings.max_connections - 1))

    def warm(self) -> None:
        """Build the client now, so that the first request does not wait for it.

        Raises:
            ConfigurationError: no region, or a profile that does not exist.

        Cost: no request, about 50 ms of CPU.
        """
        self._open()

    def call(self, operation: str, request: Mapping[str, Any]) -> Wire:
        """Send one request; see `Transport.call`."""
        method = self._methods.get(operation) or self._method(operation)
        measured = operation in METERED
        if measured and "ReturnConsumedCapacity" not in request:
            request = {**request, "ReturnConsumedCapacity": "TOTAL"}
        try:
            answer: Wire = method(**request)
        except ClientError as error:
            raise classify(refusal_of(operation, error.response)) from error
        except BotoCoreError as error:
            raise _unsent(operation, error) from error
        metadata = answer.pop("ResponseMetadata")
        if "Error" in answer:
            raise classify(refusal_of(operation, {**answer, "ResponseMetadata": metadata}))
        if measured:
            for meter in meters():
                meter.record(operation, consumed_of(operation, answer))
        return answer

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        """Send several requests at once; see `Transport.call_all`."""
        self._open()
        return self._lanes.run(lambda call: self.call(call.operation, call.request), calls, concurrency)

    def close(self) -> None:
        """Give back sockets and threads; see `Transport.close`."""
        with self._lock:
            opened, self._opened, self._closed = self._opened, None, True
            self._methods = {}
        self._lanes.close()
        if opened is not None:
            opened.close()

    def _method(self, operation: str) -> Any:
        client = self._open().client
        name = xform_name(operation)
        if not hasattr(client, name):
            raise EngineError(
                f"DynamoDB has no operation {operation}: use a name of its API reference, such as GetItem.",
                operation=operation,
            )
        return self._methods.setdefault(operation, getattr(client, name))

    def _open(self) -> Opened:
        with self._lock:
            if self._closed:
                raise EngineError("This transport is closed: connect again.")
            if self._opened is None:
                try:
                    self._opened = open_client(self._settings)
                except (BotoCoreError, ValueError) as error:
                    raise _unsent("connect", error) from error
            return self._opened


def _unsent(operation: str, error: Exception) -> DynashardError:
    """Botocore's own errors: no answer came, or nothing could be sent."""
    if isinstance(error, _UNREACHABLE):
        return EngineUnavailableError(
            f"DynamoDB did not answer ({error}); {operation} may have been applied. Try again.",
            operation=operation,
            aws_code=type(error).__name__,
        )
    return ConfigurationError(f"{operation} cannot be sent: {error}. Check region, credentials and endpoint.")
