"""The transport on botocore's low-level client: its credentials, signatures and retries, not its models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from zlib import crc32

import botocore
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    MetadataRetrievalError,
)
from botocore.exceptions import ConnectionError as BotocoreConnectionError
from botocore.session import Session

from dynashard.errors import ConfigurationError, DynashardError, EngineError, EngineUnavailableError
from dynashard.transport.capacity import METERED, consumed_of
from dynashard.transport.classification import DAMAGED, Refusal, classify, throttle_names
from dynashard.transport.interface import Call, Wire, meters
from dynashard.transport.lanes import Lanes
from dynashard.transport.parser import WireParserFactory
from dynashard.transport.seams import replace_parts

_RETRIES_OVER = ("MaxAttemptsReached", "RetryQuotaReached")
_UNREACHABLE = (BotocoreConnectionError, HTTPClientError, CredentialRetrievalError, MetadataRetrievalError)


@dataclass(frozen=True, slots=True)
class Credentials:
    """Keys given by hand, as a local engine needs them. Elsewhere botocore finds its own."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)

    @classmethod
    def given(cls, access_key: str | None, secret_key: str | None, token: str | None) -> "Credentials | None":
        """The keys, or None if none were given.

        Raises:
            ConfigurationError: half a pair.
        """
        if access_key is None and secret_key is None:
            return None
        if access_key is None or secret_key is None:
            raise ConfigurationError("Give both access_key and secret_key, or neither.")
        return cls(access_key, secret_key, token)


@dataclass(frozen=True, slots=True)
class SdkSettings:
    """How a transport reaches DynamoDB.

    Attributes:
        endpoint_url: where; None is AWS's own endpoint of the region.
        region: None takes botocore's.
        credentials: None takes botocore's: a role, a profile, the environment.
        attempts: how often a request is sent at most, the first time included.
        connect_timeout: for a connection, in seconds.
        read_timeout: for an answer, in seconds.
        max_connections: sockets kept open, and threads of `call_all`.
    """

    endpoint_url: str | None = None
    region: str | None = None
    credentials: Credentials | None = None
    attempts: int = 4
    connect_timeout: float = 2.0
    read_timeout: float = 10.0
    max_connections: int = 50


