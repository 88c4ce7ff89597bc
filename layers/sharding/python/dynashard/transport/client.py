"""Botocore's client for the transport, without what DynamoDB's requests and answers do not need."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final
from zlib import crc32

import botocore
import orjson
from botocore.config import Config
from botocore.handlers import generate_idempotent_uuid
from botocore.httpsession import get_cert_path
from botocore.loaders import Loader, create_loader
from botocore.parsers import ResponseParserFactory
from botocore.session import Session
from botocore.utils import get_environ_proxies

from dynashard.errors import ConfigurationError
from dynashard.transport.classification import DAMAGED, Refusal, throttle_names
from dynashard.transport.deadline import LONGEST_OPERATION, require_time
from dynashard.transport.interface import meters
from dynashard.transport.seams import replace_parts
from dynashard.transport.sender import PooledSender

_RETRIES: Final = "retry-config-dynamodb"


@dataclass(frozen=True, slots=True)
class Settings:
    """How a transport reaches DynamoDB; `transport.connect` describes each setting and what is refused."""

    endpoint_url: str | None = None
    region: str | None = None
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    attempts: int = 4
    connect_timeout: float = 2.0
    read_timeout: float = 10.0
    max_connections: int = 50
    operation_seconds: float = LONGEST_OPERATION
    profile: str | None = None

    def __post_init__(self) -> None:
        require_time(self.operation_seconds)
        if (self.access_key is None) != (self.secret_key is None):
            raise ConfigurationError("Give both access_key and secret_key, or neither.")


class WireParser:
    """Parses an answer's JSON once, without botocore's walk along the service model."""

    def parse(self, response: Mapping[str, Any], shape: Any) -> dict[str, Any]:
        """Return the body with `ResponseMetadata`, and that of an error with `{"Error": {"Code", "Message"}}` too."""
        status = response["status_code"]
        answer = _parsed(response["body"])
        if answer is None:
            code = DAMAGED if status < 300 else str(status)  # noqa: PLR2004 - HTTP's own number
            answer = {"Error": {"Code": code, "Message": "The answer is not a JSON object."}}
        elif status >= 300:  # noqa: PLR2004 - HTTP's own number
            if shape is not None and shape.metadata.get("exception"):
                return {}  # Botocore parses an error twice, for fields that are all there already.
            # `com.amazonaws.dynamodb.v20120810#ValidationException` is `ValidationException`.
            code = str(answer.get("__type") or status).rsplit("#", 1)[-1].split(":", 1)[0]
            answer["Error"] = {"Code": code, "Message": str(answer.get("message") or answer.get("Message") or "")}
        answer["ResponseMetadata"] = {"HTTPStatusCode": status, "HTTPHeaders": response["headers"]}
        return answer


class WireParserFactory(ResponseParserFactory):  # type: ignore[misc]
    """Returns the lean parser for DynamoDB's protocol, and botocore's own for every other.

    Credential providers create clients of other services (STS, SSO) in the same session; none of them uses `json`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._json = WireParser()

    def create_parser(self, protocol_name: str) -> Any:
        """Botocore calls this once for each answer."""
        return self._json if protocol_name == "json" else super().create_parser(protocol_name)


def _parsed(body: bytes) -> dict[str, Any] | None:
    if not body:
        return {}
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return parsed if isinstance(parsed, dict) else None


@dataclass(frozen=True, slots=True)
class Opened:
    """A client and its sender, which is None behind a proxy: there botocore sends."""

    client: Any
    sender: PooledSender | None

    def close(self) -> None:
        """Close all connections."""
        self.client.close()
        if self.sender is not None:
            self.sender.close()


@cache
def _loader(search_path: str | None) -> Loader:
    return create_loader(search_path)


def open_session(profile: str | None) -> Session:
    """Return a session of a profile, by default the SDK's own. Raises `BotoCoreError` if there is no such profile.

    Sessions share the descriptions of services and endpoints: these are read once in a process, not for each client.
    """
    session = Session(profile=profile)
    session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
    return session


def open_client(settings: Settings) -> Opened:
    """Build a client; sends no request.

    Raises:
        BotoCoreError: no region, an unknown profile, or an endpoint that is not a URL.
        ConfigurationError: an unsupported version of botocore.
    """
    session = open_session(settings.profile)
    session.register_component("response_parser_factory", WireParserFactory())
    # Callers that need a token pass one. Engines keep each token for ten minutes, and the local one searches all of
    # them for every further transaction that has one.
    session.unregister("before-parameter-build", generate_idempotent_uuid)
    client = session.create_client(
        "dynamodb",
        region_name=settings.region,
        endpoint_url=settings.endpoint_url,
        aws_access_key_id=settings.access_key,
        aws_secret_access_key=settings.secret_key,
        aws_session_token=settings.token,
        config=_config(settings),
    )
    replace_parts(client)
    events = client.meta.events
    # With botocore's retries off, this handler only inspects each answer.
    events.unregister("needs-retry.dynamodb", unique_id=_RETRIES)
    events.register("response-received.dynamodb", _count_throttle)
    events.register("after-call.dynamodb", _refuse_damaged)
    sender = _sender(settings, client.meta.endpoint_url, session.get_config_variable("ca_bundle"))
    if sender is not None:
        events.register("before-send.dynamodb", sender)
    return Opened(client, sender)


def _config(settings: Settings) -> Config:
    return Config(
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
        # Botocore would send every write again after every failure; `attempts` decides instead.
        retries={"mode": "standard", "total_max_attempts": 1},
    )


def _sender(settings: Settings, url: str, ca_bundle: str | None) -> PooledSender | None:
    if get_environ_proxies(url):
        return None
    return PooledSender(
        url,
        ca_bundle=ca_bundle or get_cert_path(verify=True),
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        max_connections=settings.max_connections,
    )


def refusal_of(operation: str, answer: Mapping[str, Any], attempt: int = 1) -> Refusal:
    """Return what an error answer from the parser says; `attempt` is the number of the attempt that it answers."""
    metadata = answer["ResponseMetadata"]
    error = answer["Error"]
    wait = str(metadata["HTTPHeaders"].get("x-amz-retry-after", ""))
    return Refusal(
        operation=operation,
        status=metadata["HTTPStatusCode"],
        code=error["Code"],
        message=error["Message"],
        body=answer,
        attempts=attempt,
        # From milliseconds to the whole seconds of HTTP's Retry-After.
        retry_after=max(1, -(-int(wait) // 1000)) if wait.isdecimal() else 1,
    )


def _count_throttle(parsed_response: Mapping[str, Any] | None, **_: Any) -> None:
    """Count a throttled attempt in the caller's meters, also one that will be retried."""
    if parsed_response is None or "Error" not in parsed_response:
        return
    names = throttle_names(refusal_of("", parsed_response))
    for meter in meters():
        for name in names:
            meter.throttled(name)


def _refuse_damaged(http_response: Any, parsed: dict[str, Any], **_: Any) -> None:
    expected = http_response.headers.get("x-amz-crc32")
    if expected is not None and crc32(http_response.content) != int(expected):
        parsed["Error"] = {"Code": DAMAGED, "Message": "The answer fails its checksum."}
