"""Botocore's client for the transport, without what DynamoDB's requests and answers do not need."""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import botocore
from botocore.config import Config
from botocore.handlers import generate_idempotent_uuid
from botocore.loaders import create_loader
from botocore.parsers import ResponseParserFactory
from botocore.session import Session

from dynashard.errors import ConfigurationError
from dynashard.transport.bounded_calls import before_send
from dynashard.transport.certificates import ca_bundle, require_readable
from dynashard.transport.interface import AwsSession, Settings, Wire
from dynashard.transport.wire_format import body_of, parsed_answer

_RETRIES: Final = "retry-config-dynamodb"
_SERIALIZER: Final = "_serializer"


class WireParser(ResponseParserFactory):  # type: ignore[misc]
    """Parses answers of DynamoDB's protocol once, without a walk along the service model, and botocore all others.

    Credential providers create clients of other services (STS, SSO) in the same session; none of them uses `json`.
    """

    def create_parser(self, protocol_name: str) -> Any:
        """Botocore calls this once for each answer."""
        return self if protocol_name == "json" else super().create_parser(protocol_name)

    def parse(self, response: Mapping[str, Any], shape: Any) -> Wire:
        """Return what `parsed_answer` does."""
        if shape is not None and shape.metadata.get("exception"):
            return {}  # Botocore parses an error twice, for fields that are all there already.
        return parsed_answer(response["status_code"], response["headers"], response["body"])


_loader: Final = cache(create_loader)


class _SessionCredentials:
    """The provider of credentials of a session, which are those of another one, refreshed there."""

    def __init__(self, session: AwsSession) -> None:
        self._session = session

    def load_credentials(self) -> Any:
        """Botocore calls this once for a session."""
        return self._session.get_credentials()


def open_session(profile: str | None, theirs: AwsSession | None = None) -> Session:
    """Return a session of a profile, by default the SDK's own, or with the profile and credentials of another session.

    Raises `BotoCoreError` if there is no such profile.

    Sessions share the descriptions of services and endpoints: these are read once in a process, not for each client.
    """
    if theirs is not None:
        profile = None if theirs.profile_name == "default" else theirs.profile_name
    session = Session(profile=profile)
    if theirs is not None:
        session.register_component("credential_provider", _SessionCredentials(theirs))
    session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
    return session


def open_client(settings: Settings) -> Any:
    """Build a client; sends no request.

    Raises:
        BotoCoreError: no region, an unknown profile, or an endpoint that is not a URL.
        ConfigurationError: an unsupported version of botocore, or root certificates that cannot be read.
    """
    session = open_session(settings.profile, settings.session)
    session.register_component("response_parser_factory", WireParser())
    # Callers that need a token pass one. Engines keep each token for ten minutes, and the local one searches all of
    # them for every further transaction that has one.
    session.unregister("before-parameter-build", generate_idempotent_uuid)
    require_readable(ca_bundle(session.get_config_variable("ca_bundle"), os.environ))
    client = session.create_client(
        "dynamodb",
        region_name=settings.region,
        endpoint_url=settings.endpoint_url,
        aws_access_key_id=settings.access_key,
        aws_secret_access_key=settings.secret_key,
        aws_session_token=settings.token,
        config=_config(settings),
    )
    replace_serializer(client)
    events = client.meta.events
    # With botocore's retries off, this handler only inspects each answer.
    events.unregister("needs-retry.dynamodb", unique_id=_RETRIES)
    events.register("before-send.dynamodb", before_send)
    return client


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


def replace_serializer(client: Any) -> None:
    """Replace a private part of a DynamoDB client; raises `ConfigurationError` if this botocore has no such part."""
    if getattr(client, "__dict__", {}).get(_SERIALIZER) is None:
        raise ConfigurationError(
            f"This botocore's clients have no {_SERIALIZER}: install the version in requirements/sharding.txt."
        )
    setattr(client, _SERIALIZER, WireSerializer(client.meta.service_model.metadata))


class WireSerializer:
    """Sends a request's mapping unchanged, for which botocore has no public way: it is DynamoDB JSON already."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self._content_type = f"application/x-amz-json-{metadata['jsonVersion']}"
        self._prefix = metadata["targetPrefix"]

    def serialize_to_request(self, parameters: Mapping[str, Any], operation_model: Any) -> dict[str, Any]:
        """Return the request to sign and send; raises `InvalidValueError` if JSON cannot express a value of it."""
        return {
            "url_path": "/",
            "query_string": "",
            "method": "POST",
            "headers": {"X-Amz-Target": f"{self._prefix}.{operation_model.name}", "Content-Type": self._content_type},
            "body": body_of(operation_model.name, parameters),
        }
