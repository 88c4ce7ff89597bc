"""Whether the direct transport can do what the settings ask for; botocore's does the rest."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dynashard.transport.attempts import Attempts
from dynashard.transport.direct.credentials import source_of
from dynashard.transport.direct.endpoint import endpoint_of
from dynashard.transport.direct.fallback import sdk_transport
from dynashard.transport.direct.transport import DirectTransport
from dynashard.transport.direct.unusual import UnusualSettingsError
from dynashard.transport.interface import Settings

if TYPE_CHECKING:
    from dynashard.transport.sdk import SdkTransport


def transport_for(
    settings: Settings, environ: Mapping[str, str], attempts: Attempts | None = None
) -> "DirectTransport | SdkTransport":
    """Return the direct transport, or botocore's for settings that are unusual, which is logged once for each reason.

    Raises `ConfigurationError` for explicit keys that cannot be keys.
    """
    try:
        endpoint = endpoint_of(settings, environ)
    except UnusualSettingsError as unusual:
        return sdk_transport(settings, attempts, sent="Requests to DynamoDB", reason=str(unusual))
    return DirectTransport(settings, endpoint, source_of(settings, environ), attempts)
