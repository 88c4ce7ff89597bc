"""The wire to DynamoDB: one small interface, typed errors, metered capacity.

`connect` is the one place that decides which of the two transports speaks: `direct` or `sdk`.
"""

import os
from typing import Final

from dynashard.cures import checked
from dynashard.errors import ConfigurationError
from dynashard.transport.deadline import LONGEST_OPERATION
from dynashard.transport.interface import AwsSession, Call, Resend, Settings, Transport, Wire, metered
from dynashard.transport.selection import DEFAULT, TransportName

__all__ = [
    "AwsSession",
    "Call",
    "Resend",
    "Transport",
    "TransportName",
    "Wire",
    "connect",
    "metered",
]


_ELSEWHERE: Final = {
    "aws_access_key_id": "access_key=", "aws_secret_access_key": "secret_key=", "aws_session_token": "token=",
    "endpoint": "endpoint_url=", "profile_name": "profile=", "region_name": "region=", "url": "endpoint_url=",
}  # fmt: skip
"""What boto3 and others call the arguments of `connect`."""


@checked("connect", ConfigurationError, instead=_ELSEWHERE)
def connect(
    endpoint_url: str | None = None,
    region: str | None = None,
    *,
    transport: TransportName = DEFAULT,
    access_key: str | None = None,
    secret_key: str | None = None,
    token: str | None = None,
    attempts: int = 4,
    connect_timeout: float = 2.0,
    read_timeout: float = 10.0,
    max_connections: int = 50,
    operation_seconds: float = LONGEST_OPERATION,
    profile: str | None = None,
    session: AwsSession | None = None,
) -> Transport:
    """Return a transport to DynamoDB, which connects with `warm()` or the first request; `close()` releases it.

    Args:
        endpoint_url: of a local engine or a VPC endpoint; None uses AWS's own.
        region: None uses the SDK's: environment or profile.
        transport: what signs and sends requests. `direct` leaves a proxy, an endpoint with a path and other unusual
            settings to `botocore`, and logs each reason once.
        access_key: for a local engine; None uses the SDK's own credentials: role, profile, environment.
        secret_key: goes with `access_key`.
        token: of temporary credentials.
        attempts: how often a request is sent at most, the first time included.
        connect_timeout: for a connection, in seconds.
        read_timeout: for a wait for bytes of an answer, in seconds.
        max_connections: open at a time, and threads for parallel requests; further requests wait for one.
        operation_seconds: how long one request may take with all of its attempts and pauses; at most
            `TOPOLOGY_OPERATION_SECONDS` of the backend, for which resizes wait.
        profile: of the SDK's configuration files; None uses the SDK's default.
        session: a `boto3.Session`, whose credentials, region and profile are used.

    Raises:
        ConfigurationError: an argument that it does not have, only one of `access_key` and `secret_key`, keys with
            impossible characters, a session together with keys or a profile, or `operation_seconds` not above 0.

    Cost: no request. `botocore` imports the SDK, about 150 ms, once. `direct` imports it only for profiles,
    configuration files and credentials that are not in the environment.
    """
    if not isinstance(region, str | None):
        raise ConfigurationError(f'region is {region!r}; write its name, such as region="eu-west-1"')
    if session is not None and not hasattr(session, "get_credentials"):
        raise ConfigurationError(f"session is a {type(session).__name__}; write session=boto3.Session(...)")
    settings = Settings(
        endpoint_url=endpoint_url,
        region=region if region is not None or session is None else session.region_name,
        access_key=access_key,
        secret_key=secret_key,
        token=token,
        attempts=attempts,
        connect_timeout=connect_timeout,
        read_timeout=read_timeout,
        max_connections=max_connections,
        operation_seconds=operation_seconds,
        profile=profile,
        session=session,
    )
    # Code that only declares entities or reads `schema` needs neither, and the SDK is slow to import.
    if transport == "botocore":
        from dynashard.transport.sdk import SdkTransport  # noqa: PLC0415

        return SdkTransport(settings)
    from dynashard.transport.direct.choice import transport_for  # noqa: PLC0415

    return transport_for(settings, os.environ)
