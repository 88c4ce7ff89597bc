"""The transport on botocore, for everything that the direct one does not do. Each reason is logged once."""

from functools import cache
from typing import TYPE_CHECKING

from dynashard.transport.attempts import Attempts
from dynashard.transport.interface import Settings

if TYPE_CHECKING:
    from dynashard.transport.sdk import SdkTransport


def sdk_transport(settings: Settings, attempts: Attempts | None, *, sent: str, reason: str) -> "SdkTransport":
    """Return the transport on botocore. Cost: imports the SDK, about 150 ms, once; no request.

    Args:
        settings: as of the direct transport.
        attempts: as of the direct transport, so that both share one retry quota.
        sent: what botocore sends, for the log.
        reason: why, for the log.
    """
    from dynashard.transport.sdk import SdkTransport  # noqa: PLC0415 - it imports botocore

    _log(sent, reason)
    return SdkTransport(settings, attempts)


@cache
def _log(sent: str, reason: str) -> None:
    import logging  # noqa: PLC0415 - rare

    logging.getLogger(__name__).info("%s are sent by botocore: %s.", sent, reason)
