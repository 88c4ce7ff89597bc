"""The wire to DynamoDB: one small interface, typed errors, metered capacity.

The AWS SDK is imported when `connect` is called.
"""

from typing import TYPE_CHECKING

from dynashard.transport.deadline import LONGEST_OPERATION
from dynashard.transport.interface import Call, Resend, Settings, Transport, Wire, metered

if TYPE_CHECKING:
    from dynashard.transport.sdk import SdkTransport

__all__ = ["Call", "Resend", "Transport", "Wire", "connect", "metered"]


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
) -> "SdkTransport":
    """Return a transport to DynamoDB, whose client is built by `warm()` or the first request; `close()` releases it.

    Args:
        endpoint_url: of a local engine; None uses AWS's own.
        region: None uses the SDK's: environment or profile.
        access_key: for a local engine; None uses the SDK's own credentials: role, profile, environment.
        secret_key: goes with `access_key`.
        token: of temporary credentials.
        attempts: how often a request is sent at most, the first time included.
        connect_timeout: for a connection, in seconds.
        read_timeout: for an answer, in seconds.
        max_connections: size of the connection pool, and threads for parallel requests.
        operation_seconds: how long one request may take with all of its attempts and pauses; at most
            `TOPOLOGY_OPERATION_SECONDS` of the backend, for which changes of shard counts wait.
        profile: of the SDK's configuration files; None uses the SDK's default.

    Raises:
        ConfigurationError: only one of `access_key` and `secret_key`, or `operation_seconds` not above 0.

    Cost: no request. Importing the SDK takes about 150 ms, once.
    """
    # Importing the SDK is slow, and code that only declares entities or reads `schema` does not need it.
    from dynashard.transport.sdk import SdkTransport  # noqa: PLC0415

    settings = Settings(
        endpoint_url=endpoint_url, region=region, access_key=access_key, secret_key=secret_key, token=token,
        attempts=attempts, connect_timeout=connect_timeout, read_timeout=read_timeout, max_connections=max_connections,
        operation_seconds=operation_seconds, profile=profile,
    )  # fmt: skip
    return SdkTransport(settings)
