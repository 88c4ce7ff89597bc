"""A transport to DynamoDB on plain sockets, with signatures of its own: less CPU than botocore, the same outcomes.

It is the default of `Dynashard.local`, `Dynashard.deployed` and all processes of a backend; see `selection`.
"""

import os
from typing import TYPE_CHECKING

from dynashard.transport.deadline import LONGEST_OPERATION
from dynashard.transport.interface import Settings
from dynashard_direct.choice import transport_for
from dynashard_direct.transport import DirectTransport

if TYPE_CHECKING:
    from dynashard.transport.sdk import SdkTransport

__all__ = ["DirectTransport", "connect"]


def connect(
    endpoint_url: str | None = None,
    region: str | None = None,
    *,
    access_key: str | None = None,
    secret_key: str | None = None,
    token: str | None = None,
    attempts: int = 4,
    connect_timeout: float = 2.0,
    read_timeout: float = 10.0,
    max_connections: int = 50,
    operation_seconds: float = LONGEST_OPERATION,
    profile: str | None = None,
) -> "DirectTransport | SdkTransport":
    """Return a transport to DynamoDB; `close()` releases it.

    The arguments are those of `dynashard.transport.connect`. Botocore's transport is returned for a proxy, an endpoint
    with a path and other unusual settings, which is logged once for each reason.

    Args:
        endpoint_url: of a local engine or a VPC endpoint; None uses AWS's own.
        region: None uses the SDK's: environment or profile.
        access_key: None uses the environment's keys or the SDK's providers: role, profile.
        secret_key: goes with `access_key`.
        token: of temporary credentials.
        attempts: how often a request is sent at most, the first time included.
        connect_timeout: for a connection, in seconds.
        read_timeout: for a wait for bytes of an answer, in seconds.
        max_connections: open at a time; further requests wait for one.
        operation_seconds: how long one request may take with all of its attempts and pauses.
        profile: of the SDK's configuration files; None uses the SDK's default.

    Raises:
        ConfigurationError: only one of `access_key` and `secret_key`, keys with impossible characters, or
            `operation_seconds` not above 0.

    Cost: no request. Botocore is imported only for profiles, configuration files and credentials that are not in the
    environment.
    """
    settings = Settings(
        endpoint_url=endpoint_url,
        region=region,
        access_key=access_key,
        secret_key=secret_key,
        token=token,
        attempts=attempts,
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        max_connections=max_connections,
        operation_seconds=operation_seconds,
        profile=profile,
    )
    return transport_for(settings, os.environ)