class SdkTransport:
    """Sends requests through botocore. Safe to share between threads; built on first use.

    Retries are botocore's standard ones: exponential, full jitter, on throttles, conflicts of replicas,
    failures on DynamoDB's side, lost connections, timeouts and answers that fail their checksum.
    """

    def __init__(self, settings: SdkSettings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._client: Any = None
        self._methods: dict[str, Any] = {}
        self._closed = False
        self._lanes = Lanes(max(1, settings.max_connections - 1))

    def warm(self) -> None:
        """Build the client now, so that the first request does not wait for it.

        Raises:
            ConfigurationError: no region, or a profile that does not exist.

        Cost: no request, about 50 ms of CPU.
        """
        self._opened()

    def call(self, operation: str, request: Mapping[str, Any]) -> Wire:
        """Send one request; see `Transport.call`."""
        method = self._methods.get(operation) or self._method(operation)
        measured = operation in METERED
        if measured and "ReturnConsumedCapacity" not in request:
            request = {**request, "ReturnConsumedCapacity": "TOTAL"}
        try:
            answer: Wire = method(**request)
        except ClientError as error:
            raise classify(_refusal(operation, error.response)) from error
        except BotoCoreError as error:
            raise _unsent(operation, error) from error
        metadata = answer.pop("ResponseMetadata")
        if "Error" in answer:
            raise classify(_refusal(operation, {**answer, "ResponseMetadata": metadata}))
        if measured:
            for meter in meters():
                meter.record(operation, consumed_of(operation, answer))
        return answer

    def call_all(self, calls: Sequence[Call], *, concurrency: int = 16) -> list[Wire]:
        """Send several requests at once; see `Transport.call_all`."""
        self._opened()
        return self._lanes.run(lambda call: self.call(call.operation, call.request), calls, concurrency)

    def close(self) -> None:
        """Give back sockets and threads; see `Transport.close`."""
        with self._lock:
            client, self._client, self._closed = self._client, None, True
            self._methods = {}
        self._lanes.close()
        if client is not None:
            client.close()

    def _method(self, operation: str) -> Any:
        client = self._opened()
        name = botocore.xform_name(operation)
        if not hasattr(client, name):
            raise EngineError(
                f"DynamoDB has no operation {operation}: use a name of its API reference, such as GetItem.",
                operation=operation,
            )
        return self._methods.setdefault(operation, getattr(client, name))

    def _opened(self) -> Any:
        with self._lock:
            if self._closed:
                raise EngineError("This transport is closed: connect again.")
            if self._client is None:
                try:
                    self._client = _client(self._settings)
                except BotoCoreError as error:
                    raise _unsent("connect", error) from error
            return self._client


def _client(settings: SdkSettings) -> Any:
    """A client without what requests here do not need: validation, models, compression, a long user agent."""
    session = Session()
    session.register_component("response_parser_factory", WireParserFactory())
    keys = settings.credentials
    client = session.create_client(
        "dynamodb",
        region_name=settings.region,
        endpoint_url=settings.endpoint_url,
        aws_access_key_id=keys.access_key if keys else None,
        aws_secret_access_key=keys.secret_key if keys else None,
        aws_session_token=keys.token if keys else None,
        config=Config(
            user_agent=f"Dynashard Botocore/{botocore.__version__}",
            parameter_validation=False,
            account_id_endpoint_mode="disabled",
            disable_request_compression=True,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            inject_host_prefix=False,
            tcp_keepalive=True,
            max_pool_connections=settings.max_connections,
            connect_timeout=settings.connect_timeout,
            read_timeout=settings.read_timeout,
            retries={"mode": "standard", "total_max_attempts": settings.attempts},
        ),
    )
    replace_parts(client)
    client.meta.events.register("response-received.dynamodb", _count_throttle)
    client.meta.events.register("after-call.dynamodb", _refuse_damaged)
    return client


def _count_throttle(parsed_response: Mapping[str, Any] | None, **_: Any) -> None:
    """Count a throttled attempt: all pass here, in the caller's context, those that will be retried too."""
    if parsed_response is None or "Error" not in parsed_response:
        return
    names = throttle_names(_refusal("", parsed_response))
    for meter in meters():
        for name in names:
            meter.throttled(name)


def _refuse_damaged(http_response: Any, parsed: dict[str, Any], **_: Any) -> None:
    """Botocore retries an answer that fails its checksum, but hands out the last one. Refuse that one."""
    if parsed["ResponseMetadata"].keys().isdisjoint(_RETRIES_OVER):
        return
    expected = http_response.headers.get("x-amz-crc32")
    if expected is not None and crc32(http_response.content) != int(expected):
        parsed["Error"] = {"Code": DAMAGED, "Message": "The answer fails its checksum."}


def _refusal(operation: str, answer: Mapping[str, Any]) -> Refusal:
    metadata = answer["ResponseMetadata"]
    error = answer["Error"]
    wait = str(metadata["HTTPHeaders"].get("x-amz-retry-after", ""))
    return Refusal(
        operation=operation,
        status=metadata["HTTPStatusCode"],
        code=error["Code"],
        message=error["Message"],
        body=answer,
        attempts=metadata.get("RetryAttempts", 0) + 1,
        # In milliseconds; HTTP's Retry-After, which it becomes, counts whole seconds.
        retry_after=max(1, -(-int(wait) // 1000)) if wait.isdecimal() else 1,
    )


def _unsent(operation: str, error: BotoCoreError) -> DynashardError:
    """Botocore's own errors: no answer came, or nothing could be sent."""
    if isinstance(error, _UNREACHABLE):
        return EngineUnavailableError(
            f"DynamoDB did not answer ({error}); {operation} may have been applied. Try again.",
            operation=operation,
            aws_code=type(error).__name__,
        )
    return ConfigurationError(f"{operation} cannot be sent: {error}. Check region, credentials and endpoint.")
