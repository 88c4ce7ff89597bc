"""The transport on botocore's low-level client: its credentials and signatures, not its models nor its retries."""

from collections.abc import Mapping, Sequence
from functools import partial
from ssl import SSLCertVerificationError
from threading import Lock
from typing import Any

from botocore import xform_name
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    MetadataRetrievalError,
    ProxyConnectionError,
    SSLError,
)
from botocore.exceptions import ConnectionError as BotocoreConnectionError
from urllib3.util.ssl_match_hostname import CertificateError

from dynashard import waiting
from dynashard.errors import ConfigurationError, DynashardError, EngineError
from dynashard.transport.attempts import Attempts, resend_of
from dynashard.transport.bounded_calls import BoundedCalls
from dynashard.transport.classification import unanswered, unreached
from dynashard.transport.client import open_client
from dynashard.transport.clock_offset import ClockOffset
from dynashard.transport.deadline import within
from dynashard.transport.forks import after_fork
from dynashard.transport.interface import Call, Resend, Settings, Wire, record, with_capacity
from dynashard.transport.wire_format import accepted, refusal_of, require_remaining
from dynashard.transport.worker_pool import WorkerPool

_NOT_SENT = (
    EndpointConnectionError,
    ConnectTimeoutError,
    ProxyConnectionError,
    CredentialRetrievalError,
    MetadataRetrievalError,
)
_UNANSWERED = (BotocoreConnectionError, HTTPClientError)


class SdkTransport:
    """Sends requests through botocore, retried by `Attempts`: see `Transport`. Its client is built on first use."""

    def __init__(self, settings: Settings, attempts: Attempts | None = None) -> None:
        self._settings = settings
        self._attempts = attempts or Attempts(settings.attempts)
        self._closed = False
        self.clock_offset = ClockOffset(self._attempts.runtime)
        self._begin()
        after_fork(self, SdkTransport._begin)

    def _begin(self) -> None:
        """Begin without a client. One of the process from which this one was forked is kept, but never used."""
        # Its finalizers could wait for a lock that another thread held when this process was forked.
        self._inherited = getattr(self, "_opened", None)
        self._lock = Lock()
        self._opened: Any = None
        self._methods: dict[str, Any] = {}
        # The calling thread sends too: together no more than there are sockets.
        self._pool = WorkerPool(max(1, self._settings.max_connections - 1))
        self._bounded = BoundedCalls(self._settings.max_connections)

    def warm(self) -> None:
        """Build the client now; raises as the first request would. Cost: no request, about 50 ms of CPU."""
        if waiting.current() is not None:
            waiting.in_thread(self.warm)
        elif self._opened is None or self._closed:
            with within(self._settings.operation_seconds):
                self._bounded.run("connect", self._open)

    def call(self, operation: str, request: Mapping[str, Any], *, resend: Resend | None = None) -> Wire:
        """Send one request; see `Transport.call`. Under an event loop it is sent by a thread."""
        if waiting.current() is not None:
            return waiting.in_thread(partial(self.call, operation, request, resend=resend))
        resend = resend or resend_of(operation, request)
        request = with_capacity(operation, request)
        with within(self._settings.operation_seconds):
            answer = self._attempts.run(lambda attempt: self._once(operation, request, attempt), operation, resend)
        record(operation, answer)
        return answer

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        """Send several requests at once; see `Transport.call_all`."""
        if waiting.current() is not None:
            return waiting.in_thread(partial(self.call_all, calls, concurrency=concurrency))
        self.warm()
        return self._pool.run(self._call, calls, concurrency)

    def try_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire | DynashardError]:
        """Send several requests at once; see `Transport.try_all`."""
        if waiting.current() is not None:
            return waiting.in_thread(partial(self.try_all, calls, concurrency=concurrency))
        self.warm()
        return self._pool.run(self._tried, calls, concurrency)

    def _call(self, call: Call) -> Wire:
        return self.call(call.operation, call.request, resend=call.resend)

    def _tried(self, call: Call) -> Wire | DynashardError:
        try:
            return self._call(call)
        except DynashardError as error:
            return error

    def close(self) -> None:
        """Close sockets and threads; see `Transport.close`."""
        with self._lock:
            opened, self._opened, self._closed = self._opened, None, True
            self._methods = {}
        waiting.in_thread(self._pool.close)
        self._bounded.close()
        if opened is not None:
            opened.close()

    def _once(self, operation: str, request: Mapping[str, Any], attempt: int) -> Wire:
        require_remaining(operation)
        clock = self._attempts.runtime.clock
        began = clock()
        try:
            answer = self._bounded.run(operation, lambda: self._send(operation, request))
        except ClientError as error:
            if error.operation_name != operation:
                raise failure_of(operation, error) from error
            answer = error.response
        except BotoCoreError as error:
            raise failure_of(operation, error) from error
        self.clock_offset.observe(answer["ResponseMetadata"]["HTTPHeaders"].get("date", ""), began, clock())
        return accepted(operation, answer, attempt)

    def _send(self, operation: str, request: Mapping[str, Any]) -> Wire:
        method = self._methods.get(operation) or self._method(operation)
        answer: Wire = method(**request)
        return answer

    def _method(self, operation: str) -> Any:
        client = self._open()
        name = xform_name(operation)
        if not hasattr(client, name):
            raise EngineError(
                f"DynamoDB has no operation {operation}: use a name of its API reference, such as GetItem.",
                operation=operation,
            )
        return self._methods.setdefault(operation, getattr(client, name))

    def _open(self) -> Any:
        with self._lock:
            if self._closed:
                raise EngineError("This transport is closed: connect again.")
            if self._opened is None:
                try:
                    self._opened = open_client(self._settings)
                except (BotoCoreError, ValueError) as error:
                    raise failure_of("connect", error) from error
            return self._opened


def failure_of(operation: str, error: Exception) -> DynashardError:
    """Return the layer's error for one of botocore's own: nothing was sent, or no answer came.

    A `ClientError` is that of the service which was asked for credentials, such as STS for a role.
    """
    if isinstance(error, ClientError):
        refusal = refusal_of(operation, error.response)
        if refusal.throttled or refusal.status >= 500:  # noqa: PLR2004 - HTTP's own number
            return unreached(operation, refusal.code, f"no credentials: {error}")
    if isinstance(error, SSLError) and _untrusted(error):
        return unreached(operation, "HandshakeError", str(error))
    if isinstance(error, _NOT_SENT):
        return unreached(operation, type(error).__name__, str(error))
    if isinstance(error, _UNANSWERED):
        return unanswered(operation, type(error).__name__, f"DynamoDB did not answer ({error})")
    return ConfigurationError(f"{operation} cannot be sent: {error}. Check region, credentials and endpoint.")


def _untrusted(error: BaseException | None) -> bool:
    """Whether a certificate was refused, so that there was no connection. Other errors of TLS may come later."""
    while error is not None:
        if isinstance(error, (SSLCertVerificationError, CertificateError)):
            return True
        error = error.__cause__ or error.__context__
    return False
